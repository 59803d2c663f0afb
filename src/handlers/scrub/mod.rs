//! Removal of secrets from responses: if a server repeats what it was sent, that must not get into a failure, a log
//! line or an output.
//!
//! Invariants: no eight consecutive bytes of a secret are left, however they are written: as they are, with the
//! escapes of JSON, URLs and HTML (also two of them nested), in base64 and in hexadecimal digits. A secret that is
//! shorter is only found as a whole. Text and JSON remain valid: no character and no escape is cut in two.

mod needles;
mod views;

use std::borrow::Cow;

use bytes::Bytes;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, LOCATION};

use self::needles::Needles;
use self::views::View;
use crate::classify::Answer;
use windrow_core::items::verdict::Failure;
use windrow_core::template::MASK;
use windrow_engine::ports::handling::handler::CallFailure;

/// Minimum length of a secret, in bytes. A shorter one would match parts of any text, so no message could be kept
/// free of it.
pub(crate) const SECRET_BYTES_MIN: usize = 4;
/// Maximum depth of nested escapes.
const DEPTH_MAX: usize = 2;

/// Finder of the secrets of one handler.
pub(crate) struct Scrubber(Needles);

impl Scrubber {
    /// Creates a scrubber for these secrets.
    pub(crate) fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Scrubber {
        Scrubber(Needles::new(secrets))
    }

    /// Masks each secret in a response.
    pub(crate) fn answer(&self, mut answer: Answer) -> Answer {
        if self.0.is_empty() {
            return answer;
        }
        if let Cow::Owned(clean) = self.bytes(&answer.body) {
            answer.body = Bytes::from(clean);
        }
        // These headers are quoted in messages.
        for name in [LOCATION, CONTENT_ENCODING, CONTENT_TYPE] {
            let value = answer.headers.get(&name).map(HeaderValue::as_bytes);
            if let Some(Cow::Owned(clean)) = value.map(|value| self.bytes(value))
                && let Ok(clean) = HeaderValue::from_bytes(&clean)
            {
                answer.headers.insert(name, clean);
            }
        }
        answer
    }

    /// Masks each secret in a text.
    pub(crate) fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    /// Masks each secret in bytes.
    fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut marks = Vec::new();
        let mut layer = vec![View::of(bytes)];
        for depth in 0..=DEPTH_MAX {
            for view in &layer {
                self.0.mark(view, &mut marks);
            }
            if depth < DEPTH_MAX {
                layer = layer.iter().flat_map(View::decoded).collect();
            }
        }
        if marks.is_empty() {
            return Cow::Borrowed(bytes);
        }
        Cow::Owned(masked(bytes, marks))
    }

    /// Masks each secret in a failure.
    pub(crate) fn failure(&self, failure: CallFailure) -> CallFailure {
        let clean = |failure: Failure| Failure {
            message: self.text(&failure.message),
            ..failure
        };
        match failure {
            CallFailure::Failed {
                class,
                failure,
                after,
            } => CallFailure::Failed {
                class,
                failure: clean(failure),
                after,
            },
            CallFailure::BackPressure { after, failure } => CallFailure::BackPressure {
                after,
                failure: clean(failure),
            },
            CallFailure::Final(failure) => CallFailure::Final(clean(failure)),
            CallFailure::BadReply(failure) => CallFailure::BadReply(clean(failure)),
            CallFailure::Rejected(failure) => CallFailure::Rejected(clean(failure)),
            CallFailure::Unstarted(failure) => CallFailure::Unstarted(clean(failure)),
            CallFailure::Gone(failure) => CallFailure::Gone(clean(failure)),
            CallFailure::Unsendable(failure) => CallFailure::Unsendable(clean(failure)),
            other @ (CallFailure::Fenced | CallFailure::NotSent) => other,
        }
    }
}

/// Replaces each stretch that is marked without a gap by one mask.
fn masked(bytes: &[u8], mut marks: Vec<(usize, usize)>) -> Vec<u8> {
    for (from, to) in &mut marks {
        (*from, *to) = views::whole(bytes, *from, *to);
    }
    marks.sort_unstable();
    let (mut out, mut written) = (Vec::with_capacity(bytes.len()), 0);
    let mut marks = marks.into_iter().peekable();
    while let Some((from, mut to)) = marks.next() {
        while let Some((_, further)) = marks.next_if(|(next, _)| *next <= to) {
            to = to.max(further);
        }
        out.extend_from_slice(&bytes[written..from]);
        out.extend_from_slice(MASK.as_bytes());
        written = to;
    }
    out.extend_from_slice(&bytes[written..]);
    out
}

#[cfg(test)]
mod tests;
