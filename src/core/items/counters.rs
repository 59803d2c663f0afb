//! Item counters shown on every surface: each item of a task (or shard) is counted in exactly one of them.

use serde::{Deserialize, Serialize};

use crate::ids::ItemCount;

/// Number of items of a range in each state. `pending` is never stored but computed as the rest, so that `succeeded +
/// skipped + failed + parked + in_flight + pending + excluded = total` holds by construction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Items settled as successful.
    pub succeeded: u64,
    /// Items settled because there was nothing to do.
    pub skipped: u64,
    /// Items that failed for good.
    pub failed: u64,
    /// Items waiting outside the window. An evicted item whose call is still out counts as in flight instead.
    pub parked: u64,
    /// Items sent to the handler, without a verdict yet.
    pub in_flight: u64,
    /// Items that are never dispatched.
    pub excluded: u64,
}

impl Counters {
    /// Returns the number of items with a final verdict.
    pub fn settled(&self) -> u64 {
        self.succeeded + self.skipped + self.failed
    }

    /// Returns the number of items that are not pending.
    pub fn accounted(&self) -> u64 {
        self.settled() + self.parked + self.in_flight + self.excluded
    }

    /// Returns the rest of `total`. Returns 0 when more items are accounted for than exist, which is a broken
    /// invariant.
    pub fn pending(&self, total: ItemCount) -> u64 {
        total.0.saturating_sub(self.accounted())
    }

    /// Returns the sum of the counters of two disjoint ranges.
    #[must_use]
    pub fn plus(&self, other: &Counters) -> Counters {
        Counters {
            succeeded: self.succeeded + other.succeeded,
            skipped: self.skipped + other.skipped,
            failed: self.failed + other.failed,
            parked: self.parked + other.parked,
            in_flight: self.in_flight + other.in_flight,
            excluded: self.excluded + other.excluded,
        }
    }
}
