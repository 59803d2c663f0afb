//! Calls as limits in units see them: estimates, and the answers to whether they may leave.

use crate::ids::Moment;
use crate::meter::amount::Amount;

/// Estimates that a call took, by meter of its run.
#[derive(Clone, Copy, Debug)]
pub struct Estimates<'a> {
    /// Estimates taken from paces.
    pub pace: &'a [Amount],
    /// Estimates reserved in totals.
    pub total: &'a [Amount],
}

impl Estimates<'_> {
    pub(super) fn at(&self, meter: usize) -> (Amount, Amount) {
        let of = |amounts: &[Amount]| amounts.get(meter).copied().unwrap_or_default();
        (of(self.pace), of(self.total))
    }
}

/// Estimates of a call that is about to depart, by meter of its run.
#[derive(Debug)]
pub struct Departing<'a> {
    /// Estimates of the call by itself, whatever others cost.
    pub own: &'a [Amount],
    /// Estimates to take from paces, lowered to the most that one call may cost.
    pub pace: &'a mut [Amount],
    /// Estimates to reserve in totals, lowered likewise.
    pub total: &'a mut [Amount],
}

impl Departing<'_> {
    pub(super) fn own(&self, meter: usize) -> Amount {
        self.own.get(meter).copied().unwrap_or_default()
    }

    pub(super) fn estimates(&self) -> Estimates<'_> {
        Estimates {
            pace: self.pace,
            total: self.total,
        }
    }

    /// Lowers what is taken to the most that one call may cost.
    pub(super) fn lower(&mut self, meter: usize, most: Amount) {
        let estimates = [self.pace.get_mut(meter), self.total.get_mut(meter)];
        estimates
            .into_iter()
            .flatten()
            .for_each(|estimate| *estimate = most.min(*estimate));
    }
}

/// Outcome of a departure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The call has its estimates. True if a total should ask for more at once.
    Yes(bool),
    /// A limit has no room for the call now. True if a round may bring some, as it does for a total.
    No(bool),
    /// The limit never allows a call of this cost.
    TooLarge(String),
}

/// Calls that may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    /// Number of calls; `u32::MAX` without a limit.
    pub calls: u32,
    /// Time to ask again, if a limit allows none.
    pub until: Option<Moment>,
}
