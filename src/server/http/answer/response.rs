//! Parts common to all responses: the request id, a body for problems, and security headers for browsers. Problems
//! caused by a bug are logged here with the request id that the client sees.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::http::answer::held::{self, Account, Held};
use crate::http::front::App;
use crate::http::guard::headers;
use crate::http::problem::{Problem, RequestId, Slug};

/// Assigns each request an id and gives each problem a body, including axum's own rejections.
pub(crate) async fn complete(State(app): State<App>, request: Request, next: Next) -> Response {
    let base = app.service.config().http.public_url.clone().unwrap_or_default();
    let (is_safe, instance) = (request.method().is_safe(), request.uri().path().to_owned());
    let response = completed(&base, request, next).await;
    let id = headers::text(response.headers(), "request-id").to_owned();
    match held::counted(&app.front.bodies, is_safe, response).await {
        Ok(response) => response,
        Err(problem) => finished(problem, &base, &id, instance),
    }
}

/// Turns a problem into a response, with the node's URL, the request id and the path.
fn finished(mut problem: Problem, base: &str, id: &str, instance: String) -> Response {
    problem.body.kind.insert_str(0, base.trim_end_matches('/'));
    problem.body.request_id = id.to_owned();
    problem.body.instance = instance;
    let mut response = written(problem);
    if let Ok(value) = HeaderValue::from_str(id) {
        response.headers_mut().insert("request-id", value);
    }
    guarded(response)
}

/// Completes the response of a node at this URL: request id, problem body, security headers.
pub(crate) async fn completed(base: &str, mut request: Request, next: Next) -> Response {
    let id = uuid::Uuid::now_v7().to_string();
    request.extensions_mut().insert(RequestId(id.clone()));
    let (method, instance) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = next.run(request).await;
    if let Some(problem) = problem_of(&mut response) {
        if let Some(cause) = &problem.cause {
            tracing::error!(request_id = id, %method, path = instance, error = cause, "request failed");
        }
        let allow = response.headers_mut().remove(header::ALLOW);
        let kept = response.extensions_mut().remove::<Held>();
        let account = response.extensions_mut().remove::<Account>();
        response = finished(problem, base, &id, instance);
        kept.map(|kept| response.extensions_mut().insert(kept));
        account.map(|account| response.extensions_mut().insert(account));
        // RFC 9110, §15.5.6: a 405 must list the allowed methods.
        response
            .headers_mut()
            .extend(allow.map(|methods| (header::ALLOW, methods)));
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert("request-id", value);
    }
    guarded(response)
}

/// Extracts the problem from a response: set by a handler, or derived from a bare error status of axum.
fn problem_of(response: &mut Response) -> Option<Problem> {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        return Some(problem);
    }
    let kind = response
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let is_bare = kind.is_none_or(|kind| kind.starts_with("text/plain"));
    let slug = match response.status() {
        StatusCode::BAD_REQUEST => Slug::InvalidRequest,
        StatusCode::NOT_FOUND => Slug::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => Slug::MethodNotAllowed,
        StatusCode::PAYLOAD_TOO_LARGE => Slug::PayloadTooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Slug::UnsupportedMediaType,
        StatusCode::UNPROCESSABLE_ENTITY => Slug::ValidationFailed,
        StatusCode::INTERNAL_SERVER_ERROR => Slug::Internal,
        _ => return None,
    };
    is_bare.then(|| Problem::new(slug, "the path or a parameter is invalid for this route"))
}

fn written(problem: Problem) -> Response {
    let problem = problem.bounded().body;
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(&problem)).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    if matches!(
        status,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
    ) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Adds the security headers of every response: no content sniffing, no caching, no framing.
fn guarded(mut response: Response) -> Response {
    let wanted = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
    ];
    for (name, value) in wanted {
        response
            .headers_mut()
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use axum::Router;
    use axum::body::Body;
    use axum::middleware::from_fn;
    use axum::routing::get;
    use tower::ServiceExt;
    use tower_http::catch_panic::CatchPanicLayer;

    use super::*;
    use crate::http::problem::on_panic;
    use crate::service::ServiceError;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    async fn panics() -> StatusCode {
        panic!("the cause")
    }

    #[tokio::test]
    async fn a_bug_is_in_the_log_with_the_number_that_its_answer_gives() {
        let log = Log::default();
        let written = log.clone();
        let lines = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || written.clone());
        let _guard = tracing::subscriber::set_default(lines.finish());
        let fails = || async { Problem::from(ServiceError::Internal("the cause".to_owned())) };
        let router = Router::new()
            .route("/panics", get(panics))
            .route("/fails", get(fails))
            .layer(CatchPanicLayer::custom(on_panic))
            .layer(from_fn(|request, next| completed("", request, next)));
        for path in ["/panics", "/fails"] {
            let request = Request::get(path).body(Body::empty()).expect("a request");
            let answer = router.clone().oneshot(request).await.expect("an answer");
            let bytes = axum::body::to_bytes(answer.into_body(), 1 << 16)
                .await
                .expect("a body");
            let problem: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
            let id = problem["request_id"].as_str().expect("it has a number");
            let said = String::from_utf8(log.0.lock().expect("no panic").clone()).expect("text");
            let line = said.lines().find(|line| line.contains(id)).expect("it is told");
            assert!(
                line.contains("ERROR") && line.contains("the cause") && line.contains(path),
                "{line}"
            );
            assert!(!problem.to_string().contains("the cause"), "{problem}");
        }
    }
}
