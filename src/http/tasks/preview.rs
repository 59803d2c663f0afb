//! Previews: the handler is called with some items, nothing is recorded.

use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Steer;
use crate::domain::ids::ItemIndex;
use crate::http::App;
use crate::http::body::{Body, reason};
use crate::http::problem::Problem;
use crate::service::ServiceError;
use crate::service::task_preview::{ITEMS_MAX, PreviewedItem};

/// Items of a preview that names none.
const ITEMS_DEFAULT: u64 = 3;

/// Which items.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PreviewBody {
    /// Their indexes; the first three if none is named.
    #[schema(min_items = 1, max_items = 100)]
    items: Option<Vec<u64>>,
    /// Why, for the node's log.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    #[allow(dead_code, reason = "every write takes it; a preview changes nothing that an audit would show")]
    reason: Option<String>,
}

/// What the handler said.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PreviewReply {
    /// Item by item, in the order asked for.
    items: Vec<PreviewJson>,
}

/// What the handler said of an item.
#[derive(Debug, Serialize, ToSchema)]
struct PreviewJson {
    /// The item.
    index: u64,
    /// `succeeded`, `skipped`, `abandoned`, `retry`, `failed` (the contract is broken) or `not_called`.
    #[schema(value_type = String)]
    result: &'static str,
    /// Why, unless it went well.
    code: Option<String>,
    /// The same in words.
    message: Option<String>,
    /// How long the call took.
    latency_seconds: f64,
}

impl From<PreviewedItem> for PreviewJson {
    fn from(item: PreviewedItem) -> PreviewJson {
        let (code, message) =
            item.failure.map(|failure| (failure.code.into_owned(), failure.message)).unzip();
        let latency_seconds = item.took.as_secs_f64();
        PreviewJson { index: item.index.0, result: item.result, code, message, latency_seconds }
    }
}

/// Call the handler with some items of a task.
///
/// The handler is told that it is a preview. Nothing is recorded and nothing is tried again.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/preview", tag = "tasks", request_body = Option<PreviewBody>,
    params(("task" = String, Path, description = "Its number, `t42`")),
    security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, body = PreviewReply),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "conflict"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "validation-failed"),
    )
)]
pub(super) async fn preview(
    State(app): State<App>,
    steer: Steer,
    Path(text): Path<String>,
    Body(body): Body<PreviewBody>,
) -> Result<Json<PreviewReply>, Problem> {
    let task = steer.task(&app, &text).await?;
    let items = body.items.unwrap_or_else(|| (0..ITEMS_DEFAULT.min(task.total.0)).collect());
    if items.len() > ITEMS_MAX {
        let text = format!("a preview has at most {ITEMS_MAX} items");
        return Err(ServiceError::invalid("/items", text).into());
    }
    let items: Vec<ItemIndex> = items.into_iter().map(ItemIndex).collect();
    let seen = app.service.preview(&task, &items).await?;
    Ok(Json(PreviewReply { items: seen.into_iter().map(PreviewJson::from).collect() }))
}
