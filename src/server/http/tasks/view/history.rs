//! What was: the runs of a task, and who changed what of it.

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::http::App;
use crate::http::answer::page::{Page, PageQuery, Paging};
use crate::http::answer::time::rfc3339;
use crate::http::problem::HttpResult;
use crate::http::tasks::path::PathTask;
use crate::service::ServiceError;
use windrow_core::ids::{RunNo, ShardId, WallMs};
use windrow_engine::ports::access::audit_object::AuditObject;
use windrow_engine::ports::tasks::list::{AuditFilter, AuditRow, RunRecord};

/// One ownership of a shard.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub(crate) struct RunJson {
    /// The shard's number.
    shard: u32,
    /// The run's number within the shard.
    run: u32,
    /// Its fencing number.
    epoch: u64,
    /// The node; null when an older program began it and has forgotten.
    node: Option<String>,
    /// When it began.
    started_at: String,
    /// When it gave the shard back, or when it was taken from its dead node; null until then.
    ended_at: Option<String>,
    /// `released`, `done`, `stopped`, `recovering`, or `lost` with its node.
    end_reason: Option<String>,
    /// Why, for people: what made it stop or recover, or who took the shard from its node; null where `end_reason` says
    /// it all.
    end_text: Option<String>,
    /// The shard's low water at its end; that of the last checkpoint while it runs.
    low_water: u64,
    /// The shard's items then.
    counts: RunCounts,
}

/// Items of a shard when a run of it ended; as of the last checkpoint while it runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunCounts {
    /// Settled well.
    succeeded: u64,
    /// Nothing to do.
    skipped: u64,
    /// Failed for good.
    abandoned: u64,
    /// Waiting outside the window.
    parked: u64,
}

impl From<RunRecord> for RunJson {
    fn from(record: RunRecord) -> RunJson {
        let [succeeded, skipped, abandoned] = record.settled;
        RunJson {
            shard: record.shard.no,
            run: record.run.0,
            epoch: record.epoch.0,
            node: record.node,
            started_at: rfc3339(record.started_at),
            ended_at: record.ended_at.map(rfc3339),
            end_reason: record.end_reason,
            end_text: record.end_text,
            low_water: record.low_water.0,
            counts: RunCounts {
                succeeded,
                skipped,
                abandoned,
                parked: record.parked,
            },
        }
    }
}

/// List the runs of a task, newest first.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/runs", tag = "tasks", operation_id = "list_runs", params(PageQuery),
    security(("bearer" = ["viewer", "business"])), responses((status = 200, body = Page<RunJson>))
)]
pub(crate) async fn runs(
    State(app): State<App>,
    PathTask(task): PathTask,
    paging: Paging<(i64, u32, u32)>,
) -> HttpResult {
    let after = paging.after;
    let after = after.map(|(at, no, run)| (WallMs(at), ShardId { task: task.id, no }, RunNo(run)));
    let found = app.service.tasks.runs(&task, after, paging.to_read()).await?;
    let page = paging.page(found, |run| (run.started_at.0, run.shard.no, run.run.0));
    Ok(paging.answer(page.map(RunJson::from)))
}

/// Look at a run.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/runs/{shard}/{run}", tag = "tasks", operation_id = "show_run",
    params(("shard" = String, Path, description = "The shard's number", pattern = "^[0-9]{1,10}$"), ("run" = String, Path, description = "The run's number within the shard", pattern = "^[0-9]{1,10}$")),
    security(("bearer" = ["viewer", "business"])), responses((status = 200, body = RunJson))
)]
pub(crate) async fn run(
    State(app): State<App>,
    PathTask(task): PathTask,
    Path((text, shard, run)): Path<(String, String, String)>,
) -> HttpResult<Json<RunJson>> {
    let number = |text: &str| {
        text.parse::<i32>()
            .ok()
            .and_then(|number| u32::try_from(number).ok())
    };
    let (Some(no), Some(run)) = (number(&shard), number(&run)) else {
        let name = format!("{text}.{shard}.{run}");
        return Err(ServiceError::NotFound { what: "run", name }.into());
    };
    let tasks = &app.service.tasks;
    let record = tasks.run(&task, no, RunNo(run)).await?;
    Ok(Json(RunJson::from(record)))
}

/// The thing that a change touched.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditObject)]
pub(crate) struct ObjectJson {
    /// `task`, `schedule`, `limit`, `token`, `session`, `business`, `dataset`, `node` or `store`.
    kind: &'static str,
    /// Its name: `t12` of a task, `business/name` of a schedule.
    name: String,
}

impl From<AuditObject> for ObjectJson {
    fn from(object: AuditObject) -> ObjectJson {
        ObjectJson {
            kind: object.kind.as_str(),
            name: object.name,
        }
    }
}

/// One entry of the audit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(crate) struct AuditJson {
    /// Grows from entry to entry.
    id: i64,
    /// When.
    at: String,
    /// By whom.
    actor: String,
    /// `cli`, `api`, `ui`, `business` or `system`.
    source: String,
    /// What, such as `task.start`.
    action: String,
    /// The thing that was touched; null where an older program noted it without.
    object: Option<ObjectJson>,
    /// The task, if it is about one.
    task: Option<String>,
    /// The business, if it is about one.
    business: Option<String>,
    /// Why.
    reason: Option<String>,
    /// What was.
    before: Value,
    /// What is.
    after: Value,
    /// The request that asked for it.
    request_id: Option<String>,
}

impl From<AuditRow> for AuditJson {
    fn from(row: AuditRow) -> AuditJson {
        let read = |text: Option<String>| -> Value {
            text.and_then(|text| serde_json::from_str(&text).ok())
                .unwrap_or_default()
        };
        AuditJson {
            id: row.id,
            at: rfc3339(row.entry.at),
            actor: row.entry.actor,
            source: row.entry.source,
            action: row.entry.action,
            object: row.object.map(ObjectJson::from),
            task: row.task.map(|id| id.to_string()),
            business: row.business,
            reason: row.entry.reason,
            before: read(row.entry.before),
            after: read(row.entry.after),
            request_id: row.request_id,
        }
    }
}

/// Who changed what of a task, and why; newest first.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/revisions", tag = "tasks", operation_id = "task_revisions",
    params(PageQuery), security(("bearer" = ["viewer", "business"])),
    responses((status = 200, body = Page<AuditJson>))
)]
pub(crate) async fn revisions(
    State(app): State<App>,
    PathTask(task): PathTask,
    paging: Paging<AuditPlace>,
) -> HttpResult {
    let filter = AuditFilter {
        task: Some(task.id),
        ..AuditFilter::default()
    };
    audit_page(&app, &filter, &paging).await
}

/// The time and the id of an entry, where a page ends.
pub(crate) type AuditPlace = (i64, i64);

/// A page of the audit.
pub(crate) async fn audit_page(app: &App, filter: &AuditFilter, paging: &Paging<AuditPlace>) -> HttpResult {
    let after = paging.after.map(|(at, id)| (WallMs(at), id));
    let lists = &app.service.tasks.lists;
    let found = lists.audits(filter, after, paging.to_read()).await?;
    let page = paging.page(found, |row| (row.entry.at.0, row.id));
    Ok(paging.answer(page.map(AuditJson::from)))
}
