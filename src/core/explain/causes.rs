//! Permits lost in a span, by cause.

use std::time::Duration;

use windrow_words::{Message, cause as say};

use super::facts::Facts;
use super::hints;
use crate::settings::RateLimit;
use crate::stats::permits::MICRO;
use crate::stats::stall::StallReason;
use crate::task::lifecycle::Status;

/// Reason why a permit sent no attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseKind {
    /// Nothing could be sent for this reason.
    Stall(StallReason),
    /// A repeat used the permit: the rate is kept, but one item fewer settles.
    Retries,
    /// The permit was granted and came back.
    Returned,
    /// The node was too late to use the permit.
    Late,
    /// The handler asked for a lower rate.
    Slowed,
    /// A node has no room for the share of the rate that a run should have.
    NoRoom,
    /// No part of the task ran.
    NotRunning(Status),
    /// The permit belongs to shards on nodes that can't be asked; it may have settled items.
    Unknown,
}

/// Share of what is missing, with its cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// Kind of the cause.
    pub kind: CauseKind,
    /// Amount over the span, in millionths of an item.
    pub micros: i64,
    /// Details; `None` if the title says everything.
    pub text: Option<Message>,
}

impl CauseKind {
    /// Returns the slug in JSON.
    pub fn slug(self) -> &'static str {
        match self {
            CauseKind::Stall(reason) => reason.as_str(),
            CauseKind::Retries => "retries",
            CauseKind::Returned => "returned",
            CauseKind::Late => "late",
            CauseKind::Slowed => "slowed",
            CauseKind::NoRoom => "no_room",
            // The task runs now, but didn't for part of the span.
            CauseKind::NotRunning(Status::Running) => "not_running",
            CauseKind::NotRunning(status) => status.as_str(),
            CauseKind::Unknown => "unknown",
        }
    }

    /// Returns two or three words for people.
    pub fn title(self) -> Message {
        match self {
            CauseKind::Stall(reason) => stall_title(reason),
            CauseKind::Retries => say::retries(),
            CauseKind::Returned => say::returned(),
            CauseKind::Late => say::late(),
            CauseKind::Slowed => say::slowed(),
            CauseKind::NoRoom => say::no_room(),
            CauseKind::NotRunning(_) => say::not_running(),
            CauseKind::Unknown => say::unknown(),
        }
    }
}

fn stall_title(reason: StallReason) -> Message {
    match reason {
        StallReason::WindowFull => say::window_full(),
        StallReason::Concurrency => say::concurrency(),
        StallReason::HandlerSlots => say::handler_slots(),
        StallReason::BackPressure => say::back_pressure(),
        StallReason::RetryWait => say::retry_wait(),
        StallReason::ParkedFull => say::parked_full(),
        StallReason::SourceWait => say::source_wait(),
        StallReason::Unsaved => say::unsaved(),
        StallReason::Checkpoint => say::checkpoint(),
        StallReason::Lease => say::lease(),
        StallReason::Canary => say::canary(),
        StallReason::Tail => say::tail(),
        StallReason::SingleFile => say::single_file(),
        StallReason::Limit => say::limit(),
        StallReason::HandlerDown => say::handler_down(),
        StallReason::ResultsUnsaved => say::results_unsaved(),
        StallReason::Items => say::items(),
        StallReason::Autopilot => say::autopilot(),
        StallReason::Usage => say::usage(),
    }
}

pub(super) fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

/// Returns every cause that lost permits, the largest first.
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

/// Returns the attempts beyond the first of their item, as a cause.
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

/// Returns the permits that the rate gives in the span: of runs, of the time without one, and those for which a node
/// has no room.
pub(super) fn target(facts: &Facts) -> i64 {
    signed(facts.permits.due) - counted_twice(facts)
        + given(facts, facts.idle)
        + given(facts, facts.unheard.time)
        + no_room(facts)
}

/// Returns the permits for which nodes have no room. A run gets permits at the rate that it may have, so these are
/// not among those that were due.
fn no_room(facts: &Facts) -> i64 {
    signed(facts.held_back.iter().map(|run| run.lost(facts.covered)).sum())
}

/// Returns the permits of a time in which two runs had a shard: that of a node that stood still, which got to them
/// when it resumed, and the one that took over meanwhile.
fn counted_twice(facts: &Facts) -> i64 {
    // The take-over may be older than the explained time while the freeze is not.
    if facts.taken_over.is_none() && facts.stood_still.is_none() {
        return 0;
    }
    let had = signed(facts.permits.due) + given(facts, facts.idle) + given(facts, facts.unheard.time);
    (had - given(facts, facts.covered)).clamp(0, signed(facts.permits.late))
}

/// Returns the permits that the rate gives in a time in which nothing was counted.
fn given(facts: &Facts, time: Duration) -> i64 {
    let RateLimit::Limited(rate) = facts.tuning.rate else {
        return 0;
    };
    let units = time.as_nanos().saturating_mul(u128::from(rate.items()));
    let micros = units.saturating_mul(u128::from(MICRO)) / u128::from(rate.period_ns());
    i64::try_from(micros).unwrap_or(i64::MAX)
}
