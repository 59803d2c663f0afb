//! Skipping items on request: `POST /v1/tasks/{task}/skips`.

use axum::http::StatusCode;

use super::path::PathTask;
use super::whole;
use crate::http::answer::Of;
use crate::http::guard::{Body, Call, DryRunQuery, headers};
use crate::http::problem::HttpResult;
use crate::service::ServiceError;
use crate::service::tasks::skip::Skipping;
use windrow_core::items::stretches::{StretchFault, Stretches};
use windrow_core::life::SKIPPED_BY_OPERATOR;
use windrow_words::Message;

/// Returns the skipped ranges, `None` if there aren't any.
pub(crate) fn show_skips(skips: &Stretches) -> Option<api::TaskSkips> {
    (!skips.is_empty()).then(|| api::TaskSkips {
        indexes: skips.to_string(),
        items: skips.items(),
        code: SKIPPED_BY_OPERATOR.to_owned(),
    })
}

/// Returns a clause about skipped items, to append to an explanation of an unfinished task.
pub(crate) fn clause(skips: &api::TaskSkips) -> Message {
    windrow_words::explain::skips(skips.items)
}

impl Of<Skipping> for api::Skipping {
    fn of(skipping: Skipping) -> Self {
        let (items, gone) = (skipping.named.items(), skipping.settled + skipping.excluded);
        api::Skipping {
            indexes: skipping.named.to_string(),
            items,
            already_settled: skipping.settled,
            excluded: skipping.excluded,
            skipped: items.saturating_sub(gone),
            code: SKIPPED_BY_OPERATOR.to_owned(),
        }
    }
}

/// Skip items.
///
/// Unsettled items are settled as skipped with the code `skipped_by_operator` and are no longer called. In a running
/// task this takes a second for items that wait; the others follow when their turn comes. In a task without a run, it
/// happens as soon as there is one. A call in flight is awaited: if it succeeds the item has succeeded, otherwise it
/// is skipped. Settled items stay unchanged. Skipping can't be undone. A task keeps up to 1,000 ranges.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/skips", tag = "tasks", operation_id = "skip_items",
    request_body = api::SkipItems, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 202, body = api::SkippingTask, headers(("etag" = String))),
        (status = 409, description = "wrong-state"),
        (status = 422, description = "validation-failed: no reason, no such items, or too many ranges"),
    )
)]
pub(crate) async fn skip(
    call: Call,
    PathTask(task): PathTask,
    Body(body): Body<api::SkipItems>,
) -> HttpResult {
    let named = Stretches::parse(&body.indexes).map_err(fault)?;
    let write = call.write(body.reason);
    let (told, skipping) = call.service.tasks.skip(task.id, named, &write).await?;
    let tag = headers::tag(told.task.version);
    let answer = api::SkippingTask {
        task: whole(&call.app, told.task).await,
        skipping: api::Skipping::of(skipping),
    };
    Ok(call.changed(answer, |answer| (StatusCode::ACCEPTED, [tag], answer))?)
}

pub(super) fn fault(fault: StretchFault) -> ServiceError {
    match &fault {
        StretchFault::Part(_) => ServiceError::invalid("/indexes", fault.to_string()),
        StretchFault::TooMany(_) => ServiceError::unprocessable("/indexes", fault.to_string()),
    }
}
