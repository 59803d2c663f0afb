//! Sizes of calls: whole batches, unless items have waited `batch_linger` for one to fill, and halves of a call that
//! failed.
//!
//! A call of several items that fails as a whole proves nothing about any of them. No item is charged: they are
//! called again in halves, down to single items, and judged there. Calls for fresh items shrink with them and grow
//! again with each answer, so a handler that fails for every item soon shows in calls of one item.

use crate::execution::items::Items;
use crate::execution::settings::Settings;
use std::time::Duration;

use crate::execution::Execution;
use crate::execution::types::Now;
use crate::ids::Moment;
use crate::items::verdict::{Failed, FailureClass, RetryAdvice};
use crate::items::waiting::{Place, RetryingItem, RetryingItems};
use crate::pace::Pace;

/// Sizes of calls, and the wait for one to fill.
#[derive(Debug)]
pub(in crate::execution) struct Batches {
    /// Time since which fewer items than a full call have been available.
    short_since: Option<Moment>,
    /// Maximum items per call in the latest grant.
    size: u32,
    /// Set if the latest grant was of parked halves alone: the next one is for others.
    was_of_parked: bool,
}

impl Batches {
    /// Starts with calls of the full size.
    pub(in crate::execution) fn new(batch: u32) -> Batches {
        Batches {
            short_since: None,
            size: batch,
            was_of_parked: false,
        }
    }

    /// Returns the time at which a batch that doesn't fill is sent anyway.
    pub(in crate::execution) fn lingers_until(&self, linger: Duration, pace: &Pace) -> Option<Moment> {
        let since = self.short_since?;
        Some(since.plus(linger).max(pace.next_at(1)))
    }

    /// True if the latest grant was of parked halves alone.
    pub(in crate::execution) fn was_of_parked(&self) -> bool {
        self.was_of_parked
    }

    /// True if nothing waits for a call to fill.
    pub(in crate::execution) fn is_whole(&self) -> bool {
        self.short_since.is_none()
    }

    /// Returns the maximum items per call in the latest grant.
    pub(in crate::execution) fn size(&self) -> u32 {
        self.size
    }

    /// Returns the size of the halves that are due first, if any. Parked halves alternate with all others.
    fn due_halves(&mut self, retrying_items: &mut RetryingItems, batch: u32, now: Moment) -> Option<u32> {
        let halves = |retrying: Option<&RetryingItem>| {
            retrying
                .map(|retrying| retrying.call_max)
                .filter(|most| (1..batch).contains(most))
        };
        let in_window = halves(retrying_items.first_due(Place::Window, now));
        if in_window.is_some() || std::mem::take(&mut self.was_of_parked) {
            return in_window;
        }
        let parked = halves(retrying_items.first_due(Place::Outside, now));
        self.was_of_parked = parked.is_some();
        parked
    }

    /// Rounds credit (in items) down to whole calls, unless the wait for one to fill is over or no more items are
    /// left.
    pub(in crate::execution) fn whole(
        &mut self,
        credit: u32,
        left: u64,
        linger: Duration,
        now: Moment,
    ) -> u32 {
        let size = self.size;
        if size == 1 || credit == 0 {
            return credit;
        }
        let short_since = &mut self.short_since;
        if credit >= size {
            *short_since = None;
            return credit - credit % size;
        }
        let since = *short_since.get_or_insert(now);
        let waited = now.since(since) >= linger;
        if waited || u64::from(credit) >= left {
            *short_since = None;
            return credit;
        }
        0
    }

    /// Returns the number of calls that these items make.
    pub(in crate::execution) fn calls_of(&self, items: u32) -> u32 {
        items.div_ceil(self.size)
    }
}

impl Execution {
    /// Sets the maximum items per call of this grant; returns true if the grant is of halves alone.
    pub(in crate::execution) fn size_calls(&mut self, now: Now) -> bool {
        let batch = self
            .settings
            .tuning
            .batch
            .get()
            .min(self.settings.limits.concurrency)
            .max(1);
        // Calls that show whether the handler answers carry a single item.
        let is_usual = self.judge.circuit.is_closed() && !self.judge.wants_fresh();
        self.batches.size = if is_usual {
            self.judge.call_size.most().min(batch)
        } else {
            1
        };
        let halves = if is_usual && batch > 1 && !self.items.retrying_items.is_empty() {
            self.batches
                .due_halves(&mut self.items.retrying_items, batch, now.moment)
        } else {
            None
        };
        if let Some(halves) = halves {
            self.batches.size = halves;
        }
        halves.is_some()
    }
}

impl Items {
    /// Schedules an item of a failed call for a call with half as many others, all of them at the same time.
    pub(in crate::execution) fn call_in_halves(
        &mut self,
        settings: &Settings,
        failed: Failed,
        mut retrying: RetryingItem,
        now: Now,
    ) {
        retrying.call_max = failed.call_items.div_ceil(2);
        let after = match failed.advice {
            RetryAdvice::Retry { after } => after.unwrap_or_default(),
            RetryAdvice::Fail => Duration::ZERO,
        };
        retrying.failure = Some(failed.failure);
        self.wait_for_retry(
            settings,
            failed.index,
            retrying,
            settings.tuning.backoff.first.max(after),
            now,
        );
    }
}

impl Settings {
    /// True if the failed call proves nothing about its item, because others shared it and it failed as a whole. An
    /// item with a single attempt is not called again if the call may have had an effect.
    pub(in crate::execution) fn is_shared_failure(&self, class: FailureClass, items: u32) -> bool {
        let may_again = match class {
            FailureClass::Unreachable | FailureClass::Unstarted => false,
            FailureClass::Rejected | FailureClass::Unavailable | FailureClass::Unsendable => true,
            FailureClass::Answered | FailureClass::Exited | FailureClass::Faulty | FailureClass::Unclear => {
                self.tuning.max_attempts.get() > 1
            }
        };
        items > 1 && may_again
    }
}
