//! `POST /v1/tasks/{task}/redrives`: a new task over failures of another.

use std::collections::BTreeMap;

use axum::response::IntoResponse;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::guard::idempotency::TakenKey;
use crate::http::guard::{Body, Call, DryRunQuery, reason};
use crate::http::problem::HttpResult;
use crate::http::tasks::bodies::{CanaryBody, IfEmpty};
use crate::http::tasks::changes::key;
use crate::http::tasks::path::PathTask;
use crate::http::tasks::settings::WithSettings;
use crate::http::tasks::{TaskJson, made};
use crate::service::tasks::create::TaskPlan;
use crate::service::tasks::redrives::RedriveRequest;
use crate::service::{FieldFault, ServiceError};

/// Groups of failures that a task can have: a hundred, and `OTHER`.
const CODES_MAX: usize = 101;
/// The longest list of indexes. Unit: bytes.
const INDEXES_BYTES_MAX: usize = 65_536;

/// Which failures: those that fulfil each member; nothing named is all of them.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilterBody {
    /// Those of these groups.
    #[schema(max_items = 101, example = json!(["TIMEOUT"]))]
    codes: Option<Vec<String>>,
    /// Only these items: numbers and ranges, at most 10,000 items.
    #[schema(
        pattern = r"^[0-9]{1,19}(-[0-9]{1,19})?(,[0-9]{1,19}(-[0-9]{1,19})?)*$",
        max_length = 65536,
        example = "5,9-20"
    )]
    indexes: Option<String>,
    /// Only those that are unconfirmed: nothing showed whether the handler failed for them alone.
    unconfirmed: Option<bool>,
}

/// A redrive. What isn't named is as the other task has it, but for the name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RedriveBody)]
pub(crate) struct RedriveMembers {
    /// Which failures; nothing named is all of them.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub(super) filter: Option<FilterBody>,
    /// Whether the items get new keys, so that the business takes them for new ones.
    pub(super) new_keys: Option<bool>,
    /// Whether it also takes items that earlier redrives made good or have under way; without, they are left out.
    pub(super) again: Option<bool>,
    /// Its name, unique within the business.
    #[schema(min_length = 1, max_length = 128, pattern = r"^[^\s/]+$")]
    pub(super) name: Option<String>,
    /// Labels, to find it by.
    pub(super) labels: Option<BTreeMap<String, String>>,
    /// Higher goes first.
    pub(super) priority: Option<i32>,
    /// The first items, run before any other.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub(super) canary: Option<CanaryBody>,
    /// What it is that no failure is left to do again: `ok`, the default (the answer says so, and no task is made), or `error`.
    pub(super) if_empty: Option<IfEmpty>,
    /// Whether it starts at once.
    pub(super) start: Option<bool>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    pub(super) reason: Option<String>,
}

/// The answer where no failure is left to do again: no task was made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NothingToDo {
    /// Items that are done again: 0.
    total: u64,
    /// Why, for people.
    detail: String,
    /// What may be wanted in its place.
    #[serde(rename = "try")]
    advice: Vec<String>,
}

impl From<Vec<FieldFault>> for NothingToDo {
    fn from(faults: Vec<FieldFault>) -> NothingToDo {
        let detail: Vec<String> = faults.iter().map(|fault| fault.detail.clone()).collect();
        NothingToDo {
            total: 0,
            detail: detail.join("; "),
            advice: faults.into_iter().filter_map(|fault| fault.advice).collect(),
        }
    }
}

/// The same, and settings.
pub(crate) type RedriveBody = WithSettings<RedriveMembers>;

impl RedriveBody {
    fn request(self, key: Option<String>) -> Result<RedriveRequest, ServiceError> {
        let WithSettings { own, tuning } = self;
        let plan = TaskPlan {
            tuning,
            name: own.name,
            labels: own.labels,
            priority: own.priority,
            canary: own.canary.map(CanaryBody::read).transpose()?,
            start: own.start.unwrap_or(false),
            key,
            ..TaskPlan::default()
        };
        let filter = own.filter.unwrap_or_default();
        let codes = filter.codes.unwrap_or_default();
        if codes.len() > CODES_MAX {
            let text = format!("at most {CODES_MAX} codes");
            return Err(ServiceError::invalid("/filter/codes", text));
        }
        let indexes = filter.indexes;
        if indexes
            .as_ref()
            .is_some_and(|text| text.len() > INDEXES_BYTES_MAX)
        {
            let text = format!("at most {INDEXES_BYTES_MAX} characters");
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
}

/// Do failures again.
///
/// Makes a task over the failures of this one, at once, however many they are and while this one runs. The handler sees
/// the indexes and (unless `new_keys`) the idempotency keys under which it knows the items. What an earlier redrive made
/// good, or has under way, is left out (unless `again`).
#[utoipa::path(
    post, path = "/v1/tasks/{task}/redrives", operation_id = "redrive_task", tag = "failures",
    request_body = Option<RedriveBody>, params(DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses(
        (status = 200, description = "No failure is left to do again", body = NothingToDo),
        (status = 201, body = TaskJson, headers(("location" = String), ("etag" = String))),
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
    let is_error = body.own.if_empty == Some(IfEmpty::Error);
    let request = body.request(key(taken))?;
    match call.service.tasks.redrive(&origin, request, &write).await {
        Err(ServiceError::NothingToDo(faults)) if !is_error => {
            Ok(Json(NothingToDo::from(faults)).into_response())
        }
        done => made(&call, done?).await,
    }
}
