//! Inputs and outputs of a step.

use std::time::Duration;

use crate::ids::{ItemIndex, Moment, RunNo, ShardId, WallMs};
use crate::invariants::Invariant;
use crate::items::counters::Counters;
use crate::items::stretches::Stretches;
use crate::items::verdict::{
    AnsweredCalls, Dispatch, Failed, FailedCall, FailingItem, Outage, ParkedItem, Settled, Signal,
};
use crate::meter::metering::Metering;
use crate::shards::{Pause, Slow};
use crate::stats::histogram::Histogram;
use crate::task::failed_codes::FailedCodes;
use crate::task::lifecycle::{CutOff, StopReason};
use crate::task::supply::Supply;
use crate::task::{Canary, ShardRange, Tuning};

use super::autopilot::Found;
use super::charges::Saved;
use super::draft::CheckpointDraft;
use super::horizon::Horizon;
use super::shared::Shared;
use super::tickets::CallEnd;

/// Current time on both clocks: the core never reads a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Monotonic time of the node.
    pub moment: Moment,
    /// Wall-clock time, for people and for the store.
    pub wall: WallMs,
}

/// Initial state of a run.
#[derive(Clone, Debug)]
pub struct Start {
    /// Shard that the run executes.
    pub shard: ShardId,
    /// Range of its indexes.
    pub range: ShardRange,
    /// Settings of the task.
    pub tuning: Tuning,
    /// Saved progress; [`Restored::fresh`] for the first run.
    pub restored: Restored,
    /// True if rows must be read before items can be sent (`Event::SourceReady`).
    pub has_data: bool,
    /// Claims of the shard in a row without progress, including this one (`execution::solo`).
    pub stalls: u32,
    /// Number of this run, for the timelines of retrying items.
    pub run: RunNo,
    /// First items of the range, which are settled before any other is sent (`execution::canary`).
    pub canary: Option<Canary>,
    /// State of the rest of the task; `tuning` is the task's.
    pub shared: Shared,
    /// Time after which a handler that was never reached, or only ever finds fault, ends the run; `None` waits.
    pub first_contact: Option<Duration>,
    /// Supply of a task that was created open; `None` if `range` is complete.
    pub supply: Option<Supply>,
    /// True if the handler calls a service that more calls in flight may slow down.
    pub is_service: bool,
    /// Limits in units, and what calls cost in them.
    pub metering: Metering,
}

/// Saved progress of a shard.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    /// First index that is neither settled nor parked.
    pub watermark: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// Dispatch horizon of fresh items, for this run and for earlier ones.
    pub horizon: Horizon,
    /// Counters as they were saved.
    pub counters: Counters,
    /// Items settled above the watermark: bit `j` is index `watermark + 1 + j`.
    pub above: Vec<u64>,
    /// Unsettled items in the window that failed before.
    pub retrying: Vec<FailingItem>,
    /// Parked items, outside the window.
    pub parked: Vec<ParkedItem>,
    /// Index at which an early finish cut the shard, if it did.
    pub excluded: Option<ItemIndex>,
    /// Outage that the previous run was in.
    pub outage: Option<Outage>,
    /// Set if the handler succeeded in the task whose failures are repeated here.
    pub is_proven: bool,
    /// Limits that an earlier run's autopilot found.
    pub found: Option<Found>,
    /// Use of meters by earlier runs.
    pub meters: Saved,
    /// True if the database was restored: what earlier runs used since its backup is unknown.
    pub is_use_unknown: bool,
}

impl Restored {
    /// Returns the progress of a shard that never ran.
    pub fn fresh(range: ShardRange) -> Restored {
        Restored {
            watermark: range.start,
            high_water: range.start,
            ..Restored::default()
        }
    }
}

/// Reports of a lane in one exchange. The lane owns the buffers and reuses them.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// Items settled well, with neighbours joined.
    pub settled: Vec<Settled>,
    /// Failed attempts, one per item.
    pub failed: Vec<Failed>,
    /// Granted but not sent (stale, dispatch gate shut): due again, uncharged.
    pub returned: Vec<Dispatch>,
    /// Items that shared a call that a busy handler turned away (429): due again, uncharged.
    pub refused: Vec<Dispatch>,
    /// Items alone in a call that was turned away: the task pauses and none is charged, unless it is the item's own
    /// fault.
    pub turned_away: Vec<Failed>,
    /// Calls without success, in the order in which they came back.
    pub calls: Vec<FailedCall>,
    /// Number of calls that failed before they were sent, because of their items: `failed` has the items.
    pub unsent: u32,
    /// Calls that brought a verdict after the last of `calls`.
    pub answered: AnsweredCalls,
    /// Ends of the calls that have tickets ([`Effects::ticket`]).
    pub ends: Vec<CallEnd>,
    /// Signals about the handler, from its calls.
    pub signals: Vec<Signal>,
    /// Latencies of the calls.
    pub latencies: Histogram,
}

impl Reports {
    /// True if there is nothing to report.
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
            && self.ends.is_empty()
    }

    /// Adds a settled run, joining it to the last one if they touch.
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

/// Instruction from outside the lanes.
#[derive(Clone, Debug)]
pub enum Command {
    /// New live settings of the task.
    Tune(Box<Tuning>),
    /// Grants nothing more; the run ends when nothing is in flight.
    Stop(RunEnd),
    /// Ends the task at this index for good.
    Finish(ItemIndex),
    /// Items were added to the task, or it was sealed.
    Supply(Supply),
    /// Current canary of the task; `None` lifts it.
    Canary(Option<Canary>),
    /// Fails waiting items with these codes; includes all earlier decisions.
    MarkFailed(FailedCodes),
    /// Settles these items without a call; includes all that were ever named.
    Skip(Stretches),
    /// Updates the state of the rest of the task.
    Shared(Shared),
    /// Pauses or slows down the task, because another shard was asked to.
    Heard(Option<Pause>, Option<Slow>),
}

/// Input of a step.
#[derive(Debug)]
pub enum Event<'a> {
    /// A lane reports and asks for work.
    Exchange {
        /// Results of its calls; consumed and left empty.
        reports: &'a mut Reports,
        /// Number of items that it could start now; 0 while the dispatch gate is shut.
        want: u32,
    },
    /// A command arrives from outside the lanes.
    Command(Command),
    /// Rows below this index can be read.
    SourceReady(ItemIndex),
    /// The handler can work on this many items at once.
    HandlerSlots(Option<u32>),
    /// True if a limit shared with other runs allows less than the lanes could start.
    Held(bool),
    /// True if so many results wait to be written that nothing more may be sent.
    ResultsFull(bool),
    /// A checkpoint is to be made, unless one is outstanding or nothing changed.
    DraftCheckpoint,
    /// The draft of this number is durable.
    CheckpointStored(u64),
    /// All lanes ended without reporting.
    LanesLost,
}

/// Reason why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// All items are settled.
    Done,
    /// Handed over: the shard is released and still to be run.
    HandedOver,
    /// The task stopped for this reason.
    Stopped {
        /// Reason as a code.
        reason: StopReason,
        /// Explanation for people, one sentence.
        text: String,
        /// Items in flight, if the stop didn't wait for them.
        cut_off: CutOff,
    },
    /// The run will be retried automatically.
    Recovering {
        /// Reason as a slug for machines.
        reason: &'static str,
        /// Explanation for people, one sentence.
        text: String,
    },
    /// Another owner has the shard: nothing more is written.
    Fenced,
}

impl RunEnd {
    /// Creates a stop before anything is cut off.
    pub fn stopped(reason: StopReason, text: String) -> RunEnd {
        RunEnd::Stopped {
            reason,
            text,
            cut_off: CutOff::default(),
        }
    }
}

/// Phase of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Items are being dispatched.
    Running,
    /// Draining: nothing more is dispatched.
    Stopping(RunEnd),
    /// Nothing is in flight and nothing will be.
    Ended(RunEnd),
}

/// Time at which a lane should ask again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Ask again at once.
    #[default]
    Now,
    /// Ask again at this time at the latest.
    Until(Moment),
    /// Ask again when one of the lane's calls ends, or when woken.
    Completion,
    /// Never ask again: the run ended.
    Ended,
}

/// Decisions of a step. The caller owns the buffer and reuses it.
#[derive(Debug, Default)]
pub struct Effects {
    /// Items to start now.
    pub dispatch: Vec<Dispatch>,
    /// Maximum items per call for them.
    pub call_items: u32,
    /// Ticket of the first call that is made of them, if their ends are accounted for: the next calls have the numbers
    /// that follow, and the end of each is due in [`Reports::ends`].
    pub ticket: Option<u64>,
    /// Time to ask again, if nothing was granted.
    pub wait: Wait,
    /// Maximum items in flight, shared by all lanes.
    pub concurrency: u32,
    /// True if a rate limits the task: then a grant must be sent within `pace::STALE_AFTER` or come back.
    pub paced: bool,
    /// Set if a limit shared with other runs kept more from being sent ([`Event::Held`]).
    pub held_by_limit: bool,
    /// Set if other lanes that found nothing may find something now.
    pub wake_lanes: bool,
    /// Set if a checkpoint should be drafted soon.
    pub checkpoint_due: bool,
    /// Draft made in response to a request.
    pub checkpoint: Option<CheckpointDraft>,
    /// Invariants found to be violated.
    pub violations: Vec<Invariant>,
}

impl Effects {
    /// Empties the buffer for the next step.
    #[inline]
    pub fn clear(&mut self) {
        self.dispatch.clear();
        self.ticket = None;
        self.wait = Wait::Now;
        self.paced = false;
        self.held_by_limit = false;
        self.wake_lanes = false;
        self.checkpoint_due = false;
        self.checkpoint = None;
        self.violations.clear();
    }
}
