//! `windrow task set`: what was, and what is.

use serde_json::{Map, Value};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::body::text;
use crate::output::difference::difference_but;
use crate::shell::Shell;
use crate::task::args::steer::SetArgs;
use crate::task::make::draft::{Draft, plan};
use crate::task::make::warnings;
use crate::task::steer::ordinary;
use crate::task::wait::until::{self, TaskAnswer};
use crate::task::which::{Action, Became, chosen, each};
use windrow_client::{Answer, ClientError, Request};

/// Members that change by themselves, or say what the others say.
const MOVING: [&str; 17] = [
    "retry", // its members stand beside it
    "warnings",
    "status",
    "status_reason",
    "status_text",
    "since",
    "next",
    "counts",
    "low_water",
    "progress",
    "actual_rate",
    "eta_seconds",
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
        let fault = Fault::new(Exit::Usage, "nothing to change", "no flag names a setting");
        return Err(fault.hint(
            "--rate 500/s, --window auto, --label team=growth … `windrow help task set` has them all",
        ));
    }
    let link = Link::open(&args.write.remote, shell)?;
    draft.deadline(args.deadline.as_ref(), &link)?;
    let action = Action {
        verb: "change",
        ..ordinary("set")
    };
    let ids = chosen(&link, &args.which, action, args.write.dry_run).await?;
    let send = async |id: &str| {
        let before = until::look(&link, id).await?;
        change(&link, args, &draft, before).await
    };
    let became = async |id: &str, (before, answer): (Value, Answer)| {
        let line = format!("{id}  {}", difference(&before, &answer.json()?));
        Ok(Became::well(link.look.style.within(&line), answer))
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
    draft.put_option("shards", args.shards)?;
    draft.put_option("deadline", args.no_deadline.then_some(Value::Null))?;
    draft.params(args.params.as_deref())?;
    Ok(draft)
}

/// Sends it. The API takes all labels at once, so labels are changed only as they were looked at.
async fn change(
    link: &Link<'_>,
    args: &SetArgs,
    draft: &Draft,
    mut before: TaskAnswer,
) -> Result<Option<(Value, Answer)>, Fault> {
    let id = text(&before.task["id"]).to_owned();
    let edit = || Request::patch(&format!("/v1/tasks/{id}"));
    if args.labels.is_empty() && args.unlabels.is_empty() {
        let sent = draft.send(link, &args.write, edit(), &id).await?;
        return Ok(sent.map(|answer| (before.task, answer)));
    }
    for _ in 0..MEETINGS_MAX {
        let mut draft = draft.clone();
        draft.put("labels", labels(&before.task, args))?;
        let tag = before.answer.header("etag").unwrap_or("*");
        let request = draft.request(&args.write, edit())?.header("if-match", tag);
        if args.write.dry_run {
            return plan(link, &id, request).await.map(|()| None);
        }
        match link.client.send(request).await {
            Ok(answer) => {
                warnings::tell(link, &answer.json()?, &id);
                return Ok(Some((before.task, answer)));
            }
            Err(ClientError::Problem(problem)) if problem.slug() == "etag-mismatch" => {
                before = until::look(link, &id).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let because = "others change the task all the time";
    Err(Fault::new(Exit::Conflict, "the labels weren't changed", because).hint("the same again"))
}

fn labels(task: &Value, args: &SetArgs) -> Map<String, Value> {
    let mut labels = task["labels"].as_object().cloned().unwrap_or_default();
    labels.retain(|key, _| !args.unlabels.contains(key));
    let new = args.labels.iter().cloned();
    labels.extend(new.map(|(key, value)| (key, Value::String(value))));
    labels
}

/// `rate 500/s → 1000/s  window auto → 1500` of a task.
pub(crate) fn difference(before: &Value, after: &Value) -> String {
    difference_but(before, after, &MOVING)
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
        assert_eq!(difference(&before, &before), "unchanged");
    }
}
