//! Failing items on request, while they wait with a certain code.

use axum::http::StatusCode;

use crate::http::guard::{Body, Call, DryRunQuery, headers};
use crate::http::problem::HttpResult;
use crate::http::tasks::path::PathTask;
use crate::http::tasks::whole;

/// Fail waiting items.
///
/// Fails all items that are waiting for another attempt (later, held or parked) and whose last failure has this code:
/// within a second if the task is running, otherwise as soon as a node runs it. Calls in flight aren't affected, and
/// items that fail with the code later are retried as usual. The items count as failed but don't use up the error
/// budget.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/fail", tag = "tasks", operation_id = "fail_items",
    request_body = api::FailItems, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 202, body = api::MarkedTask, headers(("etag" = String))),
        (status = 409, description = "wrong-state"),
        (status = 422, description = "validation-failed: no item waits with this code; the detail lists the codes in use"),
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
