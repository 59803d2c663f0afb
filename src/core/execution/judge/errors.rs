//! Recent errors by code, shown to people while they occur.

use crate::handler::failed_calls::FailedCalls;
use crate::ids::WallMs;
use crate::items::verdict::{FailedCall, LastError};

/// Maximum number of codes kept: more than a handler returns at once.
const CODES_MAX: usize = 8;
/// Time without a failure after which the count of a code starts anew, in milliseconds.
const FORGET_AFTER_MS: i64 = 5 * 60 * 1000;

/// Recent errors by code, the latest last.
#[derive(Clone, Debug, Default)]
pub(in crate::execution) struct Errors {
    known: Vec<LastError>,
    /// Failed calls of all codes together.
    together: Option<Together>,
    counted: FailedCalls,
}

/// Series of failed calls without five minutes between two of them.
#[derive(Clone, Copy, Debug)]
struct Together {
    count: u64,
    since: WallMs,
    at: WallMs,
}

impl Errors {
    pub(super) fn note(&mut self, call: &FailedCall, now: WallMs) {
        self.counted.count(call.class, call.failure.code.clone());
        let before = self
            .together
            .filter(|before| now.0 - before.at.0 <= FORGET_AFTER_MS);
        self.together = Some(Together {
            count: before.map_or(0, |before| before.count) + 1,
            since: before.map_or(now, |before| before.since),
            at: now,
        });
        let known = self
            .known
            .iter()
            .position(|error| error.code == call.failure.code);
        let mut error = match known {
            Some(at) => self.known.remove(at),
            None => LastError {
                class: call.class,
                code: call.failure.code.clone(),
                example: String::new(),
                index: call.index,
                count: 0,
                since: now,
                at: now,
            },
        };
        if now.0 - error.at.0 > FORGET_AFTER_MS {
            (error.count, error.since) = (0, now);
        }
        (error.class, error.index, error.at) = (call.class, call.index, now);
        error.example.clone_from(&call.failure.message);
        error.count += 1;
        if self.known.len() >= CODES_MAX {
            self.known.remove(0);
        }
        self.known.push(error);
    }

    pub(in crate::execution) fn all(&self) -> &[LastError] {
        &self.known
    }

    pub(in crate::execution) fn counted(&self) -> &FailedCalls {
        &self.counted
    }

    /// Returns the latest error with the recent number of failed calls of all codes: if several codes alternate, no
    /// single one would show the state of the handler.
    pub(in crate::execution) fn recent(&self) -> Option<LastError> {
        let (last, Together { count, since, .. }) = self.known.last().cloned().zip(self.together)?;
        Some(LastError { count, since, ..last })
    }

    pub(in crate::execution) fn last(&self) -> Option<&LastError> {
        self.known.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ItemIndex, Moment};
    use crate::items::verdict::{AnsweredCalls, Failure, FailureClass};

    fn call(code: &'static str) -> FailedCall {
        FailedCall {
            class: FailureClass::Unclear,
            failure: Failure::new(code, "x"),
            index: ItemIndex(7),
            items: 1,
            departed: Moment(0),
            after: None,
            before: AnsweredCalls::default(),
        }
    }

    #[test]
    fn calls_that_fail_with_codes_by_turns_are_counted_together() {
        let mut errors = Errors::default();
        for second in 0..10 {
            let code = if second % 3 == 0 { "HTTP_422" } else { "HTTP_500" };
            errors.note(&call(code), WallMs(second * 1000));
        }
        let told = errors.recent().expect("an error");
        assert_eq!(
            (told.code.as_ref(), told.count, told.since, told.at),
            ("HTTP_422", 10, WallMs(0), WallMs(9_000))
        );
        assert_eq!(errors.last().map(|last| last.count), Some(4), "of its code");
        let later = WallMs(9_001 + FORGET_AFTER_MS);
        errors.note(&call("HTTP_500"), later);
        let told = errors.recent().expect("an error");
        assert_eq!((told.count, told.since), (1, later), "it began anew");
    }
}
