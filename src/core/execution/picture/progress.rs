//! What people see of a run.

use crate::execution::items::Items;
use std::time::Duration;

use crate::execution::Execution;
use crate::execution::types::{Now, Phase};
use crate::handler::failed_calls::FailedCalls;
use crate::ids::{ItemCount, ItemIndex, Moment};
use crate::items::counters::Counters;
use crate::items::verdict::{HandlerState, LastError};
use crate::items::waiting::Doing;
use crate::settings::{Rate, RateLimit};
use crate::stats::permits::Permits;
use crate::stats::stall::StallReason;
use crate::stats::tally::Tally;
use crate::task::Tuning;

/// A picture of a run at one moment; its terms add up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// All terms but `pending`.
    pub counters: Counters,
    /// What is left.
    pub pending: u64,
    /// The sum.
    pub total: ItemCount,
    /// The lowest index that is neither settled nor parked.
    pub watermark: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// The window's size.
    pub window: u32,
    /// Items that may be in flight.
    pub concurrency: u32,
    /// The rate in force; none is unpaced.
    pub rate: Option<Rate>,
    /// Completions that would be repeated after a crash now.
    pub unsaved: u64,
    /// Items that wait for a retry or are tried again.
    pub retrying: u64,
    /// In about how long the next of those that wait is tried; none where none waits, or it is due.
    pub next_retry: Option<Duration>,
    /// Whether the handler is down, and what last went wrong.
    pub handler: HandlerState,
    /// Why nothing leaves, if so.
    pub stall: Option<StallReason>,
    /// Time spent stalled so far, in the order of `StallReason::ALL`.
    pub stalled: [Duration; StallReason::ALL.len()],
    /// What became of the permits so far.
    pub permits: Permits,
    /// The 95th percentile of how long calls take.
    pub latency_p95: Option<Duration>,
    /// The attempt of the item at watermark, and whether it waits for it; none when nothing holds watermark.
    pub head: Option<HeadAttempt>,
    /// How many items the handler can work on at once, where it says so.
    pub handler_slots: Option<u32>,
    /// How long the item at watermark has held it there, given out or waiting for a retry; zero when nothing does.
    pub head_age: Duration,
    /// How much of the error budget is left; none without a budget. Unit: millionths.
    pub budget_left_ppm: Option<u32>,
    /// Where the run stands.
    pub phase: Phase,
}

/// How the item at watermark stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadAttempt {
    /// The attempt that is with the handler, or the next one.
    pub attempt: u32,
    /// Whether it waits for that attempt.
    pub waits: bool,
}

impl Execution {
    /// The least time that what is left takes at the rate in force; none where nothing paces it, or items may be added.
    pub fn ends_in(&self) -> Option<Duration> {
        let rate = self.pace.rate().filter(|_| !self.items.supply.is_open())?;
        let left = self
            .items
            .range
            .len()
            .0
            .saturating_sub(self.items.counters.settled());
        Some(rate.time_of(left))
    }

    /// The picture now.
    pub fn progress(&self, now: Now) -> Progress {
        let counters = Counters {
            parked: self.items.troubles.outside_waiting(),
            ..self.items.counters
        };
        Progress {
            counters,
            pending: counters.pending(self.items.range.len()),
            total: self.items.range.len(),
            watermark: self.items.window.watermark(),
            high_water: self.items.high,
            window: self.items.window.size(),
            concurrency: self.settings.limits.concurrency,
            rate: self.pace.rate(),
            unsaved: self.items.drafts.unsaved(),
            retrying: self.items.troubles.len() as u64,
            next_retry: self
                .items
                .troubles
                .soonest()
                .filter(|due| *due > now.moment)
                .map(|due| due.since(now.moment)),
            handler: self.handler(now),
            stall: self.meters.stalls().current(),
            stalled: self.meters.stalls().spent(now.moment),
            permits: self.meters.permits(&self.pace, now.moment),
            latency_p95: self.meters.latencies().percentile(95),
            head: self.items.head_attempt(),
            handler_slots: self.handler_slots,
            head_age: self.head_age(now.moment),
            budget_left_ppm: self.judge.budget.left_ppm(
                counters.succeeded,
                self.items.failed_of_task(&self.settings),
                self.settings.shared.items,
                now.moment,
            ),
            phase: self.phase.clone(),
        }
    }

    /// The errors of late, one a code, the latest last.
    pub fn errors(&self) -> &[LastError] {
        self.judge.errors.all()
    }

    /// Calls that failed since the run began.
    pub fn failed_calls(&self) -> &FailedCalls {
        self.judge.errors.counted()
    }

    /// What was counted since the run began.
    pub fn tally(&self) -> &Tally {
        self.meters.tally()
    }

    pub(super) fn head_age(&self, now: Moment) -> Duration {
        self.meters
            .head_age(self.items.window.watermark(), self.items.high, now)
    }

    /// The rate of the whole task, as it was set: without shares, slow-downs and room.
    pub fn task_rate(&self) -> RateLimit {
        self.settings.whole.rate
    }

    /// The settings in force.
    pub fn tuning(&self) -> &Tuning {
        &self.settings.tuning
    }

    /// The lowest index whose rows may still be needed in order: rows before it can be dropped.
    pub fn watermark(&self) -> ItemIndex {
        self.items.window.watermark()
    }

    /// Where fresh items will be taken from next, to read ahead of it.
    pub fn cursor(&self) -> ItemIndex {
        self.items.cursor
    }

    /// One past the last index that will be dispatched.
    pub fn end(&self) -> ItemIndex {
        self.items.end
    }
}

impl Items {
    pub(in crate::execution) fn head_attempt(&self) -> Option<HeadAttempt> {
        let low = self.window.watermark();
        let trouble = self.troubles.get(low);
        let attempt = trouble.map_or(1, |trouble| trouble.attempts.saturating_add(1));
        let waits = trouble.is_some_and(|trouble| trouble.doing != Doing::InFlight);
        (low < self.high).then_some(HeadAttempt { attempt, waits })
    }
}
