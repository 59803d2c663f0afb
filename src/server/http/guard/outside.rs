//! What is asked by machines that know nothing of tasks: is it alive, is it ready, which version, which document.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::App;
use crate::http::document::Written;
use crate::service::health::NotReady;

/// That the process answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// Is the process alive?
#[utoipa::path(
    get, path = "/healthz", tag = "node", security(()),
    responses((status = 200, body = Health, description = "It answers; whether it can work, `/readyz` says"))
)]
pub(crate) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Why a node that starts is not ready.
pub(crate) const STARTS: &str = "the node starts: it waits for its database";

/// Whether the node can take work.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// Whether it can.
    ready: bool,
    /// What keeps it from it.
    reasons: Vec<Reason>,
    /// What it does its work without: a node is ready without Redis.
    degraded: Vec<Reason>,
}

/// What keeps a node from taking work, or makes that harder.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Reason {
    /// `draining`, `drained`, `store`, `session` or `actors`; `redis` of what is degraded.
    reason: &'static str,
    /// A sentence.
    text: String,
}

/// Can the node take work?
#[utoipa::path(
    get, path = "/readyz", tag = "node", security(()),
    responses(
        (status = 200, body = Readiness),
        (status = 503, body = Readiness, description = "It can't; `reasons` says why"),
    )
)]
pub(crate) async fn readyz(State(app): State<App>) -> Response {
    let faults = app.service.health.not_ready().await;
    let answers = !faults.iter().any(|fault| fault.slug == "store");
    let mut reasons: Vec<Reason> = Vec::new();
    if app.front.is_ending() {
        reasons.push(Reason {
            reason: "draining",
            text: "the node is shutting down".to_owned(),
        });
    } else if app.front.is_drained() || answers && app.service.cluster.stands_by().await.is_some() {
        // (A store that doesn't answer isn't asked twice: whoever watches waits for this.)
        reasons.push(Reason {
            reason: "drained",
            text: "an administrator drained the node".to_owned(),
        });
    }
    let reason = |fault: NotReady| Reason {
        reason: fault.slug,
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
        Json(Readiness {
            ready: reasons.is_empty(),
            reasons,
            degraded,
        }),
    )
        .into_response()
}

/// What a node answers while it starts: that it lives, and what it waits for.
pub(crate) async fn not_yet() -> Response {
    let reason = Reason {
        reason: "store",
        text: STARTS.to_owned(),
    };
    let readiness = Readiness {
        ready: false,
        reasons: vec![reason],
        degraded: Vec::new(),
    };
    (StatusCode::SERVICE_UNAVAILABLE, Json(readiness)).into_response()
}

/// Which program this is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Version {
    /// `windrow`.
    name: &'static str,
    /// Of the program.
    version: &'static str,
    /// Of the API.
    api: &'static str,
    /// The node's name.
    node: String,
}

/// Which version is this?
#[utoipa::path(
    get, path = "/version", tag = "node", security(()), responses((status = 200, body = Version))
)]
pub(crate) async fn version(State(app): State<App>) -> Json<Version> {
    let node = app.front.node.clone();
    Json(Version {
        name: "windrow",
        version: env!("CARGO_PKG_VERSION"),
        api: "v1",
        node,
    })
}

/// The description of this API
#[utoipa::path(
    get, path = "/openapi.json", tag = "node", security(()),
    responses((status = 200, body = serde_json::Value, description = "OpenAPI 3.1"))
)]
pub(crate) async fn openapi(Extension(written): Extension<Arc<Written>>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], written.json.clone()).into_response()
}
