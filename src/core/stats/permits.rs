//! What became of every permit that the task's rate gave: the sums behind `explain`.
//!
//! A permit is the right of one attempt to leave. Of those that were due, each was used for the first attempt of an
//! item, used for a repeat, given back unused, or lost, and then there is a reason. So `due` is the sum of all terms,
//! but for what the bucket holds at the moment.

use crate::stats::histogram::share;
use crate::stats::stall::StallReason;

/// Millionths of a permit in one.
pub const MICRO: u64 = 1_000_000;

/// Permits since the run began. Unit of every member: millionths of a permit, so that low rates lose nothing.
/// `first` and `repeats` fall by what comes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// What the rate of the task gave, ∫ rate dt. While no rate limits it, whatever leaves is due as it leaves (under
    /// a slow-down that the handler asked for: what that gives).
    pub due: u64,
    /// First attempts that left.
    pub first: u64,
    /// Attempts beyond the first of their item.
    pub repeats: u64,
    /// Granted, but come back without having left, or lost with their lanes.
    pub returned: u64,
    /// Lost while nothing could leave for this reason, in the order of [`StallReason::ALL`]. Calls that the handler
    /// turned away (429, 503) are among those lost to its back-pressure.
    pub lost: [u64; StallReason::ALL.len()],
    /// Lost while nothing was in the way: the node did not come round to it in time; or forgotten by a change of the
    /// rate (`pace`).
    pub late: u64,
    /// Not given, since the handler asked for a lower rate for a while.
    pub slowed: u64,
}

impl Permits {
    /// Each term with the other's.
    fn each(&self, other: &Permits, with: impl Fn(u64, u64) -> u64) -> Permits {
        Permits {
            due: with(self.due, other.due),
            first: with(self.first, other.first),
            repeats: with(self.repeats, other.repeats),
            returned: with(self.returned, other.returned),
            lost: std::array::from_fn(|at| with(self.lost[at], other.lost[at])),
            late: with(self.late, other.late),
            slowed: with(self.slowed, other.slowed),
        }
    }

    /// What came since an earlier picture of the same run.
    #[must_use]
    pub fn since(&self, before: &Permits) -> Permits {
        self.each(before, u64::saturating_sub)
    }

    /// The permits of the first `part` of a span of `whole`, as if they lay evenly in it; rounded down.
    #[must_use]
    pub(super) fn head(&self, part: u64, whole: u64) -> Permits {
        self.each(self, |count, _| share(count, part, whole))
    }

    /// Where all that was due went: the sum of every term. `due` less this is what the buckets hold.
    pub fn spent(&self) -> u64 {
        let lost: u64 = self.lost.iter().sum();
        self.first + self.repeats + self.returned + lost + self.late + self.slowed
    }

    /// Attempts that left, whichever of their item.
    pub fn sent(&self) -> u64 {
        self.first + self.repeats
    }

    /// Adds those of another run, or of another span.
    pub fn add(&mut self, more: &Permits) {
        *self = self.each(more, |one, other| one + other);
    }
}
