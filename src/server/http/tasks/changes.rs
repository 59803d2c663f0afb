//! Creating, cloning, changing and deleting tasks.

use axum::Extension;
use axum::http::HeaderMap;

use super::bodies::{CloneBody, CreateBody, EditBody};
use super::path::PathTask;
use super::warnings::StrictQuery;
use super::{made, whole};
use crate::http::guard::idempotency::TakenKey;
use crate::http::guard::{Body, Call, DryRunQuery, Params, headers};
use crate::http::problem::HttpResult;
use crate::http::tasks::bodies;
use crate::http::uploads::judge_source;
use crate::service::ServiceError;
use crate::service::tasks::change::TaskChange;
use crate::service::tasks::create::{TaskPlan, TaskRequest};

pub(super) fn key(taken: Option<Extension<TakenKey>>) -> Option<String> {
    taken.map(|Extension(TakenKey(key))| key)
}

/// Create a task.
///
/// Counts its source first; the business may reject the task or set its total. With `start`, the task starts
/// immediately.
#[utoipa::path(
    post, path = "/v1/tasks", tag = "tasks", operation_id = "create_task", params(DryRunQuery, StrictQuery),
    request_body = CreateBody, security(("bearer" = ["operator", "business"])),
    responses(
        (status = 201, body = api::Task, headers(("location" = String), ("etag" = String))),
        (status = 409, description = "name-taken, conflict"),
        (status = 422, description = "validation-failed, business-rejected, not-unpacked"),
    )
)]
pub(crate) async fn create(
    call: Call,
    taken: Option<Extension<TakenKey>>,
    Params(query): Params<StrictQuery>,
    Body(mut body): Body<CreateBody>,
) -> HttpResult {
    let own = call.caller.business.as_ref();
    if own.is_some_and(|own| *own != body.own.business) {
        let text = format!("no business {}", body.own.business);
        return Err(ServiceError::unprocessable("/business", text).into());
    }
    let plan = TaskPlan {
        strict: query.is_strict(),
        ..bodies::plan(&body, key(taken))?
    };
    let mut source = bodies::take_source(&mut body.own)?;
    let _place = judge_source(&call.app, &call.caller, &mut source).await?;
    let request = TaskRequest {
        business: body.own.business,
        source,
        plan,
    };
    let write = call.write(body.own.reason);
    let task = call.service.tasks.create(request, &write).await?;
    made(&call, task).await
}

/// Clone a task.
///
/// Creates a new task with new keys and no progress. Members given here override those of the original.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/clone", tag = "tasks", operation_id = "clone_task",
    request_body = Option<CloneBody>, params(DryRunQuery, StrictQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 201, body = api::Task, headers(("location" = String), ("etag" = String))),
        (status = 409, description = "name-taken, conflict"),
        (status = 422, description = "validation-failed, business-rejected"),
    )
)]
pub(crate) async fn clone(
    call: Call,
    PathTask(task): PathTask,
    taken: Option<Extension<TakenKey>>,
    Params(query): Params<StrictQuery>,
    Body(body): Body<CloneBody>,
) -> HttpResult {
    let plan = TaskPlan {
        strict: query.is_strict(),
        ..bodies::clone_plan(&body, key(taken))?
    };
    let write = call.write(body.own.reason);
    let clone = call.service.tasks.clone_task(task.id, plan, &write).await?;
    made(&call, clone).await
}

/// Change a task.
///
/// Settings, name, labels, priority and deadline take effect within a second, even while the task runs. Anything that
/// changes its meaning requires that it isn't running. With `If-Match`, fails if the task was changed in the
/// meantime.
#[utoipa::path(
    patch, path = "/v1/tasks/{task}", tag = "tasks", operation_id = "change_task", params(DryRunQuery, StrictQuery),
    request_body = EditBody, security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, body = api::Task, headers(("etag" = String))),
        (status = 409, description = "conflict (lists each member that can't be changed), no-capacity, wrong-state, name-taken"),
        (status = 422, description = "validation-failed, business-rejected"),
    )
)]
pub(crate) async fn edit(
    call: Call,
    PathTask(task): PathTask,
    Params(query): Params<StrictQuery>,
    headers: HeaderMap,
    Body(body): Body<EditBody>,
) -> HttpResult {
    let expected = headers::expected(&headers);
    let (change, reason) = bodies::change_of(body)?;
    let mut change = TaskChange {
        strict: query.is_strict(),
        ..change
    };
    let _place = match &mut change.source {
        Some(source) => judge_source(&call.app, &call.caller, source).await?,
        None => None,
    };
    let write = call.write(reason);
    let tasks = &call.service.tasks;
    let changed = tasks.change(task.id, expected, change, &write).await?;
    let tag = headers::tag(changed.version);
    Ok(call.changed(whole(&call.app, changed).await, |task| ([tag], task))?)
}

/// Delete a task that has ended.
///
/// Also deletes its items, runs, log lines and undelivered calls. The audit log remains.
#[utoipa::path(
    delete, path = "/v1/tasks/{task}", tag = "tasks", operation_id = "delete_task", params(DryRunQuery),
    request_body = Option<api::Reason>, security(("bearer" = ["operator"])),
    responses(
        (status = 204, description = "Deleted"),
        (status = 409, description = "wrong-state, conflict"),
    )
)]
pub(crate) async fn delete(
    call: Call,
    PathTask(task): PathTask,
    Body(body): Body<api::Reason>,
) -> HttpResult {
    let write = call.write(body.reason);
    call.service.tasks.delete(task.id, &write).await?;
    Ok(call.deleted()?)
}
