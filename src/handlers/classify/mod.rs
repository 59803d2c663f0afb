//! Interpretation of HTTP responses: the status table of `docs/handlers.md` as one pure function.
//!
//! Never performs I/O. Success needs a 2xx with an empty body, or with a body whose JSON says so.

mod limits;
mod pointer;

use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION};
use hyper::http::StatusCode;
use serde::Deserialize;

use super::wire::{self, BAD_REPLY, bad_reply, quote};
use windrow_core::business::LimitsFrom;
use windrow_core::ids::{ItemIndex, WallMs};
use windrow_core::items::verdict::{Failure, FailureClass};
use windrow_core::pilot::headers::Limits;
use windrow_engine::ports::handling::handler::{CallFailure, CallItems, Reply};

pub use limits::{PAUSE_MAX, WAIT_MAX, limits, pause, wait};
pub use pointer::{NotAPointer, Pointer};

/// Response that arrived completely (or, if its body decides nothing, as far as it came).
#[derive(Debug)]
pub struct Answer {
    /// HTTP status of the response.
    pub status: StatusCode,
    /// Headers of the response, including `Retry-After`.
    pub headers: HeaderMap,
    /// Bytes of the response body.
    pub body: bytes::Bytes,
}

/// Parts of the request that decide how its response is read.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Items of the call.
    pub items: &'a CallItems,
    /// Item of a single callback; `None` for a batched one.
    pub single: Option<ItemIndex>,
    /// Location of the result in the body.
    pub pointer: &'a Pointer,
    /// Source of the limits that the handler describes.
    pub limits_from: LimitsFrom,
    /// Current time, for dates in headers of a response that has none of its own.
    pub now: WallMs,
}

/// Returns true if the body decides what the response means; of other bodies, only the beginning is quoted.
pub fn needs_body(status: StatusCode) -> bool {
    status.is_success() || matches!(status.as_u16(), 400 | 409 | 422)
}

/// Interprets a response by its status, headers and body.
pub fn classify(answer: &Answer, asked: Asked<'_>) -> Reply {
    let limits = match asked.limits_from {
        // A success waits for nothing.
        LimitsFrom::Off if answer.status.is_success() => Limits::default(),
        from => limits(&answer.headers, from, asked.now),
    };
    meaning(answer, asked, &limits).with_limits(limits)
}

fn meaning(answer: &Answer, asked: Asked<'_>, limits: &Limits) -> Reply {
    let failed = |failure| Reply::Failed(Box::new(failure));
    let tried_again = |class, hint| {
        let (failure, after) = (refusal(answer, hint), wait(limits));
        failed(CallFailure::Failed {
            class,
            failure,
            after,
        })
    };
    let rejected = |hint| failed(CallFailure::Rejected(refusal(answer, hint)));
    match answer.status.as_u16() {
        200..=299 => on_success(answer, asked).unwrap_or_else(|why| failed(CallFailure::BadReply(why))),
        429 => failed(overloaded(answer, limits)),
        502 | 503 => {
            let hint = "the handler or a proxy in front of it is unavailable; this may be temporary";
            tried_again(FailureClass::Unavailable, hint)
        }
        409 if is_stale_epoch(answer) => failed(CallFailure::Fenced),
        400 | 422 => on_unprocessable(answer, asked, limits).unwrap_or_else(failed),
        410 => {
            let hint = "it is gone for good; to continue, give the task another URL";
            failed(CallFailure::Gone(refusal(answer, hint)))
        }
        401 | 403 => {
            let hint = "it refused the credentials; set `authorization` in the handler's headers \
                 (`windrow run`: --header 'authorization: Bearer …')";
            rejected(hint)
        }
        404 => rejected("nothing at this path; check the URL"),
        405 => rejected("the handler must accept POST at this URL"),
        501 => rejected("the handler doesn't implement this request; check the URL"),
        415 => rejected("the handler must accept content-type application/json"),
        300..=399 => failed(CallFailure::Rejected(redirected(answer))),
        status => {
            // 4xx blames the request; 408, 425 and 5xx say nothing about what was done.
            let is_fault = (400..500).contains(&status) && !matches!(status, 408 | 425);
            let class = if is_fault {
                FailureClass::Faulty
            } else {
                FailureClass::Unclear
            };
            tried_again(class, "the attempt failed; see the handler's log")
        }
    }
}

fn overloaded(answer: &Answer, limits: &Limits) -> CallFailure {
    let failure = refusal(answer, "the handler is overloaded; the whole task pauses");
    let after = pause(limits);
    CallFailure::BackPressure { after, failure }
}

fn on_success(answer: &Answer, asked: Asked<'_>) -> Result<Reply, Failure> {
    if answer.body.is_empty() {
        return Ok(Reply::AllOk);
    }
    if let Some(encoding) = encoding(answer) {
        let why = format!("the reply has content-encoding {encoding:?}; send it uncompressed or as gzip");
        return Err(Failure::new(BAD_REPLY, why));
    }
    if is_page(answer) {
        let why = format!(
            "the reply {} is a web page, not a result; check the URL. If it is a login page, set \
             `authorization` in the handler's headers",
            quote(&answer.body)
        );
        return Err(Failure::new(BAD_REPLY, why));
    }
    read(answer, asked)
}

fn read(answer: &Answer, asked: Asked<'_>) -> Result<Reply, Failure> {
    let part = asked
        .pointer
        .find(&answer.body)
        .map_err(|why| bad_reply(why, &answer.body))?;
    match asked.single {
        Some(index) => wire::parse_single(part, index),
        None => wire::parse_batch(part, asked.items),
    }
}

/// Handles 400 and 422: returns the result in the body if there is one, otherwise asks for another attempt (400) or
/// none (422).
fn on_unprocessable(answer: &Answer, asked: Asked<'_>, limits: &Limits) -> Result<Reply, CallFailure> {
    if encoding(answer).is_none() && has_result(answer, asked) {
        return read(answer, asked).map_err(CallFailure::BadReply);
    }
    if answer.status == StatusCode::UNPROCESSABLE_ENTITY {
        let hint = "not retried; to change that, answer with a body that has `result`";
        return Err(CallFailure::Final(refusal(answer, hint)));
    }
    let after = wait(limits);
    Err(CallFailure::Failed {
        class: FailureClass::Faulty,
        failure: refusal(answer, "the attempt failed; see the handler's log"),
        after,
    })
}

#[derive(Deserialize)]
struct ResultMembers {
    result: Option<serde::de::IgnoredAny>,
    results: Option<serde::de::IgnoredAny>,
    default: Option<serde::de::IgnoredAny>,
}

fn has_result(answer: &Answer, asked: Asked<'_>) -> bool {
    let Ok(part) = asked.pointer.find(&answer.body) else {
        return false;
    };
    if part.trim_ascii_start().first() != Some(&b'{') {
        return false;
    }
    let Ok(members) = serde_json::from_slice::<ResultMembers>(part) else {
        return false;
    };
    match asked.single {
        Some(_) => members.result.is_some(),
        None => members.results.is_some() || members.default.is_some(),
    }
}

#[derive(Deserialize)]
struct Problem {
    r#type: String,
}

/// Returns true for an RFC 9457 problem whose type ends in `stale-epoch`: the business has seen a newer epoch than
/// ours.
fn is_stale_epoch(answer: &Answer) -> bool {
    let is_object = answer.body.trim_ascii_start().first() == Some(&b'{');
    let problem = serde_json::from_slice::<Problem>(&answer.body);
    is_object && problem.is_ok_and(|problem| problem.r#type.ends_with("stale-epoch"))
}

/// Builds a failure that is named by the status and quotes the body.
fn refusal(answer: &Answer, hint: &str) -> Failure {
    let said = if answer.body.is_empty() || encoding(answer).is_some() {
        String::new()
    } else {
        format!(" {}", quote(&answer.body))
    };
    let status = answer.status;
    let reason = status
        .canonical_reason()
        .map(|text| format!(" {text}"))
        .unwrap_or_default();
    let message = format!("the handler answered {}{reason}{said}: {hint}", status.as_str());
    Failure::new(format!("HTTP_{}", status.as_str()), message)
}

fn redirected(answer: &Answer) -> Failure {
    let target = answer
        .headers
        .get(LOCATION)
        .map(|to| String::from_utf8_lossy(to.as_bytes()));
    match target {
        Some(target) => {
            let target: String = target.chars().take(200).collect();
            refusal(
                answer,
                &format!("redirects are not followed; if {target} is the handler, use it as the URL"),
            )
        }
        None => refusal(answer, "redirects are not followed; use the final URL"),
    }
}

/// Returns the body's encoding, unless it is plain.
fn encoding(answer: &Answer) -> Option<String> {
    let value = answer.headers.get(CONTENT_ENCODING)?;
    let value = String::from_utf8_lossy(value.as_bytes())
        .trim()
        .to_ascii_lowercase();
    (!value.is_empty() && value != "identity").then_some(value)
}

/// Returns true if the response is a web page, which no handler sends on purpose.
pub(super) fn is_page(answer: &Answer) -> bool {
    let kind = answer
        .headers
        .get(CONTENT_TYPE)
        .map(|kind| kind.as_bytes().to_ascii_lowercase());
    let says_html = kind.is_some_and(|kind| kind.starts_with(b"text/html"));
    let first = answer.body.trim_ascii_start().first();
    first == Some(&b'<') || (says_html && !matches!(first, Some(b'{' | b'[')))
}

#[cfg(test)]
mod tests;
