//! `/v1/session`: browser sign-in with a token, and sign-out. Pages can't read the cookie, browsers don't send it
//! with requests from other sites, and it allows no writes from foreign pages
//! ([`visitor`](crate::http::guard::visitor)).

use std::net::SocketAddr;

use axum::Extension;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::http::front::App;
use crate::http::guard::Body;
use crate::http::guard::headers::text;
use crate::http::problem::{HttpResult, RequestId};

/// Name of the session cookie.
pub(in crate::http) const COOKIE: &str = "windrow_session";

/// Sign a browser in
///
/// The response sets a cookie in place of the token. It is valid until the session ends, the token is revoked or
/// expires, or `auth.session_life` is over. Writes with the cookie are accepted only from the node's own pages.
#[utoipa::path(
    post, path = "/v1/session", operation_id = "sign_in", tag = "access", security(()), request_body = api::SignInRequest,
    responses(
        (status = 204, description = "Signed in", headers(("set-cookie" = String, description = "`windrow_session`, for browsers only"))),
        (status = 401, description = "unauthenticated"), (status = 403, description = "foreign-host, foreign-page"),
        (status = 503, description = "store-unavailable, draining"),
    )
)]
pub(crate) async fn sign_in(
    State(app): State<App>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    id: Option<Extension<RequestId>>,
    headers: HeaderMap,
    Body(body): Body<api::SignInRequest>,
) -> HttpResult {
    let address = peer.map(|Extension(ConnectInfo(peer))| peer.ip().to_canonical().to_string());
    let made = app
        .service
        .access
        .sign_in(&body.token, address, number(id))
        .await?;
    let life = made
        .view
        .expires_at
        .0
        .saturating_sub(made.view.created_at.0)
        .max(0)
        / 1000;
    Ok(with_cookie(&app, &headers, &made.cookie, life))
}

/// Sign this browser out
///
/// Ends its session, if there is one, and removes the cookie.
#[utoipa::path(
    delete, path = "/v1/session", operation_id = "sign_out", tag = "access", security(()),
    responses(
        (status = 204, description = "Signed out"), (status = 403, description = "foreign-host, foreign-page"),
        (status = 503, description = "store-unavailable, draining"),
    )
)]
pub(crate) async fn sign_out(
    State(app): State<App>,
    id: Option<Extension<RequestId>>,
    headers: HeaderMap,
) -> HttpResult {
    if let Some(cookie) = cookie(&headers) {
        app.service.access.sign_out(cookie, number(id)).await?;
    }
    Ok(with_cookie(&app, &headers, "", 0))
}

fn number(id: Option<Extension<RequestId>>) -> String {
    id.map(|Extension(id)| id.0).unwrap_or_default()
}

/// Builds the response that sets the cookie for a number of seconds.
fn with_cookie(app: &App, asked: &HeaderMap, value: &str, seconds: i64) -> Response {
    let is_tls = app.service.config().http.tls_cert_file.is_some()
        // A proxy in front may terminate TLS for the node; the browser's `Origin` states the scheme it uses.
        || text(asked, header::ORIGIN).starts_with("https://");
    let secure = if is_tls { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    let mut response = StatusCode::NO_CONTENT.into_response();
    let cookie = HeaderValue::try_from(cookie).ok();
    let headers = response.headers_mut();
    headers.extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
    response
}

/// Returns the value of the session cookie; `None` if it is missing or repeated, as it's unclear which value to
/// trust.
pub(in crate::http) fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter();
    let all = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'));
    let mut own = all.filter_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='));
    let value = own.next().filter(|value| !value.is_empty());
    value.filter(|_| own.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cookie_of_the_name_is_read() {
        let read = |texts: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for text in texts {
                headers.append(header::COOKIE, HeaderValue::from_static(text));
            }
            cookie(&headers).map(str::to_owned)
        };
        assert_eq!(
            read(&["a=b; windrow_session=wss_x; c=d"]).as_deref(),
            Some("wss_x")
        );
        assert_eq!(read(&["a=b", "windrow_session=wss_x"]).as_deref(), Some("wss_x"));
        for none in [
            &[][..],
            &["windrow_session="],
            &["xwindrow_session=wss_x"],
            &["windrow_sessions=wss_x"],
            &["windrow_session=wss_x; windrow_session=wss_y"],
        ] {
            assert_eq!(read(none), None, "{none:?}");
        }
    }
}
