//! `Idempotency-Key`: a POST repeated with the same key gets the response of the first one.
//!
//! A key belongs to a caller (a token, not its name), its business and a path, and lives 24 hours. Only successful
//! responses are stored: a rejected request changed nothing and may be repeated. Secrets that a response shows once
//! are not stored. Uploads are streams, which can't be compared, so their keys are ignored.

use axum::Extension;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::http::front::App;
use crate::http::guard::body::worked;
use crate::http::guard::caller::Caller;
use crate::http::guard::dry_run;
use crate::http::guard::headers;
use crate::http::paths::{APPENDS, SESSION, UPLOADS};
use crate::http::problem::{HttpResult, Problem, Slug};
use crate::service::ServiceError;
use windrow_engine::ports::access::idempotency::{KeyState, StoredResponse};

/// Name of the request header.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Response header that marks a replayed response.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Longest key, in bytes.
const KEY_BYTES_MAX: usize = 255;
/// Age after which an unanswered request counts as lost: its response could not be stored. Longer than any request
/// may take. If the node died, its keys are free as soon as the node's session is fenced. Unit: milliseconds.
const STALE_AFTER_MS: i64 = 180_000;
/// Routes that create something; with `http.require_idempotency_key` they require a key.
const CREATES: [&str; 6] = [
    "/v1/tasks",
    "/v1/tasks/{task}/clone",
    "/v1/tasks/{task}/redrives",
    "/v1/tasks/{task}/replays",
    "/v1/businesses",
    "/v1/tokens",
];
/// Response members that are shown only once.
const SHOWN_ONCE: [&str; 2] = ["secret", "token"];
/// Headers stored with a response.
const KEPT: [HeaderName; 3] = [header::CONTENT_TYPE, header::LOCATION, header::ETAG];

/// Key of a request, unique to its caller and path. Used for things that must be created only once even if the node
/// dies before it responds.
#[derive(Clone, Debug)]
pub(crate) struct TakenKey(pub(crate) String);

/// Middleware that stores responses of all routes. Runs inside the guard, which knows the caller.
pub(crate) async fn remember(
    State(app): State<App>,
    path: MatchedPath,
    caller: Option<Extension<Caller>>,
    mut request: Request,
    next: Next,
) -> HttpResult {
    let path = path.as_str();
    if request.method() != Method::POST || path.starts_with(UPLOADS) {
        return Ok(next.run(request).await);
    }
    let key = key_of(request.headers())?;
    if key.is_none() && app.service.config().http.require_idempotency_key && CREATES.contains(&path) {
        return Err(ServiceError::KeyRequired.into());
    }
    // A dry run's response must not be replayed to the real request.
    let key = key.filter(|_| !dry_run::is_asked(request.uri()));
    if path == APPENDS {
        // Appended items are stored with the key, in one transaction, so the response needn't be.
        let taken = key
            .zip(caller)
            .map(|(key, Extension(caller))| own_key(&caller, &key));
        request.extensions_mut().extend(taken.unwrap_or_default());
        return Ok(next.run(request).await);
    }
    match key.zip(caller) {
        Some((key, Extension(caller))) => keyed(app, caller, key, request, next).await,
        None => Ok(next.run(request).await),
    }
}

/// Combines the key with its caller, so that no other caller can have the same one.
fn own_key(caller: &Caller, key: &str) -> Extensions {
    let business = caller.business.as_deref().unwrap_or_default();
    let mut extensions = Extensions::new();
    extensions.insert(TakenKey(format!("{}\n{business}\n{key}", caller.subject)));
    extensions
}

fn key_of(headers: &HeaderMap) -> Result<Option<String>, ServiceError> {
    let mut values = headers.get_all(KEY).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    let is_one = values.next().is_none();
    if !is_one || text.is_empty() || text.len() > KEY_BYTES_MAX {
        let text = format!("must be a single key of 1 to {KEY_BYTES_MAX} visible ASCII characters");
        return Err(ServiceError::invalid("Idempotency-Key", text));
    }
    Ok(Some(text.to_owned()))
}

async fn keyed(app: App, caller: Caller, key: String, request: Request, next: Next) -> HttpResult {
    let (mut parts, body) = request.into_parts();
    // Already in memory: `intake` has read it within its limits.
    let bytes = to_bytes(body, usize::MAX).await;
    let bytes = bytes.map_err(|_| Problem::new(Slug::InvalidRequest, "the body can't be read"))?;
    let place = parts.uri.path_and_query().map(ToString::to_string);
    let business = caller.business.as_deref().unwrap_or_default();
    let scope = format!("{}\n{business}\n{}", caller.subject, place.unwrap_or_default());
    let fingerprint = fingerprint(&parts.headers, bytes.clone()).await?;
    let (keys, now) = (&app.service.idempotency, app.service.now());
    let me = app.service.supervisor().session();
    match keys
        .take_key(&scope, &key, &fingerprint, me, STALE_AFTER_MS, now)
        .await?
    {
        KeyState::New => {
            parts.extensions.insert(TakenKey(format!("{scope}\n{key}")));
            let request = Request::from_parts(parts, Body::from(bytes));
            answer(&app, &scope, &key, next.run(request).await).await
        }
        KeyState::InProgress => Err(ServiceError::KeyInProgress.into()),
        KeyState::Reused => Err(ServiceError::KeyReused.into()),
        KeyState::Answered(answer) => Ok(replayed(&answer)?),
    }
}

/// Returns a fingerprint of the content type and body; requests with the same key must have the same one.
async fn fingerprint(headers: &HeaderMap, bytes: Bytes) -> Result<String, ServiceError> {
    let kind = headers::text(headers, header::CONTENT_TYPE);
    let hash = worked(bytes, |bytes| URL_SAFE_NO_PAD.encode(Sha256::digest(bytes))).await?;
    Ok(format!("{kind}\n{hash}"))
}

/// Stores the response if the request succeeded; otherwise releases the key.
async fn answer(app: &App, scope: &str, key: &str, response: Response) -> HttpResult {
    if !response.status().is_success() {
        if let Err(error) = app.service.idempotency.free_key(scope, key).await {
            tracing::warn!(%error, "idempotency key not released; it expires in three minutes");
        }
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let broken = |_| ServiceError::Internal("the body of a response broke off".to_owned());
    let bytes = to_bytes(body, usize::MAX).await.map_err(broken)?;
    let kept = written(parts.status, &parts.headers, &bytes);
    if let Err(error) = app.service.idempotency.answer_key(scope, key, &kept).await {
        tracing::warn!(%error, "response not stored; repeats of the request are refused for three minutes");
    }
    Ok(Response::from_parts(parts, Body::from(bytes)))
}

/// Response in stored form.
#[derive(Serialize, Deserialize)]
struct Stored {
    headers: Vec<(String, String)>,
    body: String,
}

fn written(status: StatusCode, headers: &HeaderMap, body: &Bytes) -> StoredResponse {
    let kept = KEPT.iter().filter_map(|name| {
        let value = headers.get(name)?.to_str().ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    let stored = Stored {
        headers: kept.collect(),
        body: without_secrets(body),
    };
    StoredResponse {
        status: status.as_u16(),
        text: serde_json::to_string(&stored).unwrap_or_default(),
    }
}

/// Returns the body without the members that are shown only once.
fn without_secrets(body: &Bytes) -> String {
    let text = String::from_utf8_lossy(body).into_owned();
    let Ok(serde_json::Value::Object(mut members)) = serde_json::from_str(&text) else {
        return text;
    };
    let shown_once = SHOWN_ONCE
        .iter()
        .filter(|name| members.remove(**name).is_some())
        .count();
    if shown_once > 0 {
        serde_json::Value::Object(members).to_string()
    } else {
        text
    }
}

fn replayed(answer: &StoredResponse) -> Result<Response, ServiceError> {
    let damaged = |_| ServiceError::Internal("a stored response is damaged".to_owned());
    let stored: Stored = serde_json::from_str(&answer.text).map_err(damaged)?;
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let mut response = (status, stored.body).into_response();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    for (name, value) in &stored.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}

/// Documents the header and its possible problems on every POST that accepts it.
pub(crate) fn describe(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let Some(operation) = item.post.as_mut().filter(|_| takes_key(path)) else {
            continue;
        };
        operation
            .parameters
            .get_or_insert_default()
            .push(utoipa::openapi::RefOr::T(parameter()));
        for status in ["409", "422"] {
            let responses = &mut operation.responses.responses;
            responses
                .entry(status.to_owned())
                .or_insert_with(crate::http::document::problem);
        }
    }
}

fn takes_key(path: &str) -> bool {
    path != SESSION && !path.starts_with(UPLOADS)
}

fn parameter() -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(KEY_BYTES_MAX))
        .pattern(Some("^[!-~]+$"))
        .build();
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .description(Some(
            "A repeat with the same key and body returns the first response, for 24 hours",
        ))
        .schema(Some(schema))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remembered_answer_comes_back_without_what_is_shown_once() {
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, HeaderValue::from_static("/v1/tasks/t1"));
        headers.insert(header::SET_COOKIE, HeaderValue::from_static("a=b"));
        let body = Bytes::from_static(br#"{"id":"t1","secret":"whsec_x","token":"wrk_x"}"#);
        let answer = written(StatusCode::CREATED, &headers, &body);
        assert!(
            !answer.text.contains("whsec_x") && !answer.text.contains("wrk_x"),
            "{}",
            answer.text
        );
        assert!(!answer.text.contains("a=b"), "only its own headers");
        let response = replayed(&answer).expect("it was stored");
        assert_eq!(response.status(), StatusCode::CREATED);
        assert_eq!(response.headers()[header::LOCATION], "/v1/tasks/t1");
        assert_eq!(response.headers()[REPLAYED], "true");
    }

    #[test]
    fn one_visible_key_is_taken() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(KEY, HeaderValue::from_static(value));
            }
            key_of(&headers)
        };
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&["k-1"]), Ok(Some("k-1".to_owned())));
        assert!(of(&[""]).is_err() && of(&["a", "b"]).is_err());
    }
}
