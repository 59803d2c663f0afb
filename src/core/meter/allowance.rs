//! Periods of an allowance as they follow each other, by a clock that may be wrong.
//!
//! Each period has a total of its own ([`Total`](super::total::Total)); this decides which period is in force, and what
//! of it is used when it begins. A period that follows is unused; one that was in force before goes on with its use. A
//! clock that was ahead and is put right leads back to an earlier period: what was used meanwhile is added to it, once.
//! A changed span or zone keeps what was used until the later end of the two.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::class::Cost;
use super::period::{Calendar, Stretch};
use crate::ids::WallMs;

/// Time by which a clock may be set back without a return to the period before.
const SLEW: Duration = Duration::from_secs(60);
/// Number of other periods that are remembered: the one in which a clock jumped, and those that it reached there.
const KEPT: usize = 4;

/// Use of a period that is no longer in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// First moment of the period.
    pub start: WallMs,
    /// First moment after it.
    pub end: WallMs,
    /// Use that counted in it.
    pub used: Amount,
    /// Part of it that was added to an earlier period, because a clock was put right.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub added: Amount,
}

/// Period in force as a checkpoint stores it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPeriod {
    /// First moment of the period.
    pub start: WallMs,
    /// First moment after it.
    pub end: WallMs,
    /// Part of its use that was added to an earlier period before.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub added: Amount,
    /// Other periods, in the order in which they were left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Past>,
}

fn is_nothing(amount: &Amount) -> bool {
    amount.is_zero()
}

/// Period in force, and those that were.
#[derive(Clone, Debug)]
pub struct Periods {
    calendar: Calendar,
    stretch: Stretch,
    added: Amount,
    earlier: Vec<Past>,
}

impl Periods {
    /// Goes on from what is stored, or begins with the period of `wall`. A stored period ends where the calendar has a
    /// boundary; [`turn`](Self::turn) then says whether it is still in force.
    pub fn restore(calendar: Calendar, stored: Option<StoredPeriod>, wall: WallMs) -> Periods {
        let Some(stored) = stored else {
            return Periods {
                calendar,
                stretch: calendar.at(wall),
                added: Amount::ZERO,
                earlier: Vec::new(),
            };
        };
        let last = WallMs(stored.end.0.saturating_sub(1));
        Periods {
            calendar,
            stretch: Stretch {
                start: stored.start,
                end: stored.end.max(calendar.at(last).end),
            },
            added: stored.added,
            earlier: stored.earlier,
        }
    }

    /// Returns the period in force.
    pub fn current(&self) -> Stretch {
        self.stretch
    }

    /// Returns the calendar of the periods.
    pub fn calendar(&self) -> Calendar {
        self.calendar
    }

    /// Enters the period of `wall`, and returns what of it is used; `None` while the same period is in force. `used` is
    /// the use of the one that was.
    pub fn turn(&mut self, used: Amount, wall: WallMs) -> Option<Amount> {
        let Stretch { start, end } = self.stretch;
        if (start.minus(SLEW)..end).contains(&wall) {
            return None;
        }
        self.earlier.push(Past {
            start,
            end,
            used,
            added: self.added,
        });
        let next = self.calendar.at(wall);
        self.stretch = next;
        let (mut begins, mut added) = (Amount::ZERO, Amount::ZERO);
        self.earlier.retain_mut(|past| {
            let is_same = past.start == next.start;
            if is_same {
                begins = begins.plus(past.used);
                added = added.plus(past.added);
            } else if past.end > next.start {
                begins = begins.plus(past.used.minus(past.added));
                past.added = past.added.max(past.used);
            }
            !is_same
        });
        self.added = added;
        let old = self.earlier.len().saturating_sub(KEPT);
        self.earlier.drain(..old);
        Some(begins)
    }

    /// Settles a call that departed in the period which began at `start` and isn't in force any more.
    pub fn settle(&mut self, start: WallMs, estimate: Amount, cost: Cost) {
        let past = self.earlier.iter_mut().find(|past| past.start == start);
        if let Some(past) = past {
            past.used = past.used.minus(estimate).plus(cost.amount());
        }
    }

    /// Returns what a checkpoint stores.
    pub fn stored(&self) -> StoredPeriod {
        StoredPeriod {
            start: self.stretch.start,
            end: self.stretch.end,
            added: self.added,
            earlier: self.earlier.clone(),
        }
    }
}
