//! L4, the façade: HTTP in front of the [`Service`]. Decides nothing; translates.
//!
//! Each resource is one file that holds its routes, bodies and conversions. A route is registered together with its
//! OpenAPI description, and that description is where [`access`] reads who may call it: a route that doesn't say so
//! can't be called by anybody.

pub mod access;
pub mod body;
pub mod etag;
pub mod page;
pub mod problem;
pub mod server;
mod whoami;

use std::sync::Arc;

use axum::Router;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa_axum::router::OpenApiRouter;

use self::access::Scheme;
use crate::service::Service;

/// What every handler of a request is given.
#[derive(Clone)]
pub struct App {
    /// The verbs.
    pub service: Arc<Service>,
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Windrow", description = "Drives the numbered items of a task through a handler at exactly the rate it was told."),
    modifiers(&Scheme),
    tags(
        (name = "tasks", description = "One pass of a business over its items"),
        (name = "businesses", description = "Who does the work"),
        (name = "access", description = "Tokens and roles"),
    )
)]
struct Description;

/// Every route of `/v1` with its description, without state.
fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Description::openapi()).merge(whoami::routes())
}

/// The façade: a router, and the document that describes it.
pub fn facade(app: App) -> (Router, Arc<Document>) {
    let (router, document) = routes().split_for_parts();
    let document = Arc::new(document);
    let policy = Arc::new(access::Policy::of(&document));
    let router = router
        .fallback(problem::no_such_route)
        .method_not_allowed_fallback(problem::no_such_method)
        .route_layer(axum::middleware::from_fn_with_state((app.clone(), policy), access::guard))
        .layer(tower_http::catch_panic::CatchPanicLayer::custom(problem::on_panic))
        .layer(axum::middleware::from_fn(problem::stamp))
        .with_state(app);
    (router, document)
}
