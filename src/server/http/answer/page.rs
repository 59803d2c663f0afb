//! Paged lists with keyset cursors that are opaque to callers.

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::http::front::App;
use crate::http::guard::Params;
use crate::http::problem::Problem;
use crate::service::ServiceError;

/// Default page size, in items.
pub const LIMIT_DEFAULT: u32 = 50;
/// Largest page size, in items.
pub const LIMIT_MAX: u32 = 500;

/// Query parameters of a paged list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Number of items per page.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[param(max_length = 200)]
    cursor: Option<String>,
}

/// Page requested by a caller, for lists that are read from the store by key.
pub struct Paging<K> {
    /// Number of items per page.
    pub limit: u32,
    /// Key of the last item of the previous page.
    pub after: Option<K>,
    uri: Uri,
}

impl<K: DeserializeOwned> FromRequestParts<App> for Paging<K> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Paging<K>, Problem> {
        let Params(PageQuery { limit, cursor }) = Params::from_request_parts(parts, app).await?;
        let (limit, uri) = (limit.unwrap_or(LIMIT_DEFAULT), parts.uri.clone());
        if !(1..=LIMIT_MAX).contains(&limit) {
            let text = format!("{limit} is not between 1 and {LIMIT_MAX}");
            return Err(ServiceError::invalid("limit", text).into());
        }
        let after = cursor.as_deref().map(read).transpose()?;
        Ok(Paging { limit, after, uri })
    }
}

impl<K> Paging<K> {
    /// Returns the number of items to read: one more than the page holds, to know if another page follows.
    pub fn to_read(&self) -> u32 {
        self.limit + 1
    }

    /// Builds a page from the items read; `key` returns the cursor key of an item.
    pub fn page<T, C: Serialize>(&self, mut items: Vec<T>, key: impl Fn(&T) -> C) -> api::Page<T> {
        let more = items.len() > self.limit as usize;
        items.truncate(self.limit as usize);
        let next_cursor = items.last().filter(|_| more).map(|last| write(&key(last)));
        api::Page { items, next_cursor }
    }

    /// Builds the response for a page, with `Link: <…>; rel="next"` if another page follows.
    pub fn answer<T: Serialize>(&self, page: api::Page<T>) -> Response {
        let cursor = page.next_cursor.clone();
        let mut response = Json(page).into_response();
        let link = cursor.map(|cursor| {
            let pairs = self.uri.query().unwrap_or_default().split('&');
            let kept = pairs.filter(|pair| !pair.is_empty() && !pair.starts_with("cursor="));
            let query: String = kept.map(|pair| format!("{pair}&")).collect();
            format!("<{}?{query}cursor={cursor}>; rel=\"next\"", self.uri.path())
        });
        let link = link.and_then(|link| HeaderValue::from_str(&link).ok());
        response
            .headers_mut()
            .extend(link.map(|link| (header::LINK, link)));
        response
    }
}

fn read<K: DeserializeOwned>(cursor: &str) -> Result<K, ServiceError> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    let key = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    key.ok_or_else(|| ServiceError::invalid("cursor", "not a cursor of this list; start without one"))
}

/// Encodes a key as a cursor.
pub fn write<T: Serialize>(key: &T) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(key).unwrap_or_default())
}
