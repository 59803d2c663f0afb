//! Permits of a span that were lost, by cause.

use std::time::Duration;

use super::facts::Facts;
use super::hints;
use crate::settings::RateLimit;
use crate::stats::permits::MICRO;
use crate::stats::stall::StallReason;
use crate::task::lifecycle::Status;

/// Reason why a permit sent no attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseKind {
    /// Nothing could leave for this reason.
    Stall(StallReason),
    /// A repeat used it: the rate is kept, and an item less settles.
    Retries,
    /// It was granted and came back.
    Returned,
    /// The node did not come round to it.
    Late,
    /// The handler asked for a lower rate.
    Slowed,
    /// A node has no room for the part of the rate that a run should have.
    NoRoom,
    /// Nothing of the task ran.
    NotRunning(Status),
    /// It is the part of shards on nodes that can't be asked; it may have settled items.
    Unknown,
}

/// A part of what is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What it is.
    pub kind: CauseKind,
    /// How much. Unit: millionths of an item over the span.
    pub micros: i64,
    /// What is known of it, in plain words; empty where the title says all.
    pub text: String,
}

impl CauseKind {
    /// The slug in JSON.
    pub fn slug(self) -> &'static str {
        match self {
            CauseKind::Stall(reason) => reason.as_str(),
            CauseKind::Retries => "retries",
            CauseKind::Returned => "returned",
            CauseKind::Late => "late",
            CauseKind::Slowed => "slowed",
            CauseKind::NoRoom => "no_room",
            // It runs now, and didn't for a part of the span.
            CauseKind::NotRunning(Status::Running) => "not_running",
            CauseKind::NotRunning(status) => status.as_str(),
            CauseKind::Unknown => "unknown",
        }
    }

    /// Two or three words for people.
    pub fn title(self) -> &'static str {
        match self {
            CauseKind::Stall(reason) => stall_title(reason),
            CauseKind::Retries => "repeated attempts",
            CauseKind::Returned => "came back unused",
            CauseKind::Late => "node too late",
            CauseKind::Slowed => "handler slow-down",
            CauseKind::NoRoom => "no room on node",
            CauseKind::NotRunning(_) => "not running",
            CauseKind::Unknown => "unknown",
        }
    }
}

fn stall_title(reason: StallReason) -> &'static str {
    match reason {
        StallReason::WindowFull => "window full",
        StallReason::Concurrency => "concurrency",
        StallReason::HandlerSlots => "handler slots",
        StallReason::BackPressure => "handler back-off",
        StallReason::RetryWait => "retry waiting",
        StallReason::ParkedFull => "parked full",
        StallReason::SourceWait => "source waiting",
        StallReason::Unsaved => "unsaved limit",
        StallReason::Checkpoint => "progress unwritten",
        StallReason::Trust => "lease not renewed",
        StallReason::Canary => "canary",
        StallReason::Tail => "last answers",
        StallReason::SingleFile => "single file",
        StallReason::Limit => "shared limit",
        StallReason::HandlerDown => "handler down",
        StallReason::ResultsUnsaved => "results unwritten",
        StallReason::Items => "waiting for items",
    }
}

pub(super) fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

/// Every cause that has a part, the largest first.
pub(super) fn of(facts: &Facts) -> Vec<Cause> {
    let permits = &facts.permits;
    let stalls = StallReason::ALL.into_iter().zip(permits.lost);
    let mut parts: Vec<(CauseKind, i64)> = stalls
        .map(|(reason, lost)| (CauseKind::Stall(reason), signed(lost)))
        .collect();
    parts.extend([
        (CauseKind::Returned, signed(permits.returned)),
        (CauseKind::Late, signed(permits.late) - counted_twice(facts)),
        (CauseKind::Slowed, signed(permits.slowed)),
        (
            CauseKind::NotRunning(facts.standing.status),
            given(facts, facts.idle),
        ),
        (CauseKind::Unknown, given(facts, facts.unheard.time)),
        (CauseKind::NoRoom, no_room(facts)),
    ]);
    parts.retain(|(_, micros)| *micros > 0);
    parts.sort_by_key(|(_, micros)| std::cmp::Reverse(*micros));
    parts
        .into_iter()
        .map(|(kind, micros)| cause(facts, kind, micros))
        .collect()
}

/// Attempts beyond the first of their item.
pub(super) fn repeats(facts: &Facts) -> Cause {
    cause(facts, CauseKind::Retries, signed(facts.permits.repeats))
}

fn cause(facts: &Facts, kind: CauseKind, micros: i64) -> Cause {
    Cause {
        kind,
        micros,
        text: hints::of(kind, facts),
    }
}

/// Permits that the rate gives in the span: of runs, of the time without one, and what a node has no room for.
pub(super) fn target(facts: &Facts) -> i64 {
    signed(facts.permits.due) - counted_twice(facts)
        + given(facts, facts.idle)
        + given(facts, facts.unheard.time)
        + no_room(facts)
}

/// A run is given permits at the rate that it may have, so these are not among those that were due.
fn no_room(facts: &Facts) -> i64 {
    signed(facts.held_back.iter().map(|run| run.lost(facts.covered)).sum())
}

/// Permits of a time in which two runs had a shard: one of a node that stood still, which came round to them when it went on
/// again, and the one that took over meanwhile.
fn counted_twice(facts: &Facts) -> i64 {
    // The take-over may be older than what is told, and the freeze not.
    if facts.taken_over.is_none() && facts.stood_still.is_none() {
        return 0;
    }
    let had = signed(facts.permits.due) + given(facts, facts.idle) + given(facts, facts.unheard.time);
    (had - given(facts, facts.covered)).clamp(0, signed(facts.permits.late))
}

/// What the rate gives in a time of which nothing was counted.
fn given(facts: &Facts, time: Duration) -> i64 {
    let RateLimit::Limited(rate) = facts.tuning.rate else {
        return 0;
    };
    let units = time.as_nanos().saturating_mul(u128::from(rate.items()));
    let micros = units.saturating_mul(u128::from(MICRO)) / u128::from(rate.period_ns());
    i64::try_from(micros).unwrap_or(i64::MAX)
}
