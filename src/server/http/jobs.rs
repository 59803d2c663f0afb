//! The router of a node of jobs, and the same on a port of this machine for one browser.

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

/// The path that lists the jobs of a node: an array of [`BegunJob`].
pub const PATH: &str = "/jobs";

/// A job that a process has begun.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BegunJob {
    /// The task's number, `t42`.
    pub task: String,
    /// The job's name.
    pub name: String,
}

/// [`PATH`] answers `jobs`; all else is the façade, which is asked for when the first such request comes.
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

/// The member of a query that holds a [`Token`].
const TOKEN: &str = "token";
/// Random bytes of a token.
const TOKEN_BYTES: usize = 24;

/// A secret that lets one browser in.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Another one.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn random() -> std::io::Result<Token> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The query of an address by which a browser is let in.
    pub fn query(&self) -> String {
        format!("{TOKEN}={}", self.0)
    }

    /// The cookie that stands for the token. Cookies know no ports, so each page has a name of its own.
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

/// Compares two secrets in a time that says nothing of the place where they differ.
fn is_same(one: &str, other: &str) -> bool {
    Sha256::digest(one) == Sha256::digest(other)
}

/// Lets nobody to a router but the browser that brought the token once: it is known by a cookie from then on.
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

/// The same address without the token, which is neither in the history nor told to other pages then.
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

/// The page of a visitor without the token.
const STRANGER: &str =
    "<h1>The page of a job</h1>\n<p>Open the whole address that <code>windrow run --page</code> printed.</p>";
