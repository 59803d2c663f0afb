//! Making, cloning, changing and deleting tasks.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::bodies::{CloneBody, CreateBody, EditBody};
use super::commands::ReasonBody;
use super::warnings::PlanQuery;
use super::{Answer, Steer, TaskJson, whole, would};
use crate::http::App;
use crate::http::guard::body::{Body, Params};
use crate::http::guard::dry_run::{self, DryRunQuery};
use crate::http::guard::etag;
use crate::http::guard::idempotency::TakenKey;
use crate::http::problem::Problem;
use crate::http::tasks::shown;
use crate::http::uploads::judge_source;
use crate::service::ServiceError;
use crate::service::tasks::change::TaskChange;
use crate::service::tasks::create::{TaskPlan, TaskRequest};
use windrow_engine::ports::tasks::store::TaskView;

/// A task that was made now, or would be.
pub(super) async fn made(app: &App, is_dry: bool, task: TaskView) -> Result<Response, ServiceError> {
    if is_dry {
        return dry_run::would_make(&whole(app, task).await);
    }
    let place = [(header::LOCATION, format!("/v1/tasks/{}", task.id))];
    Ok((place, shown(app, StatusCode::CREATED, task).await).into_response())
}

pub(super) fn key(taken: Option<Extension<TakenKey>>) -> Option<String> {
    taken.map(|Extension(TakenKey(key))| key)
}

/// Make a task.
///
/// Its source is counted first; the business may refuse it or set its total. With `start` it starts at once.
#[utoipa::path(
    post, path = "/v1/tasks", tag = "tasks", operation_id = "create_task", params(PlanQuery), request_body = CreateBody,
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
    Params(query): Params<PlanQuery>,
    Body(body): Body<CreateBody>,
) -> Answer {
    if steer
        .caller
        .business
        .as_ref()
        .is_some_and(|own| *own != body.own.business)
    {
        let text = format!("there is no business {}", body.own.business);
        return Err(ServiceError::unprocessable("/business", text).into());
    }
    let plan = TaskPlan {
        strict: query.is_strict(),
        ..body.plan(key(taken))?
    };
    let actor = steer.caller.actor_of(body.own.reason, query.is_dry());
    let mut source = body.own.source.read()?;
    judge_source(&app, &steer.caller, &mut source).await?;
    let request = TaskRequest {
        business: body.own.business,
        source,
        plan,
    };
    Ok(made(
        &app,
        query.is_dry(),
        app.service.create_task(request, &actor).await?,
    )
    .await?)
}

/// Make a task like another one.
///
/// A new task with new keys, nothing done yet; what is named here is as it is said here.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/clone", tag = "tasks", operation_id = "clone_task", request_body = Option<CloneBody>,
    params(("task" = String, Path, description = "Its number", pattern = "^t[1-9][0-9]{0,18}$"), PlanQuery),
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
    Params(query): Params<PlanQuery>,
    Body(body): Body<CloneBody>,
) -> Answer {
    let task = steer.task(&app, &text).await?;
    let plan = TaskPlan {
        strict: query.is_strict(),
        ..body.plan(key(taken))?
    };
    let actor = steer.caller.actor_of(body.own.reason, query.is_dry());
    Ok(made(
        &app,
        query.is_dry(),
        app.service.clone_task(task.id, plan, &actor).await?,
    )
    .await?)
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
        PlanQuery,
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
    Params(query): Params<PlanQuery>,
    headers: HeaderMap,
    Body(body): Body<EditBody>,
) -> Answer {
    let task = steer.task(&app, &text).await?;
    let expected = etag::expected(&headers);
    let (change, reason) = body.change()?;
    let mut change = TaskChange {
        strict: query.is_strict(),
        ..change
    };
    if let Some(source) = &mut change.source {
        judge_source(&app, &steer.caller, source).await?;
    }
    let actor = steer.caller.actor_of(reason, query.is_dry());
    let changed = app.service.change_task(task.id, expected, change, &actor).await?;
    if query.is_dry() {
        return Ok(would(&app, changed).await?);
    }
    Ok(shown(&app, StatusCode::OK, changed).await)
}

/// Delete a task that has ended.
///
/// Its items, runs, lines and undelivered calls go with it; the audit stays.
#[utoipa::path(
    delete, path = "/v1/tasks/{task}", tag = "tasks", operation_id = "delete_task",
    params(("task" = String, Path, description = "Its number", pattern = "^t[1-9][0-9]{0,18}$"), DryRunQuery),
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
    Params(query): Params<DryRunQuery>,
    Body(body): Body<ReasonBody>,
) -> Answer {
    let task = steer.task(&app, &text).await?;
    app.service
        .delete_task(task.id, &steer.caller.actor_of(body.reason, query.is_dry()))
        .await?;
    if query.is_dry() {
        return Ok(dry_run::would(&())?);
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}
