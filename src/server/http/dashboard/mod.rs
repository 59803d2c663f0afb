//! The dashboard: static files for a browser, which gets all data from the API. Nothing here knows tasks.
//!
//! `/` and every other path without a route serve the same page if the client accepts HTML; the page reads its view
//! from the URL. Paths of the API are excluded, so that a program with a mistyped path gets a 404.

mod file;
#[cfg(test)]
mod guide;
pub(super) mod pages;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::response::{IntoResponse, Response};

pub use self::pages::Pages;
use crate::http::answer::html;
use crate::http::front::App;
use crate::http::guard::headers::text;
use crate::http::problem;

/// Path prefix of the dashboard's files.
const FILES: &str = "/ui/";
/// First path segments that never serve the page.
const NO_PAGES: [&str; 12] = [
    "actors",
    "docs",
    "favicon.ico",
    "healthz",
    "internal",
    "metrics",
    "openapi.json",
    "problems",
    "readyz",
    "ui",
    "v1",
    "version",
];

/// Get the front page
///
/// The dashboard, for people who open the node's address in a browser.
#[utoipa::path(
    get, path = "/", operation_id = "front", tag = "node", security(()),
    responses((status = 200, description = "A page", body = String, content_type = "text/html"))
)]
pub(crate) async fn front(State(app): State<App>, method: Method, headers: HeaderMap) -> Response {
    let page = is_on(&app)
        .then(|| app.front.pages.index(&method, &headers))
        .flatten();
    page.unwrap_or_else(|| html::page("a node", FRONT))
}

/// Handles requests to paths without a route.
pub(super) async fn other(State(app): State<App>, request: Request) -> Response {
    let page = is_on(&app).then(|| page(&app.front.pages, &request)).flatten();
    match page {
        Some(page) => page,
        None => problem::no_such_route(request).await.into_response(),
    }
}

fn is_on(app: &App) -> bool {
    app.service.config().dashboard.enabled
}

/// Returns the dashboard file or page for a path, `None` if it is neither.
fn page(pages: &Pages, request: &Request) -> Option<Response> {
    let (method, path, headers) = (request.method(), request.uri().path(), request.headers());
    if !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    if let Some(name) = path.strip_prefix(FILES) {
        return pages.file(name, method, headers);
    }
    let is_shown = is_page(path) && text(headers, header::ACCEPT).contains("text/html");
    is_shown.then(|| pages.index(method, headers)).flatten()
}

/// Returns true if a path may be a page of the dashboard. The dashboard itself knows which pages exist.
pub(super) fn is_page(path: &str) -> bool {
    let first = path.split(['/', '?']).nth(1);
    first.is_some_and(|first| !NO_PAGES.contains(&first))
}

/// Front page while the dashboard is disabled.
const FRONT: &str = r#"<h1>A node of Windrow</h1>
<p>Calls handlers once for each item of a task, at exactly the rate you set.</p>
<ul>
<li><a href="/docs">API</a>: how to get a token, the first calls and all routes;
as a document: <a href="/openapi.json">/openapi.json</a></li>
<li><a href="/problems">Problems</a>: what each error means and how to fix it</li>
<li><a href="/healthz">/healthz</a>, <a href="/readyz">/readyz</a>, <a href="/version">/version</a>; <code>/metrics</code> and
<code>/actors</code> from this machine or with a token</li>
</ul>
<p>On the command line: <code>windrow ctx add here --server URL --token-file FILE</code>, then <code>windrow task</code>.</p>
"#;

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn answered(method: &str, path: &str, accept: &str) -> Option<String> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, accept);
        let request = request.body(Body::empty()).expect("a request");
        let response = page(&Pages::default(), &request)?;
        let kind = response.headers()[header::CONTENT_TYPE].to_str().expect("text");
        Some(kind.split(';').next().unwrap_or_default().to_owned())
    }

    #[test]
    fn what_a_browser_shows_is_the_page_and_what_a_program_asks_for_is_not() {
        let browser = "text/html,application/xhtml+xml,*/*;q=0.8";
        for path in [
            "/tasks/t1",
            "/tasks?status=running",
            "/nodes/n1",
            "/v1x",
            "/docsx",
        ] {
            assert_eq!(
                answered("GET", path, browser).as_deref(),
                Some("text/html"),
                "{path}"
            );
            assert_eq!(answered("GET", path, "application/json"), None, "{path}");
            assert_eq!(answered("POST", path, browser), None, "{path}");
        }
        for path in [
            "/v1",
            "/v1/nothing",
            "/docs/x",
            "/problems/x/y",
            "/internal/v1",
            "/metrics/",
            "/ui",
            "/ui/x.js",
        ] {
            assert_eq!(answered("GET", path, browser), None, "{path}");
        }
        for (path, kind) in [
            ("/ui/app/main.js", "text/javascript"),
            ("/ui/app.css", "text/css"),
        ] {
            assert_eq!(answered("HEAD", path, "*/*").as_deref(), Some(kind), "{path}");
        }
    }

    #[test]
    fn every_path_of_the_api_is_told_from_pages() {
        let (_, document) = crate::http::routes().split_for_parts();
        for path in document.paths.paths.keys().filter(|path| *path != "/") {
            let first = path.split('/').nth(1).unwrap_or_default();
            assert!(NO_PAGES.contains(&first), "{path}");
        }
    }
}
