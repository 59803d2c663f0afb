//! What a 502 or 503 says: that the handler isn't there, or that it isn't for this item?
//!
//! That it isn't there, as a rule: nobody is charged, and a row of them opens the circuit. Of the item, where the item brings
//! it each time while others are answered: a gateway says so when a record kills what is behind it. Then those calls count. A
//! handler that sheds a share of all calls charges nobody: that an item was unlucky each time must be unlikely, with the share
//! of fresh items that fared the same meanwhile.

use super::refused::{CHANCE, row_beyond_chance};
use crate::execution::Execution;
use crate::execution::types::{Effects, Now};
use crate::ids::Moment;
use crate::items::waiting::{Absences, Doing, Trouble};

/// So many of them at least, with answered calls for others between any two.
const OWN_MIN: u32 = 5;
/// So many make a suspect: among the last items of a task, where nobody else is left who could be answered.
const SUSPECT_MIN: u32 = 2;

/// How fresh items fared in this run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fresh {
    /// They were answered.
    pub(super) answered: u64,
    /// They met a 502 or 503.
    pub(super) absent: u64,
}

impl Fresh {
    /// How likely a fresh item is to meet it. By the rule of succession: few calls prove little.
    fn share(self) -> f64 {
        (self.absent + 1) as f64 / (self.answered + self.absent + 2) as f64
    }
}

impl Absences {
    /// One more, if others were answered since the last one.
    fn count(&mut self, so_far: Fresh) -> bool {
        let since = Fresh {
            answered: so_far.answered.saturating_sub(self.answered),
            absent: so_far.absent.saturating_sub(self.absent),
        };
        if self.own > 0 && since.answered == 0 {
            return false;
        }
        self.chance = if self.own == 0 {
            1.0
        } else {
            self.chance * since.share()
        };
        self.own += 1;
        (self.answered, self.absent) = (so_far.answered, so_far.absent);
        true
    }

    fn is_proven(&self) -> bool {
        self.own >= OWN_MIN && self.chance <= CHANCE
    }

    /// Whether it is more likely bad than others.
    pub(super) fn is_suspect(&self) -> bool {
        self.own >= SUSPECT_MIN
    }
}

impl Execution {
    /// Whether a 502 or 503 counts against its item. Where it does, those before count too.
    pub(super) fn charge_absence(&mut self, departed: Moment, trouble: &mut Trouble) -> bool {
        self.judge.absent += u64::from(trouble.failed_first == Some(departed));
        trouble.absences.calls += 1;
        if self.judge.alone.is_over() {
            return self.judge.alone.charges_absences();
        }
        if !self.is_alone_in_calls() || self.circuit.excuses(departed) {
            return false;
        }
        let is_own = trouble.absences.count(self.fresh_so_far());
        let is_charged = is_own && trouble.absences.is_proven();
        if is_charged {
            trouble.charged = trouble.charged.max(trouble.absences.own - 1);
        }
        is_charged
    }

    fn fresh_so_far(&self) -> Fresh {
        Fresh {
            answered: self.turned_away.answered().saturating_sub(self.judge.recovered),
            absent: self.judge.absent,
        }
    }

    /// Whether so many calls in a row that nobody answered are too many for a handler that sheds as large a share of all calls
    /// as it did of those for fresh items.
    pub(super) fn is_no_shedding(&self, calls: usize) -> bool {
        calls >= row_beyond_chance(self.fresh_so_far().share())
    }

    /// It is the items that are left: what each of them brought while others were answered counts, and what it brings next.
    pub(super) fn charge_absences(&mut self, now: Now, fx: &mut Effects) {
        if !self.judge.alone.charges_absences() {
            return;
        }
        let most = self.tuning.max_attempts.get();
        for index in self
            .troubles
            .which(|t| t.absences.calls > 0 && matches!(t.doing, Doing::Waiting(_)))
        {
            let Some(mut trouble) = self.troubles.take(index) else {
                continue;
            };
            trouble.charged = trouble.charged.max(trouble.absences.own);
            trouble.doing = Doing::Waiting(now.moment);
            if trouble.charged >= most {
                self.exhaust(index, trouble, now, fx);
            } else {
                self.troubles.put(index, trouble);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls until it counts, where of the fresh items between two of them so many are answered and so many not.
    fn proven_after(good: u64, bad: u64) -> Option<u32> {
        let mut absences = Absences::default();
        (1..100).find(|no| {
            let calls = u64::from(*no);
            absences.count(Fresh {
                answered: good * calls,
                absent: bad * calls,
            });
            absences.is_proven()
        })
    }

    #[test]
    fn the_more_others_fare_alike_the_longer_it_takes_until_it_is_the_item() {
        assert_eq!(proven_after(1000, 0), Some(5));
        assert_eq!((proven_after(90, 10), proven_after(70, 30)), (Some(11), Some(19)));
        assert_eq!(proven_after(10, 90), None);
        assert_eq!(proven_after(0, 1), None, "nobody was answered");
    }
}
