//! Evidence against one item: its failed calls, and the results of calls for other items meanwhile.

use crate::ids::Moment;
use crate::items::verdict::AnsweredCalls;

/// Answered calls and failed calls added to the observed ones where a small sample should prove little.
const PRIOR: f64 = 0.5;

/// Calls for other items, counted over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Number of answered calls.
    pub answered: u64,
    /// Latest dispatch time among the answered calls.
    pub departed: Moment,
    /// Failed calls for items that are as good as others, as far as known: those of items that were answered later,
    /// and the first one of each item that has not been called again yet. Excludes calls explained by the handler
    /// being down.
    pub failed: u64,
    /// Number of items whose first call failed, including bad ones.
    pub firsts: u64,
    /// Part of `firsts` up to the last answered call.
    pub firsts_before: u64,
}

impl Others {
    /// Returns the calls counted since `then`.
    #[must_use]
    pub fn since(self, then: Others) -> Others {
        Others {
            answered: self.answered.saturating_sub(then.answered),
            failed: self.failed.saturating_sub(then.failed),
            ..Others::default()
        }
    }

    /// Adds answered calls to the counts.
    #[inline]
    pub fn on_answered(&mut self, answered: AnsweredCalls) {
        self.answered += u64::from(answered.calls);
        self.departed = self.departed.max(answered.departed);
        self.firsts_before = self.firsts;
    }

    /// Returns the share of items whose first call failed, up to the last answered call.
    pub fn share_of_firsts(self) -> f64 {
        self.firsts_before as f64 / (self.answered + self.firsts_before).max(1) as f64
    }

    /// Returns the likelihood that a call for a good item fails. `prior` is added to both counts, so that few calls
    /// prove little.
    fn share(self, prior: f64) -> f64 {
        let (answered, failed) = (self.answered as f64 + prior, self.failed as f64 + prior);
        if failed > 0.0 {
            failed / (answered + failed)
        } else {
            0.0
        }
    }
}

/// Evidence against an item in this run. Only the judge writes it.
#[derive(Clone, Debug, Default)]
pub struct Suspicion {
    /// Charged attempts of earlier runs, unless the last of them ended while the handler was down.
    pub before: u32,
    /// Dispatch time of the item's first failed call of this run, or `None` if it failed in an earlier run.
    pub first: Option<Moment>,
    /// Calls for other items at the time that call returned.
    pub others: Option<Others>,
    /// Number of failed calls that contained only this item.
    pub calls: u32,
    /// Part of `calls` that got no verdict, except while the handler was down.
    pub failed: u32,
    /// Dispatch times of the failed calls that count as evidence.
    pub own: Vec<Moment>,
    /// Number of times that the handler was down and an attempt of this item was excused for it.
    pub excused: u32,
    /// Number of the latest of these times.
    pub outage: u32,
    /// Dispatch time of the first call of this run that was refused; the beginning of time if an earlier run had the
    /// same answer.
    pub refused_first: Option<Moment>,
    /// Number of refusals that don't count until a call is answered after the first of them.
    pub refused: u32,
    /// Start of the time in which the item is held, and the number of calls since then.
    pub held: Option<(Moment, u32)>,
    /// Calls of the item that were turned away.
    pub turns: Turns,
    /// Set when the item failed for good and nothing showed if the handler fails for it alone.
    pub is_unconfirmed: bool,
}

/// Calls of one item that the handler turned away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// Number of all such calls.
    pub all: u32,
    /// Number of such calls held against the item: the first, and each one before which nearly all other calls had
    /// been answered since the last.
    pub own: u32,
    /// Answered calls of the run when `own` was last counted.
    pub answered: u64,
    /// Turned-away calls of the run when `own` was last counted.
    pub turned_away: u64,
}

impl Suspicion {
    /// Counts the failed calls after which a call for another item was dispatched and answered.
    pub fn witnessed(&self, others: Others) -> usize {
        self.own.partition_point(|departed| *departed <= others.departed)
    }

    /// Returns the number of witnessed failed calls, in this run and before.
    pub fn charged(&self, others: Others) -> u32 {
        self.before + self.witnessed(others) as u32
    }

    /// Returns the share of failed calls for other items, overall or since this item's first failed call, whichever
    /// is higher.
    pub fn share(&self, others: Others) -> f64 {
        let since = others.since(self.others.unwrap_or(others));
        since.share(0.0).max(others.share(0.0))
    }

    /// Returns the likelihood that one of `items` good items fails this often beside answered calls.
    pub fn chance_among(&self, items: u64, others: Others) -> f64 {
        match self.charged(others) {
            0 => 1.0,
            calls => items as f64 * self.share(others).powi(calls as i32),
        }
    }

    /// Returns the likelihood that an item as good as others fails this often beside answered calls, with a prior so
    /// that few calls prove little.
    pub fn chance(&self, others: Others) -> f64 {
        let since = others.since(self.others.unwrap_or(others));
        since.share(PRIOR).powi(self.witnessed(others) as i32)
    }

    /// Adds a failed call that isn't explained by the handler being down, and corrects the counts of other items
    /// accordingly. With `replaces`, it takes the place of the previous failed call: without an answered call between
    /// them, both may have the same cause.
    pub fn add(&mut self, departed: Moment, others: &mut Others, replaces: bool) {
        if replaces {
            self.own.pop();
        }
        self.own.push(departed);
        others.firsts += u64::from(self.failed == 0);
        self.count(self.failed + 1, others);
    }

    /// Sets the number of failed calls and corrects `others`. A single failed call may belong to a good item; an item
    /// that failed again is more likely bad.
    fn count(&mut self, failed: u32, others: &mut Others) {
        others.failed = (others.failed + u64::from(failed == 1)).saturating_sub(u64::from(self.failed == 1));
        self.failed = failed;
    }

    /// Counts the item's failed calls as those of a good item, because it was answered.
    pub fn on_recovered(&self, others: &mut Others) {
        if self.failed > 1 {
            others.failed += u64::from(self.failed);
        }
    }

    /// Drops the calls dispatched after the last answered one, because the handler being down explains them. Returns
    /// their number.
    pub fn excuse_since_answer(&mut self, others: &mut Others) -> u32 {
        let excused = (self.own.len() - self.witnessed(*others)) as u32;
        self.own.truncate(self.own.len() - excused as usize);
        self.count(self.failed.saturating_sub(excused), others);
        excused
    }

    /// Returns the number of calls for other items answered since this item's first failed one.
    pub fn others_answered(&self, others: Others) -> u64 {
        others.since(self.others.unwrap_or(others)).answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Likelihood after so many failed calls, with so many others answered and failed between two of them.
    fn chance(own: u64, good: u64, bad: u64) -> f64 {
        let mut others = Others::default();
        let mut suspicion = Suspicion {
            others: Some(others),
            ..Suspicion::default()
        };
        for call in 0..own {
            suspicion.add(Moment(call), &mut others, false);
            others.answered += good;
            others.failed += bad;
        }
        others.departed = Moment(own);
        suspicion.chance(others)
    }

    #[test]
    fn the_more_others_fare_alike_the_longer_it_takes_until_it_is_the_item() {
        let proven = |good, bad| (1..100).find(|own| chance(*own, good, bad) <= 1e-9);
        assert_eq!(proven(1000, 0), Some(3));
        assert_eq!((proven(90, 10), proven(70, 30)), (Some(10), Some(18)));
        assert_eq!(proven(10, 90), None);
    }

    #[test]
    fn bad_items_are_no_evidence_that_others_fail_and_recovered_ones_are() {
        let mut others = Others::default();
        let (mut bad, mut unlucky) = (Suspicion::default(), Suspicion::default());
        for call in 0..3 {
            bad.add(Moment(call), &mut others, false);
            unlucky.add(Moment(call), &mut others, false);
        }
        assert_eq!(others.failed, 0);
        unlucky.on_recovered(&mut others);
        assert_eq!(others.failed, 3);
        let mut excused = Suspicion::default();
        excused.add(Moment(9), &mut others, false);
        assert_eq!((excused.excuse_since_answer(&mut others), others.failed), (1, 3));
    }
}
