//! `windrow task set`: what was, and what is.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Danger, Link};
use crate::task::args::steer::SetArgs;
use crate::task::make::draft::{Draft, Operation, Sent, json, number_or_word};
use crate::task::steer::LIVING;
use crate::task::wait::until::{self, Seen};
use crate::task::which::{Deed, Told, chosen, each};
use windrow_client::Answer;

/// Members that change by themselves, or say what the others say.
const MOVING: [&str; 15] = [
    "retry", // its members stand beside it
    "warnings",
    "status",
    "status_reason",
    "status_text",
    "since",
    "next",
    "counts",
    "low_water",
    "actual_rate",
    "version",
    "live",
    "start",
    "started_at",
    "shard_list",
];
/// So often a change is made anew that met another one.
const MEETINGS_MAX: u32 = 5;

/// Changes tasks.
///
/// # Errors
/// What the node refused; `Usage` when nothing is to be changed.
pub(crate) async fn set(args: &SetArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut draft = draft(args)?.strictly(args.strict);
    let touches_labels = !args.labels.is_empty() || !args.unlabels.is_empty();
    if draft.is_empty() && !touches_labels && args.deadline.is_none() {
        return Err(
            Fault::new(Exit::Usage, "nothing is to be changed", "no flag names a setting").hint(
                "--rate 500/s, --window auto, --label team=growth … `windrow help task set` has them all",
            ),
        );
    }
    let link = Link::open(&args.remote, shell)?;
    draft.deadline(args.deadline.as_ref(), &link)?;
    let deed = Deed {
        verb: "change",
        usual: LIVING,
        danger: Danger::Ordinary,
        is_dry: args.write.dry_run,
    };
    let ids = chosen(&link, &args.which(), deed).await?;
    let send = async |id: &str| {
        let before = until::look(&link, id).await?;
        change(&link, args, &draft, before).await
    };
    let became = async |id: &str, (before, answer): (Value, Answer)| {
        let after: Value = answer.json()?;
        Ok(Told::well(
            link.look
                .style
                .within(&format!("{id}  {}", difference(&before, &after))),
            answer,
        ))
    };
    each(&link, &ids, send, became).await
}

fn draft(args: &SetArgs) -> Result<Draft, Fault> {
    let mut draft = Draft::default();
    draft.settings(&args.settings)?;
    draft.put_option("name", args.name.as_ref())?;
    draft.put_option("name", args.no_name.then_some(Value::Null))?;
    draft.put_option("priority", args.priority)?;
    draft.put_option("total", args.total)?;
    draft.put_option("skip_first", args.skip_first)?;
    draft.put_option("shards", args.shards.as_deref().map(number_or_word))?;
    draft.put_option("deadline", args.no_deadline.then_some(Value::Null))?;
    if let Some(params) = &args.params {
        draft.put("params", json("--params", params)?)?;
    }
    Ok(draft)
}

/// Sends it. The API takes all labels at once, so labels are changed only as they were looked at.
async fn change(
    link: &Link<'_>,
    args: &SetArgs,
    draft: &Draft,
    mut before: Seen,
) -> Result<Option<(Value, Answer)>, Fault> {
    let id = before.task["id"].as_str().unwrap_or_default().to_owned();
    let touches_labels = !args.labels.is_empty() || !args.unlabels.is_empty();
    if !touches_labels {
        let sent = draft.send(link, &args.write, Operation::EDIT, &id).await?;
        return Ok(sent.map(|answer| (before.task, answer)));
    }
    for _ in 0..MEETINGS_MAX {
        let mut draft = draft.again();
        draft.put("labels", labels(&before.task, args))?;
        let tag = before.answer.header("etag").unwrap_or("*");
        match draft
            .send_if(link, &args.write, Operation::EDIT, &id, tag)
            .await?
        {
            Sent::Done(answer) => return Ok(Some((before.task, answer))),
            Sent::Planned => return Ok(None),
            Sent::Met => before = until::look(link, &id).await?,
        }
    }
    Err(Fault::new(
        Exit::Conflict,
        "the labels weren't changed",
        "others change the task all the time",
    )
    .hint("the same again"))
}

fn labels(task: &Value, args: &SetArgs) -> BTreeMap<String, Value> {
    let has = task["labels"].as_object().into_iter().flatten();
    let mut labels: BTreeMap<String, Value> = has.map(|(key, value)| (key.clone(), value.clone())).collect();
    for key in &args.unlabels {
        labels.remove(key);
    }
    for (key, value) in &args.labels {
        labels.insert(key.clone(), Value::String(value.clone()));
    }
    labels
}

/// `rate 500/s → 1000/s  window auto → 1500`, of a task.
pub(crate) fn difference(before: &Value, after: &Value) -> String {
    difference_but(before, after, &MOVING)
}

/// The same of any two objects, without these members.
pub(crate) fn difference_but(before: &Value, after: &Value, but: &[&str]) -> String {
    let mut changes = Vec::new();
    for (name, is) in after.as_object().into_iter().flatten() {
        let was = &before[name];
        if was != is && !but.contains(&name.as_str()) {
            add(&mut changes, name, was, is);
        }
    }
    if changes.is_empty() {
        "is so already".to_owned()
    } else {
        changes.join("  ")
    }
}

fn add(changes: &mut Vec<String>, name: &str, was: &Value, is: &Value) {
    if let (Value::Object(was), Value::Object(is)) = (was, is)
        && ["settings", "labels"].contains(&name)
    {
        for key in was.keys().chain(is.keys().filter(|key| !was.contains_key(*key))) {
            let pair = (
                was.get(key).unwrap_or(&Value::Null),
                is.get(key).unwrap_or(&Value::Null),
            );
            if pair.0 != pair.1 {
                let key = if name == "labels" {
                    format!("label {key}")
                } else {
                    key.replace('_', " ")
                };
                changes.push(format!("{key} {} → {}", text(pair.0), text(pair.1)));
            }
        }
        return;
    }
    changes.push(format!("{} {} → {}", name.replace('_', " "), text(was), text(is)));
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => crate::output::table::clean(text),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_names_what_was_and_what_is() {
        let before = json!({"rate": "500/s", "window": "auto", "version": 3, "shard_list": [{"node": "n2"}], "labels": {"a": "1", "b": "2"},
            "max_attempts": 3, "retry": {"max_attempts": 3, "backoff": "1s"}, "name": null});
        let after = json!({"rate": "1000/s", "window": "auto", "version": 4, "shard_list": [{"node": null}], "labels": {"b": "3", "c": "4"},
            "max_attempts": 5, "retry": {"max_attempts": 5, "backoff": "1s"}, "name": "x"});
        assert_eq!(
            difference(&before, &after),
            "label a 1 → none  label b 2 → 3  label c none → 4  max attempts 3 → 5  name none → x  rate 500/s → 1000/s"
        );
        assert_eq!(difference(&before, &before), "is so already");
    }
}
