//! `/v1/tasks/{task}/failures`: failed items, by code and one by one.

pub(crate) mod fail;
pub(crate) mod item;
pub(crate) mod redrives;
pub(crate) mod report;
pub(crate) mod report_markdown;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;

use crate::http::answer::Of;
use crate::http::answer::page::{PageQuery, Paging};
use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::http::guard::Params;
use crate::http::problem::{HttpResult, Problem};
use crate::http::tasks::path::PathTask;
use crate::service::ServiceError;
use crate::service::failures::ShownFailure;
use crate::service::failures::item_data::{ItemData, Members};
use crate::service::results::Keys;
use windrow_core::ids::{INDEX_MAX, ItemIndex};
use windrow_engine::ports::tasks::failure_list::{FailurePage, RecordedItem};
use windrow_engine::ports::tasks::store::{FailureGroup, TaskView};

impl Of<FailureGroup> for api::FailureGroup {
    fn of(group: FailureGroup) -> Self {
        api::FailureGroup {
            code: group.code,
            count: group.count,
            unconfirmed: group.unconfirmed,
            first_at: rfc3339(group.first_at),
            last_at: rfc3339(group.last_at),
            example_index: group.example_index.0,
            example: group.example,
            example_origin_task: None,
            example_origin_index: None,
            example_data: None,
            example_data_missing: None,
        }
    }
}

/// Builds the API form of failures, with the data of their items if requested.
pub(crate) async fn bodies(
    app: &App,
    task: &TaskView,
    members: Option<Members>,
    found: Vec<ShownFailure>,
) -> Result<Vec<api::Failure>, ServiceError> {
    let keys = app.service.failures.keys(task).await?;
    let body = |shown| show_failure(shown, &keys);
    let Some(members) = members else {
        return Ok(found.into_iter().map(body).collect());
    };
    let indexes: Vec<ItemIndex> = found.iter().map(|shown| shown.item.index).collect();
    let data = app.service.failures.item_data(task, &members, &indexes).await?;
    let joined = found.into_iter().zip(data);
    let joined = joined.map(|(shown, ItemData { data, missing, .. })| api::Failure {
        data,
        data_missing: missing,
        ..body(shown)
    });
    Ok(joined.collect())
}

pub(crate) fn show_failure(shown: ShownFailure, keys: &Keys) -> api::Failure {
    let ShownFailure { item, origin } = shown;
    api::Failure {
        index: item.index.0,
        key: keys.of(item.index, origin),
        trace_id: keys.trace(item.index, origin),
        code: item.code,
        group: item.place.map(|(group, _)| group),
        message: item.message,
        output: item.output.as_deref().map(value),
        attempts: item.attempts,
        charged: item.charged,
        unconfirmed: item.is_unconfirmed,
        others_answered: item.others_answered,
        first_at: rfc3339(item.first_at),
        last_at: rfc3339(item.last_at),
        origin_task: origin.map(|(task, _)| task.to_string()),
        origin_index: origin.map(|(_, index)| index.0),
        data: None,
        data_missing: None,
    }
}

/// Parses JSON text; text that was cut and is no longer JSON becomes a string.
pub(crate) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Only this group, in the order in which its items failed; default: all failures in index order.
    #[param(max_length = 64)]
    code: Option<String>,
    /// Include each item's data from the task's source: `*` for all of it (if the task has the label `key-column`,
    /// the column it names), or a comma-separated list of members.
    #[param(max_length = 500, example = "user_id,email")]
    data: Option<String>,
}

/// List failures.
///
/// Items that failed for good. Each page costs the same, wherever it starts.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/failures", tag = "failures", operation_id = "list_failures",
    security(("bearer" = ["viewer", "business"])), params(ListParams, PageQuery),
    responses((status = 200, body = api::Page<api::Failure>))
)]
pub(crate) async fn list(
    State(app): State<App>,
    PathTask(task): PathTask,
    paging: Paging<u64>,
    Params(params): Params<ListParams>,
) -> HttpResult {
    let after = paging.after.filter(|after| *after < INDEX_MAX);
    let by_group = params.code.is_some();
    let begin = match params.code {
        Some(code) => FailurePage::OfGroup(code, after.map_or(0, |after| after + 1)),
        None => FailurePage::ByIndex(after.map(ItemIndex)),
    };
    let found = app.service.failures.page(&task, &begin, paging.to_read()).await?;
    let api::Page { items, next_cursor } = paging.page(found, |shown| key(&shown.item, by_group));
    let members = params.data.as_deref().map(|data| Members::of_list(data, &task));
    let items = bodies(&app, &task, members, items).await?;
    Ok(paging.answer(api::Page { items, next_cursor }))
}

fn key(item: &RecordedItem, by_group: bool) -> u64 {
    match (&item.place, by_group) {
        (Some((_, place)), true) => *place,
        _ => item.index.0,
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct GroupParams {
    /// Include the data of the example items: `*` for all of it (if the task has the label `key-column`, the column
    /// it names), or a comma-separated list of members.
    #[param(max_length = 500, example = "user_id,email")]
    data: Option<String>,
}

/// List failure groups.
///
/// Failures grouped by code, most frequent first, each with an example. Counted as they happen, without reading
/// items.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/failures/groups", tag = "failures", operation_id = "failure_groups",
    security(("bearer" = ["viewer", "business"])), params(GroupParams),
    responses((status = 200, body = api::FailureGroups))
)]
pub(crate) async fn groups(
    State(app): State<App>,
    PathTask(task): PathTask,
    Params(params): Params<GroupParams>,
) -> HttpResult<Json<api::FailureGroups>> {
    let groups = app.service.failures.list.groups(task.id).await?;
    let mut items: Vec<api::FailureGroup> = groups.into_iter().map(api::FailureGroup::of).collect();
    add_origins(&app, &task, &mut items).await?;
    if let Some(members) = params.data.as_deref().map(|data| Members::of_list(data, &task)) {
        add_data(&app, &task, &members, &mut items).await?;
    }
    let unconfirmed = items.iter().map(|group| group.unconfirmed).sum();
    Ok(Json(api::FailureGroups { items, unconfirmed }))
}

/// Adds the original items of the examples to the failure groups of a redrive.
pub(crate) async fn add_origins(
    app: &App,
    task: &TaskView,
    groups: &mut [api::FailureGroup],
) -> Result<(), Problem> {
    let indexes: Vec<ItemIndex> = groups
        .iter()
        .map(|group| ItemIndex(group.example_index))
        .collect();
    let origins = app.service.failures.origins(task, indexes).await?;
    for (group, origin) in groups.iter_mut().zip(origins) {
        group.example_origin_task = origin.map(|(task, _)| task.to_string());
        group.example_origin_index = origin.map(|(_, index)| index.0);
    }
    Ok(())
}

/// Adds the data of the example items to failure groups.
pub(crate) async fn add_data(
    app: &App,
    task: &TaskView,
    members: &Members,
    groups: &mut [api::FailureGroup],
) -> Result<(), Problem> {
    let indexes: Vec<ItemIndex> = groups
        .iter()
        .map(|group| ItemIndex(group.example_index))
        .collect();
    let found = app.service.failures.item_data(task, members, &indexes).await?;
    for (group, carried) in groups.iter_mut().zip(found) {
        (group.example_data, group.example_data_missing) = (carried.data, carried.missing);
    }
    Ok(())
}
