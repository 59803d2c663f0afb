//! A token bucket for a part of a limit: exact also when the part changes every second.
//!
//! Unlike a task's pace it keeps fractions of an item over a change, or a slow limit that is dealt often would lose
//! them all. In every interval what is taken is at most ∫ rate dt + burst, also for what departs up to `stale` after it
//! was taken: the cap leaves that much of the burst free, and a higher rate earns only once everything that was taken
//! at the lower one has departed or is stale.

use std::time::Duration;

use super::NANOS_PER_ITEM;
use crate::ids::Moment;

/// One item in the unit of credit: what a rate of 10⁻⁹ items per second earns in a nanosecond is 1.
const ITEM: u128 = NANOS_PER_ITEM as u128 * 1_000_000_000;
/// What may be caught up after a delay, as far as the burst allows: a run that waits for its turn is woken late.
const CATCH_UP: Duration = Duration::from_millis(50);

/// See the module.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: u64,
    cap: u128,
    credit: u128,
    filled_at: Moment,
    stale: Duration,
}

impl Bucket {
    /// An empty bucket that earns nothing.
    pub fn new(stale: Duration, now: Moment) -> Bucket {
        Bucket {
            rate: 0,
            cap: 0,
            credit: 0,
            filled_at: now,
            stale,
        }
    }

    /// Another part from `now` on; what was earned is kept as far as it fits.
    pub fn set(&mut self, rate: u64, burst: u64, batch: u32, now: Moment) {
        self.earn(now);
        if rate > self.rate {
            self.filled_at = self.filled_at.max(now.plus(self.stale));
        }
        self.rate = rate;
        let in_span = |span: Duration| u128::from(rate) * span.as_nanos();
        let wanted = (u128::from(batch.max(1)) * ITEM + in_span(self.stale))
            .max(in_span(CATCH_UP))
            .max(2 * ITEM);
        self.cap = wanted.min((u128::from(burst) * ITEM).saturating_sub(in_span(self.stale)));
        self.credit = self.credit.min(self.cap);
    }

    /// Forgets what was earned until `now`.
    pub fn void(&mut self, now: Moment) {
        self.earn(now);
        self.credit = 0;
    }

    /// How many items there are at `now`.
    pub fn items(&mut self, now: Moment) -> u64 {
        self.earn(now);
        u64::try_from(self.credit / ITEM).unwrap_or(u64::MAX)
    }

    /// The most that it can ever hold.
    pub fn items_max(&self) -> u64 {
        u64::try_from(self.cap / ITEM).unwrap_or(u64::MAX)
    }

    /// Takes what is there.
    pub fn take(&mut self, items: u64) {
        self.credit = self.credit.saturating_sub(u128::from(items) * ITEM);
    }

    /// Gives back what was taken and not used: as if it had stayed, so what no longer fits is lost.
    pub fn give(&mut self, items: u64) {
        self.credit = (self.credit + u128::from(items) * ITEM).min(self.cap);
    }

    /// When so many are there, or as many as fit; none: never, as things are.
    pub fn next_at(&self, items: u64) -> Option<Moment> {
        let wanted = (u128::from(items.max(1)) * ITEM).min(self.cap);
        if self.rate == 0 || wanted < ITEM {
            return None;
        }
        let nanos = wanted.saturating_sub(self.credit).div_ceil(u128::from(self.rate));
        Some(
            self.filled_at
                .plus(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))),
        )
    }

    /// How many items a span brings, rounded up.
    pub fn items_in(&self, span: Duration) -> u64 {
        let items = (u128::from(self.rate) * span.as_nanos()).div_ceil(ITEM);
        u64::try_from(items).unwrap_or(u64::MAX)
    }

    fn earn(&mut self, now: Moment) {
        if now <= self.filled_at {
            return;
        }
        let earned = u128::from(self.rate) * now.since(self.filled_at).as_nanos();
        self.credit = (self.credit + earned).min(self.cap);
        self.filled_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALE: Duration = Duration::from_millis(2);

    fn at(millis: u64) -> Moment {
        Moment(millis * 1_000_000)
    }

    #[test]
    fn a_part_that_changes_every_second_loses_no_fraction() {
        let mut bucket = Bucket::new(STALE, at(0));
        let mut taken = 0;
        for second in 0..60 {
            // A minute's item, now from one part and now from a little less.
            bucket.set(NANOS_PER_ITEM / 60 - second % 2, 8, 1, at(second * 1000));
            taken += bucket.items(at(second * 1000));
        }
        assert_eq!(taken, 0);
        assert_eq!(bucket.items(at(60_200)), 1);
        bucket.take(1);
        bucket.give(5);
        assert_eq!(bucket.items(at(60_300)), 2, "no more than fits comes back");
    }

    #[test]
    fn a_part_of_nothing_has_no_next_moment() {
        let mut bucket = Bucket::new(STALE, at(0));
        assert_eq!(bucket.next_at(1), None);
        bucket.set(NANOS_PER_ITEM, 8, 1, at(0));
        assert_eq!(bucket.next_at(1), Some(at(1002)));
        bucket.set(NANOS_PER_ITEM, 0, 1, at(0));
        assert_eq!((bucket.next_at(1), bucket.items(at(9000))), (None, 0));
    }
}
