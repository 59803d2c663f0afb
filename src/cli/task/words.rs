//! Formatting of a task: its status with a sign, its progress, its speed.

use std::time::Duration;

use crate::output::table::times::Times;
use crate::output::table::{Tone, human};
use api::{Task, TaskCounts};
use windrow_core::explain::rate_like;
use windrow_core::ids::WallMs;
use windrow_core::settings::{Rate, RateLimit};
use windrow_core::stats::stall::StallReason;
use windrow_core::task::lifecycle::StopReason;

/// Returns the status with its sign and a remark, and its colour: `▶ running`, `◌ queued (capacity)`, `↻ recovering
/// 2/10`.
pub fn status(task: &Task) -> (String, Tone) {
    let (standing, tone) = standing(task);
    match waits_for_items(task) {
        true => (format!("{standing} (waiting for items)"), Tone::Plain),
        false => (standing, tone),
    }
}

/// True for an open task that has dispatched all its items. Nothing is wrong, and more may arrive.
pub fn waits_for_items(task: &Task) -> bool {
    let stall = task.live.as_ref().and_then(|live| live.stall.as_deref());
    task.status == "running" && !is_handler_down(task) && stall == Some(StallReason::Items.as_str())
}

/// Returns the status without the remark that an open task waits for items, which changes with each item.
pub fn standing(task: &Task) -> (String, Tone) {
    let (word, tone) = plain_status(task);
    match remark(task) {
        Some(remark) => (format!("{word} {remark}"), tone),
        None => (word, tone),
    }
}

/// Returns the status with the start time, for a task that waits for it.
pub fn status_at(task: &Task, times: &Times) -> (String, Tone) {
    let at = task.spec.start_at.filter(|_| waits_for_its_time(task));
    let at = at.map(WallMs::to_rfc3339);
    match at
        .as_deref()
        .filter(|at| times.since(at).is_some_and(|since| since < 0))
    {
        Some(at) => {
            let (word, tone) = plain_status(task);
            (format!("{word} (starts {})", times.text(at)), tone)
        }
        None => status(task),
    }
}

/// True if the task starts by itself at a future time.
pub fn waits_for_its_time(task: &Task) -> bool {
    task.status == "queued" && task.status_reason.as_deref() == Some("start_at")
}

/// Returns the message on how to start a task that nobody has started.
pub fn not_started(id: &str) -> String {
    format!("{id} isn't started; windrow task start {id} starts it")
}

/// Returns the status without its remark, for narrow columns.
pub fn short_status(task: &Task) -> String {
    plain_status(task).0
}

fn plain_status(task: &Task) -> (String, Tone) {
    let (sign, tone) = match (task.status.as_str(), task.result.as_deref()) {
        ("created", _) => ('○', Tone::Dim),
        ("queued" | "awaiting_business", _) => ('◌', Tone::Wait),
        ("running", _) if is_handler_down(task) => ('▶', Tone::Warn),
        ("running", _) => ('▶', Tone::Good),
        ("recovering", _) => ('↻', Tone::Warn),
        ("stopping" | "finalizing", _) => ('◐', Tone::Wait),
        ("stopped", _) => ('■', Tone::Warn),
        ("finished", Some("succeeded")) => ('✓', Tone::Good),
        ("finished", _) if is_recovered(task) => ('✓', Tone::Good),
        ("finished", _) => ('✓', Tone::Warn),
        ("cancelled", _) => ('✗', Tone::Dim),
        // A status of a later version.
        _ => ('?', Tone::Plain),
    };
    (format!("{sign} {}", task.status.replace('_', " ")), tone)
}

/// True if the task is running and its handler is down.
pub fn is_handler_down(task: &Task) -> bool {
    task.status == "running" && task.handler_down.is_some()
}

/// Returns the silent nodes that run shards of the task.
pub fn silent(task: &Task) -> Vec<String> {
    let nodes = task.live.iter().flat_map(|live| &live.unreachable);
    nodes.map(|one| one.node.clone()).collect()
}

/// Returns the number of failed items that redrives recovered, or `None` without redrives.
pub fn recovered(task: &Task) -> Option<u64> {
    Some(task.beside.redriven.as_ref()?.recovered)
}

/// True if redrives recovered all failed items.
fn is_recovered(task: &Task) -> bool {
    let redriven = task.beside.redriven.as_ref();
    has_failures(task) && redriven.is_some_and(|redriven| redriven.still_failed == 0 && redriven.exact)
}

/// Returns the remark that the status alone doesn't express.
fn remark(task: &Task) -> Option<String> {
    let reason = task.status_reason.as_deref();
    let word = match task.status.as_str() {
        "recovering" if reason == Some("dormant") => reason,
        "recovering" => {
            let next = task.next.as_ref()?;
            return Some(format!("{}/{}", next.attempt?, next.of?));
        }
        "running" => is_handler_down(task).then_some("handler down"),
        "queued" => reason,
        "stopping" | "stopped" => {
            let slug = task.stop_reason.as_deref()?;
            Some(StopReason::parse(slug).map_or(slug, |reason| reason.text()))
        }
        "finished" if is_recovered(task) => Some("all recovered"),
        "finished" => task.result.as_deref().filter(|result| *result != "succeeded"),
        _ => None,
    };
    word.map(|word| format!("({})", word.replace('_', " ")))
}

/// Returns the name for people: `business/name`, or the number of a task without a name.
pub fn address(task: &Task) -> String {
    match &task.spec.name {
        Some(name) => format!("{}/{name}", task.business),
        None => format!("{} {}", task.business, task.id),
    }
}

/// Counts that add up to the total, in reading order.
pub const TERMS: [&str; 7] = [
    "succeeded",
    "skipped",
    "failed",
    "in_flight",
    "parked",
    "pending",
    "excluded",
];
/// Counts that are shown only if they aren't 0, since most tasks never have them.
pub const RARE: [&str; 2] = ["parked", "excluded"];

/// Returns the number of items in a count.
pub fn count(counts: &TaskCounts, term: &str) -> u64 {
    match term {
        "succeeded" => counts.succeeded,
        "skipped" => counts.skipped,
        "failed" => counts.failed,
        "in_flight" => counts.in_flight,
        "parked" => counts.parked,
        "pending" => counts.pending,
        "excluded" => counts.excluded,
        _ => 0,
    }
}

/// Formats these counts as `succeeded 997  skipped 2  …`, the rare ones only if they aren't 0.
pub fn counts(counts: &TaskCounts, terms: &[&str], rare: &[&str]) -> String {
    let terms = terms.iter().map(|name| (name, count(counts, name)));
    let terms = terms.filter(|(name, count)| *count > 0 || !rare.contains(name));
    let terms = terms.map(|(name, count)| format!("{} {}", name.replace('_', " "), human::count(count)));
    terms.collect::<Vec<_>>().join("  ")
}

/// Returns the number of settled items, and of all items to be done.
pub fn done(task: &Task) -> (u64, u64) {
    (task.pace.progress.settled, task.pace.progress.of)
}

/// Formats the progress as `389,939 / 1,000,000`.
pub fn done_of(task: &Task) -> String {
    let (done, of) = done(task);
    format!("{} / {}", human::count(done), human::count(of))
}

/// Formats the progress as `39.0%`.
pub fn percent(task: &Task) -> String {
    human::percent_text(task.pace.progress.percent)
}

/// Draws the bar of a task. Full cells are succeeded items.
pub fn bar(task: &Task, cells: usize) -> String {
    let counts = &task.counts;
    let others = [counts.skipped, counts.failed, counts.excluded];
    human::item_bar(counts.succeeded, others, task.total, cells)
}

/// True if the task has failed items.
pub fn has_failures(task: &Task) -> bool {
    task.counts.failed > 0
}

/// True if failed items remain, as far as its redrives are known.
pub fn is_failed_still(task: &Task) -> bool {
    has_failures(task) && !is_recovered(task)
}

/// Returns the remaining time at the present pace, as the node reports it. `None` if the task isn't running.
pub fn eta(task: &Task) -> Option<Duration> {
    let seconds = task.pace.eta_seconds.filter(|_| task.status == "running");
    seconds.map(Duration::from_secs)
}

/// Formats the remaining time for people with [`human::eta_text`].
pub fn eta_text(task: &Task) -> Option<String> {
    eta(task).map(|eta| human::eta_text(human::span(eta), task.counts.parked))
}

/// Formats the speed as `498.7/500`, measured and target items per second, or as `498.7 (auto)`. `None` for a task that is over.
pub fn rate(task: &Task, times: &Times) -> Option<String> {
    let status = task.status.as_str();
    if matches!(status, "finished" | "cancelled" | "finalizing") {
        return None;
    }
    let actual = match task.pace.actual_rate {
        Some(actual) if matches!(status, "running" | "stopping" | "recovering") => in_seconds(actual),
        _ => "–".to_owned(),
    };
    let text = match task.settings.tuning.rate {
        RateLimit::Limited(rate) => match per_second(rate) {
            Some(wanted) => format!("{actual}/{}", human::count(wanted)),
            None => format!("{actual}/s of {rate}"),
        },
        RateLimit::Unlimited => format!("{actual}/∞"),
        auto @ RateLimit::Auto(_) => format!("{actual} ({auto})"),
    };
    let next = task.next.as_ref().filter(|_| status == "recovering");
    let wait = next
        .and_then(|next| times.since(&next.at))
        .filter(|since| *since < 0);
    let wait = wait.map(|since| human::span(human::whole(Duration::from_millis(since.unsigned_abs()))));
    Some(match wait {
        Some(wait) => format!("{text} in {wait}"),
        None => text,
    })
}

/// Formats a speed like other rates but without the unit, which is always per second.
fn in_seconds(per_second: f64) -> String {
    rate_like(per_second, per_second.max(0.01))
        .trim_end_matches("/s")
        .to_owned()
}

/// Returns a rate as a whole number of items per second, `None` if it isn't one.
fn per_second(rate: Rate) -> Option<u64> {
    const SECOND_NS: u128 = 1_000_000_000;
    let scaled = u128::from(rate.items()) * SECOND_NS;
    let period = u128::from(rate.period_ns());
    scaled
        .is_multiple_of(period)
        .then(|| u64::try_from(scaled / period).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::times::TimeStyle;
    use windrow_core::task::spec::TaskSpec;

    #[test]
    fn a_task_whose_failures_redrives_recovered_says_so_and_looks_well() {
        let task = |still_failed: u64| Task {
            status: "finished".into(),
            result: Some("with_failures".into()),
            counts: TaskCounts {
                failed: 3,
                ..Default::default()
            },
            beside: api::TaskBeside {
                redriven: Some(api::TaskRedriven {
                    recovered: 3 - still_failed,
                    still_failed,
                    exact: true,
                }),
                ..Default::default()
            },
            ..Default::default()
        };
        assert_eq!(
            status(&task(0)),
            ("✓ finished (all recovered)".to_owned(), Tone::Good)
        );
        assert_eq!(
            status(&task(1)),
            ("✓ finished (with failures)".to_owned(), Tone::Warn)
        );
    }

    #[test]
    fn an_open_task_that_waits_for_items_is_no_fault() {
        let task = Task {
            status: "running".into(),
            live: Some(api::TaskLive {
                stall: Some("items".into()),
                ..Default::default()
            }),
            ..Default::default()
        };
        assert_eq!(
            status(&task),
            ("▶ running (waiting for items)".to_owned(), Tone::Plain)
        );
        let down = Task {
            handler_down: Some(api::HandlerDown::default()),
            ..task
        };
        assert_eq!(status(&down).1, Tone::Warn);
    }

    #[test]
    fn a_task_that_waits_for_its_time_says_which() {
        let task = Task {
            status: "queued".into(),
            status_reason: Some("start_at".into()),
            spec: TaskSpec {
                start_at: WallMs::from_rfc3339("2026-11-20T17:03:40Z").ok(),
                ..TaskSpec::default()
            },
            ..Default::default()
        };
        let said = |style, now_ms| status_at(&task, &Times { style, now_ms }).0;
        assert_eq!(
            said(TimeStyle::Relative, 1_795_194_206_000),
            "◌ queued (starts in 14s)"
        );
        assert_eq!(said(TimeStyle::Utc, 0), "◌ queued (starts 2026-11-20 17:03:40Z)");
        assert_eq!(
            said(TimeStyle::Utc, 1_795_194_221_000),
            "◌ queued (start at)",
            "its time has come"
        );
    }
}
