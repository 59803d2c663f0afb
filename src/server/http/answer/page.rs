//! Pages of lists: keyset cursors, opaque to callers.

use axum::Json;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::service::ServiceError;

/// Items of a page when the caller names no number.
pub const LIMIT_DEFAULT: u32 = 50;
/// Items of the largest page.
pub const LIMIT_MAX: u32 = 500;

/// One page of a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Page<T> {
    /// The things.
    pub items: Vec<T>,
    /// Where the next page begins; null on the last one.
    pub next_cursor: Option<String>,
}

/// Which page of a list that has no other filter.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Items of a page.
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// The number of things that a caller wants.
///
/// # Errors
/// When it is 0 or above [`LIMIT_MAX`].
pub fn limit(asked: Option<u32>) -> Result<u32, ServiceError> {
    match asked {
        None => Ok(LIMIT_DEFAULT),
        Some(number @ 1..=LIMIT_MAX) => Ok(number),
        Some(number) => Err(ServiceError::invalid(
            "limit",
            format!("{number} is not within 1 and {LIMIT_MAX}"),
        )),
    }
}

/// The key behind a cursor.
///
/// # Errors
/// When no page of this list gave it out.
pub fn read<T: DeserializeOwned>(cursor: Option<&str>) -> Result<Option<T>, ServiceError> {
    let Some(cursor) = cursor else { return Ok(None) };
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    let key = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    key.map(Some)
        .ok_or_else(|| ServiceError::invalid("cursor", "this is no cursor of this list; begin without one"))
}

/// The cursor of a key.
pub fn write<T: Serialize>(key: &T) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(key).unwrap_or_default())
}

/// A page of at most `limit` things out of `limit + 1` that were asked for; `key` is what the cursor says of the last.
pub fn page<T, K: Serialize>(mut items: Vec<T>, limit: u32, key: impl Fn(&T) -> K) -> Page<T> {
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next_cursor = if more {
        items.last().map(|last| write(&key(last)))
    } else {
        None
    };
    Page { items, next_cursor }
}

/// `Link: <…>; rel="next"` for a page of this path and these parameters.
pub fn link(path: &str, query: &str, cursor: &str) -> Option<(header::HeaderName, HeaderValue)> {
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.starts_with("cursor="))
        .collect();
    let query: String = kept.iter().map(|pair| format!("{pair}&")).collect();
    let text = format!("<{path}?{query}cursor={cursor}>; rel=\"next\"");
    Some((header::LINK, HeaderValue::from_str(&text).ok()?))
}

/// The answer that a page is, with the link to the next one.
pub fn answer<T: Serialize>(uri: &Uri, page: Page<T>) -> Response {
    let query = uri.query().unwrap_or_default();
    let link = page
        .next_cursor
        .as_deref()
        .and_then(|cursor| link(uri.path(), query, cursor));
    let mut response = Json(page).into_response();
    if let Some((name, value)) = link {
        response.headers_mut().insert(name, value);
    }
    response
}
