//! Actor tree as text or JSON: `/actors`, `/v1/nodes/{node}/actors`.

use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::http::answer::Of;
use crate::http::front::App;
use crate::http::guard::Params;
use crate::http::problem::HttpResult;
use crate::service::ServiceError;
use crate::service::node::actors::{self, ActorNode};
use windrow_core::ids::TaskId;
use windrow_engine::ports::ownership::peers::{ActorsQuery, PeerReply};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ActorsParams {
    /// `text` or `json`; default: text for `/actors`, JSON for the other route
    #[param(inline)]
    format: Option<Format>,
    /// Maximum depth below the root
    #[param(minimum = 0, maximum = 16)]
    depth: Option<u32>,
    /// Only the actors of this task
    #[param(pattern = "^t[1-9][0-9]{0,17}$")]
    task: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    Text,
    Json,
}

impl Of<ActorNode> for api::Actor {
    fn of(node: ActorNode) -> Self {
        api::Actor {
            kind: node.actor.kind.as_str().to_owned(),
            state: node.actor.activity.as_str().to_owned(),
            uptime_seconds: node.actor.uptime.as_secs_f64(),
            restarts: node.actor.restarts,
            mailbox: node.actor.mailbox,
            last_handled_seconds: node.actor.last_handled.as_secs_f64(),
            text: node.actor.text,
            path: node.actor.path,
            children: node.children.into_iter().map(api::Actor::of).collect(),
        }
    }
}

/// Get the actor tree of this node
#[utoipa::path(
    get, path = "/actors", operation_id = "own_actors", tag = "node", params(ActorsParams),
    security((), ("bearer" = ["viewer"])),
    responses(
        (status = 200, description = "Tree of actors", content((String = "text/plain"), (Vec<api::Actor> = "application/json"))),
    )
)]
pub(crate) async fn local(State(app): State<App>, Params(params): Params<ActorsParams>) -> HttpResult {
    Ok(answer(&app, &params, Format::Text)?)
}

/// Get the actor tree of a node
#[utoipa::path(
    get, path = "/v1/nodes/{node}/actors", operation_id = "node_actors", tag = "node",
    security(("bearer" = ["viewer"])), params(ActorsParams),
    responses(
        (status = 200, description = "Tree of actors", content((Vec<api::Actor> = "application/json"), (String = "text/plain"))),
        (status = 502, description = "node-silent"),
    )
)]
pub(crate) async fn of_node(
    State(app): State<App>,
    Path(name): Path<String>,
    Params(params): Params<ActorsParams>,
) -> HttpResult {
    if name == app.front.node {
        return Ok(answer(&app, &params, Format::Json)?);
    }
    let row = app.service.cluster.other_node(&name).await?;
    let (query, format) = params.read(Format::Json)?;
    let text = app.service.cluster.actors_of(&row, query).await?;
    Ok(typed(format, text))
}

impl ActorsParams {
    fn read(&self, usual: Format) -> Result<(ActorsQuery, Format), ServiceError> {
        let task = self.task.as_deref().map(str::parse::<TaskId>).transpose();
        let task = task.map_err(|_| ServiceError::invalid("task", "must be a task id such as t42"))?;
        let format = self.format.unwrap_or(usual);
        Ok((
            ActorsQuery {
                task,
                depth: self.depth,
                is_text: matches!(format, Format::Text),
            },
            format,
        ))
    }
}

fn answer(app: &App, params: &ActorsParams, usual: Format) -> Result<Response, ServiceError> {
    let (query, format) = params.read(usual)?;
    match written(app, &query) {
        PeerReply::Text(text) => Ok(typed(format, text)),
        _ => Err(ServiceError::Internal("the tree can't be serialized".to_owned())),
    }
}

fn typed(format: Format, text: String) -> Response {
    let kind = match format {
        Format::Json => "application/json",
        Format::Text => "text/plain; charset=utf-8",
    };
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Returns the formatted actor tree of this node.
pub(crate) fn written(app: &App, query: &ActorsQuery) -> PeerReply {
    let depth = query.depth.map_or(usize::MAX, |depth| depth as usize);
    let nodes = app.service.node.actors(query.task, depth);
    if query.is_text {
        return PeerReply::Text(actors::text(&nodes));
    }
    let bodies: Vec<api::Actor> = nodes.into_iter().map(api::Actor::of).collect();
    serde_json::to_string(&bodies).map_or_else(|error| PeerReply::Failed(error.to_string()), PeerReply::Text)
}
