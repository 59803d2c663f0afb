//! Giving up the items of a task that wait with a code.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::guard::{Body, Call, DryRunQuery, headers, reason};
use crate::http::problem::HttpResult;
use crate::http::tasks::path::PathTask;
use crate::http::tasks::{TaskJson, whole};

/// Which items are given up.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AbandonBody {
    /// The code of their last failure.
    #[schema(min_length = 1, max_length = 64, examples("TIMEOUT"))]
    code: String,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The task, and what is given up.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AbandonedTask)]
pub(crate) struct AbandonedJson {
    #[serde(flatten)]
    task: TaskJson,
    /// What is given up.
    given_up: GivenUpJson,
}

/// Items that are given up.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GivenUp)]
pub(crate) struct GivenUpJson {
    /// The code of their last failure.
    code: String,
    /// How many of them were saved when it was asked for; those that failed in the last seconds come on top.
    items: u64,
}

/// Give up items that wait.
///
/// Items that failed, wait for another attempt (later, held or parked), and whose last failure has this code are abandoned
/// with it: within a second where the task runs, and else as soon as a node runs it. What is in flight isn't touched, and an
/// item that fails with the code later is tried again as usual. They count as abandoned, but don't stop the task by its error
/// budget.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/abandon", tag = "tasks", operation_id = "abandon_items",
    request_body = AbandonBody, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 202, body = AbandonedJson, headers(("etag" = String))),
        (status = 409, description = "wrong-state"),
        (status = 422, description = "validation-failed: no item waits with this code; it names those that there are"),
    )
)]
pub(crate) async fn abandon(
    call: Call,
    PathTask(task): PathTask,
    Body(body): Body<AbandonBody>,
) -> HttpResult {
    let write = call.write(body.reason);
    let (told, items) = call.service.tasks.abandon(task.id, &body.code, &write).await?;
    let (tag, code) = (headers::tag(told.task.version), body.code);
    let answer = AbandonedJson {
        task: whole(&call.app, told.task).await,
        given_up: GivenUpJson { code, items },
    };
    Ok(call.changed(answer, |answer| (StatusCode::ACCEPTED, [tag], answer))?)
}
