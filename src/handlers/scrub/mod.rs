//! Takes secrets out of what comes back: a server that says what it was sent must not make a failure, a log line or an output
//! of it.
//!
//! What holds: of a secret no eight bytes in a row are left, however they are written: as they are, with the escapes of JSON,
//! URLs and HTML (two of them over one another too), in base64 and in hexadecimal digits. A secret that is shorter is found
//! whole. What remains is text and JSON where it was: no character and no escape is cut in two.

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

/// The shortest secret. Unit: bytes. A shorter one would be taken for a part of any text, and no message could be kept
/// free of it.
pub(crate) const SECRET_BYTES_MIN: usize = 4;
/// How many escapes may lie over one another.
const DEPTH_MAX: usize = 2;

/// Finds the secrets of one handler.
pub(crate) struct Scrubber(Needles);

impl Scrubber {
    /// Looks for these secrets.
    pub(crate) fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Scrubber {
        Scrubber(Needles::new(secrets))
    }

    /// The answer with a mask for each secret.
    pub(crate) fn answer(&self, mut answer: Answer) -> Answer {
        if self.0.is_empty() {
            return answer;
        }
        if let Cow::Owned(clean) = self.bytes(&answer.body) {
            answer.body = Bytes::from(clean);
        }
        // Those that are quoted.
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

    /// The text with a mask for each secret.
    pub(crate) fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    /// The bytes with a mask for each secret.
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

    /// The failure with a mask for each secret.
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

/// The bytes with one mask in place of all that was marked without a gap.
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
