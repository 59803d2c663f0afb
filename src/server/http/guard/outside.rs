//! Endpoints for machines that know nothing of tasks: liveness, readiness, version, OpenAPI document.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use crate::http::document::Written;
use crate::http::front::App;
use crate::service::health::NotReady;

/// Check that the process is alive
#[utoipa::path(
    get, path = "/healthz", tag = "node", security(()),
    responses((status = 200, body = api::Health, description = "The process responds; `/readyz` tells if it can work"))
)]
pub(crate) async fn healthz() -> Json<api::Health> {
    Json(api::Health {
        status: "ok".to_owned(),
    })
}

/// Readiness reason while the node starts.
pub(crate) const STARTS: &str = "the node is starting: waiting for its database";

/// Check that the node can take work
#[utoipa::path(
    get, path = "/readyz", tag = "node", security(()),
    responses(
        (status = 200, body = api::Readiness),
        (status = 503, body = api::Readiness, description = "Not ready; see `reasons`"),
    )
)]
pub(crate) async fn readyz(State(app): State<App>) -> Response {
    let faults = app.service.health.not_ready().await;
    let answers = !faults.iter().any(|fault| fault.slug == "store");
    let mut reasons: Vec<api::ReadinessReason> = Vec::new();
    if app.front.is_ending() {
        reasons.push(api::ReadinessReason {
            reason: "draining".to_owned(),
            text: "the node is shutting down".to_owned(),
        });
    } else if app.front.is_drained() || answers && app.service.cluster.stands_by().await.is_some() {
        // Don't query an unresponsive store twice: the health checker is waiting.
        reasons.push(api::ReadinessReason {
            reason: "drained".to_owned(),
            text: "an administrator has drained the node".to_owned(),
        });
    }
    let reason = |fault: NotReady| api::ReadinessReason {
        reason: fault.slug.to_owned(),
        text: fault.text,
    };
    reasons.extend(faults.into_iter().map(reason));
    let degraded = app.service.health.degraded().into_iter().map(reason).collect();
    let status = if reasons.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (
        status,
        Json(api::Readiness {
            ready: reasons.is_empty(),
            reasons,
            degraded,
        }),
    )
        .into_response()
}

/// Builds the readiness response of a node that is still starting.
pub(crate) async fn not_yet() -> Response {
    let reason = api::ReadinessReason {
        reason: "store".to_owned(),
        text: STARTS.to_owned(),
    };
    let readiness = api::Readiness {
        ready: false,
        reasons: vec![reason],
        degraded: Vec::new(),
    };
    (StatusCode::SERVICE_UNAVAILABLE, Json(readiness)).into_response()
}

/// Get the version of the node
#[utoipa::path(
    get, path = "/version", tag = "node", security(()), responses((status = 200, body = api::Version))
)]
pub(crate) async fn version(State(app): State<App>) -> Json<api::Version> {
    let node = app.front.node.clone();
    Json(api::Version {
        name: "windrow".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        api: "v1".to_owned(),
        node,
    })
}

/// Get the OpenAPI document of this API
#[utoipa::path(
    get, path = "/openapi.json", tag = "node", security(()),
    responses((status = 200, body = serde_json::Value, description = "OpenAPI 3.1"))
)]
pub(crate) async fn openapi(Extension(written): Extension<Arc<Written>>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], written.json.clone()).into_response()
}
