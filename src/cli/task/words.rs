//! A task in words: its status with a sign, how far it is, how fast it goes.

use std::time::Duration;

use crate::output::table::times::Times;
use crate::output::table::{Tone, human};
use api::{Task, TaskCounts};
use windrow_core::explain::rate_like;
use windrow_core::ids::WallMs;
use windrow_core::settings::{Rate, RateLimit};
use windrow_core::stats::stall::StallReason;
use windrow_core::task::lifecycle::StopReason;

/// `▶ running`, `◌ queued (capacity)`, `↻ recovering 2/10`: the status with its sign and what it doesn't say itself,
/// and its colour.
pub fn status(task: &Task) -> (String, Tone) {
    let (standing, tone) = standing(task);
    match waits_for_items(task) {
        true => (format!("{standing} (waiting for items)"), Tone::Plain),
        false => (standing, tone),
    }
}

/// An open task that has sent every item that it has: nothing is wrong, more may come.
pub fn waits_for_items(task: &Task) -> bool {
    let stall = task.live.as_ref().and_then(|live| live.stall.as_deref());
    task.status == "running" && !is_handler_down(task) && stall == Some(StallReason::Items.as_str())
}

/// The same without that an open task waits for items, which changes with each of them.
pub fn standing(task: &Task) -> (String, Tone) {
    let (word, tone) = plain_status(task);
    match remark(task) {
        Some(remark) => (format!("{word} {remark}"), tone),
        None => (word, tone),
    }
}

/// The same with the time at which a task that waits for its time begins.
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

/// Whether it begins by itself at a time to come.
pub fn waits_for_its_time(task: &Task) -> bool {
    task.status == "queued" && task.status_reason.as_deref() == Some("start_at")
}

/// What lets a task begin that nobody has started.
pub fn not_started(id: &str) -> String {
    format!("{id} isn't started; windrow task start {id} lets it begin")
}

/// The same without the remark, where there is little room.
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

/// Whether it runs, and its handler doesn't answer.
pub fn is_handler_down(task: &Task) -> bool {
    task.status == "running" && task.handler_down.is_some()
}

/// Nodes that run a part of it and give no sign.
pub fn silent(task: &Task) -> Vec<String> {
    let nodes = task.live.iter().flat_map(|live| &live.unreachable);
    nodes.map(|one| one.node.clone()).collect()
}

/// What redrives recovered of its failures; none where it has no redrive.
pub fn recovered(task: &Task) -> Option<u64> {
    Some(task.beside.redriven.as_ref()?.recovered)
}

/// Whether redrives recovered whatever it failed.
fn is_recovered(task: &Task) -> bool {
    let redriven = task.beside.redriven.as_ref();
    has_failures(task) && redriven.is_some_and(|redriven| redriven.still_failed == 0 && redriven.exact)
}

/// What a status alone doesn't say.
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

/// The name that people use: `business/name`, or the number of a task without a name.
pub fn address(task: &Task) -> String {
    match &task.spec.name {
        Some(name) => format!("{}/{name}", task.business),
        None => format!("{} {}", task.business, task.id),
    }
}

/// The terms that add up to the total, in the order in which they are read.
pub const TERMS: [&str; 7] = [
    "succeeded",
    "skipped",
    "failed",
    "in_flight",
    "parked",
    "pending",
    "excluded",
];
/// What never happens in most tasks is named only where it did.
pub const RARE: [&str; 2] = ["parked", "excluded"];

/// Number of the items of a term.
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

/// `succeeded 997  skipped 2  failed 1`: these terms, the rare ones only where they are there.
pub fn counts(counts: &TaskCounts, terms: &[&str], rare: &[&str]) -> String {
    let terms = terms.iter().map(|name| (name, count(counts, name)));
    let terms = terms.filter(|(name, count)| *count > 0 || !rare.contains(name));
    let terms = terms.map(|(name, count)| format!("{} {}", name.replace('_', " "), human::count(count)));
    terms.collect::<Vec<_>>().join("  ")
}

/// Items that are settled, and all that are to be done.
pub fn done(task: &Task) -> (u64, u64) {
    (task.pace.progress.settled, task.pace.progress.of)
}

/// `389,939 / 1,000,000`
pub fn done_of(task: &Task) -> String {
    let (done, of) = done(task);
    format!("{} / {}", human::count(done), human::count(of))
}

/// `39.0%`
pub fn percent(task: &Task) -> String {
    human::percent_text(task.pace.progress.percent)
}

/// The bar of a task: full cells are items that succeeded.
pub fn bar(task: &Task, cells: usize) -> String {
    let counts = &task.counts;
    let others = [counts.skipped, counts.failed, counts.excluded];
    human::item_bar(counts.succeeded, others, task.total, cells)
}

/// Whether some of its items were failed.
pub fn has_failures(task: &Task) -> bool {
    task.counts.failed > 0
}

/// Whether some of its items are failed still, for all that is known of its redrives.
pub fn is_failed_still(task: &Task) -> bool {
    has_failures(task) && !is_recovered(task)
}

/// When it will be done at its present pace, as the node says; none while it doesn't run.
pub fn eta(task: &Task) -> Option<Duration> {
    let seconds = task.pace.eta_seconds.filter(|_| task.status == "running");
    seconds.map(Duration::from_secs)
}

/// The same for people: see [`human::eta_text`].
pub fn eta_text(task: &Task) -> Option<String> {
    eta(task).map(|eta| human::eta_text(human::span(eta), task.counts.parked))
}

/// `498.7/500`: items a second, measured and wanted; none for what is over.
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
    };
    let next = task.next.as_ref().filter(|_| status == "recovering");
    let wait = next
        .and_then(|next| times.since(&next.at))
        .filter(|since| *since < 0);
    let wait = wait.map(|since| human::span(Duration::from_millis(since.unsigned_abs())));
    Some(match wait {
        Some(wait) => format!("{text} in {wait}"),
        None => text,
    })
}

/// As rates are written everywhere, but for the unit, which is always the second.
fn in_seconds(per_second: f64) -> String {
    rate_like(per_second, per_second.max(0.01))
        .trim_end_matches("/s")
        .to_owned()
}

/// A rate as a whole number of items a second.
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
