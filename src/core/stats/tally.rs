//! What a run counts for people who watch it, beside its progress. Nothing here decides anything.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::items::verdict::RetryAdvice;
use crate::stats::histogram::Histogram;

/// Codes that are counted each; the others are counted together.
pub const CODES_MAX: usize = 50;
/// The name of the others.
pub const OTHER_CODES: &str = "other";

/// Counts since the run began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How long calls took; those that were answered at once are not among them.
    pub calls: Histogram,
    /// From the time at which the rate allowed an item to leave until it was given out.
    pub delays: Histogram,
    /// Attempts that failed.
    pub failed: FailedAttempts,
}

impl Tally {
    /// What came since an earlier picture of the same run.
    #[must_use]
    pub fn since(&self, before: &Tally) -> Tally {
        Tally {
            calls: self.calls.since(&before.calls),
            delays: self.delays.since(&before.delays),
            failed: self.failed.since(&before.failed),
        }
    }
}

/// Failed attempts by their code: those after which the handler wished another, and those after which it gave up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedAttempts(BTreeMap<Cow<'static, str>, Ended>);

/// See [`FailedAttempts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// It may be tried again.
    pub retry: u64,
    /// It was given up.
    pub fail: u64,
}

impl Ended {
    fn add(&mut self, more: Ended) {
        self.retry += more.retry;
        self.fail += more.fail;
    }
}

impl FailedAttempts {
    /// Counts an attempt that failed with a code.
    pub fn count(&mut self, code: &str, advice: RetryAdvice) {
        let one = match advice {
            RetryAdvice::Fail => Ended { retry: 0, fail: 1 },
            RetryAdvice::Retry { .. } => Ended { retry: 1, fail: 0 },
        };
        // The usual case, without a copy of the code.
        if let Some(known) = self.0.get_mut(code) {
            return known.add(one);
        }
        self.entry(code).add(one);
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &FailedAttempts) {
        for (code, more) in &other.0 {
            self.entry(code).add(*more);
        }
    }

    /// Each code with its counts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Ended)> {
        self.0.iter().map(|(code, ended)| (code.as_ref(), *ended))
    }

    /// How many there were of all codes.
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
