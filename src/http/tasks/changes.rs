//! Making, cloning, changing and deleting tasks.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::bodies::{CloneBody, CreateBody, EditBody};
use super::commands::ReasonBody;
use super::{Answer, Steer, TaskJson, shown};
use crate::http::body::Body;
use crate::http::idempotency::TakenKey;
use crate::http::problem::Problem;
use crate::http::uploads::refuse_foreign_upload;
use crate::http::{App, etag};
use crate::ports::task_store::TaskView;
use crate::service::ServiceError;
use crate::service::task_create::TaskRequest;

/// A task that was made now.
pub(super) fn made(app: &App, task: TaskView) -> Response {
    let place = [(header::LOCATION, format!("/v1/tasks/{}", task.id))];
    (place, shown(app, StatusCode::CREATED, task)).into_response()
}

pub(super) fn key(taken: Option<Extension<TakenKey>>) -> Option<String> {
    taken.map(|Extension(TakenKey(key))| key)
}

/// Make a task.
///
/// Its source is counted first; the business may refuse it or set its total. With `start` it starts at once.
#[utoipa::path(
    post, path = "/v1/tasks", tag = "tasks", operation_id = "create_task", request_body = CreateBody,
    security(("bearer" = ["operator", "business"])),
    responses(
        (status = 201, body = TaskJson, headers(("location" = String), ("etag" = String))),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "name-taken, conflict"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "validation-failed, business-rejected"),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    steer: Steer,
    taken: Option<Extension<TakenKey>>,
    Body(body): Body<CreateBody>,
) -> Answer {
    refuse_start_token(&steer)?;
    if steer.caller.business.as_ref().is_some_and(|own| *own != body.business) {
        let text = format!("there is no business {}", body.business);
        return Err(ServiceError::unprocessable("/business", text).into());
    }
    let plan = body.plan(key(taken))?;
    let actor = steer.caller.actor(body.reason);
    let source = body.source.read()?;
    refuse_foreign_upload(&app, &steer.caller, &source).await?;
    let request = TaskRequest { business: body.business, source, plan };
    Ok(made(&app, app.service.create_task(request, &actor).await?))
}

/// A start token is for one start of one task, not for new ones.
pub(super) fn refuse_start_token(steer: &Steer) -> Result<(), ServiceError> {
    match steer.start {
        Some(start) => Err(ServiceError::Forbidden(format!(
            "a start token is for start {} of {} only",
            start.start_no, start.task
        ))),
        None => Ok(()),
    }
}

/// Make a task like another one.
///
/// A new task with new keys, nothing done yet; what is named here is as it is said here.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/clone", tag = "tasks", operation_id = "clone_task", request_body = Option<CloneBody>,
    params(("task" = String, Path, description = "Its number", pattern = "^t[1-9][0-9]{0,18}$")),
    security(("bearer" = ["operator", "business"])),
    responses(
        (status = 201, body = TaskJson, headers(("location" = String), ("etag" = String))),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "name-taken, conflict"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "validation-failed, business-rejected"),
    )
)]
pub(super) async fn clone(
    State(app): State<App>,
    steer: Steer,
    taken: Option<Extension<TakenKey>>,
    Path(text): Path<String>,
    Body(body): Body<CloneBody>,
) -> Answer {
    let task = steer.task(&app, &text).await?;
    refuse_start_token(&steer)?;
    let plan = body.plan(key(taken))?;
    let actor = steer.caller.actor(body.reason);
    Ok(made(&app, app.service.clone_task(task.id, plan, &actor).await?))
}

/// Change a task.
///
/// Settings, name, labels, priority and deadline change within a second, also while it runs; its meaning only while it
/// doesn't. With `If-Match` it is refused when the task was changed meanwhile.
#[utoipa::path(
    patch, path = "/v1/tasks/{task}", tag = "tasks", operation_id = "change_task",
    params(
        ("task" = String, Path, description = "Its number", pattern = "^t[1-9][0-9]{0,18}$"),
        ("If-Match" = Option<String>, Header, description = "The ETag of what was looked at"),
    ),
    request_body = EditBody,
    security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, body = TaskJson, headers(("etag" = String))),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "conflict (each fixed member is named), no-capacity, wrong-state, name-taken"),
        (status = 412, body = Problem, content_type = "application/problem+json", description = "etag-mismatch"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "validation-failed, business-rejected"),
    )
)]
pub(super) async fn edit(
    State(app): State<App>,
    steer: Steer,
    Path(text): Path<String>,
    headers: HeaderMap,
    Body(body): Body<EditBody>,
) -> Answer {
    let task = steer.task(&app, &text).await?;
    let expected = etag::expected(&headers);
    let (change, reason) = body.change()?;
    if let Some(source) = &change.source {
        refuse_foreign_upload(&app, &steer.caller, source).await?;
    }
    let actor = steer.caller.actor(reason);
    let changed = app.service.change_task(task.id, expected, change, &actor).await?;
    Ok(shown(&app, StatusCode::OK, changed))
}

/// Delete a task that has ended.
///
/// Its items, runs, lines and undelivered calls go with it; the audit stays.
#[utoipa::path(
    delete, path = "/v1/tasks/{task}", tag = "tasks", operation_id = "delete_task",
    params(("task" = String, Path, description = "Its number", pattern = "^t[1-9][0-9]{0,18}$")),
    request_body = Option<ReasonBody>,
    security(("bearer" = ["operator"])),
    responses(
        (status = 204, description = "It is gone"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "wrong-state, conflict"),
    )
)]
pub(super) async fn delete(
    State(app): State<App>,
    steer: Steer,
    Path(text): Path<String>,
    Body(body): Body<ReasonBody>,
) -> Result<StatusCode, Problem> {
    let task = steer.task(&app, &text).await?;
    app.service.delete_task(task.id, &steer.caller.actor(body.reason)).await?;
    Ok(StatusCode::NO_CONTENT)
}
