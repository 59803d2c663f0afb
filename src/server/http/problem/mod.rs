//! Errors as RFC 9457 problems: what, why, what to try, and a page each at `/problems/{slug}`.

pub(crate) mod pages;

use std::borrow::Cow;

use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::service::{FieldFault, ServiceError};
use windrow_core::text::{QUOTE_CHARS_MAX, cut};
use windrow_engine::ports::StoreError;

/// The number of a request, in its answer and in the node's log.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

/// What a handler answers.
pub(crate) type HttpResult<T = Response> = Result<T, Problem>;

/// Declares the kinds of problems: a variant, the last part of its `type`, its status, its title, and what to try when
/// the problem itself doesn't know.
macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident, $slug:literal, $status:ident, $title:literal, $advice:literal;)*) => {
        /// Every kind of problem, by the last part of its `type`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Slug { $($(#[$about])* $kind,)* }

        impl Slug {
            /// All of them.
            pub const ALL: &[Slug] = &[$(Slug::$kind,)*];

            /// The last part of the `type`, the status, the title, and what to try when the problem itself doesn't know.
            pub fn facts(self) -> (&'static str, StatusCode, &'static str, &'static str) {
                match self {
                    $(Slug::$kind => ($slug, StatusCode::$status, $title, $advice),)*
                }
            }
        }
    };
}

kinds! {
    /// The request can't be understood.
    InvalidRequest, "invalid-request", BAD_REQUEST, "Invalid request", "look at `errors`";
    /// The caller isn't known.
    Unauthenticated, "unauthenticated", UNAUTHORIZED, "Authentication required",
        "send `Authorization: Bearer wrk_…` with a token that is neither expired nor revoked";
    /// The caller may not.
    Forbidden, "forbidden", FORBIDDEN, "Permission denied", "ask an administrator for a token with the role";
    /// The node is called by a name that it doesn't have.
    ForeignHost, "foreign-host", FORBIDDEN, "Host not allowed",
        "call the node by an address that it listens on, or add the name to `http.allowed_hosts`";
    /// A browser asks for a page of somebody else.
    ForeignPage, "foreign-page", FORBIDDEN, "Cross-origin request refused",
        "ask from the node's own pages or from a program; behind a proxy, set `http.public_url`";
    /// No such thing.
    NotFound, "not-found", NOT_FOUND, "Not found",
        "GET the list of its kind, such as `/v1/tasks`, for what there is";
    /// The path is there, the method isn't.
    MethodNotAllowed, "method-not-allowed", METHOD_NOT_ALLOWED, "Method not allowed",
        "look at `/openapi.json` for the methods of this path";
    /// Nothing is recorded of this item.
    ItemNotRecorded, "item-not-recorded", NOT_FOUND, "No record of this item",
        "items that went well have no row; the task's counters say how many did";
    /// Not in this state.
    WrongState, "wrong-state", CONFLICT, "Not allowed in this state", "one of the `allowed` actions";
    /// It contradicts what there is.
    Conflict, "conflict", CONFLICT, "Conflict", "change what stands in the way";
    /// The name belongs to another.
    NameTaken, "name-taken", CONFLICT, "Name already taken", "another name";
    /// It doesn't fit on the node.
    NoCapacity, "no-capacity", CONFLICT, "Not enough node capacity",
        "a rate of at most `max_rate`, or stop another task";
    /// The token belongs to an earlier start.
    StaleStart, "stale-start", CONFLICT, "The start is over", "use the token and number of the present start";
    /// Changed since the caller looked.
    EtagMismatch, "etag-mismatch", PRECONDITION_FAILED, "Changed since it was read",
        "read it again, then change what you see";
    /// Understood, but can't be done.
    ValidationFailed, "validation-failed", UNPROCESSABLE_ENTITY, "Validation failed", "look at `errors`";
    /// The business said no.
    BusinessRejected, "business-rejected", UNPROCESSABLE_ENTITY, "Rejected by the business",
        "do what the business says in `detail`, or ask its owner";
    /// The handler breaks the contract.
    CheckFailed, "check-failed", UNPROCESSABLE_ENTITY, "Handler breaks the contract",
        "look at `check_report`; `?check=skip` registers it all the same";
    /// The key was used for another request.
    IdempotencyKeyReused, "idempotency-key-reused", UNPROCESSABLE_ENTITY, "Idempotency key reused",
        "a new Idempotency-Key for a new request";
    /// A request with this key is being answered.
    IdempotencyInProgress, "idempotency-in-progress", CONFLICT, "Same request in progress",
        "send it again soon";
    /// A create needs a key.
    IdempotencyKeyRequired, "idempotency-key-required", BAD_REQUEST, "Idempotency key required",
        "send `Idempotency-Key` with a value of your own, such as a UUID";
    /// Too many bytes.
    PayloadTooLarge, "payload-too-large", PAYLOAD_TOO_LARGE, "Payload too large",
        "a smaller body; items belong in an upload";
    /// Compressed data that can't be unpacked.
    NotUnpacked, "not-unpacked", UNPROCESSABLE_ENTITY, "Compressed data can't be unpacked",
        "compress it again and send it again; `reason` says what is wrong";
    /// A body of another type than the route takes.
    UnsupportedMediaType, "unsupported-media-type", UNSUPPORTED_MEDIA_TYPE, "Unsupported media type",
        "send `Content-Type: application/json`, or what `/openapi.json` says of this route";
    /// Too many requests.
    TooManyRequests, "too-many-requests", TOO_MANY_REQUESTS, "Too many requests",
        "wait as `Retry-After` says";
    /// All that there is, is taken.
    Overloaded, "overloaded", SERVICE_UNAVAILABLE, "Node overloaded",
        "send it again as `Retry-After` says, or to another node";
    /// An open task takes no more items.
    TaskSealed, "task-sealed", CONFLICT, "Task is sealed",
        "append to another task: windrow task create BUSINESS --open";
    /// Too many items of an open task wait.
    BacklogFull, "backlog-full", TOO_MANY_REQUESTS, "Too many items wait",
        "send them again when some are settled, as `Retry-After` says, or raise the rate of the task";
    /// A business has stored as much as it may.
    UploadQuota, "upload-quota", CONFLICT, "Upload quota exceeded",
        "DELETE uploads and tasks that nobody needs any more, or ask for a higher http.upload_quota";
    /// The store can't be reached.
    StoreUnavailable, "store-unavailable", SERVICE_UNAVAILABLE, "Database unavailable",
        "send it again as `Retry-After` says; nothing that was acknowledged is lost";
    /// A task can't be archived before it is deleted.
    ArchiveFails, "archive-fails", SERVICE_UNAVAILABLE, "Task can't be archived",
        "have an operator look whether the folder is mounted and has room, then send it again";
    /// Another node, which alone can do this, gave no answer.
    NodeSilent, "node-silent", BAD_GATEWAY, "Node did not answer",
        "ask that node itself, or look at it with `windrow node list`; what it was asked for may have been done";
    /// The node ends.
    Draining, "draining", SERVICE_UNAVAILABLE, "Node is shutting down", "ask another node";
    /// A bug.
    Internal, "internal", INTERNAL_SERVER_ERROR, "Internal error",
        "report it with the `request_id`; the node's log says more";
}

/// The largest problem as JSON. Unit: bytes.
const PROBLEM_BYTES_MAX: usize = 16 << 10;
/// The longest text of a problem, and of a fault in it: each character may take six bytes as JSON. Unit: characters.
const TEXT_CHARS_MAX: usize = 800;
const FIELD_CHARS_MAX: usize = 400;
/// The longest path or pointer. Unit: characters.
const PLACE_CHARS_MAX: usize = 200;

fn shorten(text: &mut String, most: usize) {
    if let Cow::Owned(short) = cut(text, most) {
        *text = short;
    }
}

/// A problem on its way to an answer.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The body.
    pub body: api::Problem,
    /// What a bug came from: for the node's log, which has it with the request's number, and for nobody else.
    pub(super) cause: Option<String>,
}

impl Problem {
    /// A problem of a kind.
    pub fn new(slug: Slug, detail: impl Into<String>) -> Problem {
        let (name, status, title, advice) = slug.facts();
        let body = api::Problem {
            kind: format!("/problems/{name}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            advice: vec![advice.to_owned()],
            ..api::Problem::default()
        };
        Problem { body, cause: None }
    }

    fn with_fields(mut self, faults: Vec<FieldFault>) -> Problem {
        let field = |fault: FieldFault| api::ProblemField {
            pointer: fault.pointer,
            detail: fault.detail,
            advice: fault.advice,
        };
        self.body.errors = faults.into_iter().map(field).collect();
        self
    }

    /// That it is refused for nothing but names of what isn't there: the first one.
    fn with_missing(mut self, faults: &[FieldFault]) -> Problem {
        let is_all = faults.iter().all(|fault| fault.missing.is_some());
        let first = faults.first().filter(|_| is_all);
        self.body.more.missing = first.and_then(|fault| fault.missing.clone());
        self
    }

    /// The same in at most [`PROBLEM_BYTES_MAX`] bytes as JSON. Texts are cut, and what doesn't fit at the end is left out,
    /// whoever made the problem: what it quotes may come from anywhere.
    #[must_use]
    pub(super) fn bounded(mut self) -> Problem {
        let body = &mut self.body;
        shorten(&mut body.detail, TEXT_CHARS_MAX);
        shorten(&mut body.instance, PLACE_CHARS_MAX);
        body.advice
            .iter_mut()
            .for_each(|text| shorten(text, TEXT_CHARS_MAX));
        for field in &mut body.errors {
            shorten(&mut field.pointer, PLACE_CHARS_MAX);
            shorten(&mut field.detail, FIELD_CHARS_MAX);
            field
                .advice
                .iter_mut()
                .for_each(|text| shorten(text, FIELD_CHARS_MAX));
        }
        let is_large = |body: &api::Problem| {
            serde_json::to_vec(body).map_or(usize::MAX, |json| json.len()) > PROBLEM_BYTES_MAX
        };
        while is_large(body) && body.errors.len() > 1 {
            body.errors.truncate(body.errors.len() / 2);
        }
        if is_large(body) {
            body.more = api::ProblemMore::default();
        }
        self
    }

    fn advise(mut self, advice: String) -> Problem {
        self.body.advice = vec![advice];
        self
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        ServiceError::from(error).into()
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Problem {
        let mut problem = Problem::new(slug_of(&error), error.to_string());
        let more = &mut problem.body.more;
        match error {
            ServiceError::Invalid(faults)
            | ServiceError::Unprocessable(faults)
            | ServiceError::NothingToDo(faults)
            | ServiceError::FieldsRefused(faults) => {
                return problem.with_missing(&faults).with_fields(faults);
            }
            ServiceError::Conflict { advice, .. } => return problem.advise(advice),
            ServiceError::Overtaken(_) => return problem.advise("the same again".to_owned()),
            ServiceError::WrongState(refusal) => {
                more.allowed = Some(refusal.allowed.into_iter().map(str::to_owned).collect());
            }
            ServiceError::NoCapacity { max_rate, .. } => more.max_rate = Some(max_rate.into_iter().collect()),
            ServiceError::NotUnpacked { reason, .. } => more.reason = Some(reason.to_owned()),
            ServiceError::CheckFailed { report, .. } => more.check_report = Some(report),
            ServiceError::Internal(cause) => problem.cause = Some(cause),
            _ => {}
        }
        problem
    }
}

fn slug_of(error: &ServiceError) -> Slug {
    match error {
        ServiceError::Invalid(_) => Slug::InvalidRequest,
        ServiceError::Unprocessable(_) | ServiceError::NothingToDo(_) => Slug::ValidationFailed,
        ServiceError::Unauthenticated(_) => Slug::Unauthenticated,
        ServiceError::Forbidden(_) => Slug::Forbidden,
        ServiceError::NotFound { .. } => Slug::NotFound,
        ServiceError::ItemNotRecorded(_) => Slug::ItemNotRecorded,
        ServiceError::WrongState(_) => Slug::WrongState,
        ServiceError::FieldsRefused(_)
        | ServiceError::Conflict { .. }
        | ServiceError::Overtaken(_)
        | ServiceError::FireOver => Slug::Conflict,
        ServiceError::NameTaken(_) => Slug::NameTaken,
        ServiceError::NoCapacity { .. } => Slug::NoCapacity,
        ServiceError::StaleStart(_) => Slug::StaleStart,
        ServiceError::EtagMismatch(_) => Slug::EtagMismatch,
        ServiceError::BusinessRejected(_) => Slug::BusinessRejected,
        ServiceError::CheckFailed { .. } => Slug::CheckFailed,
        ServiceError::KeyReused => Slug::IdempotencyKeyReused,
        ServiceError::KeyInProgress => Slug::IdempotencyInProgress,
        ServiceError::KeyRequired => Slug::IdempotencyKeyRequired,
        ServiceError::NotUnpacked { .. } => Slug::NotUnpacked,
        ServiceError::TooLarge(_) => Slug::PayloadTooLarge,
        ServiceError::Sealed(_) => Slug::TaskSealed,
        ServiceError::BacklogFull(_) => Slug::BacklogFull,
        ServiceError::UploadQuota(_) => Slug::UploadQuota,
        ServiceError::StoreUnavailable | ServiceError::StoreFull => Slug::StoreUnavailable,
        ServiceError::NotArchived => Slug::ArchiveFails,
        ServiceError::PeerSilent(_) => Slug::NodeSilent,
        ServiceError::Draining => Slug::Draining,
        ServiceError::Internal(_) => Slug::Internal,
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.body.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(())).into_response();
        // The body is written by `answer::response`, which knows the request's number.
        response.extensions_mut().insert(self);
        response
    }
}

/// No route has this path.
pub async fn no_such_route(request: Request) -> Problem {
    let path = request.uri().path();
    let problem = Problem::new(
        Slug::NotFound,
        format!("there is no path {}", cut(path, QUOTE_CHARS_MAX)),
    );
    let meant = match path {
        "/health" | "/healthcheck" | "/livez" | "/ping" => "`/healthz`",
        "/ready" => "`/readyz`",
        path if path.len() > 1 && path.ends_with('/') => "the same path without the slash at its end",
        _ => "`/v1` names the API's beginnings, `/docs` all of it",
    };
    problem.advise(meant.to_owned())
}

/// The path has other methods.
pub async fn no_such_method(request: Request) -> Problem {
    Problem::new(
        Slug::MethodNotAllowed,
        format!(
            "{} takes no {}",
            cut(request.uri().path(), QUOTE_CHARS_MAX),
            cut(request.method().as_str(), QUOTE_CHARS_MAX)
        ),
    )
}

/// A handler panicked: a bug, told as a problem, and with that to the log.
pub fn on_panic(panic: Box<dyn std::any::Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    Problem::from(ServiceError::Internal(format!("a request panicked: {text}"))).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_small_whatever_it_quotes() {
        let long = "\u{7}".repeat(1 << 20);
        let fault = || {
            FieldFault::new(long.clone(), long.clone())
                .advise(long.clone())
                .missing(long.clone())
        };
        for faults in [vec![fault()], vec![fault(); 50]] {
            let mut problem = Problem::from(ServiceError::Unprocessable(faults));
            problem.body.instance = long.clone();
            problem.body.more.reason = Some(long.clone());
            let problem = problem.bounded().body;
            let json = serde_json::to_string(&problem).expect("it is JSON");
            assert!(json.len() <= PROBLEM_BYTES_MAX, "{}", json.len());
            assert!(!problem.errors.is_empty() && !problem.detail.is_empty());
        }
        let mut small = Problem::new(Slug::Conflict, "a");
        small.body.more.reason = Some("b".to_owned());
        assert_eq!(small.clone().bounded().body.more, small.body.more);
    }

    #[test]
    fn every_kind_has_its_own_slug() {
        let names: std::collections::BTreeSet<&str> = Slug::ALL.iter().map(|slug| slug.facts().0).collect();
        assert_eq!(names.len(), Slug::ALL.len());
        assert_eq!(Slug::Draining.facts().0, "draining");
        assert_eq!(Slug::NoCapacity.facts().1, StatusCode::CONFLICT);
    }
}
