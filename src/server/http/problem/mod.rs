//! Errors as RFC 9457 problems: cause, reason and advice, with a page for each kind at `/problems/{slug}`.

pub(crate) mod pages;

use std::borrow::Cow;

use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::service::{FieldFault, ServiceError};
use windrow_core::text::{QUOTE_CHARS_MAX, cut};
use windrow_engine::ports::StoreError;

/// Request id, as found in the response and in the node's log.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

/// Result of a request handler.
pub(crate) type HttpResult<T = Response> = Result<T, Problem>;

/// Declares the kinds of problems: variant, slug, status, title, and default advice.
macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident, $slug:literal, $status:ident, $title:literal, $advice:literal;)*) => {
        /// Kind of a problem, identified by the last segment of its `type`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Slug { $($(#[$about])* $kind,)* }

        impl Slug {
            /// All kinds, in order of declaration.
            pub const ALL: &[Slug] = &[$(Slug::$kind,)*];

            /// Returns the slug, the status, the title, and the default advice.
            pub fn facts(self) -> (&'static str, StatusCode, &'static str, &'static str) {
                match self {
                    $(Slug::$kind => ($slug, StatusCode::$status, $title, $advice),)*
                }
            }
        }
    };
}

kinds! {
    /// The request can't be parsed or is invalid.
    InvalidRequest, "invalid-request", BAD_REQUEST, "Invalid request", "see `errors`";
    /// The caller is not authenticated.
    Unauthenticated, "unauthenticated", UNAUTHORIZED, "Authentication required",
        "send `Authorization: Bearer wrk_…` with a valid token";
    /// The caller lacks the required role.
    Forbidden, "forbidden", FORBIDDEN, "Permission denied",
        "ask an administrator for a token with the required role";
    /// A proxy's user has no role.
    NoRole, "no-role", FORBIDDEN, "No role on this node",
        "ask an administrator to give one of your groups a role in `auth.proxy_roles`";
    /// The `Host` header isn't a name of this node.
    ForeignHost, "foreign-host", FORBIDDEN, "Host not allowed",
        "use an address that the node listens on, or add the name to `http.allowed_hosts`";
    /// A browser sent the request for a foreign page.
    ForeignPage, "foreign-page", FORBIDDEN, "Cross-origin request refused",
        "use the node's own pages or a program; behind a proxy, set `http.public_url`";
    /// The object doesn't exist.
    NotFound, "not-found", NOT_FOUND, "Not found",
        "list the existing ones, for example with GET `/v1/tasks`";
    /// The path exists, but not with this method.
    MethodNotAllowed, "method-not-allowed", METHOD_NOT_ALLOWED, "Method not allowed",
        "see `/openapi.json` for the methods of this path";
    /// No record exists for this item.
    ItemNotRecorded, "item-not-recorded", NOT_FOUND, "No record of this item",
        "successful items have no record; see the task's counters";
    /// The action isn't allowed in the current state.
    WrongState, "wrong-state", CONFLICT, "Not allowed in this state", "use one of the `allowed` actions";
    /// The request conflicts with existing objects.
    Conflict, "conflict", CONFLICT, "Conflict", "resolve what `detail` names";
    /// The name is already in use.
    NameTaken, "name-taken", CONFLICT, "Name already taken", "choose another name";
    /// The task doesn't fit on the node.
    NoCapacity, "no-capacity", CONFLICT, "Not enough node capacity",
        "lower the rate, or stop another task";
    /// The token belongs to an earlier start.
    StaleStart, "stale-start", CONFLICT, "Outdated start", "use the token and number of the current start";
    /// The object was changed since the caller read it.
    EtagMismatch, "etag-mismatch", PRECONDITION_FAILED, "Changed since it was read",
        "read it again and repeat the change with the new `ETag`";
    /// The request is well-formed but can't be fulfilled.
    ValidationFailed, "validation-failed", UNPROCESSABLE_ENTITY, "Validation failed", "see `errors`";
    /// The business rejected the request.
    BusinessRejected, "business-rejected", UNPROCESSABLE_ENTITY, "Rejected by the business",
        "follow `detail`, or ask the owner of the business";
    /// The handler violates the contract.
    CheckFailed, "check-failed", UNPROCESSABLE_ENTITY, "Handler breaks the contract",
        "see `check_report`; `?check=skip` registers the business anyway";
    /// The idempotency key was used for another request.
    IdempotencyKeyReused, "idempotency-key-reused", UNPROCESSABLE_ENTITY, "Idempotency key reused",
        "use a new Idempotency-Key for a new request";
    /// A request with the same key is in progress.
    IdempotencyInProgress, "idempotency-in-progress", CONFLICT, "Same request in progress",
        "retry in a second";
    /// Creating this requires an idempotency key.
    IdempotencyKeyRequired, "idempotency-key-required", BAD_REQUEST, "Idempotency key required",
        "send `Idempotency-Key` with a unique value, such as a UUID";
    /// The body exceeds its size limit.
    PayloadTooLarge, "payload-too-large", PAYLOAD_TOO_LARGE, "Payload too large",
        "send a smaller body; upload large lists of items";
    /// The compressed data can't be decompressed.
    NotUnpacked, "not-unpacked", UNPROCESSABLE_ENTITY, "Compressed data can't be unpacked",
        "see `reason`; compress the data again and resend it";
    /// The route doesn't accept this content type.
    UnsupportedMediaType, "unsupported-media-type", UNSUPPORTED_MEDIA_TYPE, "Unsupported media type",
        "send `Content-Type: application/json`, or the type that `/openapi.json` names for this route";
    /// The caller has used up its share of requests.
    TooManyRequests, "too-many-requests", TOO_MANY_REQUESTS, "Too many requests",
        "wait as long as `Retry-After` says";
    /// The node's capacity for this is used up.
    Overloaded, "overloaded", SERVICE_UNAVAILABLE, "Node overloaded",
        "retry after `Retry-After`, or use another node";
    /// The open task is sealed and accepts no more items.
    TaskSealed, "task-sealed", CONFLICT, "Task is sealed",
        "append to another task: windrow task create BUSINESS --open";
    /// Too many items of the open task are waiting.
    BacklogFull, "backlog-full", TOO_MANY_REQUESTS, "Too many waiting items",
        "retry after `Retry-After`, when some are settled, or raise the task's rate";
    /// The business has used up its upload quota.
    UploadQuota, "upload-quota", CONFLICT, "Upload quota exceeded",
        "DELETE unneeded uploads and tasks, or ask for a higher http.upload_quota";
    /// The database can't be reached.
    StoreUnavailable, "store-unavailable", SERVICE_UNAVAILABLE, "Database unavailable",
        "retry after `Retry-After`; no acknowledged change is lost";
    /// The task can't be archived, so it isn't deleted.
    ArchiveFails, "archive-fails", SERVICE_UNAVAILABLE, "Task can't be archived",
        "check that the archive folder is mounted and has free space, then retry";
    /// Another node, which alone can do this, didn't respond.
    NodeSilent, "node-silent", BAD_GATEWAY, "Node did not answer",
        "send it to that node, or check it with `windrow node list`; the change may already have been made";
    /// The node is shutting down.
    Draining, "draining", SERVICE_UNAVAILABLE, "Node is shutting down", "use another node";
    /// An internal error, caused by a bug.
    Internal, "internal", INTERNAL_SERVER_ERROR, "Internal error",
        "report it with the `request_id`; the node's log has details";
}

/// Largest problem as JSON, in bytes.
const PROBLEM_BYTES_MAX: usize = 16 << 10;
/// Longest text in a problem, in characters. Each character may take six bytes in JSON.
const TEXT_CHARS_MAX: usize = 800;
const FIELD_CHARS_MAX: usize = 400;
/// Longest path or pointer, in characters.
const PLACE_CHARS_MAX: usize = 200;

fn shorten(text: &mut String, most: usize) {
    if let Cow::Owned(short) = cut(text, most) {
        *text = short;
    }
}

/// Problem to be sent as a response.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Response body of the problem.
    pub body: api::Problem,
    /// Cause of an internal error. Written only to the node's log, together with the request id.
    pub(super) cause: Option<String>,
}

impl Problem {
    /// Creates a problem of a kind.
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

    /// Sets the first missing name, if all errors are about names that don't exist.
    fn with_missing(mut self, faults: &[FieldFault]) -> Problem {
        let is_all = faults.iter().all(|fault| fault.missing.is_some());
        let first = faults.first().filter(|_| is_all);
        self.body.more.missing = first.and_then(|fault| fault.missing.clone());
        self
    }

    /// Limits the problem to [`PROBLEM_BYTES_MAX`] bytes of JSON: shortens texts and drops trailing errors. Needed
    /// because quoted text may come from anywhere.
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
            ServiceError::Overtaken(_) => return problem.advise("retry the same request".to_owned()),
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
        ServiceError::NoRole(_) => Slug::NoRole,
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
        // The body is written by `answer::response`, which knows the request id.
        response.extensions_mut().insert(self);
        response
    }
}

/// Returns the problem for an unknown path.
pub async fn no_such_route(request: Request) -> Problem {
    let path = request.uri().path();
    let problem = Problem::new(
        Slug::NotFound,
        format!("no such path: {}", cut(path, QUOTE_CHARS_MAX)),
    );
    let meant = match path {
        "/health" | "/healthcheck" | "/livez" | "/ping" => "`/healthz`",
        "/ready" => "`/readyz`",
        path if path.len() > 1 && path.ends_with('/') => "remove the slash at the end",
        _ => "see `/v1` for an overview of the API and `/docs` for all routes",
    };
    problem.advise(meant.to_owned())
}

/// Returns the problem for a method that the path doesn't have.
pub async fn no_such_method(request: Request) -> Problem {
    Problem::new(
        Slug::MethodNotAllowed,
        format!(
            "{} doesn't accept {}",
            cut(request.uri().path(), QUOTE_CHARS_MAX),
            cut(request.method().as_str(), QUOTE_CHARS_MAX)
        ),
    )
}

/// Turns a panic of a handler into an internal error, which is also logged.
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
