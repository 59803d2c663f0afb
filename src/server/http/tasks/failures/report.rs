//! `GET /v1/tasks/{task}/report`: complete history of a task as JSON or Markdown.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::http::answer::Of;
use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::http::guard::{Params, headers};
use crate::http::problem::HttpResult;
use crate::http::tasks::failures::report_markdown::markdown;
use crate::http::tasks::failures::{add_data, add_origins, value};
use crate::http::tasks::path::PathTask;
use crate::service::failures::item_data::Members;
use crate::service::tasks::report::{LIMIT_OF_PROOF, Report};
use windrow_engine::ports::tasks::list::RunRecord;
use windrow_engine::ports::tasks::store::{AuditEntry, ShardLife, TaskView};

impl Of<&TaskView> for api::ReportCounts {
    fn of(task: &TaskView) -> Self {
        api::ReportCounts {
            total: task.total.0,
            terms: api::TaskCounts::of(task),
        }
    }
}

impl Of<Report> for api::Report {
    fn of(report: Report) -> Self {
        let holds = report.is_proved();
        let Report {
            at,
            facts,
            entries,
            redrives,
            net,
            proof,
        } = report;
        let checks = proof.into_iter().map(|check| api::ReportCheck {
            claim: check.claim.to_owned(),
            holds: check.holds,
            evidence: check.evidence,
        });
        api::Report {
            at: rfc3339(at),
            counts: api::ReportCounts::of(&facts.task),
            failures: facts.groups.into_iter().map(api::FailureGroup::of).collect(),
            net: api::ReportNet {
                failed: net.failed,
                recovered: net.recovered,
                still_failed: net.still_failed,
                exact: net.is_exact,
            },
            redrives: redrives.iter().map(redrive_part).collect(),
            runs: facts.runs.into_iter().map(run_part).collect(),
            shards: facts.task.shards.iter().map(shard_part).collect(),
            timeline: entries.into_iter().map(entry).collect(),
            proof: api::ReportProof {
                holds,
                checks: checks.collect(),
                limit: LIMIT_OF_PROOF.to_owned(),
            },
            task: task_part(&facts.task),
        }
    }
}

fn task_part(task: &TaskView) -> api::ReportTask {
    let took = task
        .started_at
        .zip(task.finished_at)
        .map(|(begin, end)| end.since(begin).as_secs_f64());
    api::ReportTask {
        id: task.id.to_string(),
        business: task.business.clone(),
        name: task.spec.name.clone(),
        status: task.status.as_str().to_owned(),
        result: task.result.map(|result| result.as_str()).map(str::to_owned),
        stop_reason: task.stop_reason.map(|reason| reason.as_str()).map(str::to_owned),
        status_text: task.status_text.clone(),
        parent: task.parent.map(|id| id.to_string()),
        source: value(&task.source),
        settings: task.tuning.clone(),
        labels: task.spec.labels.clone(),
        starts: task.start_no,
        created_at: rfc3339(task.created_at),
        started_at: task.started_at.map(rfc3339),
        finished_at: task.finished_at.map(rfc3339),
        took_seconds: took,
    }
}

fn redrive_part(task: &TaskView) -> api::ReportRedrive {
    api::ReportRedrive {
        id: task.id.to_string(),
        name: task.spec.name.clone(),
        status: task.status.as_str().to_owned(),
        result: task.result.map(|result| result.as_str()).map(str::to_owned),
        stop_reason: task.stop_reason.map(|reason| reason.as_str()).map(str::to_owned),
        counts: api::ReportCounts::of(task),
    }
}

fn run_part(run: RunRecord) -> api::ReportRun {
    api::ReportRun {
        shard: run.shard.no,
        run: run.run.0,
        node: run.node,
        started_at: rfc3339(run.started_at),
        ended_at: run.ended_at.map(rfc3339),
        end_reason: run.end_reason,
        end_text: run.end_text,
        watermark: run.watermark.0,
        settled: run.settled.iter().sum(),
    }
}

fn shard_part(shard: &ShardLife) -> api::ReportShard {
    api::ReportShard {
        shard: shard.no,
        state: shard.state.as_str().to_owned(),
        first: shard.first.0,
        end: shard.end.0,
        range_end: shard.range_end.0,
        watermark: shard.watermark.0,
        high_water: shard.high_water.0,
    }
}

fn entry(entry: AuditEntry) -> api::ReportEntry {
    api::ReportEntry {
        at: rfc3339(entry.at),
        actor: entry.actor,
        source: entry.source,
        action: entry.action,
        reason: entry.reason,
    }
}

/// Output format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// JSON, for programs to read.
    Json,
    /// Markdown, for people to read.
    Markdown,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReportParams {
    /// Output format; default: from `Accept`, otherwise JSON.
    #[param(inline)]
    format: Option<Format>,
}

/// Get the report of a task.
///
/// Describes the task and its outcome, and proves that every item is accounted for.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/report", tag = "tasks", operation_id = "task_report",
    security(("bearer" = ["viewer", "business"])), params(ReportParams),
    responses(
        (status = 200, description = "The report", content((api::Report = "application/json"), (String = "text/markdown"))),
    )
)]
pub(crate) async fn report(
    State(app): State<App>,
    PathTask(task): PathTask,
    Params(params): Params<ReportParams>,
    headers: HeaderMap,
) -> HttpResult {
    let mut body = api::Report::of(app.service.reports.of_task(task.id).await?);
    add_origins(&app, &task, &mut body.failures).await?;
    add_data(&app, &task, &Members::of_list("*", &task), &mut body.failures).await?;
    let accepts_markdown = headers::accepts(&headers, "text/markdown");
    if params
        .format
        .map_or(!accepts_markdown, |format| format == Format::Json)
    {
        return Ok(Json(body).into_response());
    }
    let headers = [
        (header::CONTENT_TYPE, "text/markdown; charset=utf-8".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("inline; filename=\"{}-report.md\"", task.id),
        ),
    ];
    Ok((headers, markdown(&body)).into_response())
}
