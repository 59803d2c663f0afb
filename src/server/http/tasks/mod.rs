//! `/v1/tasks`: runs of a business over its items. Operators control all tasks, a business only its own.

pub(crate) mod bodies;
pub(crate) mod changes;
pub(crate) mod commands;
pub(crate) mod explain;
pub(crate) mod failures;
pub(crate) mod items;
pub(crate) mod path;
pub(crate) mod preview;
pub(crate) mod queries;
pub(crate) mod results;
pub(crate) mod skips;
pub(crate) mod source;
pub(crate) mod view;
pub(crate) mod warnings;

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use self::path::PathTask;
use self::queries::{ListQuery, ShowQuery};
use super::problem::HttpResult;
use crate::http::answer::Of;
use crate::http::answer::page::{self, PageQuery, Paging};
use crate::http::front::App;
use crate::http::guard::{Call, Caller, Params, headers};
use crate::http::tasks::queries::show_numbers;
pub(super) use crate::http::tasks::view::history::{AuditPlace, audit_page};
use crate::http::tasks::view::shown::show_task;
use crate::http::tasks::warnings::show_warnings;
use crate::service::tasks::CommandOutcome;
use crate::service::tasks::show::TaskPicture;
use windrow_core::ids::TaskId;
use windrow_engine::ports::tasks::store::TaskView;

/// Limit of the count per status, so that counting never walks over all tasks.
const COUNTED_UP_TO: u32 = 10_000;

/// Builds the response for a task, with its version as the ETag.
async fn shown(app: &App, status: StatusCode, task: TaskView) -> Response {
    let tag = headers::tag(task.version);
    (status, [tag], Json(whole(app, task).await)).into_response()
}

/// Builds the response to a command: 202 if it changed something, 200 if the task was already in that state.
async fn commanded(call: &Call, told: CommandOutcome) -> HttpResult {
    let tag = headers::tag(told.task.version);
    let status = match told.is_new {
        true => StatusCode::ACCEPTED,
        false => StatusCode::OK,
    };
    Ok(call.changed(whole(&call.app, told.task).await, |task| (status, [tag], task))?)
}

/// Builds the 201 response for a new task.
async fn made(call: &Call, task: TaskView) -> HttpResult {
    let (place, version) = (format!("/v1/tasks/{}", task.id), task.version);
    Ok(call.made(place, Some(version), whole(&call.app, task).await)?)
}

/// Builds the full API form of a task, with live progress and warnings.
async fn whole(app: &App, task: TaskView) -> api::Task {
    let picture = app.service.tasks.picture(task).await;
    let warnings = app.service.tasks.warnings(&picture.task).await;
    let redriven = app.service.tasks.redriven(&[&picture.task]).await;
    let redriven = redriven.get(&picture.task.id).map(api::TaskRedriven::of);
    let mut task = body(app, picture);
    task.beside = api::TaskBeside {
        redriven,
        warnings: show_warnings(warnings),
        ..Default::default()
    };
    task
}

/// Builds the API form of a task, the same on all surfaces.
pub(super) fn body(app: &App, picture: TaskPicture) -> api::Task {
    show_task(picture, app.service.config().cluster.restore_max)
}

/// List tasks.
///
/// Newest first unless `sort=id`. A page may be short even if more follow; continue until `next_cursor` is null.
#[utoipa::path(
    get, path = "/v1/tasks", tag = "tasks", operation_id = "list_tasks", params(ListQuery, PageQuery),
    security(("bearer" = ["viewer", "business"])), responses((status = 200, body = api::Page<api::Task>))
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    paging: Paging<i64>,
    Params(query): Params<ListQuery>,
) -> HttpResult {
    let mut filter = query.filter()?;
    if let Some(own) = caller.business {
        // A business sees only its own tasks, whatever it asks for.
        if filter.business.as_ref().is_some_and(|asked| *asked != own) {
            return Ok(paging.answer(paging.page(Vec::<api::Task>::new(), |_| ())));
        }
        filter.business = Some(own);
    }
    let tasks = &app.service.tasks;
    let found = tasks
        .list(&filter, paging.after.map(TaskId), paging.limit)
        .await?;
    let views: Vec<&TaskView> = found.tasks.iter().map(|picture| &picture.task).collect();
    let redriven = tasks.redriven(&views).await;
    let item = |picture: TaskPicture| {
        let net = redriven.get(&picture.task.id).map(api::TaskRedriven::of);
        let mut task = body(&app, picture);
        task.beside.redriven = net;
        task
    };
    let items = found.tasks.into_iter().map(item).collect();
    let next_cursor = found.next.map(|id| page::write(&id.0));
    Ok(paging.answer(api::Page { items, next_cursor }))
}

/// Count tasks by status.
///
/// Each count stops at `counted_up_to`.
#[utoipa::path(
    get, path = "/v1/tasks/counts", tag = "tasks", operation_id = "count_tasks",
    security(("bearer" = ["viewer"])), responses((status = 200, body = api::TaskNumbers))
)]
pub(crate) async fn counts(State(app): State<App>) -> HttpResult<Json<api::TaskNumbers>> {
    let counts = app.service.tasks.lists.status_counts(COUNTED_UP_TO).await?;
    Ok(Json(show_numbers(COUNTED_UP_TO, &counts)))
}

/// Get a task.
///
/// With `wait` and `unless`, responds as soon as the task's ETag changes, or when the time is up.
#[utoipa::path(
    get, path = "/v1/tasks/{task}", tag = "tasks", operation_id = "show_task", params(ShowQuery),
    security(("bearer" = ["viewer", "business"])),
    responses((status = 200, body = api::Task, headers(("etag" = String))))
)]
pub(crate) async fn read(
    State(app): State<App>,
    PathTask(task): PathTask,
    Params(query): Params<ShowQuery>,
) -> HttpResult {
    let (patience, unless) = query.read()?;
    let task = match unless {
        Some(version) if version == task.version && patience > Duration::ZERO => {
            tokio::select! {
                changed = app.service.tasks.await_change(task.id, version, patience) => changed?,
                // Otherwise a waiting client would delay the shutdown and then get no response.
                () = app.front.ended() => task,
            }
        }
        _ => task,
    };
    Ok(shown(&app, StatusCode::OK, task).await)
}
