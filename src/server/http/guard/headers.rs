//! What requests say in headers: types of bodies, and strong entity tags made of revisions.

use axum::http::header::AsHeaderName;
use axum::http::{HeaderMap, HeaderValue, header};

/// The tag of a revision.
pub(crate) fn tag(revision: u64) -> (header::HeaderName, HeaderValue) {
    let tag = HeaderValue::from_str(&format!("\"{revision}\""));
    (header::ETAG, tag.unwrap_or(HeaderValue::from_static("\"\"")))
}

/// What no revision is.
const NO_REVISION: u64 = u64::MAX;

/// The revision that `If-Match` insists on; none when it is absent or `*`. A tag that no answer of ours had is one that
/// nothing matches: that is said after what else is wrong with the request (RFC 9110, §13.2.1).
pub(crate) fn expected(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(header::IF_MATCH)?.to_str().unwrap_or_default().trim();
    if text == "*" {
        return None;
    }
    let number = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    Some(number.and_then(|text| text.parse().ok()).unwrap_or(NO_REVISION))
}

/// The text of a header; empty where it is absent or no text.
pub(crate) fn text(headers: &HeaderMap, name: impl AsHeaderName) -> &str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

/// Whether the caller asks for an answer of this type.
pub(crate) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    text(headers, header::ACCEPT).contains(kind)
}

/// The type of the body without its parameters, in small letters; empty where it isn't said.
pub(crate) fn content_type(headers: &HeaderMap) -> String {
    let kind = text(headers, header::CONTENT_TYPE).split(';').next();
    kind.unwrap_or_default().trim().to_ascii_lowercase()
}
