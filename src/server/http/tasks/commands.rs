//! Lifecycle commands of tasks. A command returns 202 if it changed something, 200 if the task was already in the
//! requested state.

use super::commanded;
use super::path::{PathTask, StartToken};
use super::warnings::StrictQuery;
use crate::http::guard::{Body, Call, DryRunQuery, Params, time};
use crate::http::problem::HttpResult;
use crate::service::ServiceError;
use crate::service::tasks::{CommandOutcome, StartHow, StopHow};
use windrow_core::ids::{ItemCount, ItemIndex};
use windrow_core::life::TaskEdit;
use windrow_core::task::spec::{JsonText, SpecPatch};

/// Start or resume a task.
///
/// After `canary_done`, continues with the remaining items. A business with a `prepare` hook is called first.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/start", tag = "tasks", operation_id = "start_task",
    request_body = Option<api::StartTask>, params(DryRunQuery, StrictQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, body = api::Task, headers(("etag" = String)), description = "Already started"),
        (status = 202, body = api::Task, headers(("etag" = String))),
        (status = 409, description = "wrong-state"),
        (status = 422, description = "validation-failed (strict, or start_at is in the past)"),
    )
)]
pub(crate) async fn start(
    call: Call,
    PathTask(task): PathTask,
    Params(query): Params<StrictQuery>,
    Body(body): Body<api::StartTask>,
) -> HttpResult {
    let at = match (&body.start_at, body.now) {
        (Some(_), Some(true)) => {
            return Err(ServiceError::invalid("/now", "`now` and start_at exclude each other").into());
        }
        (Some(text), _) => Some(time("/start_at", text)?),
        (None, Some(true)) => Some(call.service.now()),
        (None, _) => None,
    };
    let how = StartHow {
        at,
        judges: matches!(body.judge, Some(api::Judge::Items)),
        strict: query.is_strict(),
    };
    let write = call.write(body.reason);
    let told = call.service.tasks.start(task.id, how, &write).await?;
    commanded(&call, told).await
}

/// Stop a task.
///
/// No more calls are dispatched; calls in flight may finish. A start resumes the task where it stopped.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/stop", tag = "tasks", operation_id = "stop_task",
    request_body = Option<api::StopTask>, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, body = api::Task, headers(("etag" = String)), description = "Already stopping or stopped"),
        (status = 202, body = api::Task, headers(("etag" = String))),
        (status = 409, description = "wrong-state"),
    )
)]
pub(crate) async fn stop(
    call: Call,
    PathTask(task): PathTask,
    Body(body): Body<api::StopTask>,
) -> HttpResult {
    let how = match body.now {
        Some(true) => StopHow::Now,
        _ => StopHow::Drain,
    };
    let write = call.write(body.reason);
    let told = call.service.tasks.stop(task.id, how, &write).await?;
    commanded(&call, told).await
}

/// Cancel a task permanently.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/cancel", tag = "tasks", operation_id = "cancel_task",
    request_body = Option<api::Reason>, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, body = api::Task, headers(("etag" = String)), description = "Already cancelled"),
        (status = 202, body = api::Task, headers(("etag" = String))),
        (status = 409, description = "wrong-state"),
    )
)]
pub(crate) async fn cancel(
    call: Call,
    PathTask(task): PathTask,
    Body(body): Body<api::Reason>,
) -> HttpResult {
    let write = call.write(body.reason);
    let told = call.service.tasks.cancel(task.id, &write).await?;
    commanded(&call, told).await
}

/// Finish a task early.
///
/// Items already dispatched, and all items before them, still settle.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/finish", tag = "tasks", operation_id = "finish_task",
    request_body = Option<api::FinishTask>, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, body = api::Task, headers(("etag" = String)), description = "Already cut there"),
        (status = 202, body = api::Task, headers(("etag" = String))),
        (status = 409, description = "wrong-state, conflict"),
    )
)]
pub(crate) async fn finish(
    call: Call,
    PathTask(task): PathTask,
    Body(body): Body<api::FinishTask>,
) -> HttpResult {
    let (end, write) = (body.total.map(ItemCount), call.write(body.reason));
    let told = call.service.tasks.finish(task.id, end, &write).await?;
    commanded(&call, told).await
}

/// Retry a recovering task now.
///
/// For a task that stays in `finalizing` because its final counts don't add up, repeats the check. Fix what
/// `status_text` names first.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/recover", tag = "tasks", operation_id = "recover_task",
    request_body = Option<api::Reason>, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, body = api::Task, headers(("etag" = String)), description = "Queued or running"),
        (status = 202, body = api::Task, headers(("etag" = String))),
        (status = 409, description = "wrong-state"),
    )
)]
pub(crate) async fn recover(
    call: Call,
    PathTask(task): PathTask,
    Body(body): Body<api::Reason>,
) -> HttpResult {
    let write = call.write(body.reason);
    let told = call.service.tasks.recover(task.id, &write).await?;
    commanded(&call, told).await
}

/// Move a running task to another node.
///
/// The owners let calls in flight finish, save, and release their shards; the target node takes them over. Nothing is
/// done twice. If the target hasn't taken them within 30 s, any node may.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/move", tag = "tasks", operation_id = "move_task", request_body = api::MoveTask,
    params(DryRunQuery), security(("bearer" = ["operator"])),
    responses(
        (status = 202, body = api::Task, headers(("etag" = String))),
        (status = 409, description = "wrong-state, conflict"),
    )
)]
pub(crate) async fn relocate(
    call: Call,
    PathTask(task): PathTask,
    Body(body): Body<api::MoveTask>,
) -> HttpResult {
    let write = call.write(body.reason);
    let tasks = &call.service.tasks;
    if body.to == call.service.cluster.parts.node {
        // Only this node can check its own encryption key; the key of another node isn't known.
        call.service.businesses.can_open(&task.business).await?;
    }
    let (task, _) = tasks.move_shards(task.id, body.shard, &body.to, &write).await?;
    commanded(&call, CommandOutcome { task, is_new: true }).await
}

/// Report that the business is ready for a start.
///
/// For a business whose `prepare` hook returned 202. Rejected if it refers to an earlier start.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/ready", tag = "tasks", operation_id = "ready_task",
    request_body = Option<api::Ready>, params(DryRunQuery), security(("bearer" = ["business"])),
    responses(
        (status = 200, body = api::Task, headers(("etag" = String)), description = "Already ready"),
        (status = 202, body = api::Task, headers(("etag" = String))),
        (status = 409, description = "stale-start, wrong-state, conflict"),
    )
)]
pub(crate) async fn ready(
    call: Call,
    StartToken(start): StartToken,
    PathTask(task): PathTask,
    Body(body): Body<api::Ready>,
) -> HttpResult {
    let start_no = start.map(|start| start.start_no).or(body.start);
    let edit = TaskEdit {
        total: body.total.map(ItemCount),
        spec: SpecPatch {
            skip_first: body.skip_first.map(ItemIndex),
            params: body.params.map(|params| Some(JsonText(params))),
            ..SpecPatch::default()
        },
        ..TaskEdit::default()
    };
    let write = call.write(body.reason);
    let told = call.service.tasks.ready(task.id, start_no, edit, &write).await?;
    commanded(&call, told).await
}
