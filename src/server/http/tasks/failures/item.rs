//! `/v1/tasks/{task}/items/{index}`: what is known of one item.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::FailureBody;
use crate::http::App;
use crate::http::answer::time::rfc3339;
use crate::http::problem::{HttpResult, Problem};
use crate::http::tasks::path::{PathTask, path_param};
use crate::service::ServiceError;
use crate::service::failures::item_data::Members;
use crate::service::failures::{ItemStory, state_word};
use windrow_core::ids::{INDEX_MAX, ItemIndex};
use windrow_core::life::SKIPPED_BY_OPERATOR;
use windrow_engine::ports::tasks::failure_list::RecordedItem;
use windrow_engine::ports::tasks::store::TaskView;

/// What is known of one item.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ItemBody {
    /// The item.
    index: u64,
    /// Its key: what its handler gets with every attempt.
    key: String,
    /// Its trace: the trace id in the `traceparent` of each of its calls.
    trace_id: String,
    /// `pending`, `in_window` (dispatched or about to be, never failed so far), `parked`, `abandoned`, `excluded`; `succeeded`
    /// where what it came to was kept.
    state: &'static str,
    /// `skipped_by_operator`, where people want it skipped: without a call, unless one is out.
    #[serde(skip_serializing_if = "Option::is_none")]
    skip: Option<&'static str>,
    /// Attempts made, as far as they are recorded.
    attempts: u32,
    /// Those that count against `max_attempts`: not those that an outage excuses, say.
    charged: u32,
    /// When the next attempt is due; only when parked.
    #[schema(format = DateTime)]
    due_at: Option<String>,
    /// The last failure; only when it failed.
    failure: Option<FailureBody>,
    /// Its failed attempts, oldest first.
    timeline: Vec<Value>,
    /// What it carries; null where it carries nothing, and where it can't be shown.
    #[schema(value_type = Option<Value>)]
    data: Option<Box<RawValue>>,
    /// Why its data can't be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    data_missing: Option<String>,
    /// What it came to, of a task that keeps results.
    #[schema(value_type = Option<Value>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Box<RawValue>>,
}

/// The number in the path.
pub(crate) struct Index(ItemIndex);

impl FromRequestParts<App> for Index {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Index, Problem> {
        let text = path_param(parts, app, "index").await?;
        let number = text.parse::<u64>().ok().filter(|number| *number <= INDEX_MAX);
        let missing = || ServiceError::NotFound {
            what: "item",
            name: text.clone(),
        };
        Ok(Index(ItemIndex(number.ok_or_else(missing)?)))
    }
}

/// One item.
///
/// What became of an item: its failed attempts and where it stands. Of items that were settled and never failed only the
/// counters are kept: they are answered `item-not-recorded`, unless the task keeps results and the item has one.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/items/{index}", tag = "failures", operation_id = "show_item",
    security(("bearer" = ["viewer", "business"])),
    params(("index" = u64, Path, description = "The item's 0-based index", example = 3817)),
    responses((status = 200, body = ItemBody))
)]
pub(crate) async fn item(
    State(app): State<App>,
    PathTask(task): PathTask,
    Index(index): Index,
) -> HttpResult<Json<ItemBody>> {
    let output = kept_output(&app, &task, index).await?;
    let story = match &output {
        Some(_) => None,
        None => Some(app.service.failures.item(&task, index).await?),
    };
    let failures = &app.service.failures;
    let keys = failures.keys(&task).await?;
    let origin = failures.origins(&task, vec![index]).await?.into_iter().next();
    let carried = failures.item_data(&task, &Members::All, &[index]).await?;
    let carried = carried.into_iter().next().unwrap_or_default();
    let is_skipped = task.skips.contains(index) && story.as_ref().is_some_and(ItemStory::may_be_open);
    let plain = |state| ItemBody {
        index: index.0,
        key: keys.of(index, origin.flatten()),
        trace_id: keys.trace(index, origin.flatten()),
        state,
        skip: is_skipped.then_some(SKIPPED_BY_OPERATOR),
        attempts: 0,
        charged: 0,
        due_at: None,
        failure: None,
        timeline: Vec::new(),
        data: carried.data,
        data_missing: carried.missing,
        output,
    };
    Ok(Json(match story {
        None => plain("succeeded"),
        Some(ItemStory::Pending) => plain("pending"),
        Some(ItemStory::Excluded) => plain("excluded"),
        Some(ItemStory::InWindow) => plain("in_window"),
        Some(ItemStory::Recorded(shown)) => ItemBody {
            state: state_word(shown.item.state),
            attempts: shown.item.attempts,
            charged: shown.item.charged,
            due_at: shown.item.due_at.map(rfc3339),
            timeline: timeline(&shown.item),
            failure: shown.item.code.is_some().then(|| FailureBody::new(*shown, &keys)),
            ..plain("")
        },
    }))
}

/// What an item came to, if that was kept.
async fn kept_output(
    app: &App,
    task: &TaskView,
    index: ItemIndex,
) -> Result<Option<Box<RawValue>>, ServiceError> {
    let json = app.service.results.output(task, index).await?;
    let raw = json.map(|json| RawValue::from_string(json.into()));
    raw.transpose()
        .map_err(|error| ServiceError::Internal(error.to_string()))
}

/// The recorded attempts; of older rows, which have none, only the last failure is known.
fn timeline(item: &RecordedItem) -> Vec<Value> {
    let recorded = item
        .history
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok());
    let last = |code: &String| json!({"attempt": item.attempts, "at_ms": item.last_at.0, "code": code});
    recorded.unwrap_or_else(|| item.code.iter().map(last).collect())
}
