//! Counts of calls without success, by fault and by code.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::items::verdict::FailureClass;
use crate::stats::tally::{CODES_MAX, OTHER_CODES};

/// Counts by class and code: at most [`CODES_MAX`] pairs, and one more per class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedCalls(BTreeMap<(FailureClass, Cow<'static, str>), u64>);

impl FailedCalls {
    /// Counts one failed call.
    pub fn count(&mut self, class: FailureClass, code: Cow<'static, str>) {
        self.add_some(class, code, 1);
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &FailedCalls) {
        for ((class, code), more) in &other.0 {
            self.add_some(*class, code.clone(), *more);
        }
    }

    /// Returns each class and code with its count.
    pub fn iter(&self) -> impl Iterator<Item = (FailureClass, &str, u64)> {
        self.0
            .iter()
            .map(|((class, code), count)| (*class, code.as_ref(), *count))
    }

    /// Returns the counts since an earlier snapshot of the same run.
    #[must_use]
    pub fn since(&self, before: &FailedCalls) -> FailedCalls {
        let fresh = self.0.iter().map(|(key, now)| {
            let then = before.0.get(key).copied().unwrap_or(0);
            (key.clone(), now.saturating_sub(then))
        });
        FailedCalls(fresh.filter(|(_, count)| *count > 0).collect())
    }

    fn add_some(&mut self, class: FailureClass, code: Cow<'static, str>, more: u64) {
        let mut key = (class, code);
        if self.0.len() >= CODES_MAX && !self.0.contains_key(&key) {
            key.1 = Cow::Borrowed(OTHER_CODES);
        }
        *self.0.entry(key).or_default() += more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_a_handler_makes_up_are_bounded_and_no_call_is_lost() {
        let mut failed = FailedCalls::default();
        for n in 0..1000 {
            failed.count(FailureClass::Answered, Cow::Owned(format!("E{n}")));
        }
        failed.count(FailureClass::Unclear, Cow::Borrowed("TIMEOUT"));
        assert_eq!(failed.iter().count(), CODES_MAX + 2);
        assert_eq!(failed.iter().map(|(_, _, count)| count).sum::<u64>(), 1001);
        let before = failed.clone();
        failed.count(FailureClass::Answered, Cow::Borrowed("E3"));
        let fresh = failed.since(&before);
        assert_eq!(
            fresh.iter().collect::<Vec<_>>(),
            [(FailureClass::Answered, "E3", 1)]
        );
    }
}
