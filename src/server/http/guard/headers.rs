//! Request headers: content types, and strong ETags made from revisions.

use axum::http::header::AsHeaderName;
use axum::http::{HeaderMap, HeaderValue, header};

/// Returns the ETag header of a revision.
pub(crate) fn tag(revision: u64) -> (header::HeaderName, HeaderValue) {
    let tag = HeaderValue::from_str(&format!("\"{revision}\""));
    (header::ETAG, tag.unwrap_or(HeaderValue::from_static("\"\"")))
}

/// Value that no revision ever has.
const NO_REVISION: u64 = u64::MAX;

/// Returns the revision required by `If-Match`, `None` if it is absent or `*`. A foreign tag becomes a revision that
/// never matches, so that the 412 is reported only after other errors of the request (RFC 9110, §13.2.1).
pub(crate) fn expected(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(header::IF_MATCH)?.to_str().unwrap_or_default().trim();
    if text == "*" {
        return None;
    }
    let number = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    Some(number.and_then(|text| text.parse().ok()).unwrap_or(NO_REVISION))
}

/// Returns the text of a header; empty if it is missing or not text.
pub(crate) fn text(headers: &HeaderMap, name: impl AsHeaderName) -> &str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

/// Returns true if the caller accepts this media type.
pub(crate) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    text(headers, header::ACCEPT).contains(kind)
}

/// Returns the content type in lower case, without parameters; empty if missing.
pub(crate) fn content_type(headers: &HeaderMap) -> String {
    let kind = text(headers, header::CONTENT_TYPE).split(';').next();
    kind.unwrap_or_default().trim().to_ascii_lowercase()
}
