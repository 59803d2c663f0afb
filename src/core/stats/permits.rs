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
    /// rate (`domain::pace`).
    pub late: u64,
    /// Not given, since the handler asked for a lower rate for a while.
    pub slowed: u64,
}

impl Permits {
    /// What came since an earlier picture of the same run.
    #[must_use]
    pub fn since(&self, before: &Permits) -> Permits {
        let mut lost = self.lost;
        for (now, then) in lost.iter_mut().zip(before.lost) {
            *now = now.saturating_sub(then);
        }
        Permits {
            due: self.due.saturating_sub(before.due),
            first: self.first.saturating_sub(before.first),
            repeats: self.repeats.saturating_sub(before.repeats),
            returned: self.returned.saturating_sub(before.returned),
            lost,
            late: self.late.saturating_sub(before.late),
            slowed: self.slowed.saturating_sub(before.slowed),
        }
    }

    /// The permits of the first `part` of a span of `whole`, as if they lay evenly in it; rounded down.
    #[must_use]
    pub(super) fn head(&self, part: u64, whole: u64) -> Permits {
        let of = |count| share(count, part, whole);
        Permits {
            due: of(self.due),
            first: of(self.first),
            repeats: of(self.repeats),
            returned: of(self.returned),
            lost: self.lost.map(of),
            late: of(self.late),
            slowed: of(self.slowed),
        }
    }

    /// Where all that was due went: the sum of every term. `due` less this is what the buckets hold.
    pub fn spent(&self) -> u64 {
        let lost: u64 = self.lost.iter().sum();
        self.first + self.repeats + self.returned + lost + self.late + self.slowed
    }

    /// Adds those of another run, or of another span.
    pub fn add(&mut self, more: &Permits) {
        self.due += more.due;
        self.first += more.first;
        self.repeats += more.repeats;
        self.returned += more.returned;
        for (sum, part) in self.lost.iter_mut().zip(more.lost) {
            *sum += part;
        }
        self.late += more.late;
        self.slowed += more.slowed;
    }
}
