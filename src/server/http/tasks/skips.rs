//! Skipping items of a task because people say so: `POST /v1/tasks/{task}/skips`.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::path::PathTask;
use super::{TaskJson, whole};
use crate::http::guard::{Body, Call, DryRunQuery, headers, reason};
use crate::http::problem::HttpResult;
use crate::service::ServiceError;
use crate::service::tasks::skip::Skipping;
use windrow_core::explain::counted;
use windrow_core::items::stretches::{StretchFault, Stretches};
use windrow_core::life::SKIPPED_BY_OPERATOR;

/// Which items are skipped, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SkipBody {
    /// Their indexes: numbers and ranges with both ends, separated by commas.
    #[schema(min_length = 1, max_length = 65536, examples("5-9,12"))]
    indexes: String,
    /// Why, for the audit; it is needed.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The task, and what becomes of the items that were named.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SkippingTask)]
pub(crate) struct SkippingTaskJson {
    #[serde(flatten)]
    task: TaskJson,
    /// What becomes of them.
    skipping: SkippingJson,
}

/// Items that are skipped because people say so.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Skipping)]
pub(crate) struct SkippingJson {
    /// What was named, in order.
    indexes: String,
    /// How many these are.
    items: u64,
    /// How many of them were settled, as last saved: they stay as they are. What was settled in the last second comes on top.
    already_settled: u64,
    /// How many of them are left out anyway, at the head or by an early finish.
    excluded: u64,
    /// How many are skipped, unless a call for them that is out succeeds.
    skipped: u64,
    /// Their code: `skipped_by_operator`.
    code: &'static str,
}

/// All items of a task that people want skipped.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskSkips)]
pub(crate) struct SkipsJson {
    /// Which, in order: those among them that were settled before stay as they were.
    indexes: String,
    /// How many these are.
    items: u64,
    /// The code of those that were skipped for it: `skipped_by_operator`.
    code: &'static str,
}

impl SkipsJson {
    /// None where nothing was ever named.
    pub(crate) fn of(skips: &Stretches) -> Option<SkipsJson> {
        (!skips.is_empty()).then(|| SkipsJson {
            indexes: skips.to_string(),
            items: skips.items(),
            code: SKIPPED_BY_OPERATOR,
        })
    }

    /// For people, of a task that goes on: behind what is said of it otherwise.
    pub(crate) fn clause(&self) -> String {
        format!(
            "{} are skipped without a call, as people asked (see its revisions)",
            counted(self.items, "item")
        )
    }
}

impl From<Skipping> for SkippingJson {
    fn from(skipping: Skipping) -> SkippingJson {
        let (items, gone) = (skipping.named.items(), skipping.settled + skipping.excluded);
        SkippingJson {
            indexes: skipping.named.to_string(),
            items,
            already_settled: skipping.settled,
            excluded: skipping.excluded,
            skipped: items.saturating_sub(gone),
            code: SKIPPED_BY_OPERATOR,
        }
    }
}

/// Skip items.
///
/// Items that aren't settled are settled as skipped, with the code `skipped_by_operator`, and are not called any more: those
/// that wait within a second where the task runs, the others when their turn comes, and without a run as soon as there is one.
/// A call that is out is awaited: where it succeeds the item has succeeded, else it is skipped. What is settled stays as it is.
/// It can't be taken back. A task keeps up to 1,000 ranges.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/skips", tag = "tasks", operation_id = "skip_items",
    request_body = SkipBody, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 202, body = SkippingTaskJson, headers(("etag" = String))),
        (status = 409, description = "wrong-state"),
        (status = 422, description = "validation-failed: no reason, no such items, or too many ranges"),
    )
)]
pub(crate) async fn skip(call: Call, PathTask(task): PathTask, Body(body): Body<SkipBody>) -> HttpResult {
    let named = Stretches::parse(&body.indexes).map_err(fault)?;
    let write = call.write(body.reason);
    let (told, skipping) = call.service.tasks.skip(task.id, named, &write).await?;
    let tag = headers::tag(told.task.version);
    let answer = SkippingTaskJson {
        task: whole(&call.app, told.task).await,
        skipping: SkippingJson::from(skipping),
    };
    Ok(call.changed(answer, |answer| (StatusCode::ACCEPTED, [tag], answer))?)
}

fn fault(fault: StretchFault) -> ServiceError {
    match &fault {
        StretchFault::Part(_) => ServiceError::invalid("/indexes", fault.to_string()),
        StretchFault::TooMany(_) => ServiceError::unprocessable("/indexes", fault.to_string()),
    }
}
