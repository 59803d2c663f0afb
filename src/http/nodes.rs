//! `/v1/nodes` and `/v1/cluster`: what this node is, what runs on it, and how it is steered. Today a cluster is one
//! node.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::access::Caller;
use super::body::{Body, Params, reason};
use super::dry_run::{self, DryRunQuery};
use super::page::Page;
use super::problem::Problem;
use super::time::rfc3339;
use crate::domain::settings::RateLimit;
use crate::ports::task_store::Actor;
use crate::service::ServiceError;
use crate::service::nodes::RunView;
use crate::telemetry::Filter;

/// The longest filter of the log. Unit: characters.
const FILTER_MAX: usize = 1024;

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(cluster))
        .routes(routes!(list))
        .routes(routes!(show, change))
        .routes(routes!(drain))
        .routes(routes!(undrain))
}

/// A node.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NodeBody {
    /// Its name.
    id: String,
    /// Of its program.
    #[schema(value_type = String)]
    version: &'static str,
    /// `serving`, `drained` or `draining`.
    #[schema(value_type = String)]
    state: &'static str,
    /// The sum of task rates that it may hold, such as `2000/s`, or `unlimited`.
    capacity_rate: String,
    /// How much of it is taken.
    reserved_rate: String,
    /// What a task without a rate counts as.
    unlimited_reserves: String,
    /// Whether tasks run here at all.
    run_tasks: bool,
    /// Businesses of these pools run here.
    pools: Vec<String>,
    /// As configured.
    labels: BTreeMap<String, String>,
    /// Which lines its own log has.
    log_filter: String,
    /// Tasks that wait for room, as the last look found them.
    waiting: usize,
    /// When this was true.
    last_seen: String,
    /// For how long it has served.
    uptime_seconds: u64,
    /// What runs here.
    runs: Vec<RunBody>,
}

/// What runs on a node.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunBody {
    /// The task, `t42`.
    task: String,
    /// Which part of it.
    shard: u32,
    /// The how many-th ownership of that part.
    run: u32,
}

impl From<&RunView> for RunBody {
    fn from(run: &RunView) -> RunBody {
        RunBody { task: run.shard.task.to_string(), shard: run.shard.no, run: run.run.0 }
    }
}

fn node(app: &App) -> NodeBody {
    let (config, supervisor) = (app.service.config(), app.service.supervisor());
    let room = supervisor.room();
    let up = app.service.uptime(app.front.since);
    NodeBody {
        id: app.front.node.clone(),
        version: env!("CARGO_PKG_VERSION"),
        state: app.front.state(),
        capacity_rate: config.node.capacity_rate.to_string(),
        reserved_rate: room.reserved.to_string(),
        unlimited_reserves: config.node.unlimited_reserves.to_string(),
        run_tasks: config.node.run_tasks,
        pools: config.node.pools.clone(),
        labels: config.node.labels.clone(),
        log_filter: app.front.log_filter().unwrap_or_else(|| config.log.filter.clone()),
        waiting: room.waiting,
        last_seen: rfc3339(app.service.now()),
        uptime_seconds: up.as_secs(),
        runs: supervisor.runs().iter().map(RunBody::from).collect(),
    }
}

/// That this is the node that is meant.
pub(super) fn check(app: &App, name: &str) -> Result<(), ServiceError> {
    if name == app.front.node {
        return Ok(());
    }
    Err(ServiceError::NotFound { what: "node", name: name.to_owned() })
}

/// A cluster.
#[derive(Debug, Serialize, ToSchema)]
struct ClusterBody {
    /// Of the store; the first part of every item key.
    store: String,
    /// Which database it is.
    #[schema(value_type = String)]
    database: &'static str,
    /// The nodes.
    nodes: Vec<NodeBody>,
}

/// The nodes that share a store
#[utoipa::path(
    get, path = "/v1/cluster", tag = "node", security(("bearer" = ["viewer"])),
    responses((status = 200, body = ClusterBody))
)]
async fn cluster(State(app): State<App>) -> Result<Json<ClusterBody>, Problem> {
    let store = app.service.parts.tasks.store_id().await.map_err(ServiceError::from)?;
    Ok(Json(ClusterBody {
        store: store.0,
        database: app.service.config().store.url.engine(),
        nodes: vec![node(&app)],
    }))
}

/// The nodes
#[utoipa::path(
    get, path = "/v1/nodes", tag = "node", security(("bearer" = ["viewer"])),
    responses((status = 200, body = Page<NodeBody>))
)]
async fn list(State(app): State<App>) -> Json<Page<NodeBody>> {
    Json(Page { items: vec![node(&app)], next_cursor: None })
}

/// One node
#[utoipa::path(
    get, path = "/v1/nodes/{node}", tag = "node", security(("bearer" = ["viewer"])),
    params(("node" = String, Path, description = "Its name", max_length = 64)),
    responses((status = 200, body = NodeBody), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
async fn show(State(app): State<App>, Path(name): Path<String>) -> Result<Json<NodeBody>, Problem> {
    check(&app, &name)?;
    Ok(Json(node(&app)))
}

/// What can be changed of a node until its next restart.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NodePatch {
    /// The sum of task rates that it may hold.
    #[schema(value_type = Option<String>, max_length = 80, examples("3000/s"))]
    capacity_rate: Option<RateLimit>,
    /// Which lines its own log has.
    #[schema(max_length = 1024, examples("info,windrow::actors=debug"))]
    log_filter: Option<String>,
    /// Why.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Change a node until its next restart
#[utoipa::path(
    patch, path = "/v1/nodes/{node}", tag = "node", security(("bearer" = ["admin"])),
    params(("node" = String, Path, description = "Its name", max_length = 64), DryRunQuery),
    request_body = NodePatch,
    responses(
        (status = 200, body = NodeBody),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 422, body = Problem, content_type = "application/problem+json"),
    )
)]
async fn change(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Params(query): Params<DryRunQuery>,
    Body(patch): Body<NodePatch>,
) -> Result<Response, Problem> {
    check(&app, &name)?;
    let is_dry = query.is_dry();
    let actor = caller.actor_of(patch.reason, is_dry);
    let mut would = node(&app);
    // Whatever can be refused is refused before anything is changed.
    let checked = patch.log_filter.as_deref().map(|filter| check_filter(&app, filter)).transpose()?;
    if let Some(rate) = patch.capacity_rate {
        app.service.set_capacity(rate, &actor).await?;
        would.capacity_rate = rate.to_string();
    }
    if let Some((filter, checked)) = patch.log_filter.as_ref().zip(checked) {
        let before = json!({"log_filter": would.log_filter}).to_string();
        app.service
            .note_node("node.change", before, json!({"log_filter": filter}).to_string(), &actor)
            .await?;
        would.log_filter.clone_from(filter);
        if !is_dry {
            app.front.set_log(filter, checked);
        }
    }
    Ok(if is_dry { dry_run::would(&would)? } else { Json(node(&app)).into_response() })
}

fn check_filter(app: &App, filter: &str) -> Result<Filter, ServiceError> {
    if filter.chars().count() > FILTER_MAX {
        let text = format!("it is longer than {FILTER_MAX} characters");
        return Err(ServiceError::invalid("/log_filter", text));
    }
    app.front.check_log(filter).map_err(|why| ServiceError::unprocessable("/log_filter", why))
}

/// Why a node is drained, or no longer.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DrainReason)]
struct Why {
    /// For the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Take no new tasks
///
/// What runs goes on to its end: a single node has nobody to hand it to. `/readyz` answers 503.
#[utoipa::path(
    post, path = "/v1/nodes/{node}/drain", tag = "node", security(("bearer" = ["admin"])),
    params(("node" = String, Path, description = "Its name", max_length = 64), DryRunQuery),
    request_body = Option<Why>,
    responses((status = 202, body = NodeBody), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
async fn drain(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Params(query): Params<DryRunQuery>,
    Body(why): Body<Why>,
) -> Result<Response, Problem> {
    check(&app, &name)?;
    set_drained(&app, &caller.actor_of(why.reason, query.is_dry()), true).await
}

/// Take tasks again
#[utoipa::path(
    post, path = "/v1/nodes/{node}/undrain", tag = "node", security(("bearer" = ["admin"])),
    params(("node" = String, Path, description = "Its name", max_length = 64), DryRunQuery),
    request_body = Option<Why>,
    responses((status = 202, body = NodeBody), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
async fn undrain(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Params(query): Params<DryRunQuery>,
    Body(why): Body<Why>,
) -> Result<Response, Problem> {
    check(&app, &name)?;
    set_drained(&app, &caller.actor_of(why.reason, query.is_dry()), false).await
}

async fn set_drained(app: &App, actor: &Actor, drained: bool) -> Result<Response, Problem> {
    let mut would = node(app);
    if app.front.is_drained() != drained {
        let shown = |drained: bool| json!({ "drained": drained }).to_string();
        let action = if drained { "node.drain" } else { "node.undrain" };
        app.service.note_node(action, shown(!drained), shown(drained), actor).await?;
        would.state = if drained { "drained" } else { "serving" };
        if !actor.rehearses {
            app.front.set_drained(drained);
            app.service.serve_tasks(drained);
        }
    }
    if actor.rehearses {
        return Ok(dry_run::would(&would)?);
    }
    Ok((StatusCode::ACCEPTED, Json(node(app))).into_response())
}
