//! The verbs of a task's life. A command that changes something is 202, one whose end is reached already 200.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::path::{PathTask, StartToken};
use super::warnings::StrictQuery;
use super::{TaskJson, commanded};
use crate::http::guard::{Body, Call, DryRunQuery, Params, ReasonBody, reason, time};
use crate::http::problem::HttpResult;
use crate::service::ServiceError;
use crate::service::tasks::{CommandOutcome, StartHow, StopHow};
use windrow_core::ids::{ItemCount, ItemIndex};
use windrow_core::life::TaskEdit;

/// How a task starts.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartBody {
    /// Not before this time; replaces the one that the task has.
    #[schema(format = "date-time")]
    start_at: Option<String>,
    /// Now, whatever `start_at` the task has.
    now: Option<bool>,
    /// With `items`, it is the items that fail and no outage: as `judge_after: "0s"`, which it sets.
    judge: Option<JudgeBody>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Whose fault failures without a verdict are.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JudgeBody {
    /// The items'.
    Items,
}

/// Start a task, or let it go on.
///
/// After `canary_done` it goes on with the rest. A business that prepares itself is asked first.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/start", tag = "tasks", operation_id = "start_task",
    request_body = Option<StartBody>, params(DryRunQuery, StrictQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, body = TaskJson, headers(("etag" = String)), description = "It was started already"),
        (status = 202, body = TaskJson, headers(("etag" = String))),
        (status = 409, description = "wrong-state"),
        (status = 422, description = "validation-failed (strict, or start_at is over)"),
    )
)]
pub(crate) async fn start(
    call: Call,
    PathTask(task): PathTask,
    Params(query): Params<StrictQuery>,
    Body(body): Body<StartBody>,
) -> HttpResult {
    let at = match (&body.start_at, body.now) {
        (Some(_), Some(true)) => {
            return Err(ServiceError::invalid("/now", "either now or start_at, not both").into());
        }
        (Some(text), _) => Some(time("/start_at", text)?),
        (None, Some(true)) => Some(call.service.now()),
        (None, _) => None,
    };
    let how = StartHow {
        at,
        judges: matches!(body.judge, Some(JudgeBody::Items)),
        strict: query.is_strict(),
    };
    let write = call.write(body.reason);
    let told = call.service.tasks.start(task.id, how, &write).await?;
    commanded(&call, told).await
}

/// How a task stops.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopBody {
    /// Without waiting for calls in flight: they are aborted, and may be made again later.
    now: Option<bool>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Stop a task.
///
/// Nothing is dispatched any more; calls in flight may finish. A start lets it go on where it was.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/stop", tag = "tasks", operation_id = "stop_task",
    request_body = Option<StopBody>, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, body = TaskJson, headers(("etag" = String)), description = "It was stopping or stopped already"),
        (status = 202, body = TaskJson, headers(("etag" = String))),
        (status = 409, description = "wrong-state"),
    )
)]
pub(crate) async fn stop(call: Call, PathTask(task): PathTask, Body(body): Body<StopBody>) -> HttpResult {
    let how = match body.now {
        Some(true) => StopHow::Now,
        _ => StopHow::Drain,
    };
    let write = call.write(body.reason);
    let told = call.service.tasks.stop(task.id, how, &write).await?;
    commanded(&call, told).await
}

/// End a task for good.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/cancel", tag = "tasks", operation_id = "cancel_task",
    request_body = Option<ReasonBody>, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, body = TaskJson, headers(("etag" = String)), description = "It was cancelled already"),
        (status = 202, body = TaskJson, headers(("etag" = String))),
        (status = 409, description = "wrong-state"),
    )
)]
pub(crate) async fn cancel(call: Call, PathTask(task): PathTask, Body(body): Body<ReasonBody>) -> HttpResult {
    let write = call.write(body.reason);
    let told = call.service.tasks.cancel(task.id, &write).await?;
    commanded(&call, told).await
}

/// Where a task ends early.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FinishBody {
    /// Items at or above this index that were not dispatched are excluded; without it, all that were not dispatched.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    total: Option<u64>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Finish a task early.
///
/// What was dispatched, and what lies below, still settles.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/finish", tag = "tasks", operation_id = "finish_task",
    request_body = Option<FinishBody>, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, body = TaskJson, headers(("etag" = String)), description = "It was cut there already"),
        (status = 202, body = TaskJson, headers(("etag" = String))),
        (status = 409, description = "wrong-state, conflict"),
    )
)]
pub(crate) async fn finish(call: Call, PathTask(task): PathTask, Body(body): Body<FinishBody>) -> HttpResult {
    let (end, write) = (body.total.map(ItemCount), call.write(body.reason));
    let told = call.service.tasks.finish(task.id, end, &write).await?;
    commanded(&call, told).await
}

/// Try a recovering task now.
///
/// Of a task that stays `finalizing` since its end doesn't add up, the end is proved again: once what its `status_text` names
/// was mended.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/recover", tag = "tasks", operation_id = "recover_task",
    request_body = Option<ReasonBody>, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, body = TaskJson, headers(("etag" = String)), description = "It is queued or runs"),
        (status = 202, body = TaskJson, headers(("etag" = String))),
        (status = 409, description = "wrong-state"),
    )
)]
pub(crate) async fn recover(
    call: Call,
    PathTask(task): PathTask,
    Body(body): Body<ReasonBody>,
) -> HttpResult {
    let write = call.write(body.reason);
    let told = call.service.tasks.recover(task.id, &write).await?;
    commanded(&call, told).await
}

/// Where a task goes on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveBody {
    /// The node.
    #[schema(min_length = 1, max_length = 64, examples("n2"))]
    to: String,
    /// Only this shard of it.
    #[schema(minimum = 0, maximum = 4294967295_u64)]
    shard: Option<u32>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Move a running task to another node.
///
/// Its owners let calls in flight end, save, and give their shards back; the node takes them. Nothing is done twice. If it
/// hasn't taken them within 30 s, any node may.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/move", tag = "tasks", operation_id = "move_task", request_body = MoveBody,
    params(DryRunQuery), security(("bearer" = ["operator"])),
    responses(
        (status = 202, body = TaskJson, headers(("etag" = String))),
        (status = 409, description = "wrong-state, conflict"),
    )
)]
pub(crate) async fn relocate(call: Call, PathTask(task): PathTask, Body(body): Body<MoveBody>) -> HttpResult {
    let write = call.write(body.reason);
    let tasks = &call.service.tasks;
    if body.to == call.service.cluster.parts.node {
        // Of another node it isn't known which key it has.
        call.service.businesses.can_open(&task.business).await?;
    }
    let (task, _) = tasks.move_shards(task.id, body.shard, &body.to, &write).await?;
    commanded(&call, CommandOutcome { task, is_new: true }).await
}

/// What a business says when it is ready.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadyBody {
    /// Which start it answers; a start token says it already.
    start: Option<u32>,
    /// How many items there are.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    total: Option<u64>,
    /// How many of them are left out at the head.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    skip_first: Option<u64>,
    /// What the handler is given, any JSON.
    #[schema(value_type = Option<serde_json::Value>)]
    params: Option<Box<RawValue>>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The business is ready for a start.
///
/// For a business that has a `prepare` hook and answered it with 202. An answer to an earlier start is refused.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/ready", tag = "tasks", operation_id = "ready_task",
    request_body = Option<ReadyBody>, params(DryRunQuery), security(("bearer" = ["business"])),
    responses(
        (status = 200, body = TaskJson, headers(("etag" = String)), description = "It was ready already"),
        (status = 202, body = TaskJson, headers(("etag" = String))),
        (status = 409, description = "stale-start, wrong-state, conflict"),
    )
)]
pub(crate) async fn ready(
    call: Call,
    StartToken(start): StartToken,
    PathTask(task): PathTask,
    Body(body): Body<ReadyBody>,
) -> HttpResult {
    let start_no = start.map(|start| start.start_no).or(body.start);
    let edit = TaskEdit {
        total: body.total.map(ItemCount),
        skip_first: body.skip_first.map(ItemIndex),
        params: body.params.map(|params| params.get().to_owned()),
        ..TaskEdit::default()
    };
    let write = call.write(body.reason);
    let told = call.service.tasks.ready(task.id, start_no, edit, &write).await?;
    commanded(&call, told).await
}
