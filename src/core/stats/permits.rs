//! Account of every permit that the task's rate gave: the sums behind `explain`.
//!
//! A permit is the right to dispatch one attempt. Each permit that was due was used for the first attempt of an item,
//! used for a repeat, given back unused, or lost for a reason. So `due` is the sum of all terms, except for what the
//! bucket holds at the moment.

use crate::stats::histogram::share;
use crate::stats::stall::StallReason;

/// Unit of permit counts: millionths of a permit in one permit.
pub const MICRO: u64 = 1_000_000;

/// Permits since the run began. Unit of every member: millionths of a permit, so that low rates lose nothing. `first`
/// and `repeats` decrease when permits come back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// Permits that the rate of the task gave, ∫ rate dt. While no rate limits it, every dispatch is due at that
    /// moment (during a slow-down that the handler asked for: what that rate gives).
    pub due: u64,
    /// First attempts that were dispatched.
    pub first: u64,
    /// Attempts beyond the first of their item.
    pub repeats: u64,
    /// Permits granted but returned without dispatch, or lost with their lanes.
    pub returned: u64,
    /// Permits lost while nothing could be dispatched for this reason, in the order of [`StallReason::ALL`]. Calls
    /// that the handler turned away (429, 503) are among those lost to its back-pressure.
    pub lost: [u64; StallReason::ALL.len()],
    /// Permits lost while nothing was in the way: the node was too late; or dropped by a change of the rate (`pace`).
    pub late: u64,
    /// Permits not given, because the handler asked for a lower rate for a while.
    pub slowed: u64,
}

impl Permits {
    /// Combines each term with the other's.
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

    /// Returns the permits since an earlier snapshot of the same run.
    #[must_use]
    pub fn since(&self, before: &Permits) -> Permits {
        self.each(before, u64::saturating_sub)
    }

    /// Returns the permits of the first `part` of a span of `whole`, assuming an even distribution; rounded down.
    #[must_use]
    pub(super) fn head(&self, part: u64, whole: u64) -> Permits {
        self.each(self, |count, _| share(count, part, whole))
    }

    /// Returns the sum of every term. `due` less this is what the buckets hold.
    pub fn spent(&self) -> u64 {
        let lost: u64 = self.lost.iter().sum();
        self.first + self.repeats + self.returned + lost + self.late + self.slowed
    }

    /// Returns the number of dispatched attempts, first ones and repeats.
    pub fn sent(&self) -> u64 {
        self.first + self.repeats
    }

    /// Adds the permits of another run, or of another span.
    pub fn add(&mut self, more: &Permits) {
        *self = self.each(more, |one, other| one + other);
    }
}
