//! Limits that several tasks share on all nodes, divided so that all together never exceed them.
//!
//! A limit bounds the items of several tasks together: the number dispatched per second, and the number in flight.
//! Each node session has a *share* of it in the database (`round`), allocated max-min fairly over the demand of the
//! runs (`allocate`, `demand`). Within a node the runs draw from one *local bucket* (`local_bucket`, `bucket`). Everything here is
//! arithmetic: clocks, locks and rows belong to the callers.
//!
//! Invariant: at every moment the shares that sessions may use add up to no more than the limit. A share shrinks only
//! once its own session reports it or is fenced, and grows only into what is free. `docs/decisions/0026` has the
//! details.

pub mod allocate;
pub mod bucket;
pub mod demand;
mod fair;
pub mod joint;
pub mod key;
pub mod local_bucket;
pub mod rotation;
pub mod round;
mod slot;
pub mod units;

use serde::{Deserialize, Serialize};

use super::settings::Rate;

/// Rate of one item per second, in the unit of limits and shares: 10⁻⁹ items per second. Shares of slow rates are
/// exact enough (`1/day` is 11,574), and the highest rate of a task still fits the store's signed 64 bits.
pub const NANOS_PER_ITEM: u64 = 1_000_000_000;
/// Burst of a limit as a span of its rate, as for a task. Unit: milliseconds.
const BURST_MILLIS: u64 = 100;
/// Weight of a run of priority 0, and the highest weight.
pub const WEIGHT_USUAL: u32 = 10;
/// Highest weight of a run.
pub const WEIGHT_MAX: u32 = 100;
/// Minimum burst in batches, so that several nodes have one each.
const BURST_BATCHES: u64 = 4;

/// Bounded amount, or no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amount(Option<u64>);

impl Amount {
    /// Zero: nothing is allowed.
    pub const NONE: Amount = Amount(Some(0));
    /// No bound: any amount is allowed.
    pub const UNBOUNDED: Amount = Amount(None);

    /// Creates a bounded amount.
    pub fn of(number: u64) -> Amount {
        Amount(Some(number))
    }

    /// Creates an amount with this bound; `None` is unbounded.
    pub fn at_most(bound: Option<u64>) -> Amount {
        Amount(bound)
    }

    /// Returns the bound, if there is one.
    pub fn bound(self) -> Option<u64> {
        self.0
    }

    /// Returns true if the amount is zero.
    pub fn is_none(self) -> bool {
        self.0 == Some(0)
    }

    /// Returns the smaller of the two amounts.
    #[must_use]
    pub fn min(self, other: Amount) -> Amount {
        match (self.0, other.0) {
            (Some(one), Some(other)) => Amount(Some(one.min(other))),
            (one, other) => Amount(one.or(other)),
        }
    }

    /// Returns the sum of the two amounts, unbounded if either is.
    #[must_use]
    pub fn plus(self, other: Amount) -> Amount {
        Amount(self.0.zip(other.0).map(|(one, other)| one.saturating_add(other)))
    }

    /// Returns the rest after `other` is taken; zero if more is taken than there is.
    #[must_use]
    pub fn minus(self, other: Amount) -> Amount {
        match (self.0, other.0) {
            (None, _) => Amount::UNBOUNDED,
            (Some(_), None) => Amount::NONE,
            (Some(one), Some(other)) => Amount(Some(one.saturating_sub(other))),
        }
    }
}

/// Share of a limit that one session may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    /// Items dispatched. Unit: see [`NANOS_PER_ITEM`].
    pub rate: Amount,
    /// Items that may be dispatched at once.
    pub burst: Amount,
    /// Items that may be in flight.
    pub slots: Amount,
}

impl Part {
    /// Empty share: nothing may be dispatched.
    pub const NONE: Part = Part {
        rate: Amount::NONE,
        burst: Amount::NONE,
        slots: Amount::NONE,
    };
    /// Share without any bound.
    pub const UNBOUNDED: Part = Part {
        rate: Amount::UNBOUNDED,
        burst: Amount::UNBOUNDED,
        slots: Amount::UNBOUNDED,
    };

    fn both(self, other: Part, with: impl Fn(Amount, Amount) -> Amount) -> Part {
        Part {
            rate: with(self.rate, other.rate),
            burst: with(self.burst, other.burst),
            slots: with(self.slots, other.slots),
        }
    }

    /// Returns the smaller of each amount.
    #[must_use]
    pub fn min(self, other: Part) -> Part {
        self.both(other, Amount::min)
    }

    /// Returns the sum of each amount.
    #[must_use]
    pub fn plus(self, other: Part) -> Part {
        self.both(other, Amount::plus)
    }

    /// Returns the rest of each amount after `other` is taken.
    #[must_use]
    pub fn minus(self, other: Part) -> Part {
        self.both(other, Amount::minus)
    }

    /// Returns true if nothing can be dispatched under this share.
    pub fn is_barred(self) -> bool {
        self.rate.is_none() || self.burst.is_none() || self.slots.is_none()
    }
}

/// Bounds of a limit as people set them; `None` is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Dispatch rate over all nodes.
    pub rate: Option<Rate>,
    /// Maximum number of items in flight over all nodes.
    pub concurrency: Option<u32>,
}

impl Bounds {
    /// Returns true if at least one bound is set.
    pub fn is_limited(&self) -> bool {
        self.rate.is_some() || self.concurrency.is_some()
    }

    /// Returns the whole limit as a share, for sessions whose largest batch has `batch_max` items.
    pub fn whole(&self, batch_max: u32) -> Part {
        let rate = self.rate.map(nanos);
        let burst = |rate: u64| {
            let of_rate = u128::from(rate) * u128::from(BURST_MILLIS) / 1000 / u128::from(NANOS_PER_ITEM);
            let of_batches = BURST_BATCHES * (u64::from(batch_max.max(1)) + 1);
            u64::try_from(of_rate).unwrap_or(u64::MAX).max(of_batches)
        };
        Part {
            rate: Amount::at_most(rate),
            burst: Amount::at_most(rate.map(burst)),
            slots: Amount::at_most(self.concurrency.map(u64::from)),
        }
    }
}

/// Returns the weight of a run under shared limits, by the priority of its task: 10 more or less, from 1 to 100.
pub fn weight(priority: i32) -> u32 {
    let weight = i64::from(priority) + i64::from(WEIGHT_USUAL);
    u32::try_from(weight.clamp(1, i64::from(WEIGHT_MAX))).unwrap_or(WEIGHT_USUAL)
}

/// Converts a rate to the unit of shares, rounded down but never to zero.
pub fn nanos(rate: Rate) -> u64 {
    let whole = u128::from(rate.items()) * u128::from(NANOS_PER_ITEM) * 1_000_000_000;
    let nanos = whole / u128::from(rate.period_ns());
    u64::try_from(nanos).unwrap_or(u64::MAX).clamp(1, i64::MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_bound_stays_without_one_and_uses_up_what_has() {
        let (five, all) = (Amount::of(5), Amount::UNBOUNDED);
        assert_eq!((five.min(all), all.min(all)), (five, all));
        assert_eq!((five.plus(five), five.plus(all)), (Amount::of(10), all));
        assert_eq!((all.minus(five), five.minus(all)), (all, Amount::NONE));
        assert_eq!(five.minus(Amount::of(7)), Amount::NONE);
    }

    #[test]
    fn a_slow_rate_is_written_exactly_enough() {
        let rate = |text: &str| nanos(text.parse().expect("a rate"));
        assert_eq!(rate("300/s"), 300 * NANOS_PER_ITEM);
        assert_eq!(rate("1/m"), NANOS_PER_ITEM / 60);
        assert_eq!(rate("1/h"), 277_777);
    }

    #[test]
    fn the_burst_of_a_limit_is_100_ms_of_it_and_four_batches_at_least() {
        let bounds = |text: &str| Bounds {
            rate: Some(text.parse().expect("a rate")),
            concurrency: None,
        };
        assert_eq!(bounds("3000/s").whole(1).burst, Amount::of(300));
        assert_eq!(bounds("3000/s").whole(100).burst, Amount::of(404));
        assert_eq!(bounds("1/m").whole(1).burst, Amount::of(8));
        assert_eq!(Bounds::default().whole(1), Part::UNBOUNDED);
    }
}
