//! Error budget: limits on the failed attempts and failed items of a task before it pauses or stops.

use std::collections::VecDeque;
use std::time::Duration;

use crate::ids::{ItemCount, Moment};
use crate::settings::{ErrorBudget, FailedAttempts, FailedLimit};

/// Number of slices in which the window of failed attempts is counted.
const SLICES: u32 = 10;

/// Counter of failures against an [`ErrorBudget`].
#[derive(Clone, Debug)]
pub struct Meter {
    budget: ErrorBudget,
    window: Duration,
    slices: VecDeque<Slice>,
    failed_in_window: u64,
}

/// Slice of the window in which at least one attempt failed.
#[derive(Clone, Copy, Debug)]
struct Slice {
    /// Number of the slice, counted from the clock's zero.
    at: u64,
    failed: u64,
    /// Items that had succeeded at the first failure of the slice.
    succeeded: u64,
}

impl Meter {
    /// Creates an empty meter; `window` is the span over which failed attempts are counted.
    pub fn new(budget: ErrorBudget, window: Duration) -> Meter {
        Meter {
            budget,
            window,
            slices: VecDeque::new(),
            failed_in_window: 0,
        }
    }

    /// Changes the budget. Failed attempts counted so far are kept unless the window changes.
    pub fn set(&mut self, budget: ErrorBudget, window: Duration) {
        if self.window != window {
            self.slices.clear();
            self.failed_in_window = 0;
        }
        (self.budget, self.window) = (budget, window);
    }

    /// Counts a failed attempt. Returns true if the window now has more of them than the budget allows. `succeeded`
    /// is the number of items that have succeeded so far.
    pub fn on_failed_attempt(&mut self, succeeded: u64, now: Moment) -> bool {
        let Some(allowed) = self.budget.failed_attempts else {
            return false;
        };
        let at = now.0 / self.slice_ns();
        while let Some(slice) = self.slices.front().filter(|slice| !slice.is_within(at)) {
            self.failed_in_window -= slice.failed;
            self.slices.pop_front();
        }
        match self.slices.back_mut() {
            Some(slice) if slice.at >= at => slice.failed += 1,
            _ => self.slices.push_back(Slice {
                at,
                failed: 1,
                succeeded,
            }),
        }
        self.failed_in_window += 1;
        let before = self.slices.front().map_or(succeeded, |slice| slice.succeeded);
        self.failed_in_window > self.most(allowed, succeeded.saturating_sub(before))
    }

    /// Returns the number of attempts that may fail in a window in which `succeeded` items succeeded.
    fn most(&self, allowed: FailedAttempts, succeeded: u64) -> u64 {
        let least = allowed.rate().items_in(self.window);
        match allowed {
            FailedAttempts::Rate(_) => least,
            FailedAttempts::Most(_) => least.max(succeeded),
        }
    }

    /// Returns true if a task of `total` items with this many failed ones exceeds its budget.
    pub fn is_failed_exceeded(&self, failed: u64, total: ItemCount) -> bool {
        match self.budget.failed {
            None => false,
            Some(FailedLimit::Count(most)) => failed > most,
            Some(FailedLimit::RatioPpm(ppm)) => {
                u128::from(failed) * 1_000_000 > u128::from(total.0) * u128::from(ppm)
            }
        }
    }

    /// Returns the remainder of the tightest part of the budget, or `None` without a budget. Unit: millionths.
    pub fn left_ppm(&self, succeeded: u64, failed: u64, total: ItemCount, now: Moment) -> Option<u32> {
        let attempts = self.budget.failed_attempts.map(|allowed| {
            let at = now.0 / self.slice_ns();
            let mut fresh = self.slices.iter().filter(|slice| slice.is_within(at)).peekable();
            let before = fresh.peek().map_or(succeeded, |slice| slice.succeeded);
            let most = self.most(allowed, succeeded.saturating_sub(before));
            left(fresh.map(|slice| slice.failed).sum(), u128::from(most))
        });
        let items = self.budget.failed.map(|limit| match limit {
            FailedLimit::Count(most) => left(failed, u128::from(most)),
            FailedLimit::RatioPpm(ppm) => left(failed, u128::from(total.0) * u128::from(ppm) / 1_000_000),
        });
        attempts.into_iter().chain(items).min()
    }

    fn slice_ns(&self) -> u64 {
        let window = self.window.max(Duration::from_millis(1));
        u64::try_from(window.as_nanos() / u128::from(SLICES))
            .unwrap_or(u64::MAX)
            .max(1)
    }
}

impl Slice {
    /// Returns true if the slice is in the window that ends with slice `at`.
    fn is_within(&self, at: u64) -> bool {
        self.at + u64::from(SLICES) > at
    }
}

/// Returns the unspent share of `most`. Unit: millionths.
fn left(spent: u64, most: u128) -> u32 {
    let rest = most.saturating_sub(u128::from(spent));
    u32::try_from((rest * 1_000_000).checked_div(most).unwrap_or(0)).unwrap_or(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Rate;

    fn meter(failed: Option<FailedLimit>) -> Meter {
        let failed_attempts = Rate::per_second(10).map(FailedAttempts::Rate);
        Meter::new(
            ErrorBudget {
                failed_attempts,
                failed,
            },
            Duration::from_secs(10),
        )
    }

    #[test]
    fn a_hundred_failures_in_ten_seconds_fit_ten_a_second_and_one_more_does_not() {
        let mut meter = meter(None);
        for n in 0..100 {
            assert!(!meter.on_failed_attempt(0, Moment(n * 90_000_000)), "{n}");
        }
        assert!(meter.on_failed_attempt(5_000, Moment(9_050_000_000)));
    }

    #[test]
    fn with_auto_as_many_may_fail_as_succeed_and_ten_a_second_whatever_succeeds() {
        let budget = ErrorBudget {
            failed_attempts: Some(FailedAttempts::AUTO),
            failed: None,
        };
        let mut meter = Meter::new(budget, Duration::from_secs(10));
        for n in 0..100 {
            assert!(!meter.on_failed_attempt(7_000, Moment(n)), "{n}");
        }
        assert!(meter.on_failed_attempt(7_100, Moment(100)), "101 of 100");
        assert!(!meter.on_failed_attempt(7_102, Moment(101)), "102 of 102");
        assert_eq!(
            meter.left_ppm(7_204, 0, ItemCount(9_000), Moment(102)),
            Some(500_000)
        );
        assert!(meter.on_failed_attempt(7_102, Moment(102)), "103 of 102");
    }

    #[test]
    fn old_failures_leave_the_window() {
        let mut meter = meter(None);
        for n in 0..100 {
            assert!(!meter.on_failed_attempt(0, Moment(n)));
        }
        assert!(!meter.on_failed_attempt(0, Moment(10_000_000_000)));
    }

    #[test]
    fn a_ratio_is_of_the_total_and_a_count_is_a_count() {
        let one_percent = meter(Some(FailedLimit::RatioPpm(10_000)));
        assert!(!one_percent.is_failed_exceeded(10, ItemCount(1000)));
        assert!(one_percent.is_failed_exceeded(11, ItemCount(1000)));
        let five = meter(Some(FailedLimit::Count(5)));
        assert!(!five.is_failed_exceeded(5, ItemCount(1000)));
        assert!(five.is_failed_exceeded(6, ItemCount(1000)));
    }
    #[test]
    fn what_is_left_is_of_the_tighter_part_and_comes_back_with_time() {
        let mut both = meter(Some(FailedLimit::Count(10)));
        let left = |meter: &Meter, failed, at| meter.left_ppm(0, failed, ItemCount(1000), Moment(at));
        assert_eq!(left(&both, 0, 0), Some(1_000_000));
        assert_eq!(left(&both, 4, 0), Some(600_000));
        assert_eq!(left(&both, 11, 0), Some(0));
        for _ in 0..50 {
            both.on_failed_attempt(0, Moment(1));
        }
        assert_eq!(
            left(&both, 1, 2),
            Some(500_000),
            "half of a hundred attempts in the window"
        );
        assert_eq!(
            left(&both, 1, 20_000_000_000),
            Some(900_000),
            "the window went by"
        );
        let none = Meter::new(
            ErrorBudget {
                failed_attempts: None,
                failed: None,
            },
            Duration::from_secs(10),
        );
        assert_eq!(left(&none, 5, 0), None);
    }
}
