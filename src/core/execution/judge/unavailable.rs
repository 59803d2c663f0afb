//! What a 502 or 503 says: that the handler isn't there, or that it isn't for this item?
//!
//! That it isn't there, as a rule: nobody is charged, and a row of them opens the circuit. Of the item, where the item brings
//! it each time while others are answered: a gateway says so when a record kills what is behind it. Then those calls count. A
//! handler that sheds a share of all calls charges nobody: that an item was unlucky each time must be unlikely, with the share
//! of fresh items that fared the same meanwhile.

use super::refused::{CHANCE, row_beyond_chance};
use crate::execution::items::Items;
use crate::execution::judge::Judge;
use crate::execution::settings::Settings;
use crate::execution::types::{Effects, Now};
use crate::ids::ItemIndex;
use crate::items::verdict::{Failed, FailureClass};
use crate::items::waiting::{Doing, Trouble, UnavailableCalls};

/// So many of them at least, with answered calls for others between any two.
const OWN_MIN: u32 = 5;

/// Of fewer calls for fresh items no share is told.
const CALLS_MIN: u64 = 100;

/// How fresh items fared in this run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fresh {
    /// They were answered.
    pub(super) answered: u64,
    /// They met a 502 or 503.
    pub(super) unavailable: u64,
}

impl Fresh {
    /// How likely a fresh item is to meet it. By the rule of succession: few calls prove little.
    fn share(self) -> f64 {
        (self.unavailable + 1) as f64 / (self.answered + self.unavailable + 2) as f64
    }
}

impl UnavailableCalls {
    /// One more, if others were answered since the last one.
    fn count(&mut self, so_far: Fresh) {
        let since = Fresh {
            answered: so_far.answered.saturating_sub(self.answered),
            unavailable: so_far.unavailable.saturating_sub(self.unavailable),
        };
        if self.own == 0 || since.answered > 0 {
            self.add(since.share());
            (self.answered, self.unavailable) = (so_far.answered, so_far.unavailable);
        }
    }

    /// One more, which comes to an item that is as good as others as often as this says.
    fn add(&mut self, share: f64) {
        self.chance = if self.own == 0 { 1.0 } else { self.chance * share };
        self.own += 1;
    }

    fn is_proven(&self) -> bool {
        self.own >= OWN_MIN && self.chance <= CHANCE
    }

    /// Whether it met one beside others that were answered later.
    fn is_suspect(&self, so_far: Fresh) -> bool {
        self.own > 1 || self.own == 1 && so_far.answered > self.answered
    }
}

impl Trouble {
    /// Whether its last call brought a 502 or 503, and its attempts aren't used up.
    pub(super) fn is_unavailable(&self) -> bool {
        self.last == Some(FailureClass::Unavailable) && self.held.is_none()
    }
}

impl Judge {
    /// Whether a 502 or 503 counts against its item. Where it does, those before count too.
    pub(in crate::execution) fn charge_unavailable(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        failed: &Failed,
        trouble: &mut Trouble,
    ) -> bool {
        if trouble.failed_first == Some(failed.departed) {
            trouble.unavailable.is_first = true;
            self.unavailable += 1;
        }
        let own = trouble.unavailable.own;
        self.count_unavailable(items, failed, trouble);
        let (alone, unavailable) = (&self.alone, &trouble.unavailable);
        let may = !alone.is_of_items() || alone.is_over();
        let is_decided = alone.charges_unavailable() && settings.is_decided();
        let is_charged = is_decided || may && unavailable.own > own && unavailable.is_proven();
        if is_charged {
            trouble.charged = trouble.charged.max(own);
        }
        is_charged
    }

    pub(in crate::execution) fn count_unavailable(
        &self,
        items: &Items,
        failed: &Failed,
        trouble: &mut Trouble,
    ) {
        let alone = &self.alone;
        if alone.is_of_items() || alone.is_over() {
            if alone.has_unavailable() {
                trouble.unavailable.add(self.share_of_all(items));
            }
        } else if !self.circuit.excuses(failed.departed) {
            trouble.unavailable.count(self.fresh_so_far());
        }
    }

    /// How many calls prove that it is the item, where nobody else is answered.
    pub(in crate::execution) fn calls_to_prove(&self, items: &Items) -> u32 {
        OWN_MIN.max(row_beyond_chance(self.share_of_all(items)) as u32)
    }

    pub(in crate::execution) fn fresh_so_far(&self) -> Fresh {
        Fresh {
            answered: self.turned_away.answered().saturating_sub(self.recovered),
            unavailable: self.unavailable,
        }
    }

    /// How likely a fresh item of the task is to meet it; at most, where this run has called too few to tell.
    pub(in crate::execution) fn share_of_all(&self, items: &Items) -> f64 {
        let fresh = self.fresh_so_far();
        if fresh.answered + fresh.unavailable >= CALLS_MIN {
            return fresh.share();
        }
        let failed = items.troubles.len() as u64 + items.counters.abandoned;
        Fresh {
            answered: fresh.answered + items.counters.succeeded,
            unavailable: fresh.unavailable + failed,
        }
        .share()
    }

    /// Whether most of the items that these calls keep here have shown that it is them.
    pub(in crate::execution) fn are_mostly_suspects(
        &self,
        items: &Items,
        settings: &Settings,
        unavailable: &[ItemIndex],
    ) -> bool {
        let so_far = self.fresh_so_far();
        let is_suspect =
            |t: &Trouble| self.is_known_to_fail(items, settings, t) || t.unavailable.is_suspect(so_far);
        let suspects = unavailable.iter().filter_map(|index| items.troubles.get(*index));
        suspects.filter(|t| is_suspect(t)).count() * 2 >= unavailable.len()
    }

    /// It is the items that are left: what they bring counts from now on, whether others are answered or not. Where people have
    /// decided so, what they brought counts too.
    pub(in crate::execution) fn charge_last_unavailable(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        now: Now,
        fx: &mut Effects,
    ) {
        if !self.alone.charges_unavailable() {
            return;
        }
        let most = settings.tuning.max_attempts.get();
        let is_next = |t: &Trouble| t.is_unavailable() && matches!(t.doing, Doing::Waiting(_));
        for index in items.troubles.which(is_next) {
            let Some(mut trouble) = items.troubles.take(index) else {
                continue;
            };
            (trouble.doing, trouble.uncharged) = (Doing::Waiting(now.moment), 0);
            if settings.is_decided() || trouble.unavailable.is_proven() {
                trouble.charged = trouble.charged.max(trouble.unavailable.own);
            }
            if trouble.charged >= most {
                self.exhaust(items, settings, index, trouble, now, fx);
            } else {
                items.troubles.put(index, trouble);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls until it counts, where of the fresh items between two of them so many are answered and so many not.
    fn proven_after(good: u64, bad: u64) -> Option<u32> {
        let mut unavailable = UnavailableCalls::default();
        (1..100).find(|no| {
            let calls = u64::from(*no);
            unavailable.count(Fresh {
                answered: good * calls,
                unavailable: bad * calls,
            });
            unavailable.is_proven()
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
