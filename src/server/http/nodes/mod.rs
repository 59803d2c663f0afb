//! `/v1/nodes`: the nodes of the store, their runs and their settings. Any node answers for all.

pub(crate) mod actors;
pub(in crate::http) mod body;
pub(crate) mod cluster;
pub(crate) mod internal;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::json;

pub(super) use self::body::face;
use super::problem::HttpResult;
use crate::http::front::App;
use crate::http::guard::{Body, Call, DryRunQuery};
use crate::http::nodes::body::here;
use crate::http::nodes::body::there;
use crate::service::ServiceError;
use crate::telemetry::Filter;
use windrow_core::settings::RateLimit;
use windrow_engine::ports::ownership::peers::NodeChangeRequest;
use windrow_engine::ports::tasks::store::Write;

/// Longest log filter, in characters.
const FILTER_MAX: usize = 1024;

/// Returns all nodes, this one first.
pub(super) async fn all(app: &App) -> Result<Vec<api::Node>, ServiceError> {
    let rows = app.service.cluster.other_nodes().await?;
    let faces = app.service.cluster.faces(&rows).await;
    let mut nodes = vec![here(app).await];
    nodes.extend(rows.iter().zip(faces).map(|(row, face)| there(app, row, face)));
    Ok(nodes)
}

/// Returns a node by name.
pub(super) async fn one(app: &App, name: &str) -> Result<api::Node, ServiceError> {
    if name == app.front.node {
        return Ok(here(app).await);
    }
    let row = app.service.cluster.other_node(name).await?;
    let mut faces = app.service.cluster.faces(std::slice::from_ref(&row)).await;
    let face = faces
        .pop()
        .ok_or_else(|| ServiceError::Internal("a node was asked for nothing".to_owned()))?;
    Ok(there(app, &row, face))
}

/// List nodes
///
/// The node that responds comes first. Members that only the node itself knows are null while it can't be reached.
#[utoipa::path(
    get, path = "/v1/nodes", operation_id = "list_nodes", tag = "node", security(("bearer" = ["viewer"])),
    responses((status = 200, body = api::Page<api::Node>))
)]
pub(crate) async fn list(State(app): State<App>) -> HttpResult<Json<api::Page<api::Node>>> {
    Ok(Json(api::Page {
        items: all(&app).await?,
        next_cursor: None,
    }))
}

/// Get a node by name
#[utoipa::path(
    get, path = "/v1/nodes/{node}", operation_id = "show_node", tag = "node",
    security(("bearer" = ["viewer"])), responses((status = 200, body = api::Node))
)]
pub(crate) async fn show(State(app): State<App>, Path(name): Path<String>) -> HttpResult<Json<api::Node>> {
    Ok(Json(one(&app, &name).await?))
}

/// Change a node until its next restart
///
/// A request for another node is forwarded to it. That node records the change in the audit log with the caller's
/// name.
#[utoipa::path(
    patch, path = "/v1/nodes/{node}", operation_id = "change_node", tag = "node",
    security(("bearer" = ["admin"])), params(DryRunQuery), request_body = api::EditNode,
    responses((status = 200, body = api::Node), (status = 502, description = "node-silent"))
)]
pub(crate) async fn change(
    call: Call,
    Path(name): Path<String>,
    Body(patch): Body<api::EditNode>,
) -> HttpResult {
    let (app, write) = (&call.app, call.write(patch.reason));
    let body = if name == app.front.node {
        apply(app, patch.capacity_rate, patch.log_filter.as_deref(), &write).await?
    } else {
        let row = app.service.cluster.other_node(&name).await?;
        let wish = NodeChangeRequest {
            capacity_rate: patch.capacity_rate,
            log_filter: patch.log_filter,
            actor: write.actor.name,
            role: write.actor.role,
            source: write.actor.source.to_owned(),
            reason: write.actor.reason,
            request_id: write.actor.request_id,
            is_trial: call.is_dry,
        };
        let face = app.service.cluster.change(&row, wish).await?;
        there(app, &row, Ok(face))
    };
    Ok(call.changed(body, |body| body)?)
}

/// Changes the settings of this node.
///
/// # Errors
/// The log filter is checked before anything is changed.
pub(super) async fn apply(
    app: &App,
    capacity_rate: Option<RateLimit>,
    log_filter: Option<&str>,
    write: &Write,
) -> Result<api::Node, ServiceError> {
    let mut would = here(app).await;
    let checked = log_filter.map(|filter| check_filter(app, filter)).transpose()?;
    if let Some(rate) = capacity_rate {
        app.service.cluster.set_capacity(rate, write).await?;
        would.capacity_rate = rate.to_string();
    }
    if let Some((filter, checked)) = log_filter.zip(checked) {
        let named = |filter: Option<&str>| app.service.cluster.of_this_node(json!({ "log_filter": filter }));
        let (before, after) = (named(would.log_filter.as_deref()), named(Some(filter)));
        app.service
            .cluster
            .note(
                ("node.change", &app.service.cluster.parts.node),
                before,
                after,
                write,
            )
            .await?;
        would.log_filter = Some(filter.to_owned());
        if !write.dry_run {
            app.front.set_log(filter, checked);
        }
    }
    Ok(if write.dry_run { would } else { here(app).await })
}

fn check_filter(app: &App, filter: &str) -> Result<Filter, ServiceError> {
    if filter.chars().count() > FILTER_MAX {
        let text = format!("must be at most {FILTER_MAX} characters");
        return Err(ServiceError::invalid("/log_filter", text));
    }
    app.front
        .check_log(filter)
        .map_err(|why| ServiceError::unprocessable("/log_filter", why))
}

/// Drain a node: accept no new tasks
///
/// If other nodes share the store, running tasks are handed over to them, even if the node can't be reached right
/// now. A node on its own finishes its running tasks. The node accepts no tasks until it is undrained. `/readyz`
/// returns 503.
#[utoipa::path(
    post, path = "/v1/nodes/{node}/drain", operation_id = "drain_node", tag = "node",
    security(("bearer" = ["admin"])), params(DryRunQuery), request_body = Option<api::Reason>,
    responses((status = 202, body = api::Node))
)]
pub(crate) async fn drain(call: Call, Path(name): Path<String>, Body(body): Body<api::Reason>) -> HttpResult {
    set_drained(&call, &name, &call.write(body.reason), true).await
}

/// Undrain a node: accept tasks again
#[utoipa::path(
    post, path = "/v1/nodes/{node}/undrain", operation_id = "undrain_node", tag = "node",
    security(("bearer" = ["admin"])), params(DryRunQuery), request_body = Option<api::Reason>,
    responses((status = 202, body = api::Node))
)]
pub(crate) async fn undrain(
    call: Call,
    Path(name): Path<String>,
    Body(body): Body<api::Reason>,
) -> HttpResult {
    set_drained(&call, &name, &call.write(body.reason), false).await
}

async fn set_drained(call: &Call, name: &str, write: &Write, drained: bool) -> HttpResult {
    let (app, cluster) = (&call.app, &call.service.cluster);
    let mut node = one(app, name).await?;
    if cluster.parts.is_shared {
        cluster.request_drain(name, drained, write).await?;
    } else if app.front.is_drained() != drained {
        let shown = |drained: bool| json!({ "drained": drained }).to_string();
        let action = if drained { "node.drain" } else { "node.undrain" };
        cluster
            .note((action, name), shown(!drained), shown(drained), write)
            .await?;
        if !call.is_dry {
            app.front.set_drained(drained);
            cluster.serve_tasks(drained);
        }
    }
    if call.is_dry {
        node.state = body::wished(&node, drained);
    } else {
        node = one(app, name).await?;
    }
    Ok(call.changed(node, |node| (StatusCode::ACCEPTED, node))?)
}
