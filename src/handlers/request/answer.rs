//! Interpretation of responses of an API that knows nothing of Windrow: the status table of `docs/handlers.md`.

use std::sync::atomic::{AtomicBool, Ordering};

use hyper::header::{CONTENT_ENCODING, LOCATION};
use hyper::http::StatusCode;
use serde_json::value::RawValue;

use super::{RequestOptions, failed};
use crate::classify::{Answer, Pointer, limits, pause, wait};
use crate::http::fault::Fault;
use crate::wire::{BAD_REPLY, DEPTH_MAX, is_deeper_than, output_of, quote_most, shown};
use windrow_core::business::LimitsFrom;
use windrow_core::business::request::{Meaning, Meanings};
use windrow_core::ids::{ItemIndex, WallMs};
use windrow_core::items::output::Output;
use windrow_core::items::verdict::{Failure, FailureClass, Outcome, RetryAdvice};
use windrow_core::meter::class::End;
use windrow_core::pilot::headers::Limits;
use windrow_engine::ports::handling::handler::{CallFailure, ItemReplies, ItemVerdict, Reply, RunContext};

/// Maximum number of characters quoted of a response that refuses.
const HEAD_CHARS_MAX: usize = 400;

/// Reader of the responses of one run.
pub(super) struct Reader {
    statuses: Meanings,
    pointer: Pointer,
    has_pointer: bool,
    keeps_results: bool,
    limits_from: LimitsFrom,
    /// True once the API has proven to be the right one: until then, 404 means that nothing is there, and 400 and the
    /// like may blame every item.
    has_succeeded: AtomicBool,
}

impl Reader {
    pub(super) fn new(options: &RequestOptions, pointer: Pointer, context: &RunContext) -> Reader {
        Reader {
            statuses: options.spec.statuses.clone(),
            has_pointer: !options.spec.result.is_empty(),
            pointer,
            keeps_results: context.keeps_results,
            limits_from: options.limits_from,
            has_succeeded: AtomicBool::new(context.is_proven),
        }
    }

    /// Returns true if the whole body is needed, because it is the output.
    pub(super) fn needs_body(&self, status: StatusCode) -> bool {
        self.keeps_results && self.meaning(status) == Some(Meaning::Ok)
    }

    /// Returns the meaning of a status on its own, unless it is a failure of the call.
    fn meaning(&self, status: StatusCode) -> Option<Meaning> {
        let usual = status.is_success().then_some(Meaning::Ok);
        self.statuses.of(status.as_u16()).or(usual)
    }

    /// Returns the end of a call whose status was given a meaning of its own: it cost what its response says, or
    /// nothing, whatever became of the item. A 5xx that may have done work stays as it is.
    pub(super) fn end(&self, status: StatusCode) -> Option<End> {
        self.statuses.of(status.as_u16())?;
        match End::of_status(status.as_u16()) {
            End::RequestFault | End::TooMany | End::Unavailable => Some(End::RequestFault),
            // The service may have worked for it, whatever it means for the item.
            end @ (End::ServerError | End::TimedOut) => Some(end),
            _ => None,
        }
    }

    /// Interprets a response for its item.
    pub(super) fn read(&self, answer: &Answer, index: ItemIndex, now: WallMs) -> Reply {
        let limits = limits(&answer.headers, self.limits_from, now);
        self.result(answer, index, &limits).with_limits(limits)
    }

    fn result(&self, answer: &Answer, index: ItemIndex, limits: &Limits) -> Reply {
        let refusal = Refusal { answer };
        match self.meaning(answer.status) {
            Some(Meaning::Ok) => self.on_success(refusal, index),
            Some(Meaning::Skip) => {
                self.has_succeeded.store(true, Ordering::Relaxed);
                one(index, ItemVerdict::Settled(Outcome::Skipped))
            }
            Some(Meaning::Retry) => {
                let failure = refusal.failure("this status is set to be retried");
                let advice = RetryAdvice::Retry { after: wait(limits) };
                one(index, ItemVerdict::Failed { failure, advice })
            }
            None => failed(self.refused(refusal, limits)),
        }
    }

    /// Handles an output that is too large to be read: a success without it, unless only a part of it is wanted.
    pub(super) fn too_big(&self, index: ItemIndex, bytes_max: usize) -> Result<Reply, Fault> {
        if self.has_pointer {
            return Err(Fault::TooBig(bytes_max));
        }
        self.has_succeeded.store(true, Ordering::Relaxed);
        let output = Output::TooLarge(bytes_max.saturating_add(1));
        Ok(one(index, ItemVerdict::SucceededWith(output)))
    }

    fn on_success(&self, refusal: Refusal<'_>, index: ItemIndex) -> Reply {
        if !self.keeps_results {
            self.has_succeeded.store(true, Ordering::Relaxed);
            return Reply::AllOk;
        }
        match self.output(refusal) {
            Ok(output) => {
                self.has_succeeded.store(true, Ordering::Relaxed);
                one(index, ItemVerdict::SucceededWith(output))
            }
            Err(why) => failed(CallFailure::BadReply(Failure::new(BAD_REPLY, why))),
        }
    }

    fn output(&self, refusal: Refusal<'_>) -> Result<Output, String> {
        if let Some(encoding) = refusal.encoding() {
            return Err(format!(
                "the response has content-encoding {encoding:?}, so its output can't be read; only gzip \
                 and identity can"
            ));
        }
        let body = &refusal.answer.body;
        if body.trim_ascii().is_empty() && !self.has_pointer {
            return Ok(Output::of_json("null"));
        }
        let part = self.pointer.find(body).map_err(|why| {
            format!(
                "the response {} has no output: {why}",
                quote_most(body, HEAD_CHARS_MAX)
            )
        })?;
        let json = serde_json::from_slice::<&RawValue>(part).ok();
        let fit = json.filter(|json| !is_deeper_than(json.get(), DEPTH_MAX));
        Ok(match fit {
            Some(json) => Output::of_json(json.get()),
            None => output_of(part),
        })
    }

    fn refused(&self, refusal: Refusal<'_>, limits: &Limits) -> CallFailure {
        let tried_again = |class, hint| CallFailure::Failed {
            class,
            failure: refusal.failure(hint),
            after: wait(limits),
        };
        let rejected = |hint: &str| CallFailure::Rejected(refusal.failure(hint));
        match refusal.answer.status.as_u16() {
            429 => CallFailure::BackPressure {
                after: pause(limits),
                failure: refusal.failure("the API asks for fewer calls"),
            },
            502 | 503 => tried_again(
                FailureClass::Unavailable,
                "the API is unavailable; this may be temporary",
            ),
            408 | 425 | 500 | 504..=599 => {
                tried_again(FailureClass::Unclear, "the call may or may not have taken effect")
            }
            401 | 403 => rejected("the API refused the credentials; check the request's headers and secrets"),
            407 => rejected("the proxy requires credentials"),
            404 if !self.has_succeeded.load(Ordering::Relaxed) => rejected(
                "nothing at this path; check the URL. If a missing item needs no work, use --skip 404",
            ),
            405 => rejected("the API doesn't accept this method at this URL"),
            415 => rejected("the API doesn't accept this type of body; set `content-type` with a header"),
            501 => rejected("the API doesn't implement this request; check method and URL"),
            200..=399 => CallFailure::Rejected(refusal.redirected()),
            // The request itself may be wrong, for all items: ten of these before a success stop the task.
            _ if !self.has_succeeded.load(Ordering::Relaxed) => tried_again(
                FailureClass::Faulty,
                "the API rejected this item, or every request is wrong: nothing has succeeded yet",
            ),
            _ => CallFailure::Final(refusal.failure("the API rejected this item")),
        }
    }
}

fn one(index: ItemIndex, verdict: ItemVerdict) -> Reply {
    Reply::Items(Box::new(ItemReplies {
        verdicts: vec![(index, verdict)],
        ..ItemReplies::default()
    }))
}

/// Response that is no success, to be described in words.
#[derive(Clone, Copy)]
struct Refusal<'a> {
    answer: &'a Answer,
}

impl Refusal<'_> {
    /// Builds a failure that is named by the status and begins with the API's own words.
    fn failure(self, hint: &str) -> Failure {
        let status = self.answer.status;
        let reason = status
            .canonical_reason()
            .map(|text| format!(" {text}"))
            .unwrap_or_default();
        let body = &self.answer.body;
        let said = if body.trim_ascii().is_empty() || self.encoding().is_some() {
            String::new()
        } else {
            format!(" {}", quote_most(body, HEAD_CHARS_MAX))
        };
        let message = format!("the API answered {}{reason}{said}: {hint}", status.as_str());
        Failure::new(format!("HTTP_{}", status.as_str()), message)
    }

    fn redirected(self) -> Failure {
        let target = self.answer.headers.get(LOCATION);
        match target {
            Some(target) => {
                let target: String = shown(target.as_bytes()).chars().take(200).collect();
                self.failure(&format!(
                    "redirects are not followed; if {target} is correct, use it as the URL"
                ))
            }
            None => self.failure("redirects are not followed; use the final URL"),
        }
    }

    /// Returns the body's encoding, unless it is plain.
    fn encoding(self) -> Option<String> {
        let value = self.answer.headers.get(CONTENT_ENCODING)?;
        let value = String::from_utf8_lossy(value.as_bytes())
            .trim()
            .to_ascii_lowercase();
        (!value.is_empty() && value != "identity").then_some(value)
    }
}
