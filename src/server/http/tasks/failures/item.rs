//! `/v1/tasks/{task}/items/{index}`: record of a single item.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use serde_json::value::RawValue;

use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::http::problem::{HttpResult, Problem};
use crate::http::tasks::failures::show_failure;
use crate::http::tasks::path::{PathTask, path_param};
use crate::service::ServiceError;
use crate::service::failures::item_data::Members;
use crate::service::failures::{ItemStory, state_word};
use windrow_core::ids::{INDEX_MAX, ItemIndex};
use windrow_core::life::SKIPPED_BY_OPERATOR;
use windrow_engine::ports::tasks::failure_list::RecordedItem;
use windrow_engine::ports::tasks::store::TaskView;

/// Item index from the path.
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

/// Get an item.
///
/// Returns its failed attempts and its current state. For items that settled without a failure only counters are
/// kept, so the response is `item-not-recorded`, unless the task keeps results and has one for the item.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/items/{index}", tag = "failures", operation_id = "show_item",
    security(("bearer" = ["viewer", "business"])),
    params(("index" = u64, Path, description = "0-based index of the item", example = 3817)),
    responses((status = 200, body = api::Item))
)]
pub(crate) async fn item(
    State(app): State<App>,
    PathTask(task): PathTask,
    Index(index): Index,
) -> HttpResult<Json<api::Item>> {
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
    let plain = |state| api::Item {
        index: index.0,
        key: keys.of(index, origin.flatten()),
        trace_id: keys.trace(index, origin.flatten()),
        state,
        skip: is_skipped.then_some(SKIPPED_BY_OPERATOR.to_owned()),
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
        None => plain("succeeded".to_owned()),
        Some(ItemStory::Pending) => plain("pending".to_owned()),
        Some(ItemStory::Excluded) => plain("excluded".to_owned()),
        Some(ItemStory::InWindow) => plain("in_window".to_owned()),
        Some(ItemStory::Recorded(shown)) => api::Item {
            state: state_word(shown.item.state).to_owned(),
            attempts: shown.item.attempts,
            charged: shown.item.charged,
            due_at: shown.item.due_at.map(rfc3339),
            timeline: timeline(&shown.item),
            failure: shown.item.code.is_some().then(|| show_failure(*shown, &keys)),
            ..plain("".to_owned())
        },
    }))
}

/// Returns the output of an item if it was kept.
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

/// Returns the recorded attempts. Older rows have none; for them, only the last failure is known.
fn timeline(item: &RecordedItem) -> Vec<api::ItemAttempt> {
    let recorded = item
        .history
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok());
    let last = |code: &String| api::ItemAttempt {
        attempt: item.attempts,
        at_ms: item.last_at.0,
        code: code.clone(),
        ..Default::default()
    };
    recorded.unwrap_or_else(|| item.code.iter().map(last).collect())
}
