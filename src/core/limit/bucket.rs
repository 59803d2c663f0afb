//! Token bucket for a share of a limit: exact even when the share changes every second.
//!
//! Unlike a task's pace it keeps fractions of an item across a change; otherwise a slow limit that is reallocated
//! often would lose them all. In every interval the items taken are at most ∫ rate dt + burst, including those
//! dispatched up to `stale` after they were taken: the cap leaves that much of the burst free, and a higher rate
//! earns only once everything taken at the lower one has been dispatched or is stale.

use std::time::Duration;

use super::NANOS_PER_ITEM;
use crate::ids::Moment;

/// Credit of one item: a rate of 10⁻⁹ items per second earns 1 per nanosecond.
const ITEM: u128 = NANOS_PER_ITEM as u128 * 1_000_000_000;
/// Delay that may be caught up, as far as the burst allows: a run that waits for its rotation is woken late.
const CATCH_UP: Duration = Duration::from_millis(50);

/// Token bucket that keeps fractions of an item when its rate changes.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: u64,
    cap: u128,
    credit: u128,
    filled_at: Moment,
    stale: Duration,
}

impl Bucket {
    /// Creates an empty bucket that earns nothing.
    pub fn new(stale: Duration, now: Moment) -> Bucket {
        Bucket {
            rate: 0,
            cap: 0,
            credit: 0,
            filled_at: now,
            stale,
        }
    }

    /// Sets another share from `now` on; credit is kept as far as it fits.
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

    /// Drops the credit earned until `now`.
    pub fn void(&mut self, now: Moment) {
        self.earn(now);
        self.credit = 0;
    }

    /// Returns the number of items available at `now`.
    pub fn items(&mut self, now: Moment) -> u64 {
        self.earn(now);
        u64::try_from(self.credit / ITEM).unwrap_or(u64::MAX)
    }

    /// Returns the maximum number of items that it can hold.
    pub fn items_max(&self) -> u64 {
        u64::try_from(self.cap / ITEM).unwrap_or(u64::MAX)
    }

    /// Takes `items` from the credit.
    pub fn take(&mut self, items: u64) {
        self.credit = self.credit.saturating_sub(u128::from(items) * ITEM);
    }

    /// Returns items that were taken but not used, as if they had stayed: what no longer fits is lost.
    pub fn give(&mut self, items: u64) {
        self.credit = (self.credit + u128::from(items) * ITEM).min(self.cap);
    }

    /// Returns when `items`, or as many as fit, are available; `None` means never with the present share.
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

    /// Returns the number of items earned in a span, rounded up.
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
