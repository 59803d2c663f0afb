//! Router of a job node, and its restricted form for a single browser on a local port.

use axum::extract::Request;
use axum::http::header::{COOKIE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tower::ServiceExt;

use crate::http::answer::html;

/// Path that lists the jobs of a node, as an array of [`BegunJob`].
pub const PATH: &str = "/jobs";

/// Job started by a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BegunJob {
    /// Id of the task, such as `t42`.
    pub task: String,
    /// Name of the job in its program.
    pub name: String,
}

/// Serves `jobs` at [`PATH`] and passes everything else to the API server, which is created on the first such
/// request.
pub fn router<J, F>(jobs: J, facade: F) -> Router
where
    J: Fn() -> Vec<BegunJob> + Clone + Send + Sync + 'static,
    F: Fn() -> Router + Clone + Send + Sync + 'static,
{
    let list = move || {
        let jobs = jobs();
        async { Json(jobs) }
    };
    let other = move |request: Request| {
        let answer = facade().oneshot(request);
        async {
            let Ok(response): Result<Response, std::convert::Infallible> = answer.await;
            response
        }
    };
    Router::new().route(PATH, get(list)).fallback(other)
}

/// Query parameter that holds a [`Token`].
const TOKEN: &str = "token";
/// Random bytes in a token.
const TOKEN_BYTES: usize = 24;

/// Secret that grants access to a single browser.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Creates a random token.
    ///
    /// # Errors
    /// If the system can't provide random numbers.
    pub fn random() -> std::io::Result<Token> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Returns the URL query that lets a browser in.
    pub fn query(&self) -> String {
        format!("{TOKEN}={}", self.0)
    }

    /// Returns the cookie for the token. Cookies don't distinguish ports, so each page has its own cookie name.
    fn cookie(&self) -> String {
        format!("windrow_page_{}={}", &self.0[..8], self.0)
    }

    fn is_in(&self, headers: &HeaderMap) -> bool {
        let texts = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let mut cookies = texts.flat_map(|text| text.split(';'));
        cookies.any(|cookie| is_same(cookie.trim(), &self.cookie()))
    }
}

/// Compares two secrets in a time that doesn't reveal where they differ.
fn is_same(one: &str, other: &str) -> bool {
    Sha256::digest(one) == Sha256::digest(other)
}

/// Restricts a router to the browser that presented the token once, which is then recognized by a cookie.
pub fn for_one_browser(router: Router, token: Token) -> Router {
    router.layer(from_fn(move |request: Request, next: Next| {
        let token = token.clone();
        async move {
            let query = request.uri().query().unwrap_or_default();
            if query.split('&').any(|member| is_same(member, &token.query())) {
                return let_in(request.uri().path(), &token);
            }
            match token.is_in(request.headers()) {
                true => next.run(request).await,
                false => (StatusCode::UNAUTHORIZED, html::page("a job", STRANGER)).into_response(),
            }
        }
    }))
}

/// Sets the cookie and redirects to the same path without the token, which keeps it out of the history and of
/// `Referer` headers.
fn let_in(path: &str, token: &Token) -> Response {
    let cookie = format!("{}; Path=/; HttpOnly; SameSite=Strict", token.cookie());
    let headers = [(LOCATION, path), (SET_COOKIE, cookie.as_str())];
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_str(value).ok()));
    let mut response = StatusCode::SEE_OTHER.into_response();
    for (name, value) in headers {
        response.headers_mut().extend(value.map(|value| (name, value)));
    }
    response
}

/// Page for a visitor without the token.
const STRANGER: &str =
    "<h1>Page of a job</h1>\n<p>Open the full address printed by <code>windrow run --page</code>.</p>";
