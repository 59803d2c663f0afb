//! Evidence against one item: its failed calls, and how calls for others fared meanwhile.

use crate::ids::Moment;
use crate::items::verdict::AnsweredCalls;

/// Calls for others of each kind that are thought beside those that were made, where few shall prove little.
const PRIOR: f64 = 0.5;

/// Calls for others, counted over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Answered calls.
    pub answered: u64,
    /// Latest departure among them.
    pub departed: Moment,
    /// Failed calls for items that are as good as others, as far as it is known: of items that were answered later, and the
    /// first of each item that wasn't called again yet. Outages aside.
    pub failed: u64,
    /// Items whose first call failed, bad ones among them.
    pub firsts: u64,
    /// Those up to the last answered call.
    pub firsts_before: u64,
}

impl Others {
    /// Calls since then.
    #[must_use]
    pub fn since(self, then: Others) -> Others {
        Others {
            answered: self.answered.saturating_sub(then.answered),
            failed: self.failed.saturating_sub(then.failed),
            ..Others::default()
        }
    }

    /// Takes in answered calls.
    #[inline]
    pub fn on_answered(&mut self, answered: AnsweredCalls) {
        self.answered += u64::from(answered.calls);
        self.departed = self.departed.max(answered.departed);
        self.firsts_before = self.firsts;
    }

    /// Share of items whose first call failed, up to the last answered call.
    pub fn share_of_firsts(self) -> f64 {
        self.firsts_before as f64 / (self.answered + self.firsts_before).max(1) as f64
    }

    /// Likelihood that a call for a good item fails, with so many calls of either kind beside those that were made: few calls
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

/// Evidence against an item in this run. The judge alone writes it.
#[derive(Clone, Debug, Default)]
pub struct Suspicion {
    /// Attempts that counted in earlier runs, unless the last of them ended in an outage.
    pub before: u32,
    /// Departure of its first failed call of this run; none where an earlier run saw it fail.
    pub first: Option<Moment>,
    /// Others when that call came back.
    pub others: Option<Others>,
    /// Failed calls that no others shared.
    pub calls: u32,
    /// Those of them without a verdict, outside outages.
    pub failed: u32,
    /// Departures of those that count as evidence.
    pub own: Vec<Moment>,
    /// Outages that excused an attempt of it.
    pub excused: u32,
    /// Number of the latest of them.
    pub outage: u32,
    /// Departure of the first call of this run that was refused; the beginning of time where an earlier run had the same
    /// answer.
    pub refused_first: Option<Moment>,
    /// Refusals that don't count as long as nobody was answered after the first.
    pub refused: u32,
    /// Beginning of the time in which it is held, and calls meanwhile.
    pub held: Option<(Moment, u32)>,
    /// Calls that were turned away.
    pub turns: Turns,
    /// Given up, and nothing showed whether the handler fails for it alone.
    pub is_unconfirmed: bool,
}

/// Calls of an item that were turned away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// All of them.
    pub all: u32,
    /// The first one, and each one before which nearly all others had been answered since the last.
    pub own: u32,
    /// Calls of the run that had been answered when `own` was counted.
    pub answered: u64,
    /// Calls of the run that had been turned away then.
    pub turned_away: u64,
}

impl Suspicion {
    /// Failed calls after which one for another departed that was answered.
    pub fn witnessed(&self, others: Others) -> usize {
        self.own.partition_point(|departed| *departed <= others.departed)
    }

    /// Failed calls that have their witness, in this run and before.
    pub fn charged(&self, others: Others) -> u32 {
        self.before + self.witnessed(others) as u32
    }

    /// Share of calls for others that failed, of all or since its first failed call, whichever is more.
    pub fn share(&self, others: Others) -> f64 {
        let since = others.since(self.others.unwrap_or(others));
        since.share(0.0).max(others.share(0.0))
    }

    /// Likelihood that one of so many good items fails as often beside answered calls.
    pub fn chance_among(&self, items: u64, others: Others) -> f64 {
        match self.charged(others) {
            0 => 1.0,
            calls => items as f64 * self.share(others).powi(calls as i32),
        }
    }

    /// Likelihood that an item as good as others fails as often beside answered calls, where few calls prove little.
    pub fn chance(&self, others: Others) -> f64 {
        let since = others.since(self.others.unwrap_or(others));
        since.share(PRIOR).powi(self.witnessed(others) as i32)
    }

    /// Takes in a failed call outside an outage, and corrects what is known of others by it. One that follows another without an
    /// answered call between may replace it: both may have the same cause.
    pub fn add(&mut self, departed: Moment, others: &mut Others, replaces: bool) {
        if replaces {
            self.own.pop();
        }
        self.own.push(departed);
        others.firsts += u64::from(self.failed == 0);
        self.count(self.failed + 1, others);
    }

    /// A single failed call may be that of a good item; of one that failed again it is likelier that it is bad.
    fn count(&mut self, failed: u32, others: &mut Others) {
        others.failed = (others.failed + u64::from(failed == 1)).saturating_sub(u64::from(self.failed == 1));
        self.failed = failed;
    }

    /// The item was answered, so that it is as good as others.
    pub fn on_recovered(&self, others: &mut Others) {
        if self.failed > 1 {
            others.failed += u64::from(self.failed);
        }
    }

    /// An outage explains the calls that departed after the last answered one; says how many these are.
    pub fn excuse_since_answer(&mut self, others: &mut Others) -> u32 {
        let excused = (self.own.len() - self.witnessed(*others)) as u32;
        self.own.truncate(self.own.len() - excused as usize);
        self.count(self.failed.saturating_sub(excused), others);
        excused
    }

    /// Calls for others that were answered since its first failed one.
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
