//! What went wrong lately, by code: what people are told while it does.

use crate::handler::failed_calls::FailedCalls;
use crate::ids::WallMs;
use crate::items::verdict::{FailedCall, LastError};

/// Codes that are remembered: more than a handler gives at once.
const CODES_MAX: usize = 8;
/// A code that wasn't seen for this long begins anew.
const FORGET_AFTER_MS: i64 = 5 * 60 * 1000;

/// See the module. The latest is the last.
#[derive(Clone, Debug, Default)]
pub(in crate::execution) struct Errors {
    known: Vec<LastError>,
    counted: FailedCalls,
}

impl Errors {
    pub(super) fn note(&mut self, call: &FailedCall, now: WallMs) {
        self.counted.count(call.class, call.failure.code.clone());
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

    pub(in crate::execution) fn last(&self) -> Option<&LastError> {
        self.known.last()
    }
}
