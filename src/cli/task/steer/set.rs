//! Implementation of `windrow task set`, which prints old and new values.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::difference::difference_of;
use crate::shell::Shell;
use crate::task::args::steer::SetArgs;
use crate::task::make::draft::{Draft, plan};
use crate::task::make::warnings;
use crate::task::steer::ordinary;
use crate::task::wait::until::{self, TaskAnswer};
use crate::task::which::{Action, Became, chosen, each};
use windrow_client::{Answer, ClientError, Request};

/// Members that change by themselves, or repeat other members.
const MOVING: [&str; 17] = [
    "retry", // its members stand beside it
    "warnings",
    "status",
    "status_reason",
    "status_text",
    "since",
    "next",
    "counts",
    "watermark",
    "progress",
    "actual_rate",
    "eta_seconds",
    "version",
    "live",
    "start",
    "started_at",
    "shard_list",
];
/// Largest number of retries of a change that collided with another one.
const MEETINGS_MAX: u32 = 5;

/// Changes tasks.
///
/// # Errors
/// Same as [`Draft::send`]; `Usage` if no flag changes anything.
pub(crate) async fn set(args: &SetArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut draft = draft(args)?.strictly(args.strict);
    let touches_labels = !args.labels.is_empty() || !args.unlabels.is_empty();
    let is_metered = !args.limits.is_empty();
    if draft.is_empty() && !touches_labels && !is_metered && args.deadline.is_none() {
        let fault = Fault::new(Exit::Usage, "nothing to change", "no setting was given");
        return Err(fault.hint(
            "--rate 500/s, --window auto, --label team=growth … `windrow help task set` lists them all",
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
    let became = async |id: &str, (before, answer): (api::Task, Answer)| {
        let line = format!("{id}  {}", difference(&before, &answer.read()?));
        Ok(Became::well(link.look.style.within(&line), answer))
    };
    each(&link, &ids, send, became).await
}

fn draft(args: &SetArgs) -> Result<Draft, Fault> {
    let mut draft = Draft::default();
    draft.settings(&args.settings)?;
    draft.put_option("name", args.name.as_ref())?;
    draft.put_option("name", args.no_name.then_some(Value::Null))?;
    draft.attributes(&args.attributes)?;
    draft.put_option("total", args.total)?;
    draft.put_option("deadline", args.no_deadline.then_some(Value::Null))?;
    draft.params(args.params.as_deref())?;
    Ok(draft)
}

/// Sends a change. The API replaces all labels at once, so they are only changed if they are still as read.
async fn change(
    link: &Link<'_>,
    args: &SetArgs,
    draft: &Draft,
    mut before: TaskAnswer,
) -> Result<Option<(api::Task, Answer)>, Fault> {
    let id = before.task.id.clone();
    let mut draft = draft.clone();
    if !args.limits.is_empty() {
        draft.put("metering", args.limits.over(&before.task.spec.metering)?)?;
    }
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
                warnings::tell(link, &answer.read()?, &id);
                return Ok(Some((before.task, answer)));
            }
            Err(ClientError::Problem(problem)) if problem.slug() == "etag-mismatch" => {
                before = until::look(link, &id).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let because = "others are changing the task at the same time";
    Err(Fault::new(Exit::Conflict, "the labels weren't changed", because).hint("run the same command again"))
}

fn labels(task: &api::Task, args: &SetArgs) -> BTreeMap<String, String> {
    let mut labels = task.spec.labels.clone();
    labels.retain(|key, _| !args.unlabels.contains(key));
    labels.extend(args.labels.iter().cloned());
    labels
}

/// Formats the changes to a task as `rate 500/s → 1000/s  window auto → 1500`.
pub(crate) fn difference(before: &api::Task, after: &api::Task) -> String {
    difference_of(before, after, &MOVING)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use windrow_core::settings::table::Tuning;
    use windrow_core::task::spec::TaskSpec;

    #[test]
    fn a_difference_names_what_was_and_what_is() {
        let task = |rate: &str, attempts: u32, labels: [(&str, &str); 2]| {
            let tuning = Tuning {
                rate: rate.parse().expect("a rate"),
                max_attempts: NonZeroU32::new(attempts).expect("not zero"),
                ..Tuning::default()
            };
            api::Task {
                settings: (&tuning).into(),
                spec: TaskSpec {
                    labels: labels.map(|(key, value)| (key.into(), value.into())).into(),
                    ..TaskSpec::default()
                },
                ..Default::default()
            }
        };
        let before = task("500/s", 3, [("a", "1"), ("b", "2")]);
        let mut after = task("1000/s", 5, [("b", "3"), ("c", "4")]);
        after.spec.name = Some("x".to_owned());
        after.version = 4;
        after.shard_list.push(api::TaskShard::default());
        assert_eq!(
            difference(&before, &after),
            "label a 1 → none  label b 2 → 3  label c none → 4  max attempts 3 → 5  name none → x  rate 500/s → 1000/s"
        );
        assert_eq!(difference(&before, &before), "unchanged");
        // No tree of JSON holds such a number.
        after.spec.params = serde_json::from_str(r#"{"n":1e400}"#).ok();
        assert!(difference(&before, &after).contains("params none → {\"n\":1e400}"));
    }
}
