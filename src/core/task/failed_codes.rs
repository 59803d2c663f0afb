//! Decisions of people to fail the retrying items of a task that have a given code.
//!
//! A decision covers only what has failed by then: an item that fails later with the same code is retried as usual.
//! It is stored with the task, so that a run that begins from earlier saved progress applies it too; applying it
//! twice changes nothing.

use std::borrow::Cow;
use windrow_words::task as say;

use serde::{Deserialize, Serialize};

use crate::ids::WallMs;

/// Maximum number of codes with a decision in one task: each run reads them with its task's settings.
pub const FAILED_CODES_MAX: usize = 64;

/// Decision to fail the waiting items whose last failure has this code and happened at or before this time. The field
/// names are those of the stored JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCode {
    /// Code of the last failure.
    pub code: Cow<'static, str>,
    /// Time of the decision.
    pub at: WallMs,
}

/// All decisions of a task, the latest for each code, in the order in which the codes were first decided on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FailedCodes(Vec<FailedCode>);

/// Error: the task already has decisions for [`FAILED_CODES_MAX`] codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", say::too_many_codes(FAILED_CODES_MAX))]
pub struct TooManyCodes;

impl FailedCodes {
    /// Returns true if there is no decision.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over all decisions.
    pub fn iter(&self) -> impl Iterator<Item = &FailedCode> {
        self.0.iter()
    }

    /// Adds a decision. It replaces an older one about the same code; a newer one stays.
    ///
    /// # Errors
    /// Fails if there are too many codes.
    ///
    /// ```
    /// use windrow_core::task::failed_codes::FailedCodes;
    /// use windrow_core::ids::WallMs;
    ///
    /// let mut decided = FailedCodes::default();
    /// decided.decide("TIMEOUT", WallMs(5)).unwrap();
    /// assert!(decided.covers("TIMEOUT", WallMs(5)) && !decided.covers("TIMEOUT", WallMs(6)));
    /// ```
    pub fn decide(&mut self, code: &str, at: WallMs) -> Result<(), TooManyCodes> {
        if let Some(known) = self.0.iter_mut().find(|known| known.code == code) {
            known.at = known.at.max(at);
            return Ok(());
        }
        if self.0.len() >= FAILED_CODES_MAX {
            return Err(TooManyCodes);
        }
        self.0.push(FailedCode {
            code: Cow::Owned(code.to_owned()),
            at,
        });
        Ok(())
    }

    /// Returns true if a waiting item that last failed with this code at this time is to fail for good.
    pub fn covers(&self, code: &str, failed_at: WallMs) -> bool {
        self.0.iter().any(|one| one.code == code && failed_at <= one.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_code_the_newest_decision_counts_and_a_code_too_many_is_refused() {
        let mut decided = FailedCodes::default();
        for (code, at) in [("A", 5), ("B", 1), ("A", 9), ("A", 7)] {
            decided.decide(code, WallMs(at)).expect("there is room");
        }
        let all: Vec<_> = decided.iter().map(|one| (one.code.as_ref(), one.at.0)).collect();
        assert_eq!(all, [("A", 9), ("B", 1)]);
        for no in 0..FAILED_CODES_MAX - 2 {
            decided
                .decide(&format!("C{no}"), WallMs(0))
                .expect("there is room");
        }
        assert_eq!(decided.decide("D", WallMs(0)), Err(TooManyCodes));
        assert_eq!(decided.decide("A", WallMs(10)), Ok(()), "it is known");
    }

    #[test]
    fn decisions_are_stored_as_a_list() {
        let mut decided = FailedCodes::default();
        decided.decide("TIMEOUT", WallMs(5)).expect("there is room");
        let text = serde_json::to_string(&decided).expect("JSON");
        assert_eq!(text, r#"[{"code":"TIMEOUT","at":5}]"#);
        assert_eq!(serde_json::from_str::<FailedCodes>(&text).expect("JSON"), decided);
    }
}
