//! The sum that every surface shows: each item of a task (or shard) is in exactly one of its terms.

use serde::{Deserialize, Serialize};

use crate::ids::ItemCount;

/// How many items of a range stand where. `pending` is never stored: it is what the others leave, so that
/// `succeeded + skipped + failed + parked + in_flight + pending + excluded = total` holds by construction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Settled well.
    pub succeeded: u64,
    /// Settled: nothing to do.
    pub skipped: u64,
    /// Failed for good.
    pub failed: u64,
    /// Waiting outside the window. An evicted item whose call is still out counts as in flight, not here.
    pub parked: u64,
    /// Given to the handler, no verdict yet.
    pub in_flight: u64,
    /// Never to be dispatched.
    pub excluded: u64,
}

impl Counters {
    /// Items with a final verdict.
    pub fn settled(&self) -> u64 {
        self.succeeded + self.skipped + self.failed
    }

    /// Every item that is not pending.
    pub fn accounted(&self) -> u64 {
        self.settled() + self.parked + self.in_flight + self.excluded
    }

    /// What is left of `total`; zero (and a broken invariant) when more are accounted for than exist.
    pub fn pending(&self, total: ItemCount) -> u64 {
        total.0.saturating_sub(self.accounted())
    }

    /// The sums of two disjoint ranges.
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
