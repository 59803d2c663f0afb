//! `POST /v1/tasks/{task}/redrives` and `…/replays`: a new task for the failures of another one, or for named items.

use axum::response::IntoResponse;
use axum::{Extension, Json};

use crate::http::answer::Of;
use crate::http::guard::idempotency::TakenKey;
use crate::http::guard::{Body, Call, DryRunQuery};
use crate::http::problem::HttpResult;
use crate::http::tasks::changes::key;
use crate::http::tasks::made;
use crate::http::tasks::path::PathTask;
use crate::http::tasks::skips;
use crate::service::tasks::create::TaskPlan;
use crate::service::tasks::redrives::RedriveRequest;
use crate::service::tasks::replays::ReplayRequest;
use crate::service::{FieldFault, ServiceError};
use windrow_core::items::stretches::Stretches;

/// Most failure groups of a task: one hundred and `OTHER`.
const CODES_MAX: usize = 101;
/// Longest list of indexes, in bytes.
const INDEXES_BYTES_MAX: usize = 65_536;

impl Of<Vec<FieldFault>> for api::NothingToDo {
    fn of(faults: Vec<FieldFault>) -> Self {
        let detail: Vec<String> = faults.iter().map(|fault| fault.detail.clone()).collect();
        api::NothingToDo {
            total: 0,
            detail: detail.join("; "),
            advice: faults.into_iter().filter_map(|fault| fault.advice).collect(),
        }
    }
}

pub(crate) type RedriveBody = api::Body<api::RedriveTask>;

fn redrive_request(body: RedriveBody, key: Option<String>) -> Result<RedriveRequest, ServiceError> {
    let api::Body { own, spec, tuning } = body;
    let plan = TaskPlan {
        spec,
        tuning,
        start: own.start.unwrap_or(false),
        key,
        ..TaskPlan::default()
    };
    let filter = own.filter.unwrap_or_default();
    let codes = filter.codes.unwrap_or_default();
    if codes.len() > CODES_MAX {
        let text = format!("must be at most {CODES_MAX} codes");
        return Err(ServiceError::invalid("/filter/codes", text));
    }
    let indexes = filter.indexes;
    if indexes
        .as_ref()
        .is_some_and(|text| text.len() > INDEXES_BYTES_MAX)
    {
        let text = format!("must be at most {INDEXES_BYTES_MAX} characters");
        return Err(ServiceError::invalid("/filter/indexes", text));
    }
    Ok(RedriveRequest {
        codes,
        indexes,
        unconfirmed: filter.unconfirmed.unwrap_or(false),
        new_keys: own.new_keys.unwrap_or(false),
        again: own.again.unwrap_or(false),
        plan,
    })
}

/// Redrive failures.
///
/// Creates a task for the failures of this one immediately, whatever their number and even while this task runs. The
/// handler gets the original indexes and, unless `new_keys` is set, the original idempotency keys. Items that an
/// earlier redrive recovered or is still working on are left out, unless `again` is set.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/redrives", operation_id = "redrive_task", tag = "failures",
    request_body = Option<RedriveBody>, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, description = "No failure is left to redrive", body = api::NothingToDo),
        (status = 201, body = api::Task, headers(("location" = String), ("etag" = String))),
        (status = 409, description = "name-taken, conflict"),
        (status = 422, description = "validation-failed, business-rejected"),
    )
)]
pub(crate) async fn redrive(
    call: Call,
    PathTask(origin): PathTask,
    taken: Option<Extension<TakenKey>>,
    Body(mut body): Body<RedriveBody>,
) -> HttpResult {
    let write = call.write(body.own.reason.take());
    let is_error = body.own.if_empty == Some(api::IfEmpty::Error);
    let request = redrive_request(body, key(taken))?;
    match call.service.tasks.redrive(&origin, request, &write).await {
        Err(ServiceError::NothingToDo(faults)) if !is_error => {
            Ok(Json(api::NothingToDo::of(faults)).into_response())
        }
        done => made(&call, done?).await,
    }
}

pub(crate) type ReplayBody = api::Body<api::ReplayTask>;

/// Replay items.
///
/// Creates a task that sends named items again with their data, whether they succeeded, were skipped or failed, while
/// this task runs or after its end. Unless `same_keys` is set the items get new idempotency keys, so a business that
/// knows the old ones does the work again. The outcome of this task stays as it is: the replay has results of its own,
/// and an item that failed here and succeeds there counts as recovered, as after a redrive.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/replays", operation_id = "replay_items", tag = "failures",
    request_body = ReplayBody, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 201, body = api::Task, headers(("location" = String), ("etag" = String))),
        (status = 409, description = "conflict: an item isn't settled; name-taken"),
        (status = 422, description = "validation-failed: no such items, too many, or their data is gone"),
    )
)]
pub(crate) async fn replay(
    call: Call,
    PathTask(origin): PathTask,
    taken: Option<Extension<TakenKey>>,
    Body(mut body): Body<ReplayBody>,
) -> HttpResult {
    let write = call.write(body.own.reason.take());
    let api::Body { own, spec, tuning } = body;
    let request = ReplayRequest {
        items: Stretches::parse(&own.indexes).map_err(skips::fault)?,
        same_keys: own.same_keys.unwrap_or(false),
        plan: TaskPlan {
            spec,
            tuning,
            start: own.start.unwrap_or(false),
            key: key(taken),
            ..TaskPlan::default()
        },
    };
    made(&call, call.service.tasks.replay(&origin, request, &write).await?).await
}
