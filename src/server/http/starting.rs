//! API server of a starting node. Listens before the database is connected, so that a port conflict is reported
//! before anything is touched, and clients learn what the node waits for.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::routing::get;

use super::answer::response;
use super::guard::outside;
use super::problem::{Problem, Slug};

/// Builds the router used until the node serves: 200 from `/healthz`, 503 for everything else. `base` is
/// `http.public_url`.
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
