//! Giving up the items of a task that wait with a code.

use axum::http::StatusCode;

use crate::http::guard::{Body, Call, DryRunQuery, headers};
use crate::http::problem::HttpResult;
use crate::http::tasks::path::PathTask;
use crate::http::tasks::whole;

/// Give up items that wait.
///
/// Items that failed, wait for another attempt (later, held or parked), and whose last failure has this code are failed
/// with it: within a second where the task runs, and else as soon as a node runs it. What is in flight isn't touched, and an
/// item that fails with the code later is tried again as usual. They count as failed, but don't stop the task by its error
/// budget.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/fail", tag = "tasks", operation_id = "fail_items",
    request_body = api::FailItems, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 202, body = api::MarkedTask, headers(("etag" = String))),
        (status = 409, description = "wrong-state"),
        (status = 422, description = "validation-failed: no item waits with this code; it names those that there are"),
    )
)]
pub(crate) async fn fail(
    call: Call,
    PathTask(task): PathTask,
    Body(body): Body<api::FailItems>,
) -> HttpResult {
    let write = call.write(body.reason);
    let (told, items) = call.service.tasks.fail(task.id, &body.code, &write).await?;
    let (tag, code) = (headers::tag(told.task.version), body.code);
    let answer = api::MarkedTask {
        task: whole(&call.app, told.task).await,
        marked: api::MarkedFailed { code, items },
    };
    Ok(call.changed(answer, |answer| (StatusCode::ACCEPTED, [tag], answer))?)
}
