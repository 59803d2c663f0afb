//! Candidates from a node, from the contexts and from the jobs of this machine.

use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{Kind, Line, cache};
use crate::args;
use crate::help::{EXIT_CODES, TEMPLATES};
use crate::job;
use crate::link::contexts::Contexts;
use crate::link::meant::ThingNames;
use crate::link::reach::{Reach, reach};
use crate::output::table::clean;
use crate::run::kept::beside;
use crate::shell::Shell;
use crate::task::words;
use windrow_client::{Client, Depth, EnvironmentProxies, Options, Request, Tap};

/// Longest time that Tab waits for a node.
const BUDGET: Duration = Duration::from_millis(300);
/// Largest number of candidates of one kind.
const OFFERED_MAX: u32 = 200;

/// Candidate word with a short description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suggestion {
    pub(super) value: String,
    pub(super) help: String,
}

impl Suggestion {
    fn new(value: impl Into<String>, help: impl AsRef<str>) -> Suggestion {
        Suggestion {
            value: value.into(),
            help: clean(help.as_ref()),
        }
    }
}

/// Returns the candidates for a word, or nothing if they can't be found in time.
pub(super) fn find(kind: Kind, word: &str, line: &Line, shell: &Shell) -> Vec<Suggestion> {
    let business = word.split_once('/').map(|(business, _)| business);
    let asked = match kind {
        Kind::Context => return contexts(shell),
        Kind::Running => return jobs(job::running(line.state.as_deref(), shell)),
        Kind::Begun => return jobs(beside::begun(&shell.env, BUDGET)),
        Kind::Topic => return topics(),
        Kind::Task(statuses) => Request::get("/v1/tasks")
            .query_option("business", business)
            .query_option("status", Some(statuses).filter(|statuses| !statuses.is_empty()))
            .query("limit", OFFERED_MAX),
        Kind::Business { archived } => Request::get("/v1/businesses")
            .query("archived", archived)
            .query("limit", OFFERED_MAX),
        Kind::Limit => Request::get("/v1/limits").query("limit", OFFERED_MAX),
        Kind::Alert => Request::get("/v1/alerts").query("limit", OFFERED_MAX),
        Kind::Dataset => Request::get("/v1/datasets").query("limit", OFFERED_MAX),
        Kind::Schedule => Request::get("/v1/schedules")
            .query_option("business", business)
            .query("limit", OFFERED_MAX),
        Kind::Node(_) => Request::get("/v1/nodes"),
    };
    let Ok(reach) = reach(&line.remote, shell) else {
        return Vec::new();
    };
    let token = reach.token.as_deref().unwrap_or_default();
    let what = format!("{kind:?}");
    let cached = cache::Entry::of(
        shell,
        &[&reach.server, token, &what, business.unwrap_or_default()],
    );
    let fresh = cached.as_ref().and_then(cache::Entry::read);
    if let Some(found) = fresh.and_then(|body| read(kind, &body)) {
        return found;
    }
    let body = ask(reach, shell.proxies(), asked).unwrap_or_default();
    let found = read(kind, &body);
    if let (Some(cached), Some(_)) = (cached, &found) {
        cached.write(&body);
    }
    found.unwrap_or_default()
}

/// Returns job names of `windrow run` as candidates.
fn jobs(names: impl Future<Output = Vec<String>>) -> Vec<Suggestion> {
    let names = on_a_runtime(async { timeout(BUDGET, names).await.unwrap_or_default() });
    let names = names.unwrap_or_default().into_iter();
    names.map(|name| Suggestion::new(name, "")).collect()
}

/// Runs a future to its end. Leftover work, such as a name lookup, doesn't delay the return.
fn on_a_runtime<T>(work: impl Future<Output = T>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    Some(done)
}

fn topics() -> Vec<Suggestion> {
    let root = args::command();
    let commands = root.get_subcommands().filter(|command| !command.is_hide_set());
    let about = |command: &clap::Command| command.get_about().map(ToString::to_string).unwrap_or_default();
    let commands = commands.map(|command| Suggestion::new(command.get_name(), about(command)));
    commands
        .chain([
            Suggestion::new(EXIT_CODES, "Exit codes"),
            Suggestion::new(TEMPLATES, "Placeholders of --request"),
        ])
        .collect()
}

fn ask(reach: Reach, proxies: EnvironmentProxies, request: Request) -> Option<String> {
    let (server, token, ca_file) = (reach.server, reach.token, reach.ca_file);
    let tap = Tap::new(Depth::Nothing, |_| {});
    let client = Client::new(Options {
        server,
        token,
        timeout: BUDGET,
        ca_file,
        proxies,
        tap,
    })
    .ok()?;
    let answer = on_a_runtime(async { timeout(BUDGET, client.send(request)).await });
    Some(answer?.ok()?.ok()?.text())
}

/// Returns the candidates in an answer, or `None` if it isn't a list of this kind.
fn read(kind: Kind, body: &str) -> Option<Vec<Suggestion>> {
    Some(match kind {
        Kind::Task(_) => items(body)?.iter().flat_map(task).collect(),
        Kind::Business { .. } | Kind::Limit | Kind::Dataset | Kind::Alert => {
            let names = items::<ThingNames>(body)?
                .into_iter()
                .filter_map(|item| item.name);
            names.map(|name| Suggestion::new(name, "")).collect()
        }
        Kind::Schedule => {
            let found = items(body)?.into_iter().filter_map(schedule);
            found.flatten().collect()
        }
        Kind::Node(in_state) => items::<api::Node>(body)?
            .into_iter()
            .filter(|node| node.state.starts_with(in_state))
            .map(|node| Suggestion::new(node.id, node.state))
            .collect(),
        Kind::Context | Kind::Running | Kind::Begun | Kind::Topic => Vec::new(),
    })
}

fn items<T: DeserializeOwned>(body: &str) -> Option<Vec<T>> {
    Some(serde_json::from_str::<api::Page<T>>(body).ok()?.items)
}

/// Returns the task's number, and its name if it has one.
fn task(task: &api::Task) -> Vec<Suggestion> {
    let status = words::short_status(task);
    let address = words::address(task);
    let mut found = vec![Suggestion::new(&task.id, format!("{address} {status}"))];
    if task.spec.name.is_some() {
        found.push(Suggestion::new(address, format!("{} {status}", task.id)));
    }
    found
}

/// Returns the schedule's number and its name.
fn schedule(schedule: ThingNames) -> Option<[Suggestion; 2]> {
    let (id, address) = (schedule.id?, format!("{}/{}", schedule.business?, schedule.name?));
    Some([Suggestion::new(&id, &address), Suggestion::new(address, id)])
}

fn contexts(shell: &Shell) -> Vec<Suggestion> {
    let Ok(contexts) = Contexts::load(shell) else {
        return Vec::new();
    };
    contexts
        .all
        .into_iter()
        .map(|(name, context)| Suggestion::new(name, context.server))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use windrow_core::task::spec::TaskSpec;

    #[test]
    fn a_task_is_offered_by_number_and_by_name() {
        let values = |kind, items: serde_json::Value| -> Vec<String> {
            let found = read(kind, &json!({"items": items}).to_string()).unwrap_or_default();
            found.into_iter().map(|found| found.value).collect()
        };
        let task = |id: &str, name: Option<&str>| api::Task {
            id: id.to_owned(),
            business: "push".to_owned(),
            spec: TaskSpec {
                name: name.map(str::to_owned),
                ..TaskSpec::default()
            },
            ..api::Task::default()
        };
        let tasks = json!([task("t2", Some("bf")), task("t1", None)]);
        assert_eq!(values(Kind::Task(""), tasks), ["t2", "push/bf", "t1"]);
        assert_eq!(values(Kind::Node(""), json!(3)), [""; 0]);
        let node = |id: &str, state: &str| api::Node {
            id: id.to_owned(),
            state: state.to_owned(),
            ..api::Node::default()
        };
        let nodes = json!([node("n1", "serving"), node("n2", "drained")]);
        assert_eq!(
            values(Kind::Node("drain"), nodes),
            ["n2"],
            "what can be undrained"
        );
    }
}
