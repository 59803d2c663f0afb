//! Waiting for what becomes of a task, and how that is told.

use std::time::Duration;

use serde_json::Value;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::table::human;
use crate::task::words;
use windrow_client::{Answer, Request, segment};

/// How long a node is asked to hold an answer back; less than a request may take.
const HOLD_MAX: Duration = Duration::from_secs(15);
/// The same where somebody watches how far it is.
const HOLD_SHOWN: Duration = Duration::from_secs(1);
/// Cells of the bar.
const BAR_CELLS: usize = 24;

/// A task as it was when the wait was over.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The API's body, verbatim.
    pub(crate) answer: Answer,
    /// The same, read.
    pub(crate) task: Value,
}

/// Looks at a task.
///
/// # Errors
/// As [`Link::send`].
pub(crate) async fn look(link: &Link<'_>, id: &str) -> Result<Seen, Fault> {
    let answer = link.get(&format!("/v1/tasks/{}", segment(id))).await?;
    let task = answer.json()?;
    Ok(Seen { answer, task })
}

/// Waits until the task fits, and shows on a terminal how far it is.
///
/// # Errors
/// `Interrupted` at Ctrl-C: the task goes on. Else as [`Link::send`].
pub(crate) async fn until(
    link: &Link<'_>,
    id: &str,
    mut fits: impl FnMut(&Value) -> bool,
) -> Result<Seen, Fault> {
    let meter = link.meter();
    let hold = if meter.is_live() { HOLD_SHOWN } else { HOLD_MAX };
    let hold = hold.min(link.timeout() / 2).as_millis();
    let path = format!("/v1/tasks/{}", segment(id));
    let wait = async {
        let mut tag: Option<String> = None;
        loop {
            let request = Request::get(&path).query("wait", format!("{hold}ms"));
            let answer = link.send(request.query_option("unless", tag.as_deref())).await?;
            let task: Value = answer.json()?;
            if fits(&task) {
                return Ok(Seen { answer, task });
            }
            meter.show(&progress(&task));
            tag = answer.header("etag").map(str::to_owned);
        }
    };
    tokio::select! {
        seen = wait => seen,
        _ = tokio::signal::ctrl_c() => Err(Fault::new(
            Exit::Interrupted,
            "no longer waiting",
            format!("only the wait was interrupted; {id} is as it was told to be"),
        )
        .hint(format!("windrow task show {id}, or windrow task stop {id}"))),
    }
}

fn progress(task: &Value) -> String {
    let (done, total) = words::done(task);
    format!(
        "{}  {} {} {}  {} / {}",
        task["id"].as_str().unwrap_or_default(),
        words::status(task).0,
        words::bar(task, BAR_CELLS),
        human::percent_text(done, total),
        human::count(done),
        human::count(total),
    )
}

/// `✓ finished  1,000 / 1,000 in 2.1 s   succeeded 997  skipped 2  abandoned 1`, and what to do about it.
pub(crate) fn outcome(task: &Value) -> String {
    let id = task["id"].as_str().unwrap_or_default();
    let (done, total) = words::done(task);
    let took = took(task).map(|took| format!(" in {took}")).unwrap_or_default();
    let mut text = format!(
        "{id}  {}  {} / {}{took}   {}",
        words::status(task).0,
        human::count(done),
        human::count(total),
        counts(task)
    );
    if let Some(why) = task["status_text"].as_str() {
        text += &format!("\n  because {why}");
    }
    let has_failures = task["counts"]["abandoned"]
        .as_u64()
        .is_some_and(|count| count > 0);
    match task["status"].as_str() {
        Some("finished") if has_failures => text += &format!("\n  failures: windrow task failures {id}"),
        Some("stopped") if task["stop_reason"] == "deadline" => {
            text +=
                &format!("\n  go on: windrow task set {id} --deadline TIME, then windrow task start {id}");
        }
        Some("stopped") => text += &format!("\n  go on: windrow task start {id}"),
        _ => {}
    }
    text
}

/// `succeeded 997  skipped 2  abandoned 1`
pub(crate) fn counts(task: &Value) -> String {
    let count = |name: &str| human::count(task["counts"][name].as_u64().unwrap_or(0));
    let terms = ["succeeded", "skipped", "abandoned"];
    terms.map(|name| format!("{name} {}", count(name))).join("  ")
}

/// From its first start to its end.
fn took(task: &Value) -> Option<String> {
    let at = |name: &str| chrono::DateTime::parse_from_rfc3339(task[name].as_str()?).ok();
    let took = (at("finished_at")? - at("started_at")?).to_std().ok()?;
    Some(seconds(took))
}

/// `1.9 s`; above two minutes `12m`.
pub(crate) fn seconds(span: Duration) -> String {
    if span.as_secs() < 120 {
        format!("{:.1} s", span.as_secs_f64())
    } else {
        human::span(span)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(status: &str, abandoned: u64) -> Value {
        json!({"id": "t1", "status": status, "total": 5, "status_text": null, "result": "with_failures",
            "counts": {"succeeded": 5 - abandoned, "skipped": 0, "abandoned": abandoned, "excluded": 0},
            "started_at": "2026-11-20T17:00:00.000Z", "finished_at": "2026-11-20T17:00:02.100Z"})
    }

    #[test]
    fn an_end_is_told_in_a_line_with_what_to_do() {
        assert_eq!(
            outcome(&task("finished", 2)),
            "t1  ✓ finished (with failures)  5 / 5 in 2.1 s   succeeded 3  skipped 0  abandoned 2\n  failures: windrow task failures t1"
        );
        assert!(outcome(&task("stopped", 0)).ends_with("\n  go on: windrow task start t1"));
        let mut late = task("stopped", 0);
        late["stop_reason"] = json!("deadline");
        assert!(
            outcome(&late).contains("windrow task set t1 --deadline TIME"),
            "{}",
            outcome(&late)
        );
    }
}
