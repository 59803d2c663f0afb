//! Progress of a run as shown to people.

use crate::execution::items::Items;
use std::time::Duration;

use crate::execution::Execution;
use crate::execution::charges::{HeldBy, MeterPicture};
use crate::execution::types::{Now, Phase};
use crate::handler::failed_calls::FailedCalls;
use crate::ids::{ItemCount, ItemIndex, Moment};
use crate::items::counters::Counters;
use crate::items::verdict::{HandlerState, LastError};
use crate::items::waiting::Doing;
use crate::pilot::Picture;
use crate::settings::{Rate, RateLimit};
use crate::stats::permits::Permits;
use crate::stats::stall::StallReason;
use crate::stats::tally::Tally;
use crate::task::Tuning;

/// Snapshot of a run; its terms add up.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// All terms except `pending`.
    pub counters: Counters,
    /// Items that no other term includes.
    pub pending: u64,
    /// Sum of all terms.
    pub total: ItemCount,
    /// Lowest index that is neither settled nor parked.
    pub watermark: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// Size of the window, in items.
    pub window: u32,
    /// Maximum items in flight.
    pub concurrency: u32,
    /// Rate in force; `None` is unpaced.
    pub rate: Option<Rate>,
    /// Limits that the autopilot has found, if it steers the run.
    pub autopilot: Option<Picture>,
    /// Use of each meter, if the task has any.
    pub costs: Vec<MeterPicture>,
    /// Limit in units that allowed the fewest calls when they were last asked for.
    pub held_by: Option<HeldBy>,
    /// Completions that a crash now would repeat.
    pub unsaved: u64,
    /// Items that wait for a retry or are being retried.
    pub retrying: u64,
    /// Approximate time until the next waiting item is retried; `None` if none waits, or it is due.
    pub next_retry: Option<Duration>,
    /// State of the handler, and the last error.
    pub handler: HandlerState,
    /// Reason why nothing is sent, if any.
    pub stall: Option<StallReason>,
    /// Time spent stalled so far, in the order of `StallReason::ALL`.
    pub stalled: [Duration; StallReason::ALL.len()],
    /// Use of the permits so far.
    pub permits: Permits,
    /// 95th percentile of call latencies.
    pub latency_p95: Option<Duration>,
    /// Attempt of the item at the watermark, and whether the item waits for it; `None` if nothing holds the
    /// watermark.
    pub head: Option<HeadAttempt>,
    /// Number of items that the handler can work on at once, if it reports it.
    pub handler_slots: Option<u32>,
    /// Time for which the item at the watermark has held it, dispatched or waiting for a retry; zero if nothing does.
    pub head_age: Duration,
    /// Error budget left, in millionths; `None` without a budget.
    pub budget_left_ppm: Option<u32>,
    /// Current phase of the run.
    pub phase: Phase,
}

/// Attempt of the item at the watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadAttempt {
    /// Attempt that is with the handler, or the next one.
    pub attempt: u32,
    /// True if the item waits for that attempt.
    pub waits: bool,
}

impl Execution {
    /// Returns the minimum time for the items left at the rate in force; `None` if nothing paces it, or if items may
    /// be added.
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

    /// Returns a snapshot of the progress.
    pub fn progress(&self, now: Now) -> Progress {
        let counters = Counters {
            parked: self.items.retrying_items.outside_waiting(),
            ..self.items.counters
        };
        Progress {
            counters,
            pending: counters.pending(self.items.range.len()),
            total: self.items.range.len(),
            watermark: self.items.window.watermark(),
            high_water: self.items.high,
            window: self.items.window.size(),
            concurrency: self.settings.items_in_flight_max(),
            rate: self.pace.rate(),
            autopilot: self.autopilot.picture(now.moment),
            costs: self.charges.picture(),
            held_by: self.charges.held_by(),
            unsaved: self.items.drafts.unsaved(),
            retrying: self.items.retrying_items.len() as u64,
            next_retry: self
                .items
                .retrying_items
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

    /// Returns the recent errors, one per code, the latest last.
    pub fn errors(&self) -> &[LastError] {
        self.judge.errors.all()
    }

    /// Returns the calls that failed since the run began.
    pub fn failed_calls(&self) -> &FailedCalls {
        self.judge.errors.counted()
    }

    /// Returns the counts since the run began.
    pub fn tally(&self) -> &Tally {
        self.meters.tally()
    }

    pub(super) fn head_age(&self, now: Moment) -> Duration {
        self.meters
            .head_age(self.items.window.watermark(), self.items.high, now)
    }

    /// Returns the configured rate of the whole task, without shares, slow-downs and room.
    pub fn task_rate(&self) -> RateLimit {
        self.settings.whole.rate
    }

    /// Returns the settings in force.
    pub fn tuning(&self) -> &Tuning {
        &self.settings.tuning
    }

    /// Returns the lowest index whose rows may still be needed in order: rows before it can be dropped.
    pub fn watermark(&self) -> ItemIndex {
        self.items.window.watermark()
    }

    /// Returns the index from which fresh items are taken next, to read ahead of it.
    pub fn cursor(&self) -> ItemIndex {
        self.items.cursor
    }

    /// Returns one past the last index that will be dispatched.
    pub fn end(&self) -> ItemIndex {
        self.items.end
    }
}

impl Items {
    pub(in crate::execution) fn head_attempt(&self) -> Option<HeadAttempt> {
        let low = self.window.watermark();
        let retrying = self.retrying_items.get(low);
        let attempt = retrying.map_or(1, |retrying| retrying.attempts.saturating_add(1));
        let waits = retrying.is_some_and(|retrying| retrying.doing != Doing::InFlight);
        (low < self.high).then_some(HeadAttempt { attempt, waits })
    }
}
