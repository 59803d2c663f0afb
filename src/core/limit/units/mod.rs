//! Named limits in units, shared by the sessions of all nodes in the rounds of [`super::round`].
//!
//! A *pace* is shared as a rate is: each session has a part of the amount, in a bucket that may owe. What a session owes
//! is written with each round, and dealt to the others once the session is fenced. A *total* is shared in blocks: each
//! session has a bound on what it has used in all, which grows in rounds; nothing leaves beyond the bound that the
//! database has acknowledged. What a fenced session may have used counts as `unsure`.
//!
//! An *allowance* is a total that grows with each period ([`turn`]).
//!
//! Invariant of totals: the bounds of all sessions, and what counts of sessions before them, add up to no more than the
//! amount, but for calls that cost more than their estimate. The rules are those of parts: a bound shrinks only by its
//! own session's report, and grows only into what is free.

mod account;
pub mod bucket;
pub mod call;
mod run;
pub mod settle;
#[cfg(test)]
mod tests;
pub mod turn;

use serde::{Deserialize, Serialize};

use self::turn::Turn;
use super::demand::Wishes;
use crate::ids::WallMs;
use crate::meter::amount::Amount;
use crate::meter::limit::Limit;
use crate::meter::unit::Unit;

/// Largest part of a total that one call may cost, as its reciprocal.
pub const CALL_ONE_IN: u128 = 16;

crate::slugs! {
    /// Kind of a limit in units that sessions share.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Kind {
        /// Amount that each span allows, spent evenly.
        Pace = "pace",
        /// Amount that may be spent once.
        Total = "total",
        /// Amount that may be spent in each calendar period.
        Allowance = "allowance",
    }
}

/// Kind and unit, which name a limit among those of one metering.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Kind of the limit.
    pub kind: Kind,
    /// Unit that it counts.
    pub unit: Unit,
}

impl Key {
    /// Returns the key of a limit; `None` for a kind that isn't shared.
    pub fn of(limit: &Limit) -> Option<Key> {
        let kind = match limit {
            Limit::Pace { .. } => Kind::Pace,
            Limit::Total { .. } => Kind::Total,
            Limit::Allowance { .. } => Kind::Allowance,
            Limit::AtOnce { .. } | Limit::Named(_) => return None,
        };
        let (_, unit) = limit.amount()?;
        Some(Key {
            kind,
            unit: unit.clone(),
        })
    }
}

/// Returns the largest cost of one call under a shared limit: the whole amount of a pace, and 1/16 of a total or an
/// allowance, so that no single answer empties it. A call always costs one call, and its items.
pub fn call_max(limit: &Limit) -> Amount {
    let Some((amount, unit)) = limit.amount() else {
        return Amount::MAX;
    };
    match limit {
        Limit::Total { .. } | Limit::Allowance { .. } if !unit.is_built_in() => {
            Amount(amount.0 / CALL_ONE_IN)
        }
        _ => amount,
    }
}

/// Report of a session on one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Limit that the report is about.
    pub key: Key,
    /// Upper bound from now on: of a pace the part, of a total the use in all.
    pub uses: Amount,
    /// Use in all that is certain.
    pub spent: Amount,
    /// Use in all that calls may have had.
    pub unsure: Amount,
    /// Estimates of calls that are out.
    pub out: Amount,
    /// Amount that the pace owes.
    pub owed: Amount,
    /// Debt of others that it has taken over in all.
    pub applied: Amount,
    /// Demand of its runs in a pace, in [`settle::quantum`].
    pub wishes: Wishes,
    /// Cost of the cheapest call that waits for a total; nothing if none does.
    pub least: Amount,
}

/// State of one limit in the row of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Limit that the state is about.
    pub key: Key,
    /// Upper bound: of a pace the part, of a total the use in all.
    pub held: Amount,
    /// Use in all that is certain.
    #[serde(default)]
    pub spent: Amount,
    /// Use in all that calls may have had.
    #[serde(default)]
    pub unsure: Amount,
    /// Amount that its pace owed in its last round.
    #[serde(default)]
    pub owed: Amount,
    /// Debt of others that was dealt to it in all.
    #[serde(default)]
    pub inherited: Amount,
    /// Debt of others that it had taken over in all by its last round.
    #[serde(default)]
    pub applied: Amount,
    /// Demand of its runs in a pace.
    #[serde(default)]
    pub wishes: Wishes,
}

impl Held {
    /// Returns the use that counts.
    pub fn used(&self) -> Amount {
        self.spent.plus(self.unsure)
    }

    /// Returns what the row takes of a total: its bound, or more if its calls cost more.
    pub fn takes(&self) -> Amount {
        self.held.max(self.used())
    }
}

/// State of one limit that belongs to no live session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Limit that the state is about.
    pub key: Key,
    /// Certain use of sessions that are gone.
    #[serde(default)]
    pub spent: Amount,
    /// Use that sessions that are gone may have had.
    #[serde(default)]
    pub unsure: Amount,
    /// Debt of sessions that are gone, not dealt yet.
    #[serde(default)]
    pub owed: Amount,
    /// Period of an allowance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
}

impl Ledger {
    /// Returns true if the entry says nothing.
    pub(in crate::limit) fn is_empty(&self) -> bool {
        self.turn.is_none() && self.spent.is_zero() && self.unsure.is_zero() && self.owed.is_zero()
    }
}

/// Reply to a session's report on one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealt {
    /// Limit that the reply is about.
    pub key: Key,
    /// Upper bound that its row holds now.
    pub held: Amount,
    /// Target. If it is less than `held`, the session uses no more than this and reports it in its next round.
    pub target: Amount,
    /// Debt of others that was dealt to it in all.
    pub inherited: Amount,
    /// Cost from which on no call fits any more, since nobody holds a part of the total that could come back.
    pub full_from: Option<Amount>,
}

impl Dealt {
    /// Returns the bound that may be used.
    pub fn usable(&self) -> Amount {
        self.held.min(self.target)
    }
}

/// Use of a total, or of an allowance in its period, by all sessions, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// Limit as people write it.
    pub limit: String,
    /// Amount that may be used.
    pub amount: Amount,
    /// Use that is certain, of all sessions that ever were.
    pub spent: Amount,
    /// Use that calls may have had.
    pub unsure: Amount,
    /// Amount that sessions hold beyond that.
    pub held: Amount,
    /// True if so much of it is used that people are warned.
    pub is_nearly_used: bool,
    /// First moment of the next period of an allowance.
    pub next: Option<WallMs>,
}

/// Part of an amount below which what is left counts as nothing: less than nodes take at a time.
const LEFT_PARTS: u128 = 64;

impl Use {
    /// True if it is used up, or so little is left that calls no longer fit.
    pub fn is_spent(&self) -> bool {
        let left = self.amount.minus(self.spent).minus(self.unsure);
        left.is_zero() || left.0.saturating_mul(LEFT_PARTS) < self.amount.0
    }

    /// Returns the share of the amount that is used, certain or not; 0 of an amount of nothing.
    pub fn share(&self) -> f64 {
        let used = self.spent.plus(self.unsure).0 as f64;
        if self.amount.is_zero() {
            0.0
        } else {
            used / self.amount.0 as f64
        }
    }
}
