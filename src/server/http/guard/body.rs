//! Extractors for JSON bodies and query parameters; errors are problems that point to the invalid member.

use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use utoipa::IntoParams;

use crate::http::guard::headers;
use crate::http::problem::{Problem, Slug};
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::WallMs;
use windrow_core::settings::json::Object;
use windrow_core::text::{QUOTE_CHARS_MAX, cut};

/// Largest body parsed on the request's own thread, which takes some tens of microseconds. Unit: bytes.
const SMALL_BYTES_MAX: usize = 64 << 10;
/// Permit to parse a large body; only one is parsed at a time.
static TURN: Semaphore = Semaphore::const_new(1);

/// JSON body with a JSON content type; without that check, a form on any web page could submit one. Unknown members
/// are rejected with their pointer; an empty body counts as `{}`.
#[derive(Clone, Debug)]
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send + 'static> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Problem> {
        let kind = headers::content_type(request.headers());
        if !matches!(
            kind.as_str(),
            "" | "application/json" | "application/merge-patch+json"
        ) {
            let text = format!("the body is {}, not JSON", cut(&kind, QUOTE_CHARS_MAX));
            return Err(Problem::new(Slug::UnsupportedMediaType, text));
        }
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|_| Problem::new(Slug::InvalidRequest, "the body can't be read"))?;
        if kind.is_empty() && !bytes.is_empty() {
            let text = "the body has no Content-Type";
            return Err(Problem::new(Slug::UnsupportedMediaType, text));
        }
        Ok(Body(worked(bytes, parse).await??))
    }
}

/// Runs work on a body. Large bodies go to a blocking thread, one at a time, so that the threads shared by requests
/// and calls aren't held up.
///
/// # Errors
/// `Internal` if the work panics.
pub(crate) async fn worked<T: Send + 'static>(
    bytes: Bytes,
    work: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> Result<T, ServiceError> {
    if bytes.len() <= SMALL_BYTES_MAX {
        return Ok(work(&bytes));
    }
    // The semaphore is never closed.
    let _turn = TURN.acquire().await;
    let done = tokio::task::spawn_blocking(move || work(&bytes)).await;
    done.map_err(|error| ServiceError::Internal(format!("reading a body failed: {error}")))
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
        .map_err(|_| ServiceError::invalid("", "unexpected data after the JSON value"))?;
    Ok(value)
}

/// Formats a path into a body as a JSON pointer.
pub(crate) fn pointer(path: &serde_path_to_error::Path) -> String {
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

/// Query parameters. Undocumented ones are rejected earlier, in `guard/parameters.rs`.
#[derive(Clone, Debug)]
pub struct Params<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Params<T>, Problem> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        let Query(value) = read.map_err(|rejection| {
            // Message of axum and serde: "Failed to deserialize query string: limit: invalid digit found in string".
            let text = rejection.body_text();
            let why = text.rsplit_once("query string: ").map_or(&*text, |(_, why)| why);
            Problem::from(ServiceError::invalid("query", why))
        })?;
        Ok(Params(value))
    }
}

/// Reason for a deletion, as a query parameter because DELETE has no body.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReasonQuery {
    /// Reason, for the audit log.
    #[serde(default, deserialize_with = "api::reason")]
    #[param(max_length = 1000)]
    pub(crate) reason: Option<String>,
}

/// Parses the reason from a member that was taken out of a body.
///
/// # Errors
/// `Invalid` if the member isn't a valid reason.
pub fn reason_of(member: Option<serde_json::Value>) -> Result<Option<String>, ServiceError> {
    let value = member.unwrap_or_default();
    api::reason(value).map_err(|error| ServiceError::invalid("/reason", error.to_string()))
}

/// Parses a time from a body or query.
///
/// # Errors
/// If it isn't RFC 3339, is before 1970, or is after the year 9999 in UTC.
pub fn time(pointer: &str, text: &str) -> Result<WallMs, ServiceError> {
    WallMs::from_rfc3339(text).map_err(|error| {
        let fault = FieldFault::new(pointer, error.to_string());
        ServiceError::Invalid(vec![fault.advise("RFC 3339, such as 2026-11-20T17:02:11Z")])
    })
}

/// Parses an optional time.
///
/// # Errors
/// Same as [`time()`].
pub fn time_option(pointer: &str, text: Option<&String>) -> Result<Option<WallMs>, ServiceError> {
    text.map(|text| time(pointer, text)).transpose()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn a_time_is_one_that_an_answer_can_show() {
        for sound in [
            "1970-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999Z",
            "2026-11-20T17:02:11+01:00",
        ] {
            assert!(time("/at", sound).is_ok(), "{sound}");
        }
        for wrong in [
            "9999-12-31T23:59:59-01:00",
            "1970-01-01T00:00:00+01:00",
            "10000-01-01T00:00:00Z",
            "2026-11-20",
        ] {
            assert!(time("/at", wrong).is_err(), "{wrong}");
        }
    }

    /// On one thread: were a body read there, nobody could tell its reading to go on.
    #[tokio::test]
    async fn a_large_body_is_read_aside_and_one_at_a_time() {
        let large = Bytes::from(vec![b' '; SMALL_BYTES_MAX + 1]);
        let (begin, begun) = oneshot::channel();
        let (go_on, told) = std::sync::mpsc::channel();
        let first = tokio::spawn(worked(large.clone(), move |_| {
            begin.send(()).expect("somebody waits");
            told.recv_timeout(Duration::from_secs(10)).is_ok()
        }));
        begun.await.expect("it is being read");
        let (is_read, seen) = (Arc::new(AtomicBool::new(false)), Duration::from_millis(50));
        let reading = is_read.clone();
        let mut second = tokio::spawn(worked(large, move |_| reading.store(true, Ordering::Relaxed)));
        let early = tokio::time::timeout(seen, &mut second).await;
        assert!(
            early.is_err() && !is_read.load(Ordering::Relaxed),
            "two at a time"
        );
        go_on.send(()).expect("it waits");
        assert!(first.await.expect("ended").expect("read"), "it was told to go on");
        second.await.expect("ended").expect("read");
    }
}
