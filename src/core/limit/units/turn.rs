//! Periods of shared allowances.
//!
//! An allowance is a total that grows: when a period begins, by what its amount leaves beyond the use of all sessions so
//! far. So blocks need no period of their own, and nodes no clock: what a session used since its last report, and what it
//! holds, count in the period that begins. Only the clock of the database tells which period that is.

use serde::{Deserialize, Serialize};

use super::{Held, Key, Ledger};
use crate::ids::WallMs;
use crate::meter::allowance::{Periods, StoredPeriod};
use crate::meter::amount::Amount;
use crate::meter::limit::Limit;
use crate::meter::metering::Metering;

/// Period in force, with the use of all sessions that doesn't count in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Period in force, and those before.
    pub period: StoredPeriod,
    /// Use in all, certain or not, that belongs to other periods.
    pub before: Amount,
    /// Part of it that calls may have had.
    #[serde(default)]
    pub unsure_before: Amount,
}

impl Turn {
    /// Splits the use in all of a limit: that of this period that is certain, and that which calls may have had.
    pub(super) fn of_period(&self, spent: Amount, unsure: Amount) -> (Amount, Amount) {
        let used = spent.plus(unsure).minus(self.before);
        let unsure = unsure.minus(self.unsure_before).min(used);
        (used.minus(unsure), unsure)
    }
}

/// Enters the period of `now` in all allowances. `rows` are those of all sessions whose use the ledger doesn't hold, as
/// they were before the round: what they have used since then counts in a period that begins.
pub(super) fn turn(metering: &Metering, ledger: &mut Vec<Ledger>, rows: &[&[Held]], now: WallMs) {
    for limit in &metering.limits {
        let (Some(calendar), Some(key)) = (limit.calendar(), Key::of(limit)) else {
            continue;
        };
        let entry = super::settle::entry(ledger, &key);
        let live = rows
            .iter()
            .flat_map(|row| row.iter())
            .filter(|held| held.key == key);
        let (spent, unsure) = live.fold((entry.spent, entry.unsure), |(spent, unsure), held| {
            (spent.plus(held.spent), unsure.plus(held.unsure))
        });
        let used = spent.plus(unsure);
        let stored = entry.turn.take();
        let mut periods = Periods::restore(calendar, stored.as_ref().map(|turn| turn.period.clone()), now);
        let (before, unsure_before) = stored.map_or((Amount::ZERO, Amount::ZERO), |turn| {
            (turn.before, turn.unsure_before)
        });
        let (before, unsure_before) = match periods.turn(used.minus(before), now) {
            Some(begins) => (used.minus(begins), unsure),
            None => (before, unsure_before),
        };
        entry.turn = Some(Turn {
            period: periods.stored(),
            before,
            unsure_before,
        });
    }
}

/// Returns the use in all that a total or an allowance allows.
pub(super) fn whole(limit: Option<&Limit>, entry: &Ledger) -> Amount {
    let amount = limit.and_then(Limit::amount);
    let amount = amount.map_or(Amount::ZERO, |(amount, _)| amount);
    let before = entry.turn.as_ref().map_or(Amount::ZERO, |turn| turn.before);
    amount.plus(before)
}
