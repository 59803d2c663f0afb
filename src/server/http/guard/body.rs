//! JSON bodies and query parameters whose faults are problems that say where.

use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use bytes::Bytes;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error};
use tokio::sync::Semaphore;

use crate::http::problem::{Problem, Slug};
use crate::service::{FieldFault, ServiceError, nearest};
use windrow_core::settings::json::Object;

/// The largest body that is read where it arrives: some tens of microseconds. Unit: bytes.
const SMALL_BYTES_MAX: usize = 64 << 10;
/// Whose large body is read.
static TURN: Semaphore = Semaphore::const_new(1);

/// A JSON body that says that it is one: without a type, the form of any page could be one. Unknown members are refused
/// with their pointer; an empty body is `{}`.
#[derive(Clone, Debug)]
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send + 'static> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Problem> {
        let kind = request
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let kind_is_missing = kind.is_none();
        let is_json = kind.is_none_or(|kind| {
            let kind = kind
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase();
            kind == "application/json" || kind == "application/merge-patch+json"
        });
        if !is_json {
            let text = format!("the body is {}, not JSON", kind.unwrap_or_default());
            return Err(Problem::new(Slug::UnsupportedMediaType, text));
        }
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|_| Problem::new(Slug::InvalidRequest, "the body can't be read"))?;
        if kind_is_missing && !bytes.is_empty() {
            return Err(Problem::new(
                Slug::UnsupportedMediaType,
                "the body has no Content-Type",
            ));
        }
        Ok(Body(worked(bytes, parse).await??))
    }
}

/// Works on a body. A large one has a thread for such work, one at a time: the threads that requests and calls share go on.
///
/// # Errors
/// `Internal` when the work panicked.
pub(crate) async fn worked<T: Send + 'static>(
    bytes: Bytes,
    work: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> Result<T, ServiceError> {
    if bytes.len() <= SMALL_BYTES_MAX {
        return Ok(work(&bytes));
    }
    // It is never closed.
    let _turn = TURN.acquire().await;
    let done = tokio::task::spawn_blocking(move || work(&bytes)).await;
    done.map_err(|error| ServiceError::Internal(format!("a body was not read: {error}")))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ServiceError> {
    let bytes = if bytes.iter().all(u8::is_ascii_whitespace) {
        b"{}"
    } else {
        bytes
    };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let Object(value) = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let pointer = pointer(error.path());
        let detail = error.into_inner().to_string();
        ServiceError::Invalid(vec![FieldFault::new(pointer, detail)])
    })?;
    reader
        .end()
        .map_err(|_| ServiceError::invalid("", "something follows after the JSON value"))?;
    Ok(value)
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
            Segment::Enum { variant } => format!("/{variant}"),
            Segment::Unknown => String::new(),
        })
        .collect()
}

/// Query parameters. Unknown ones are refused.
#[derive(Clone, Debug)]
pub struct Params<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Params<T>, Problem> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        let Query(value) = read.map_err(|rejection| Problem::from(query_fault(&rejection.body_text())))?;
        Ok(Params(value))
    }
}

/// What is wrong with a query, in words for people. (serde: "x: unknown field `x`, expected one of `a`, `b`".)
fn query_fault(text: &str) -> ServiceError {
    let text = text.rsplit_once("query string: ").map_or(text, |(_, why)| why);
    let mut names = text.split('`').skip(1).step_by(2).map(str::to_owned);
    let unknown = names.next().filter(|_| text.contains("unknown field `"));
    let Some(name) = unknown else {
        return ServiceError::invalid("query", text);
    };
    let known: Vec<String> = names.collect();
    let meant = nearest(&name, known.iter().cloned());
    let meant = meant.map_or_else(String::new, |meant| format!("did you mean {meant}? "));
    let fault = FieldFault::new(name, "there is no such parameter");
    ServiceError::Invalid(vec![fault.advise(format!("{meant}one of {}", known.join(", ")))])
}

/// The longest reason of a change. Unit: characters.
pub const REASON_MAX: usize = 1000;

/// Reads a member whose null means something: "take it away".
///
/// # Errors
/// When it is neither null nor such a value.
pub fn some<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(from).map(Some)
}

/// Reads the `reason` of a change: none, or a text that isn't too long.
///
/// # Errors
/// When it is something else.
pub fn reason<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    match text {
        Some(text) if text.chars().count() > REASON_MAX => Err(D::Error::custom(format!(
            "a reason has at most {REASON_MAX} characters"
        ))),
        Some(text) if text.contains('\0') => Err(D::Error::custom(
            "a reason has no NUL, which databases don't store",
        )),
        text => Ok(text),
    }
}

/// The same, of a member that was taken out of a body.
///
/// # Errors
/// When it is something else.
pub fn reason_of(member: Option<serde_json::Value>) -> Result<Option<String>, ServiceError> {
    let value = member.unwrap_or_default();
    reason(value).map_err(|error| ServiceError::invalid("/reason", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_parameter_is_named_with_the_one_that_is_meant() {
        let text = "Failed to deserialize query string: limt: unknown field `limt`, expected one of `business`, `limit`, `cursor`";
        let ServiceError::Invalid(faults) = query_fault(text) else {
            panic!("invalid")
        };
        assert_eq!(
            (faults[0].pointer.as_str(), faults[0].detail.as_str()),
            ("limt", "there is no such parameter")
        );
        let advice = faults[0].advice.as_deref();
        assert_eq!(advice, Some("did you mean limit? one of business, limit, cursor"));
        let other = query_fault("Failed to deserialize query string: limit: invalid digit found in string");
        assert_eq!(other.to_string(), "query: limit: invalid digit found in string");
    }
}
