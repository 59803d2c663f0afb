//! Implementation of `windrow task apply`: creates or updates a task from a file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Link, document};
use crate::output::table::times::parsed;
use crate::shell::Shell;
use crate::task::args::make::{ApplyArgs, Begin};
use crate::task::look::follow::{Created, follow};
use crate::task::make::draft::Draft;
use crate::task::steer::set::difference;
use crate::task::wait::until;
use crate::task::which::{Became, each};
use crate::task::words;
use windrow_client::{Answer, Request as Ask};
use windrow_core::settings::json::{tree, trees};
use windrow_core::settings::table::TuningPatch;
use windrow_core::task::spec::{Attribute, Request};

/// Members used only when a task is created. They are ignored for an existing one.
const OF_THE_MAKING: [&str; 3] = ["start", "canary", "if_empty"];
/// Members that identify the task.
const OF_THE_NAME: [&str; 2] = ["business", "name"];

type Members = BTreeMap<String, Box<RawValue>>;

/// Creates the task, or changes the members that differ.
///
/// # Errors
/// `Rejected` if the file can't be read, `Conflict` if it changes what can't be changed; also the node's refusal.
pub(crate) async fn apply(args: &ApplyArgs, shell: &Shell) -> Result<Exit, Fault> {
    let wanted = read(&args.file)?;
    let named = |name: &str| {
        let raw = wanted.get(name);
        let value = raw.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        value.ok_or_else(|| unusable(&args.file, &format!("{name} is missing or not text")))
    };
    let (business, name) = (named("business")?, named("name")?);
    let link = Link::open(&args.write.remote, shell)?.of_file();
    let request = Ask::get("/v1/tasks")
        .query("business", &business)
        .query("name", &name)
        .query("limit", 1);
    let found: api::Page<api::Task> = link.send(request).await?.read()?;
    let Some(task) = found.items.first() else {
        let draft = Draft::of(wanted).strictly(args.strict);
        let request = Ask::post("/v1/tasks");
        let Some(answer) = draft.send(&link, &args.write, request, "").await? else {
            return Ok(Exit::Ok);
        };
        return made(&link, answer).await;
    };
    let draft = change(&wanted, task)?.strictly(args.strict);
    let send = async |id: &str| match draft.is_empty() {
        true => Ok(Some(until::look(&link, id).await?.answer)),
        false => {
            draft
                .send(&link, &args.write, Ask::patch(&format!("/v1/tasks/{id}")), id)
                .await
        }
    };
    let became = async |id: &str, answer: Answer| {
        let difference = difference(task, &answer.read()?);
        let line = format!("{id}  {}  {difference}", words::address(task));
        Ok(Became::well(link.look.style.within(&line), answer))
    };
    each(&link, std::slice::from_ref(&task.id), send, became).await
}

async fn made(link: &Link<'_>, answer: Answer) -> Result<Exit, Fault> {
    let task: api::Task = answer.read()?;
    let (address, status) = (words::address(&task), words::status(&task).0);
    let begin = Begin {
        start: task.status != "created",
        wait: false,
    };
    let created = Created {
        answer,
        line: format!("created  {}  {address}   {status}", task.id),
        begin,
        then: None,
    };
    follow(link, created).await.map(|followed| followed.exit)
}

fn unusable(path: &Path, why: &str) -> Fault {
    let because = format!("{}: {why}", path.display());
    Fault::new(Exit::Rejected, "can't apply the file", because)
        .hint("`windrow help task apply` shows an example")
}

/// Reads the members of the file. JSON values stay as written.
fn read(path: &Path) -> Result<Members, Fault> {
    let json = document::json(path).map_err(|why| unusable(path, &why))?;
    serde_json::from_str(&json).map_err(|error| unusable(path, &format!("not a JSON object: {error}")))
}

/// Returns the members of the file that differ from the task.
fn change(wanted: &Members, task: &api::Task) -> Result<Draft, Fault> {
    let is = trees(task).map_err(|error| Fault::bug(error.to_string()))?;
    let mut draft = Draft::default();
    let mut fixed = Vec::new();
    let mut settings = Map::new();
    for (name, raw) in wanted {
        let value = tree(raw.get());
        match name.as_str() {
            name if OF_THE_MAKING.contains(&name) || OF_THE_NAME.contains(&name) => {}
            "source" => source(&mut draft, raw, task)?,
            name if Attribute::find(name, Request::Create).is_none() => {
                settings.insert(name.to_owned(), value);
            }
            name if is_same(name, &value, &is[name]) => {}
            name if Attribute::find(name, Request::Edit).is_some() => draft.put(name, raw)?,
            name => fixed.push(format!("{name} is {}, not {value}", is[name])),
        }
    }
    if !fixed.is_empty() {
        return Err(Fault {
            exit: Exit::Conflict,
            what: "can't change the task as the file requires".to_owned(),
            because: fixed,
            hint: Some("use another name to create another task; or windrow task clone".to_owned()),
        });
    }
    if canonical(&settings).is_none_or(|wanted| !holds(&wanted, &is)) {
        for (name, value) in &settings {
            draft.put(name, value)?;
        }
    }
    Ok(draft)
}

/// True if two values are equal. A time is the same in any zone.
fn is_same(name: &str, wanted: &Value, is: &Value) -> bool {
    let time = |value: &Value| parsed(value.as_str()?);
    match name {
        "deadline" | "start_at" => wanted == is || time(wanted).is_some_and(|at| time(is) == Some(at)),
        _ => wanted == is,
    }
}

/// Compares the source with what the task shows of it: total, upload or address. Inline items aren't shown and only
/// count when the task is created.
fn source(draft: &mut Draft, raw: &RawValue, task: &api::Task) -> Result<(), Fault> {
    #[derive(Deserialize)]
    struct Wanted {
        #[serde(flatten)]
        source: api::TaskSource,
        total: Option<u64>,
    }
    let has = &task.source;
    // Leave the error in a malformed source to the node.
    let Ok(Wanted { source, total }) = serde_json::from_str(raw.get()) else {
        return draft.put("source", raw);
    };
    match source.kind.as_str() {
        "range" if has.kind == "range" && total == Some(task.total) => Ok(()),
        "range" if has.kind == "range" => draft.put("total", total),
        "inline" if has.kind == "inline" => Ok(()),
        "file" if source.upload == has.upload => Ok(()),
        "url" if source.url == has.url => Ok(()),
        _ => draft.put("source", raw),
    }
}

/// Normalizes settings as the API writes them. Returns `None` if they are invalid, which the node then reports.
fn canonical(settings: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut flat = settings.clone();
    if let Some(Value::Object(retry)) = flat.remove("retry") {
        flat.extend(retry);
    }
    let patch: TuningPatch = serde_json::from_value(Value::Object(flat)).ok()?;
    match serde_json::to_value(patch).ok()? {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

fn holds(wanted: &Map<String, Value>, is: &Value) -> bool {
    wanted.iter().all(|(name, value)| is[name.as_str()] == *value)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use windrow_core::ids::WallMs;
    use windrow_core::task::spec::TaskSpec;

    fn wanted(value: &Value) -> Members {
        serde_json::from_str(&value.to_string()).expect("members")
    }

    fn task() -> api::Task {
        let mut task = api::Task {
            business: "push".to_owned(),
            spec: TaskSpec {
                name: Some("x".to_owned()),
                labels: [("a".to_owned(), "b".to_owned())].into(),
                deadline: WallMs::from_rfc3339("2026-11-20T17:00:00Z").ok(),
                ..TaskSpec::default()
            },
            source: api::TaskSource {
                kind: "range".to_owned(),
                ..Default::default()
            },
            total: 10,
            ..Default::default()
        };
        task.settings.tuning.rate = "500/s".parse().expect("a rate");
        task.settings.tuning.timeout = Duration::from_secs(3);
        task
    }

    #[test]
    fn what_is_so_already_is_not_sent_however_it_is_written() {
        let file = json!({"business": "push", "name": "x", "rate": "500/1s", "timeout": "3000ms",
            "retry": {"backoff": "1000ms..60s x2 jitter 20%"}, "labels": {"a": "b"}, "start": true,
            "source": {"type": "range", "total": 10}, "deadline": "2026-11-20T18:00:00+01:00", "shards": 1});
        assert!(change(&wanted(&file), &task()).expect("a change").is_empty());
    }

    #[test]
    fn what_differs_is_sent_and_what_is_fixed_is_refused() {
        for file in [
            json!({"rate": "600/s"}),
            json!({"retry": {"max_attempts": 6}}),
            json!({"max_attempts": 6}),
            json!({"labels": {}}),
            json!({"source": {"type": "range", "total": 11}}),
            json!({"params": {"a": 1}}),
            json!({"shards": "auto"}),
            json!({"rat": "1/s"}),
        ] {
            assert!(
                !change(&wanted(&file), &task()).expect("a change").is_empty(),
                "{file}"
            );
        }
        let fault = change(&wanted(&json!({"send_params": true})), &task()).expect_err("it is fixed");
        assert_eq!(fault.exit, Exit::Conflict);
    }
}
