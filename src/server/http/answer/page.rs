//! Pages of lists: keyset cursors, opaque to callers.

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

/// Items of a page when the caller names no number.
pub const LIMIT_DEFAULT: u32 = 50;
/// Items of the largest page.
pub const LIMIT_MAX: u32 = 500;

/// Which page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Items of a page.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    #[param(max_length = 200)]
    cursor: Option<String>,
}

/// The page that a request asks for, where a list is read from the store by key.
pub struct Paging<K> {
    /// Items of a page.
    pub limit: u32,
    /// The key of the last item of the page before.
    pub after: Option<K>,
    uri: Uri,
}

impl<K: DeserializeOwned> FromRequestParts<App> for Paging<K> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Paging<K>, Problem> {
        let Params(PageQuery { limit, cursor }) = Params::from_request_parts(parts, app).await?;
        let (limit, uri) = (limit.unwrap_or(LIMIT_DEFAULT), parts.uri.clone());
        if !(1..=LIMIT_MAX).contains(&limit) {
            let text = format!("{limit} is not within 1 and {LIMIT_MAX}");
            return Err(ServiceError::invalid("limit", text).into());
        }
        let after = cursor.as_deref().map(read).transpose()?;
        Ok(Paging { limit, after, uri })
    }
}

impl<K> Paging<K> {
    /// How many to read: the one that the page has no room for says that another page follows.
    pub fn to_read(&self) -> u32 {
        self.limit + 1
    }

    /// The page of what was read; `key` is what the cursor says of its last item.
    pub fn page<T, C: Serialize>(&self, mut items: Vec<T>, key: impl Fn(&T) -> C) -> api::Page<T> {
        let more = items.len() > self.limit as usize;
        items.truncate(self.limit as usize);
        let next_cursor = items.last().filter(|_| more).map(|last| write(&key(last)));
        api::Page { items, next_cursor }
    }

    /// The answer that a page is, with `Link: <…>; rel="next"` to the next one.
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
    key.ok_or_else(|| ServiceError::invalid("cursor", "not a cursor of this list; begin without one"))
}

/// The cursor of a key.
pub fn write<T: Serialize>(key: &T) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(key).unwrap_or_default())
}
