//! Statistics of a run for people, in addition to its progress. Nothing here decides anything.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::items::verdict::RetryAdvice;
use crate::stats::histogram::Histogram;

/// Maximum number of codes that are counted separately; the others are counted together.
pub const CODES_MAX: usize = 50;
/// Name under which the other codes are counted.
pub const OTHER_CODES: &str = "other";

/// Counts since the run began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Durations of calls, without those that were answered at once.
    pub calls: Histogram,
    /// Delays from the time at which the rate allowed an item until it was dispatched.
    pub delays: Histogram,
    /// Failed attempts by their code.
    pub failed: FailedAttempts,
}

impl Tally {
    /// Returns the counts since an earlier snapshot of the same run.
    #[must_use]
    pub fn since(&self, before: &Tally) -> Tally {
        Tally {
            calls: self.calls.since(&before.calls),
            delays: self.delays.since(&before.delays),
            failed: self.failed.since(&before.failed),
        }
    }
}

/// Failed attempts by code: those after which the handler asked for another, and those after which it asked for no
/// more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedAttempts(BTreeMap<Cow<'static, str>, Ended>);

/// Failed attempts of one code, for [`FailedAttempts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Attempts whose item may be tried again.
    pub retry: u64,
    /// Attempts whose item the handler failed for good.
    pub fail: u64,
}

impl Ended {
    fn add(&mut self, more: Ended) {
        self.retry += more.retry;
        self.fail += more.fail;
    }
}

impl FailedAttempts {
    /// Counts an attempt that failed with this code.
    pub fn count(&mut self, code: &str, advice: RetryAdvice) {
        let one = match advice {
            RetryAdvice::Fail => Ended { retry: 0, fail: 1 },
            RetryAdvice::Retry { .. } => Ended { retry: 1, fail: 0 },
        };
        // The usual case, without copying the code.
        if let Some(known) = self.0.get_mut(code) {
            return known.add(one);
        }
        self.entry(code).add(one);
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &FailedAttempts) {
        for (code, more) in &other.0 {
            self.entry(code).add(*more);
        }
    }

    /// Iterates over the codes with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Ended)> {
        self.0.iter().map(|(code, ended)| (code.as_ref(), *ended))
    }

    /// Returns the number of failed attempts over all codes.
    pub fn count_all(&self) -> u64 {
        self.0.values().map(|ended| ended.retry + ended.fail).sum()
    }

    fn since(&self, before: &FailedAttempts) -> FailedAttempts {
        let fresh = |(code, now): (&Cow<'static, str>, &Ended)| {
            let then = before.0.get(code).copied().unwrap_or_default();
            let ended = Ended {
                retry: now.retry.saturating_sub(then.retry),
                fail: now.fail.saturating_sub(then.fail),
            };
            (ended != Ended::default()).then(|| (code.clone(), ended))
        };
        FailedAttempts(self.0.iter().filter_map(fresh).collect())
    }

    fn entry(&mut self, code: &str) -> &mut Ended {
        let known = match self.0.contains_key(code) {
            true => code,
            false if self.0.len() < CODES_MAX => code,
            false => OTHER_CODES,
        };
        self.0.entry(Cow::Owned(known.to_owned())).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_that_makes_codes_up_has_fifty_and_loses_no_count() {
        let mut failed = FailedAttempts::default();
        for n in 0..1000 {
            failed.count(&format!("E{n}"), RetryAdvice::Retry { after: None });
        }
        failed.count("E3", RetryAdvice::Fail);
        assert_eq!(failed.iter().count(), CODES_MAX + 1);
        assert_eq!(failed.iter().map(|(_, ended)| ended.retry).sum::<u64>(), 1000);
        let before = failed.clone();
        failed.count("E3", RetryAdvice::Fail);
        let fresh = failed.since(&before);
        assert_eq!(
            fresh.iter().collect::<Vec<_>>(),
            [("E3", Ended { retry: 0, fail: 1 })]
        );
    }
}
