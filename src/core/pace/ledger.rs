//! What became of everything that a bucket earned, to the last part of an item: the basis of `Permits`.
//!
//! While a rate is in force its sums are kept in the bucket's own unit, so that an exchange only adds. A change of the
//! rate turns them into femto-items, rounded down: a billion changes lose a millionth of an item.

use crate::stats::permits::Permits;
use crate::stats::stall::StallReason;

/// Unit of what is kept across rates: 1 / `FEMTO` items.
const FEMTO: u128 = 1_000_000_000_000_000;
/// Femto-items in the unit of [`Permits`].
const FEMTO_PER_MICRO: u128 = 1_000_000_000;

/// A sum of parts of items.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// Of earlier buckets.
    femto: u128,
    /// Of the bucket in force, in its unit.
    units: u128,
}

impl Sum {
    fn total(&self, cost: u128) -> u128 {
        self.femto.saturating_add(femto(self.units, cost))
    }

    fn close(&mut self, cost: u128) {
        *self = Sum {
            femto: self.total(cost),
            units: 0,
        };
    }
}

/// Turns units of which `cost` make an item into femto-items; the two steps never overflow.
pub(super) fn femto(units: u128, cost: u128) -> u128 {
    (units / cost)
        .saturating_mul(FEMTO)
        .saturating_add(units % cost * FEMTO / cost)
}

#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// Units of an item in the bucket in force; never zero.
    cost: u128,
    earned: Sum,
    lost: [Sum; StallReason::ALL.len()],
    late: Sum,
    /// What the task's rate would have given above a slow-down. Unit: femto-items.
    slowed: u128,
    /// What left while no bucket was in force. Unit: items.
    unpaced: u64,
}

impl Ledger {
    pub(super) fn new() -> Ledger {
        Ledger {
            cost: 1,
            earned: Sum::default(),
            lost: Default::default(),
            late: Sum::default(),
            slowed: 0,
            unpaced: 0,
        }
    }

    #[inline]
    pub(super) fn earn(&mut self, units: u128) {
        self.earned.units = self.earned.units.saturating_add(units);
    }

    /// Books what was earned and can't be used any more.
    #[inline]
    pub(super) fn lose(&mut self, units: u128, reason: Option<StallReason>) {
        let sum = match reason {
            Some(reason) => &mut self.lost[reason as usize],
            None => &mut self.late,
        };
        sum.units = sum.units.saturating_add(units);
    }

    /// Books what a slow-down kept back. Unit: femto-items.
    pub(super) fn slow(&mut self, femto: u128) {
        self.slowed = self.slowed.saturating_add(femto);
    }

    pub(super) fn leave_unpaced(&mut self, items: u32) {
        self.unpaced += u64::from(items);
    }

    /// Another bucket is in force, of which `cost` units make an item.
    pub(super) fn change(&mut self, cost: Option<u128>) {
        self.earned.close(self.cost);
        self.late.close(self.cost);
        self.lost.iter_mut().for_each(|sum| sum.close(self.cost));
        self.cost = cost.unwrap_or(1);
    }

    /// The terms that the pace knows: all but what left or came back.
    pub(super) fn permits(&self) -> Permits {
        let micro = |femto: u128| u64::try_from(femto / FEMTO_PER_MICRO).unwrap_or(u64::MAX);
        let unpaced = u128::from(self.unpaced).saturating_mul(FEMTO);
        let due = self
            .earned
            .total(self.cost)
            .saturating_add(self.slowed)
            .saturating_add(unpaced);
        Permits {
            due: micro(due),
            lost: self.lost.map(|sum| micro(sum.total(self.cost))),
            late: micro(self.late.total(self.cost)),
            slowed: micro(self.slowed),
            ..Permits::default()
        }
    }
}
