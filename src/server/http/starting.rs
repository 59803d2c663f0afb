//! The façade of a node that starts. It listens before it has its database, so that a port that is taken is told before anything
//! is touched; whoever asks meanwhile hears what it waits for, and not nothing.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::routing::get;

use super::answer::response;
use super::guard::outside;
use super::problem::{Problem, Slug};

/// What is answered until the node serves: 200 from `/healthz`, 503 from everything else. `base` is `http.public_url`.
pub fn facade(base: String) -> Router {
    let wait = || async { Problem::new(Slug::StoreUnavailable, outside::STARTS) };
    let complete = move |request: Request, next: Next| {
        let base = base.clone();
        async move { response::completed(&base, request, next).await }
    };
    Router::new()
        .route("/healthz", get(outside::healthz))
        .route("/readyz", get(outside::not_yet))
        .fallback(wait)
        .layer(from_fn(complete))
}
