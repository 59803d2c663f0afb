//! Errors as RFC 9457 problems: what, why, what to try, and a page each at `/problems/{slug}`.

pub(crate) mod pages;

use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::service::{FieldFault, ServiceError};

/// The number of a request, in its answer and in the node's log.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

use StatusCode as S;

/// Of each kind, in the order of [`Slug::ALL`]: the last part of its `type`, the status, the title, and what to try when
/// the problem itself doesn't know.
const FACTS: [(&str, S, &str, &str); 29] = [
    (
        "invalid-request",
        S::BAD_REQUEST,
        "Invalid request",
        "look at `errors`",
    ),
    (
        "unauthenticated",
        S::UNAUTHORIZED,
        "Authentication required",
        "send `Authorization: Bearer wrk_…` with a token that is neither expired nor revoked",
    ),
    (
        "forbidden",
        S::FORBIDDEN,
        "Permission denied",
        "ask an administrator for a token with the role",
    ),
    (
        "foreign-host",
        S::FORBIDDEN,
        "Host not allowed",
        "call the node by an address that it listens on, or add the name to `http.allowed_hosts`",
    ),
    (
        "foreign-page",
        S::FORBIDDEN,
        "Cross-origin request refused",
        "ask from the node's own pages or from a program; behind a proxy, set `http.public_url`",
    ),
    (
        "not-found",
        S::NOT_FOUND,
        "Not found",
        "GET the list of its kind, such as `/v1/tasks`, for what there is",
    ),
    (
        "method-not-allowed",
        S::METHOD_NOT_ALLOWED,
        "Method not allowed",
        "look at `/openapi.json` for the methods of this path",
    ),
    (
        "item-not-recorded",
        S::NOT_FOUND,
        "No record of this item",
        "items that went well have no row; the task's counters say how many did",
    ),
    (
        "wrong-state",
        S::CONFLICT,
        "Not allowed in this state",
        "one of the `allowed` actions",
    ),
    ("conflict", S::CONFLICT, "Conflict", "read `detail`"),
    ("name-taken", S::CONFLICT, "Name already taken", "another name"),
    (
        "no-capacity",
        S::CONFLICT,
        "Not enough node capacity",
        "a rate of at most `max_rate`, or stop another task",
    ),
    (
        "stale-start",
        S::CONFLICT,
        "The start is over",
        "use the token and number of the present start",
    ),
    (
        "etag-mismatch",
        S::PRECONDITION_FAILED,
        "Changed since it was read",
        "read it again, then change what you see",
    ),
    (
        "validation-failed",
        S::UNPROCESSABLE_ENTITY,
        "Validation failed",
        "look at `errors`",
    ),
    (
        "business-rejected",
        S::UNPROCESSABLE_ENTITY,
        "Rejected by the business",
        "do what the business says in `detail`, or ask its owner",
    ),
    (
        "check-failed",
        S::UNPROCESSABLE_ENTITY,
        "Handler breaks the contract",
        "look at `check_report`; `?check=skip` registers it all the same",
    ),
    (
        "idempotency-key-reused",
        S::UNPROCESSABLE_ENTITY,
        "Idempotency key reused",
        "a new Idempotency-Key for a new request",
    ),
    (
        "idempotency-in-progress",
        S::CONFLICT,
        "Same request in progress",
        "send it again soon",
    ),
    (
        "idempotency-key-required",
        S::BAD_REQUEST,
        "Idempotency key required",
        "send `Idempotency-Key` with a value of your own, such as a UUID",
    ),
    (
        "payload-too-large",
        S::PAYLOAD_TOO_LARGE,
        "Payload too large",
        "a smaller body; items belong in an upload",
    ),
    (
        "unsupported-media-type",
        S::UNSUPPORTED_MEDIA_TYPE,
        "Unsupported media type",
        "send `Content-Type: application/json`, or what `/openapi.json` says of this route",
    ),
    (
        "too-many-requests",
        S::TOO_MANY_REQUESTS,
        "Too many requests",
        "wait as `Retry-After` says",
    ),
    (
        "overloaded",
        S::SERVICE_UNAVAILABLE,
        "Node overloaded",
        "send it again as `Retry-After` says, or to another node",
    ),
    (
        "upload-quota",
        S::CONFLICT,
        "Upload quota exceeded",
        "DELETE uploads and tasks that nobody needs any more, or ask for a higher http.upload_quota",
    ),
    (
        "store-unavailable",
        S::SERVICE_UNAVAILABLE,
        "Store unavailable",
        "send it again as `Retry-After` says; nothing that was acknowledged is lost",
    ),
    (
        "node-silent",
        S::BAD_GATEWAY,
        "Node did not answer",
        "ask that node itself, or look at it with `windrow node list`; what it was asked for may have been done",
    ),
    (
        "draining",
        S::SERVICE_UNAVAILABLE,
        "Node is shutting down",
        "ask another node",
    ),
    (
        "internal",
        S::INTERNAL_SERVER_ERROR,
        "Internal error",
        "report it with the `request_id`; the node's log says more",
    ),
];

/// Every kind of problem, by the last part of its `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slug {
    /// The request can't be understood.
    InvalidRequest,
    /// The caller isn't known.
    Unauthenticated,
    /// The caller may not.
    Forbidden,
    /// The node is called by a name that it doesn't have.
    ForeignHost,
    /// A browser asks for a page of somebody else.
    ForeignPage,
    /// No such thing.
    NotFound,
    /// The path is there, the method isn't.
    MethodNotAllowed,
    /// Nothing is recorded of this item.
    ItemNotRecorded,
    /// Not in this state.
    WrongState,
    /// Something stands in its way.
    Conflict,
    /// The name belongs to another.
    NameTaken,
    /// It doesn't fit on the node.
    NoCapacity,
    /// The token belongs to an earlier start.
    StaleStart,
    /// Changed since the caller looked.
    EtagMismatch,
    /// Understood, but can't be done.
    ValidationFailed,
    /// The business said no.
    BusinessRejected,
    /// The handler breaks the contract.
    CheckFailed,
    /// The key was used for another request.
    IdempotencyKeyReused,
    /// A request with this key is being answered.
    IdempotencyInProgress,
    /// A create needs a key.
    IdempotencyKeyRequired,
    /// Too many bytes.
    PayloadTooLarge,
    /// A body of another type than the route takes.
    UnsupportedMediaType,
    /// Too many requests.
    TooManyRequests,
    /// All that there is, is taken.
    Overloaded,
    /// A business has stored as much as it may.
    UploadQuota,
    /// The store can't be reached.
    StoreUnavailable,
    /// Another node, which alone can do this, gave no answer.
    NodeSilent,
    /// The node ends.
    Draining,
    /// A bug.
    Internal,
}

impl Slug {
    /// All of them.
    pub const ALL: [Slug; 29] = [
        Slug::InvalidRequest,
        Slug::Unauthenticated,
        Slug::Forbidden,
        Slug::ForeignHost,
        Slug::ForeignPage,
        Slug::NotFound,
        Slug::MethodNotAllowed,
        Slug::ItemNotRecorded,
        Slug::WrongState,
        Slug::Conflict,
        Slug::NameTaken,
        Slug::NoCapacity,
        Slug::StaleStart,
        Slug::EtagMismatch,
        Slug::ValidationFailed,
        Slug::BusinessRejected,
        Slug::CheckFailed,
        Slug::IdempotencyKeyReused,
        Slug::IdempotencyInProgress,
        Slug::IdempotencyKeyRequired,
        Slug::PayloadTooLarge,
        Slug::UnsupportedMediaType,
        Slug::TooManyRequests,
        Slug::Overloaded,
        Slug::UploadQuota,
        Slug::StoreUnavailable,
        Slug::NodeSilent,
        Slug::Draining,
        Slug::Internal,
    ];

    /// The last part of the `type`, the status, the title, and what to try when the problem itself doesn't know.
    pub fn facts(self) -> (&'static str, StatusCode, &'static str, &'static str) {
        FACTS[self as usize]
    }
}

/// One thing that is wrong with a request.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ProblemField {
    /// Where, as a JSON pointer into the body, or the name of a parameter.
    pub pointer: String,
    /// What is wrong.
    pub detail: String,
    /// What would do.
    #[serde(rename = "try", skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// A problem (RFC 9457).
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Problem {
    /// Its kind: a page about it.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its kind in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened here.
    pub detail: String,
    /// The path that was asked for.
    pub instance: String,
    /// What to try.
    #[serde(rename = "try")]
    pub advice: Vec<String>,
    /// The request's number.
    pub request_id: String,
    /// Each fault of the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ProblemField>,
    /// More, by kind of problem: `allowed`, `max_rate`, `check_report`.
    #[serde(flatten)]
    pub more: serde_json::Map<String, serde_json::Value>,
}

impl Problem {
    /// A problem of a kind.
    pub fn new(slug: Slug, detail: impl Into<String>) -> Problem {
        let (name, status, title, advice) = slug.facts();
        Problem {
            kind: format!("/problems/{name}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            instance: String::new(),
            advice: vec![advice.to_owned()],
            request_id: String::new(),
            errors: Vec::new(),
            more: serde_json::Map::new(),
        }
    }

    fn with_fields(mut self, faults: Vec<FieldFault>) -> Problem {
        let field = |fault: FieldFault| ProblemField {
            pointer: fault.pointer,
            detail: fault.detail,
            advice: fault.advice,
        };
        self.errors = faults.into_iter().map(field).collect();
        self
    }

    fn with(mut self, name: &str, value: serde_json::Value) -> Problem {
        self.more.insert(name.to_owned(), value);
        self
    }

    fn advise(mut self, advice: String) -> Problem {
        self.advice = vec![advice];
        self
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Problem {
        let text = error.to_string();
        match error {
            ServiceError::Invalid(faults) => Problem::new(Slug::InvalidRequest, text).with_fields(faults),
            ServiceError::Unprocessable(faults) => {
                Problem::new(Slug::ValidationFailed, text).with_fields(faults)
            }
            ServiceError::Unauthenticated(_) => Problem::new(Slug::Unauthenticated, text),
            ServiceError::Forbidden(_) => Problem::new(Slug::Forbidden, text),
            ServiceError::NotFound { .. } => Problem::new(Slug::NotFound, text),
            ServiceError::ItemNotRecorded(_) => Problem::new(Slug::ItemNotRecorded, text),
            ServiceError::WrongState(refusal) => {
                Problem::new(Slug::WrongState, text).with("allowed", refusal.allowed.into())
            }
            ServiceError::FieldsRefused(faults) => Problem::new(Slug::Conflict, text).with_fields(faults),
            ServiceError::Conflict { advice, .. } => Problem::new(Slug::Conflict, text).advise(advice),
            ServiceError::Overtaken(_) => {
                Problem::new(Slug::Conflict, text).advise("the same again".to_owned())
            }
            ServiceError::NameTaken(_) => Problem::new(Slug::NameTaken, text),
            ServiceError::NoCapacity { max_rate, .. } => {
                let rates = max_rate
                    .into_iter()
                    .map(|(node, rate)| (node, rate.into()))
                    .collect();
                Problem::new(Slug::NoCapacity, text).with("max_rate", serde_json::Value::Object(rates))
            }
            ServiceError::StaleStart(_) => Problem::new(Slug::StaleStart, text),
            ServiceError::EtagMismatch(_) => Problem::new(Slug::EtagMismatch, text),
            ServiceError::BusinessRejected(_) => Problem::new(Slug::BusinessRejected, text),
            ServiceError::CheckFailed { report, .. } => {
                Problem::new(Slug::CheckFailed, text).with("check_report", report)
            }
            ServiceError::KeyReused => Problem::new(Slug::IdempotencyKeyReused, text),
            ServiceError::KeyInProgress => Problem::new(Slug::IdempotencyInProgress, text),
            ServiceError::KeyRequired => Problem::new(Slug::IdempotencyKeyRequired, text),
            ServiceError::TooLarge(_) => Problem::new(Slug::PayloadTooLarge, text),
            ServiceError::UploadQuota(_) => Problem::new(Slug::UploadQuota, text),
            ServiceError::StoreUnavailable => Problem::new(Slug::StoreUnavailable, text),
            ServiceError::PeerSilent(_) => Problem::new(Slug::NodeSilent, text),
            ServiceError::Draining => Problem::new(Slug::Draining, text),
            ServiceError::Internal(cause) => {
                tracing::error!(error = cause, "a request failed");
                Problem::new(Slug::Internal, text)
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(())).into_response();
        // The body is written by `stamp::stamp`, which knows the request's number.
        response.extensions_mut().insert(self);
        response
    }
}

/// No route has this path.
pub async fn no_such_route(request: Request) -> Problem {
    let path = request.uri().path();
    let problem = Problem::new(Slug::NotFound, format!("there is no path {path}"));
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
        format!("{} takes no {}", request.uri().path(), request.method()),
    )
}

/// A handler panicked: a bug, told to the log and as a problem.
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
    fn every_kind_has_its_own_facts() {
        for (at, slug) in Slug::ALL.into_iter().enumerate() {
            assert_eq!(slug as usize, at, "{slug:?} stands elsewhere in the table");
        }
        let names: std::collections::BTreeSet<&str> = FACTS.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names.len(), FACTS.len());
        assert_eq!(Slug::Draining.facts().0, "draining");
        assert_eq!(Slug::NoCapacity.facts().1, StatusCode::CONFLICT);
    }
}
