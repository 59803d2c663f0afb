//! Strong entity tags made of revisions, and `If-Match`.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::service::ServiceError;

/// The tag of a revision.
pub fn tag(revision: u64) -> (header::HeaderName, HeaderValue) {
    let value = HeaderValue::from_str(&format!("\"{revision}\""));
    (header::ETAG, value.unwrap_or_else(|_| HeaderValue::from_static("\"\"")))
}

/// The revision that `If-Match` insists on; none when it is absent or `*`.
///
/// # Errors
/// When it names a tag that no answer of ours had: then nothing can match.
pub fn expected(headers: &HeaderMap) -> Result<Option<u64>, ServiceError> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let number =
        text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).and_then(|text| text.parse().ok());
    let refusal = || ServiceError::EtagMismatch(format!("no revision has the tag {text}"));
    number.map(Some).ok_or_else(refusal)
}
