//! `POST /v1/tasks/{t}/redrives`: a new task over failures of another.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::access::Caller;
use super::body::Body;
use super::problem::Problem;
use super::seen_task::SeenTask;
use super::time::rfc3339;
use crate::domain::settings::{Auto, Burst, ErrorBudget, RateLimit};
use crate::domain::task::Canary;
use crate::domain::tuning_patch::TuningPatch;
use crate::ports::task_store::TaskView;
use crate::service::redrives::RedriveRequest;
use crate::service::{FieldFault, ServiceError};

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(redrive))
}

/// The longest texts. (The columns' widths; `ux.md` §2.1 for labels.)
const NAME_CHARS_MAX: usize = 190;
const REASON_CHARS_MAX: usize = 1000;
const LABELS_MAX: usize = 32;
const LABEL_CHARS_MAX: usize = 190;
const KEY_BYTES_MAX: usize = 255;

/// Which failures; nothing named is all of them.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Filter {
    /// Those of these groups.
    #[schema(max_items = 101, example = json!(["TIMEOUT"]))]
    #[serde(default)]
    codes: Vec<String>,
    /// Only these items: numbers and ranges, at most 10,000 items.
    #[schema(value_type = Option<String>, pattern = r"^[0-9]{1,19}(-[0-9]{1,19})?(,[0-9]{1,19}(-[0-9]{1,19})?)*$", max_length = 65536, example = "5,9-20")]
    indexes: Option<String>,
}

/// The first items of the new task, run before any other.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes what `Canary` reads")]
struct CanaryBody {
    /// How many.
    #[schema(minimum = 1)]
    items: u64,
    /// `stop` (the default) or `continue`, if none of them failed.
    #[schema(pattern = "^(stop|continue)$")]
    then: Option<String>,
}

/// A redrive. Settings that aren't named are those of the other task.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RedriveBody {
    /// Which failures; nothing named is all of them.
    #[serde(default)]
    filter: Filter,
    /// Whether the items get new keys, so that the business takes them for new ones.
    #[serde(default)]
    new_keys: bool,
    /// The new task's name, unique within the business.
    #[schema(min_length = 1, max_length = 190)]
    name: Option<String>,
    /// The new task's labels; those of the other task if none are named.
    labels: Option<BTreeMap<String, String>>,
    /// Higher goes first.
    priority: Option<i32>,
    /// Such as `50/s`, `3000/m` or `unlimited`.
    #[schema(value_type = Option<String>, max_length = 40, example = "50/s")]
    rate: Option<RateLimit>,
    /// Such as `100ms` or `50 items`.
    #[schema(value_type = Option<String>, max_length = 40)]
    burst: Option<Burst>,
    /// Calls' items in flight; a number or `auto`.
    #[schema(value_type = Option<serde_json::Value>)]
    concurrency: Option<Auto<NonZeroU32>>,
    /// The window; a number of items or `auto`.
    #[schema(value_type = Option<serde_json::Value>)]
    window: Option<Auto<NonZeroU32>>,
    /// Items of one call.
    #[schema(value_type = Option<u32>, minimum = 1)]
    batch: Option<NonZeroU32>,
    /// How long a call may take.
    #[schema(value_type = Option<String>, max_length = 40, example = "3s")]
    #[serde(default, with = "crate::domain::settings_serde::span_option")]
    timeout: Option<Duration>,
    /// Attempts before an item is given up again.
    #[schema(value_type = Option<u32>, minimum = 1)]
    max_attempts: Option<NonZeroU32>,
    /// Such as `10/s`, `1%`, `10/s 1%` or `none`.
    #[schema(value_type = Option<String>, max_length = 60)]
    error_budget: Option<ErrorBudget>,
    /// The first items, run before any other.
    #[schema(value_type = Option<CanaryBody>)]
    canary: Option<Canary>,
    /// Whether it starts at once.
    #[serde(default)]
    start: bool,
    /// Why, for the audit.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The new task.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RedriveMade {
    /// The new task.
    id: String,
    /// The task whose failures it does again.
    parent: String,
    /// The business.
    business: String,
    /// The name.
    name: Option<String>,
    /// Where it stands.
    #[schema(value_type = String)]
    status: &'static str,
    /// How many items it does again.
    total: u64,
    /// The rate as written.
    rate: String,
    /// The labels.
    labels: BTreeMap<String, String>,
    /// When it was made.
    #[schema(format = DateTime)]
    created_at: String,
}

impl From<TaskView> for RedriveMade {
    fn from(task: TaskView) -> RedriveMade {
        RedriveMade {
            id: task.id.to_string(),
            parent: task.parent.map(|id| id.to_string()).unwrap_or_default(),
            business: task.business,
            name: task.name,
            status: task.status.as_str(),
            total: task.total.0,
            rate: task.tuning.rate.to_string(),
            labels: task.labels,
            created_at: rfc3339(task.created_at),
        }
    }
}

/// Do failures again.
///
/// Makes a task over the failures of this one, at once, however many they are and while this one runs. The handler sees
/// the indexes and (unless `new_keys`) the idempotency keys under which it knows the items.
#[utoipa::path(
    post, path = "/v1/tasks/{t}/redrives", tag = "failures", operation_id = "redrive",
    security(("bearer" = ["operator", "business"])),
    params(
        ("t" = String, Path, description = "The task", pattern = "^t[1-9][0-9]{0,17}$", example = "t42"),
        ("idempotency-key" = Option<String>, Header, description = "Repeats with this key make no second task", max_length = 255)
    ),
    request_body = RedriveBody,
    responses(
        (status = 201, body = RedriveMade, headers(("location" = String, description = "The new task"))),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json"),
        (status = 422, body = Problem, content_type = "application/problem+json"),
    )
)]
async fn redrive(
    State(app): State<App>,
    caller: Caller,
    SeenTask(origin): SeenTask,
    headers: HeaderMap,
    Body(body): Body<RedriveBody>,
) -> Result<impl IntoResponse, Problem> {
    check(&body)?;
    let actor = caller.actor(body.reason.clone());
    let key = idempotency_key(&headers)?.map(|key| format!("redrive {} {key}", origin.id));
    let made = app.service.redrive(&origin, &request(body, key), &actor).await?;
    let location = format!("/v1/tasks/{}", made.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(RedriveMade::from(made))))
}

fn check(body: &RedriveBody) -> Result<(), ServiceError> {
    let mut faults = Vec::new();
    let chars = |text: &Option<String>| text.as_ref().map_or(1, |text| text.chars().count());
    if !(1..=NAME_CHARS_MAX).contains(&chars(&body.name)) {
        faults.push(FieldFault::new("/name", format!("a name has 1 to {NAME_CHARS_MAX} characters")));
    }
    if chars(&body.reason) > REASON_CHARS_MAX {
        faults
            .push(FieldFault::new("/reason", format!("a reason has at most {REASON_CHARS_MAX} characters")));
    }
    let is_long =
        |(key, value): (&String, &String)| key.chars().count().max(value.chars().count()) > LABEL_CHARS_MAX;
    if body.labels.as_ref().is_some_and(|labels| labels.len() > LABELS_MAX || labels.iter().any(is_long)) {
        let text = format!("there are at most {LABELS_MAX} labels of {LABEL_CHARS_MAX} characters");
        faults.push(FieldFault::new("/labels", text));
    }
    if faults.is_empty() { Ok(()) } else { Err(ServiceError::Invalid(faults)) }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ServiceError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| (1..=KEY_BYTES_MAX).contains(&text.len()));
    let fault = || {
        ServiceError::invalid("idempotency-key", format!("a key has 1 to {KEY_BYTES_MAX} visible characters"))
    };
    text.map(|text| Some(text.to_owned())).ok_or_else(fault)
}

fn request(body: RedriveBody, idempotency_key: Option<String>) -> RedriveRequest {
    let settings = TuningPatch {
        rate: body.rate,
        burst: body.burst,
        concurrency: body.concurrency,
        window: body.window,
        batch: body.batch,
        timeout: body.timeout,
        max_attempts: body.max_attempts,
        error_budget: body.error_budget,
        ..TuningPatch::default()
    };
    RedriveRequest {
        codes: body.filter.codes,
        indexes: body.filter.indexes,
        new_keys: body.new_keys,
        name: body.name,
        labels: body.labels,
        priority: body.priority,
        settings,
        canary: body.canary,
        start: body.start,
        idempotency_key,
    }
}
