//! Accounts of everything that a bucket earned, to the last fraction of an item: the basis of `Permits`.
//!
//! While a rate is in force its sums are kept in the bucket's own unit, so that an exchange only adds. A rate change
//! converts them into femto-items, rounded down: a billion changes lose a millionth of an item.

use crate::stats::permits::Permits;
use crate::stats::stall::StallReason;

/// Femto-items per item, the unit of sums that are kept across rates.
const FEMTO: u128 = 1_000_000_000_000_000;
/// Femto-items per unit of [`Permits`].
const FEMTO_PER_MICRO: u128 = 1_000_000_000;

/// Sum of fractions of items.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// Total of earlier buckets, in femto-items.
    femto: u128,
    /// Total of the bucket in force, in its unit.
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

/// Converts units, of which `cost` make an item, into femto-items; the two steps never overflow.
pub(super) fn femto(units: u128, cost: u128) -> u128 {
    (units / cost)
        .saturating_mul(FEMTO)
        .saturating_add(units % cost * FEMTO / cost)
}

#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// Units per item in the bucket in force; never zero.
    cost: u128,
    earned: Sum,
    lost: [Sum; StallReason::ALL.len()],
    late: Sum,
    /// Items that the task's rate would have given above a slow-down. Unit: femto-items.
    slowed: u128,
    /// Items dispatched while no bucket was in force.
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

    /// Books earned units that can't be used any more.
    #[inline]
    pub(super) fn lose(&mut self, units: u128, reason: Option<StallReason>) {
        let sum = match reason {
            Some(reason) => &mut self.lost[reason as usize],
            None => &mut self.late,
        };
        sum.units = sum.units.saturating_add(units);
    }

    /// Books the items that a slow-down held back. Unit: femto-items.
    pub(super) fn slow(&mut self, femto: u128) {
        self.slowed = self.slowed.saturating_add(femto);
    }

    pub(super) fn leave_unpaced(&mut self, items: u32) {
        self.unpaced += u64::from(items);
    }

    /// Switches to another bucket, of which `cost` units make an item.
    pub(super) fn change(&mut self, cost: Option<u128>) {
        self.earned.close(self.cost);
        self.late.close(self.cost);
        self.lost.iter_mut().for_each(|sum| sum.close(self.cost));
        self.cost = cost.unwrap_or(1);
    }

    /// Returns the terms that the pace knows: all but the items dispatched or given back.
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
