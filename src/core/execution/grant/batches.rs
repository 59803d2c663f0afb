//! Items leave in whole batches, unless they have waited `batch_linger` for the batch to fill.

use std::time::Duration;

use crate::execution::Execution;
use crate::execution::types::Now;
use crate::ids::Moment;
use crate::pace::Pace;

/// Since when there has been less than a batch to leave.
#[derive(Debug, Default)]
pub(in crate::execution) struct Batches {
    short_since: Option<Moment>,
}

impl Batches {
    /// When what is less than a batch leaves all the same; a batch that never fills still leaves.
    pub(in crate::execution) fn lingers_until(&self, linger: Duration, pace: &Pace) -> Option<Moment> {
        let since = self.short_since?;
        Some(since.plus(linger).max(pace.next_at(1)))
    }

    /// Whether nothing waits for a batch to fill.
    pub(in crate::execution) fn is_whole(&self) -> bool {
        self.short_since.is_none()
    }
}

impl Execution {
    pub(in crate::execution) fn whole_batches(&mut self, credit: u32, now: Now) -> u32 {
        // More than the concurrency never comes together.
        let batch = self.tuning.batch.get().min(self.limits.concurrency);
        if batch == 1 || credit == 0 {
            return credit;
        }
        let left = self.left();
        let short_since = &mut self.batches.short_since;
        if credit >= batch {
            *short_since = None;
            return credit - credit % batch;
        }
        let since = *short_since.get_or_insert(now.moment);
        let waited = now.moment.since(since) >= self.tuning.batch_linger;
        if waited || u64::from(credit) >= left {
            *short_since = None;
            return credit;
        }
        0
    }
}
