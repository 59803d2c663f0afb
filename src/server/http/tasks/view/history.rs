//! History of a task: its runs, and its changes.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::Value;

use crate::http::answer::Of;
use crate::http::answer::page::{PageQuery, Paging};
use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::http::problem::HttpResult;
use crate::http::tasks::path::PathTask;
use crate::service::ServiceError;
use windrow_core::ids::{RunNo, ShardId, WallMs};
use windrow_engine::ports::access::audit_object::AuditObject;
use windrow_engine::ports::tasks::list::{AuditFilter, AuditRow, RunRecord};

impl Of<RunRecord> for api::Run {
    fn of(record: RunRecord) -> Self {
        let [succeeded, skipped, failed] = record.settled;
        api::Run {
            shard: record.shard.no,
            run: record.run.0,
            epoch: record.epoch.0,
            node: record.node,
            started_at: rfc3339(record.started_at),
            ended_at: record.ended_at.map(rfc3339),
            end_reason: record.end_reason,
            end_text: record.end_text,
            watermark: record.watermark.0,
            counts: api::RunCounts {
                succeeded,
                skipped,
                failed,
                parked: record.parked,
            },
        }
    }
}

/// List the runs of a task, newest first.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/runs", tag = "tasks", operation_id = "list_runs", params(PageQuery),
    security(("bearer" = ["viewer", "business"])), responses((status = 200, body = api::Page<api::Run>))
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
    Ok(paging.answer(page.map(api::Run::of)))
}

/// Get a run by shard and number.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/runs/{shard}/{run}", tag = "tasks", operation_id = "show_run",
    params(("shard" = String, Path, description = "Shard number", pattern = "^[0-9]{1,10}$"), ("run" = String, Path, description = "Run number within the shard", pattern = "^[0-9]{1,10}$")),
    security(("bearer" = ["viewer", "business"])), responses((status = 200, body = api::Run))
)]
pub(crate) async fn run(
    State(app): State<App>,
    PathTask(task): PathTask,
    Path((text, shard, run)): Path<(String, String, String)>,
) -> HttpResult<Json<api::Run>> {
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
    Ok(Json(api::Run::of(record)))
}

impl Of<AuditObject> for api::AuditObject {
    fn of(object: AuditObject) -> Self {
        api::AuditObject {
            kind: object.kind.as_str().to_owned(),
            name: object.name,
        }
    }
}

impl Of<AuditRow> for api::AuditEntry {
    fn of(row: AuditRow) -> Self {
        let read = |text: Option<String>| -> Value {
            text.and_then(|text| serde_json::from_str(&text).ok())
                .unwrap_or_default()
        };
        api::AuditEntry {
            id: row.id,
            at: rfc3339(row.entry.at),
            actor: row.entry.actor,
            role: row.role,
            source: row.entry.source,
            action: row.entry.action,
            object: row.object.map(api::AuditObject::of),
            task: row.task.map(|id| id.to_string()),
            business: row.business,
            reason: row.entry.reason,
            before: read(row.entry.before),
            after: read(row.entry.after),
            request_id: row.request_id,
        }
    }
}

/// List the changes of a task with actor and reason, newest first.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/revisions", tag = "tasks", operation_id = "task_revisions",
    params(PageQuery), security(("bearer" = ["viewer", "business"])),
    responses((status = 200, body = api::Page<api::AuditEntry>))
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

/// Time and id of the last entry on a page.
pub(crate) type AuditPlace = (i64, i64);

/// Returns a page of audit entries.
pub(crate) async fn audit_page(app: &App, filter: &AuditFilter, paging: &Paging<AuditPlace>) -> HttpResult {
    let after = paging.after.map(|(at, id)| (WallMs(at), id));
    let lists = &app.service.tasks.lists;
    let found = lists.audits(filter, after, paging.to_read()).await?;
    let page = paging.page(found, |row| (row.entry.at.0, row.id));
    Ok(paging.answer(page.map(api::AuditEntry::of)))
}
