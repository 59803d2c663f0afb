//! What goes into a step and what comes out of it.

use std::time::Duration;

use crate::ids::{ItemIndex, Moment, RunNo, ShardId, WallMs};
use crate::invariants::Invariant;
use crate::items::counters::Counters;
use crate::items::stretches::Stretches;
use crate::items::verdict::{
    AnsweredCalls, Dispatch, Failed, FailedCall, ItemTrouble, Outage, ParkedItem, Settled, Signal,
};
use crate::pace::Pace;
use crate::settings::Auto;
use crate::shards::{Pause, Slow};
use crate::stats::histogram::Histogram;
use crate::task::failed_codes::FailedCodes;
use crate::task::lifecycle::{CutOff, StopReason};
use crate::task::supply::Supply;
use crate::task::{Canary, ShardRange, Tuning};

use super::draft::CheckpointDraft;
use super::reach::Reach;
use super::shared::Shared;

/// The smallest automatic bound on unsaved completions.
const UNSAVED_AUTO_MIN: u64 = 100_000;
/// The automatic concurrency before a latency is known, and at least. (`config.toml`.)
const CONCURRENCY_AUTO_MIN: u32 = 64;
/// Calls that make a latency known.
const LATENCY_CALLS_MIN: u64 = 20;

/// The time, both ways: the core never reads a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Monotonic.
    pub moment: Moment,
    /// For people and for the store.
    pub wall: WallMs,
}

/// What a run starts from.
#[derive(Clone, Debug)]
pub struct Start {
    /// The shard.
    pub shard: ShardId,
    /// Its indexes.
    pub range: ShardRange,
    /// The settings.
    pub tuning: Tuning,
    /// What was saved; [`Restored::fresh`] for the first run.
    pub restored: Restored,
    /// Whether rows must be read before items can leave (`Event::SourceReady`).
    pub has_data: bool,
    /// Claims of the shard in a row without progress, this one included (`execution::solo`).
    pub stalls: u32,
    /// The number of this run, for the timelines of retrying items.
    pub run: RunNo,
    /// The first items of the range, which are settled before any other leaves (`execution::canary`).
    pub canary: Option<Canary>,
    /// What is known of the rest of the task; `tuning` is the task's.
    pub shared: Shared,
    /// A handler that is not reached for so long, or only ever finds fault, ends the run; none waits.
    pub first_contact: Option<Duration>,
    /// How far the items go of a task that was made open; none where `range` is all that there ever is.
    pub supply: Option<Supply>,
}

/// Saved progress.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    /// First index that is neither settled nor parked.
    pub watermark: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// How far fresh items may leave, and may have left.
    pub reach: Reach,
    /// The saved counters.
    pub counters: Counters,
    /// Settled above watermark: bit `j` is index `watermark + 1 + j`.
    pub above: Vec<u64>,
    /// Unsettled items in the window that failed before.
    pub retrying: Vec<ItemTrouble>,
    /// Items outside the window.
    pub parked: Vec<ParkedItem>,
    /// Where an early finish cut the shard, if it did.
    pub excluded: Option<ItemIndex>,
    /// The outage that the run before was in.
    pub outage: Option<Outage>,
    /// The handler succeeded in the task whose failures are done again here.
    pub is_proven: bool,
}

impl Restored {
    /// The progress of a shard that never ran.
    pub fn fresh(range: ShardRange) -> Restored {
        Restored {
            watermark: range.start,
            high_water: range.start,
            ..Restored::default()
        }
    }
}

/// What a lane reports in one exchange. The buffers are the lane's and are reused.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// Settled well, neighbours joined.
    pub settled: Vec<Settled>,
    /// Failed attempts.
    pub failed: Vec<Failed>,
    /// Granted but not departed (stale, gate shut): due again, uncharged.
    pub returned: Vec<Dispatch>,
    /// Several items in a call that a busy handler turned away (429): due again, uncharged.
    pub refused: Vec<Dispatch>,
    /// Items alone in a call that was turned away: the task pauses, and nobody is charged, unless it is the item's own fault.
    pub turned_away: Vec<Failed>,
    /// Calls that brought no success, in the order in which they came back.
    pub calls: Vec<FailedCall>,
    /// Calls that came to nothing before they left, by their items' fault: `failed` has the items.
    pub unsent: u32,
    /// Calls that brought a verdict after the last of `calls`.
    pub answered: AnsweredCalls,
    /// What calls told about the handler.
    pub signals: Vec<Signal>,
    /// How long calls took.
    pub latencies: Histogram,
}

impl Reports {
    /// Whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        self.settled.is_empty()
            && self.failed.is_empty()
            && self.returned.is_empty()
            && self.refused.is_empty()
            && self.turned_away.is_empty()
            && self.calls.is_empty()
            && self.answered.calls == 0
            && self.unsent == 0
            && self.signals.is_empty()
    }

    /// Adds a settled run, joining it to the last one where they touch.
    #[inline]
    pub fn settle(&mut self, settled: Settled) {
        if let Some(last) = self.settled.last_mut()
            && last.attempt == settled.attempt
            && last.outcome == settled.outcome
            && last.run.try_extend(settled.run)
        {
            return;
        }
        self.settled.push(settled);
    }
}

/// An instruction from outside the lanes.
#[derive(Clone, Debug)]
pub enum Command {
    /// New live settings of the task.
    Tune(Box<Tuning>),
    /// Grant nothing more; end when nothing is in flight.
    Stop(RunEnd),
    /// The task ends at this index for good.
    Finish(ItemIndex),
    /// Items were added to the task, or it was sealed.
    Supply(Supply),
    /// The canary as the task has it now; none lifts it.
    Canary(Option<Canary>),
    /// Items that wait with these codes are given up; all that was ever decided.
    MarkFailed(FailedCodes),
    /// Items that are settled without a call; all that were ever named.
    Skip(Stretches),
    /// What is known of the rest of the task.
    Shared(Shared),
    /// The task pauses, or goes slower: another shard was told so.
    Heard(Option<Pause>, Option<Slow>),
}

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A lane reports and asks for work.
    Exchange {
        /// What its calls came to; taken in and left empty.
        reports: &'a mut Reports,
        /// How many items it could start now; 0 while the gate is shut.
        want: u32,
    },
    /// Someone wants something.
    Command(Command),
    /// Rows below this index can be read.
    SourceReady(ItemIndex),
    /// How many items the handler can work on at once.
    HandlerSlots(Option<u32>),
    /// Whether a limit that it shares with other runs lets less leave than the lanes could start.
    Held(bool),
    /// Whether so many results wait to be written that nothing more may leave.
    ResultsFull(bool),
    /// Make a checkpoint, unless one is outstanding or nothing changed.
    DraftCheckpoint,
    /// The draft of this number is durable.
    CheckpointStored(u64),
    /// All lanes ended without reporting.
    LanesLost,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Everything is settled.
    Done,
    /// Handed over: the shard is released, still to be run.
    HandedOver,
    /// The task stopped.
    Stopped {
        /// Why.
        reason: StopReason,
        /// A sentence for people.
        text: String,
        /// What was in flight, where the stop didn't wait.
        cut_off: CutOff,
    },
    /// To be tried again by itself.
    Recovering {
        /// A machine slug.
        reason: &'static str,
        /// A sentence for people.
        text: String,
    },
    /// Someone else owns the shard: nothing more is written.
    Fenced,
}

impl RunEnd {
    /// A stop before anything is cut off.
    pub fn stopped(reason: StopReason, text: String) -> RunEnd {
        RunEnd::Stopped {
            reason,
            text,
            cut_off: CutOff::default(),
        }
    }
}

/// Where a run stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Dispatching.
    Running,
    /// Draining.
    Stopping(RunEnd),
    /// Nothing is in flight and nothing will be.
    Ended(RunEnd),
}

/// When a lane should ask again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// At once.
    #[default]
    Now,
    /// At this time at the latest.
    Until(Moment),
    /// When a call of its own ends or someone wakes it.
    Completion,
    /// Never: the run ended.
    Ended,
}

/// What a step decided. The buffer is the caller's and is reused.
#[derive(Debug, Default)]
pub struct Effects {
    /// Items to start now.
    pub dispatch: Vec<Dispatch>,
    /// Most items of one call for them.
    pub call_items: u32,
    /// When to ask again, if nothing was granted.
    pub wait: Wait,
    /// Items that may be in flight: what lanes share between them.
    pub concurrency: u32,
    /// Whether a rate limits the task: then a grant must depart within `pace::STALE_AFTER` or come back.
    pub paced: bool,
    /// More would have left but for a limit that is shared with other runs ([`Event::Held`]).
    pub held_by_limit: bool,
    /// Other lanes that found nothing may find something now.
    pub wake_lanes: bool,
    /// A checkpoint should be drafted soon.
    pub checkpoint_due: bool,
    /// The draft that was asked for.
    pub checkpoint: Option<CheckpointDraft>,
    /// Invariants found broken.
    pub violations: Vec<Invariant>,
}

impl Effects {
    /// Empties the buffer for the next step.
    #[inline]
    pub fn clear(&mut self) {
        self.dispatch.clear();
        self.wait = Wait::Now;
        self.paced = false;
        self.held_by_limit = false;
        self.wake_lanes = false;
        self.checkpoint_due = false;
        self.checkpoint = None;
        self.violations.clear();
    }
}

/// The numbers that follow from the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Items in flight.
    pub concurrency: u32,
    /// Items in the window.
    pub window: u32,
}

impl Limits {
    /// The numbers to begin with.
    pub fn of(tuning: &Tuning) -> Limits {
        let concurrency = tuning.concurrency_at_start();
        Limits {
            concurrency,
            window: tuning.window_items(concurrency),
        }
    }

    /// `auto` concurrency: rate × p95 × 1.5 by Little's law, never below 64, at most `max_concurrency`.
    pub(super) fn on_latency(&mut self, tuning: &Tuning, pace: &Pace, latencies: &Histogram) {
        let known = latencies.count() >= LATENCY_CALLS_MIN;
        let (Auto::Auto, false, true, Some(rate)) = (tuning.concurrency, tuning.ordered, known, pace.rate())
        else {
            return;
        };
        let Some(p95) = latencies.percentile(95) else {
            return;
        };
        let needed = rate.items_in(p95.saturating_mul(3) / 2);
        let least = u64::from(CONCURRENCY_AUTO_MIN.max(2 * tuning.batch.get()));
        let most = u64::from(tuning.max_concurrency.get()).max(u64::from(tuning.batch.get()));
        self.concurrency = u32::try_from(needed.max(least).min(most)).unwrap_or(u32::MAX);
        self.window = tuning.window_items(self.concurrency);
    }

    /// How many completions may be unsaved: `auto` is max(10 × concurrency, 100,000, 5 × settled in a second).
    pub(super) fn unsaved_max(&self, tuning: &Tuning, speed: &Speed) -> u64 {
        match tuning.unsaved_max {
            Auto::Fixed(number) => u64::from(number.get()),
            Auto::Auto => (10 * u64::from(self.concurrency))
                .max(UNSAVED_AUTO_MIN)
                .max(5 * speed.settled),
        }
    }
}

/// How many items were settled in the last second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    since: Moment,
    settled_then: u64,
    /// Items in the last whole second, or in the present one when those are more.
    pub(super) settled: u64,
}

impl Speed {
    /// Nothing was settled yet by this run; `settled` were by those before it.
    pub(super) fn new(settled: u64, now: Moment) -> Speed {
        Speed {
            since: now,
            settled_then: settled,
            settled: 0,
        }
    }

    /// Takes the number settled so far; says whether a second is over.
    #[inline]
    pub(super) fn on(&mut self, settled: u64, now: Moment) -> bool {
        let count = settled.saturating_sub(self.settled_then);
        let span = now.since(self.since);
        if span < Duration::from_secs(1) {
            self.settled = self.settled.max(count);
            return false;
        }
        let per_second = u128::from(count) * 1_000_000_000 / span.as_nanos();
        *self = Speed {
            since: now,
            settled_then: settled,
            settled: per_second as u64,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_earlier_runs_settled_is_not_speed() {
        let mut speed = Speed::new(1_000_000, Moment(0));
        assert!(!speed.on(1_000_050, Moment(500_000_000)));
        assert_eq!(speed.settled, 50);
        assert!(speed.on(1_000_100, Moment(2_000_000_000)));
        assert_eq!(speed.settled, 50);
    }
}
