//! `windrow task apply`: a task as a file says it is.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Link, document};
use crate::output::body::text;
use crate::output::table::times::parsed;
use crate::shell::Shell;
use crate::task::args::make::{ApplyArgs, Begin};
use crate::task::look::follow::{Created, follow};
use crate::task::make::draft::Draft;
use crate::task::steer::set::difference;
use crate::task::wait::until;
use crate::task::which::{Became, each};
use crate::task::words;
use windrow_client::{Answer, Request};
use windrow_core::settings::table::TuningPatch;

/// Members that only the making of a task knows; they say nothing of one that is there.
const OF_THE_MAKING: [&str; 3] = ["start", "canary", "if_empty"];
/// Members that name the task.
const OF_THE_NAME: [&str; 2] = ["business", "name"];
/// Members that can't be changed any more.
const FIXED: [&str; 3] = ["send_params", "limits", "start_at"];

type Members = BTreeMap<String, Box<RawValue>>;

/// Makes the task, or changes what differs.
///
/// # Errors
/// `Rejected` when the file can't be read, `Conflict` when it wants what can't be changed; what the node refused.
pub(crate) async fn apply(args: &ApplyArgs, shell: &Shell) -> Result<Exit, Fault> {
    let wanted = read(&args.file)?;
    let named = |name: &str| {
        let raw = wanted.get(name);
        let value = raw.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        value.ok_or_else(|| unusable(&args.file, &format!("{name} is missing, or not text")))
    };
    let (business, name) = (named("business")?, named("name")?);
    let link = Link::open(&args.write.remote, shell)?.of_file();
    let request = Request::get("/v1/tasks")
        .query("business", &business)
        .query("name", &name)
        .query("limit", 1);
    let found: Value = link.send(request).await?.json()?;
    let Some(task) = found["items"].get(0) else {
        let draft = Draft::of(wanted).strictly(args.strict);
        let request = Request::post("/v1/tasks");
        let Some(answer) = draft.send(&link, &args.write, request, "").await? else {
            return Ok(Exit::Ok);
        };
        return made(&link, answer).await;
    };
    let id = text(&task["id"]).to_owned();
    let draft = change(&wanted, task)?.strictly(args.strict);
    let send = async |id: &str| match draft.is_empty() {
        true => Ok(Some(until::look(&link, id).await?.answer)),
        false => {
            draft
                .send(&link, &args.write, Request::patch(&format!("/v1/tasks/{id}")), id)
                .await
        }
    };
    let became = async |id: &str, answer: Answer| {
        let difference = difference(task, &answer.json()?);
        let line = format!("{id}  {}  {difference}", words::address(task));
        Ok(Became::well(link.look.style.within(&line), answer))
    };
    each(&link, &[id], send, became).await
}

async fn made(link: &Link<'_>, answer: Answer) -> Result<Exit, Fault> {
    let task = answer.json()?;
    let (address, status) = (words::address(&task), words::status(&task).0);
    let begin = Begin {
        start: task["status"] != "created",
        wait: false,
    };
    let created = Created {
        answer,
        line: format!("created  {}  {address}   {status}", text(&task["id"])),
        begin,
        then: None,
    };
    follow(link, created).await.map(|followed| followed.exit)
}

fn unusable(path: &Path, why: &str) -> Fault {
    let because = format!("{}: {why}", path.display());
    Fault::new(Exit::Rejected, "the file can't be applied", because)
        .hint("`windrow help task apply` shows one")
}

/// The members of the file; those of JSON as they are written.
fn read(path: &Path) -> Result<Members, Fault> {
    let json = document::json(path).map_err(|why| unusable(path, &why))?;
    serde_json::from_str(&json).map_err(|error| unusable(path, &format!("not a JSON object: {error}")))
}

/// What of the file isn't so.
fn change(wanted: &Members, task: &Value) -> Result<Draft, Fault> {
    let mut draft = Draft::default();
    let mut fixed = Vec::new();
    let mut settings = Map::new();
    for (name, raw) in wanted {
        let value: Value = serde_json::from_str(raw.get()).map_err(|error| Fault::bug(error.to_string()))?;
        match name.as_str() {
            name if OF_THE_MAKING.contains(&name) || OF_THE_NAME.contains(&name) => {}
            "source" => source(&mut draft, raw, &value, task)?,
            "labels" | "priority" | "deadline" | "params" | "skip_first" | "shards" => {
                if !is_same(name, &value, &task[name]) {
                    draft.put(name, raw)?;
                }
            }
            name if FIXED.contains(&name) && is_same(name, &value, &task[name]) => {}
            name if FIXED.contains(&name) => fixed.push(format!("{name} is {}, not {value}", task[name])),
            _ => {
                settings.insert(name.to_owned(), value);
            }
        }
    }
    if !fixed.is_empty() {
        return Err(Fault {
            exit: Exit::Conflict,
            what: "the task can't be changed to what the file says".to_owned(),
            because: fixed,
            hint: Some("another name makes another task; or windrow task clone".to_owned()),
        });
    }
    if canonical(&settings).is_none_or(|wanted| !holds(&wanted, task)) {
        for (name, value) in &settings {
            draft.put(name, value)?;
        }
    }
    Ok(draft)
}

/// A time is the same however its zone is written.
fn is_same(name: &str, wanted: &Value, is: &Value) -> bool {
    let time = |value: &Value| parsed(value.as_str()?);
    match name {
        "deadline" | "start_at" => wanted == is || time(wanted).is_some_and(|at| time(is) == Some(at)),
        _ => wanted == is,
    }
}

/// A source is compared by what a task shows of its own: its total, upload or address. Items in the file itself aren't
/// shown; they are of the making only.
fn source(draft: &mut Draft, raw: &RawValue, wanted: &Value, task: &Value) -> Result<(), Fault> {
    let has = &task["source"];
    let is_same = match wanted["type"].as_str() {
        Some("range") if has["type"] == "range" => {
            if wanted["total"] != task["total"] {
                draft.put("total", &wanted["total"])?;
            }
            true
        }
        Some("inline") => has["type"] == "inline",
        Some("file") => wanted["upload"] == has["upload"],
        Some("url") => wanted["url"] == has["url"],
        _ => false,
    };
    if is_same { Ok(()) } else { draft.put("source", raw) }
}

/// Settings as the API writes them; none where they can't be read, which the node then says.
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

fn holds(wanted: &Map<String, Value>, task: &Value) -> bool {
    wanted.iter().all(|(name, value)| task[name.as_str()] == *value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wanted(value: &Value) -> Members {
        serde_json::from_str(&value.to_string()).expect("members")
    }

    fn task() -> Value {
        json!({"business": "push", "name": "x", "rate": "500/s", "window": "auto", "batch": 1, "timeout": "3s",
            "max_attempts": 5, "backoff": "1s..60s x2 jitter 20%", "on_exhausted": "abandon",
            "labels": {"a": "b"}, "source": {"type": "range"}, "total": 10, "send_params": false,
            "deadline": "2026-11-20T17:00:00.000Z", "params": null, "shards": 1})
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
