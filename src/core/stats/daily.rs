//! Daily totals of items and tasks, kept for years: days, sums, and how cells are combined.

use std::collections::BTreeMap;
use std::fmt;

use crate::ids::WallMs;
use crate::items::counters::Counters;

/// Length of a day. Unit: milliseconds.
const DAY_MS: i64 = 24 * 3600 * 1000;

/// UTC day, numbered from 1970-01-01. Shown as `2026-11-25`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcDay(pub i64);

impl UtcDay {
    /// Returns the day that contains a time.
    ///
    /// ```
    /// use windrow_core::ids::WallMs;
    /// use windrow_core::stats::daily::UtcDay;
    ///
    /// let day = UtcDay::of(WallMs(1_795_194_220_022));
    /// assert_eq!((day.to_string(), day.next().to_string()), ("2026-11-20".to_owned(), "2026-11-21".to_owned()));
    /// assert_eq!(UtcDay::of(day.start()), day);
    /// ```
    pub fn of(at: WallMs) -> UtcDay {
        UtcDay(at.0.div_euclid(DAY_MS))
    }

    /// Returns the first moment of the day.
    pub fn start(self) -> WallMs {
        WallMs(self.0.saturating_mul(DAY_MS))
    }

    /// Returns the following day.
    #[must_use]
    pub fn next(self) -> UtcDay {
        UtcDay(self.0.saturating_add(1))
    }
}

impl fmt::Display for UtcDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.start().to_rfc3339();
        f.write_str(text.split('T').next().unwrap_or_default())
    }
}

/// Number of items with a final verdict, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Items settled as successful.
    pub succeeded: u64,
    /// Items settled because there was nothing to do.
    pub skipped: u64,
    /// Items that failed for good.
    pub failed: u64,
}

impl Settled {
    /// Takes the settled items from the counters of a shard or task.
    pub fn of(counters: &Counters) -> Settled {
        Settled {
            succeeded: counters.succeeded,
            skipped: counters.skipped,
            failed: counters.failed,
        }
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Settled) -> Settled {
        self.each(other, u64::wrapping_add)
    }

    /// Returns the difference to `earlier`. Counters only grow; if they ever fall, the difference wraps, so that the
    /// sum of all differences is still correct.
    #[must_use]
    pub fn since(self, earlier: Settled) -> Settled {
        self.each(earlier, u64::wrapping_sub)
    }

    fn each(self, other: Settled, put: impl Fn(u64, u64) -> u64) -> Settled {
        Settled {
            succeeded: put(self.succeeded, other.succeeded),
            skipped: put(self.skipped, other.skipped),
            failed: put(self.failed, other.failed),
        }
    }
}

/// Number of tasks created, and of tasks that ended for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Number of tasks created.
    pub created: u64,
    /// Number of tasks finished.
    pub finished: u64,
    /// Number of tasks cancelled.
    pub cancelled: u64,
}

/// Totals of one business in one day, or of all cells that were combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of its tasks.
    pub tasks: TaskCounts,
    /// Settled items of its tasks.
    pub items: Settled,
}

impl Totals {
    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Totals) -> Totals {
        let (tasks, more) = (self.tasks, other.tasks);
        Totals {
            tasks: TaskCounts {
                created: tasks.created + more.created,
                finished: tasks.finished + more.finished,
                cancelled: tasks.cancelled + more.cancelled,
            },
            items: self.items.plus(other.items),
        }
    }
}

/// Totals of each business in each day.
pub type Cells = BTreeMap<(String, UtcDay), Totals>;

/// Sums the cells that have the same key.
pub fn grouped<K: Ord>(cells: &Cells, key: impl Fn(&str, UtcDay) -> K) -> BTreeMap<K, Totals> {
    let mut sums: BTreeMap<K, Totals> = BTreeMap::new();
    for ((business, day), totals) in cells {
        let sum = sums.entry(key(business, *day)).or_default();
        *sum = sum.plus(*totals);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(succeeded: u64, skipped: u64, failed: u64) -> Settled {
        Settled {
            succeeded,
            skipped,
            failed,
        }
    }

    #[test]
    fn days_begin_at_midnight_of_utc_also_before_1970() {
        let midnight = UtcDay(20_000).start();
        assert_eq!(UtcDay::of(midnight), UtcDay(20_000));
        assert_eq!(UtcDay::of(WallMs(midnight.0 - 1)), UtcDay(19_999));
        assert_eq!(UtcDay::of(WallMs(-1)), UtcDay(-1));
        assert_eq!(UtcDay::default().to_string(), "1970-01-01");
    }

    #[test]
    fn differences_sum_up_to_the_last_state_also_where_counters_fall() {
        let states = [
            settled(0, 0, 0),
            settled(5, 1, 0),
            settled(3, 1, 2),
            settled(9, 4, 2),
        ];
        let sum = states
            .windows(2)
            .fold(Settled::default(), |sum, pair| sum.plus(pair[1].since(pair[0])));
        assert_eq!(sum, settled(9, 4, 2));
    }

    #[test]
    fn cells_are_put_together_by_day_and_by_business() {
        let totals = |created, succeeded| Totals {
            tasks: TaskCounts {
                created,
                ..TaskCounts::default()
            },
            items: settled(succeeded, 0, 0),
        };
        let cell = |business: &str, day, totals| ((business.to_owned(), UtcDay(day)), totals);
        let cells: Cells = [
            cell("mail", 1, totals(1, 10)),
            cell("mail", 2, totals(0, 20)),
            cell("push", 2, totals(3, 5)),
        ]
        .into();
        let by_day: Vec<_> = grouped(&cells, |_, day| day).into_iter().collect();
        assert_eq!(by_day, [(UtcDay(1), totals(1, 10)), (UtcDay(2), totals(3, 25))]);
        let by_business: Vec<_> = grouped(&cells, |business, _| business.to_owned())
            .into_iter()
            .collect();
        assert_eq!(
            by_business,
            [
                ("mail".to_owned(), totals(1, 30)),
                ("push".to_owned(), totals(3, 5))
            ]
        );
    }
}
