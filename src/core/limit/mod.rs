//! Limits that several tasks share on all nodes: who may use how much of one, so that all together never use more.
//!
//! A limit bounds the items of some tasks together: how many leave in a second, and how many are in flight. Each node
//! session has a *part* of it in the database (`round`), dealt max-min over what the runs ask for (`deal`, `demand`),
//! and within a node the runs draw from one *pot* (`pot`, `bucket`). Everything here is arithmetic: clocks, locks and
//! rows are the callers'.
//!
//! The lease_duration: at every moment the parts that sessions may use add up to no more than the limit. A part shrinks only
//! once its own session says so or is fenced, and grows only into what is free. `docs/decisions/0026` says how.

pub mod bucket;
pub mod deal;
pub mod demand;
mod fair;
pub mod joint;
pub mod key;
pub mod pot;
pub mod round;
mod slot;
pub mod turn;

use serde::{Deserialize, Serialize};

use super::settings::Rate;

/// The rate of a limit, or of a part of one. Unit: 10⁻⁹ items per second, so that parts of slow rates are exact enough
/// (`1/day` is 11,574) and the highest rate of a task still fits the store's signed 64 bits.
pub const NANOS_PER_ITEM: u64 = 1_000_000_000;
/// What a limit lets leave at once, as a span of its rate; as for a task.
const BURST_MILLIS: u64 = 100;
/// So many batches leave at once at least, so that several nodes have one each.
const BURST_BATCHES: u64 = 4;

/// So much of something, or without a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amount(Option<u64>);

impl Amount {
    /// Nothing of it.
    pub const NONE: Amount = Amount(Some(0));
    /// As much as comes.
    pub const UNBOUNDED: Amount = Amount(None);

    /// So much.
    pub fn of(number: u64) -> Amount {
        Amount(Some(number))
    }

    /// So much, or as much as comes.
    pub fn at_most(bound: Option<u64>) -> Amount {
        Amount(bound)
    }

    /// The bound, if there is one.
    pub fn bound(self) -> Option<u64> {
        self.0
    }

    /// Whether there is none of it.
    pub fn is_none(self) -> bool {
        self.0 == Some(0)
    }

    /// The lesser of two.
    #[must_use]
    pub fn min(self, other: Amount) -> Amount {
        match (self.0, other.0) {
            (Some(one), Some(other)) => Amount(Some(one.min(other))),
            (one, other) => Amount(one.or(other)),
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Amount) -> Amount {
        Amount(self.0.zip(other.0).map(|(one, other)| one.saturating_add(other)))
    }

    /// What is left of it; nothing where more is taken than there is.
    #[must_use]
    pub fn minus(self, other: Amount) -> Amount {
        match (self.0, other.0) {
            (None, _) => Amount::UNBOUNDED,
            (Some(_), None) => Amount::NONE,
            (Some(one), Some(other)) => Amount(Some(one.saturating_sub(other))),
        }
    }
}

/// A part of a limit: what one session may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    /// Items that leave. Unit: see [`NANOS_PER_ITEM`].
    pub rate: Amount,
    /// Items that leave at once.
    pub burst: Amount,
    /// Items in flight.
    pub slots: Amount,
}

impl Part {
    /// Nothing may leave.
    pub const NONE: Part = Part {
        rate: Amount::NONE,
        burst: Amount::NONE,
        slots: Amount::NONE,
    };
    /// Where nothing is limited.
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

    /// The lesser of each.
    #[must_use]
    pub fn min(self, other: Part) -> Part {
        self.both(other, Amount::min)
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Part) -> Part {
        self.both(other, Amount::plus)
    }

    /// What is left.
    #[must_use]
    pub fn minus(self, other: Part) -> Part {
        self.both(other, Amount::minus)
    }

    /// Whether nothing can leave under it.
    pub fn is_barred(self) -> bool {
        self.rate.is_none() || self.burst.is_none() || self.slots.is_none()
    }
}

/// What a limit allows, as people set it; none is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Items that leave, over all nodes.
    pub rate: Option<Rate>,
    /// Items in flight, over all nodes.
    pub concurrency: Option<u32>,
}

impl Bounds {
    /// Whether it limits anything.
    pub fn is_limited(&self) -> bool {
        self.rate.is_some() || self.concurrency.is_some()
    }

    /// The whole, for sessions whose largest batch has so many items.
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

/// A rate in the unit of parts, rounded down but never to nothing.
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
