//! `GET /v1/tasks/{task}/report`: the whole story of a task as JSON or Markdown.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::http::App;
use crate::http::answer::time::rfc3339;
use crate::http::guard::{Params, headers};
use crate::http::problem::HttpResult;
use crate::http::tasks::failures::report_markdown::markdown;
use crate::http::tasks::failures::{Group, add_data, add_origins, value};
use crate::http::tasks::path::PathTask;
use crate::http::tasks::view::shown::CountsOfTask;
use crate::service::failures::item_data::Members;
use crate::service::tasks::report::{LIMIT_OF_PROOF, Report};
use windrow_core::task::Tuning;
use windrow_engine::ports::tasks::list::RunRecord;
use windrow_engine::ports::tasks::store::{AuditEntry, ShardLife, TaskView};

/// The whole story of a task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReportBody {
    /// When it was made.
    #[schema(format = DateTime)]
    pub(crate) at: String,
    /// What the task was.
    pub(crate) task: TaskPart,
    /// Its terms: they add up to the total.
    pub(crate) counts: Counts,
    /// Failures by code.
    pub(crate) failures: Vec<Group>,
    /// What is left of them after redrives.
    pub(crate) net: Net,
    /// Tasks that did failures again.
    pub(crate) redrives: Vec<RedrivePart>,
    /// The newest runs, newest first.
    pub(crate) runs: Vec<RunPart>,
    /// Its parts.
    pub(crate) shards: Vec<ShardPart>,
    /// What people and windrow did, oldest first.
    pub(crate) timeline: Vec<Entry>,
    /// Whether every item is accounted for.
    pub(crate) proof: Proof,
}

/// What a task was.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaskPart {
    pub(crate) id: String,
    pub(crate) business: String,
    pub(crate) name: Option<String>,
    pub(crate) status: &'static str,
    /// Only when finished.
    pub(crate) result: Option<&'static str>,
    /// Only when stopping or stopped.
    pub(crate) stop_reason: Option<&'static str>,
    pub(crate) status_text: Option<String>,
    /// The task whose failures it did again.
    pub(crate) parent: Option<String>,
    /// The source's description.
    pub(crate) source: Value,
    /// The settings as written.
    #[schema(value_type = Value)]
    pub(crate) settings: Tuning,
    pub(crate) labels: std::collections::BTreeMap<String, String>,
    /// How often it was started.
    pub(crate) starts: u32,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    #[schema(format = DateTime)]
    pub(crate) started_at: Option<String>,
    #[schema(format = DateTime)]
    pub(crate) finished_at: Option<String>,
    /// From its first start to its end. Unit: seconds.
    pub(crate) took_seconds: Option<f64>,
}

/// The terms of a task; the saved ones, so nothing is in flight.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Counts {
    pub(crate) total: u64,
    #[serde(flatten)]
    pub(crate) terms: CountsOfTask,
}

impl Counts {
    fn of(task: &TaskView) -> Counts {
        Counts {
            total: task.total.0,
            terms: CountsOfTask::of(task),
        }
    }
}

/// What is left of a task's failures after its redrives.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Net {
    pub(crate) abandoned: u64,
    /// Settled well by redrives, and redrives of them.
    pub(crate) made_good: u64,
    pub(crate) still_failed: u64,
    /// False only where redrives may share items and there are too many to look at each: then at least so many failed
    /// still.
    pub(crate) exact: bool,
}

/// A redrive.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RedrivePart {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) status: &'static str,
    pub(crate) result: Option<&'static str>,
    pub(crate) stop_reason: Option<&'static str>,
    pub(crate) counts: Counts,
}

/// A run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunPart {
    pub(crate) shard: u32,
    pub(crate) run: u32,
    pub(crate) node: Option<String>,
    #[schema(format = DateTime)]
    pub(crate) started_at: String,
    #[schema(format = DateTime)]
    pub(crate) ended_at: Option<String>,
    pub(crate) end_reason: Option<String>,
    /// Why, for people.
    pub(crate) end_text: Option<String>,
    pub(crate) low_water: u64,
    /// Items of its shard that were settled at its end.
    pub(crate) settled: u64,
}

/// A part of the task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShardPart {
    pub(crate) shard: u32,
    pub(crate) state: &'static str,
    pub(crate) first: u64,
    /// One past the last index that was to be done.
    pub(crate) end: u64,
    pub(crate) range_end: u64,
    pub(crate) low_water: u64,
    pub(crate) high_water: u64,
}

/// Something that was done to the task.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReportEntry)]
pub(crate) struct Entry {
    #[schema(format = DateTime)]
    pub(crate) at: String,
    pub(crate) actor: String,
    pub(crate) source: String,
    pub(crate) action: String,
    pub(crate) reason: Option<String>,
}

/// Whether every item is accounted for, from sums over parts and groups.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Proof {
    /// The task is finished and each check holds.
    pub(crate) holds: bool,
    pub(crate) checks: Vec<CheckPart>,
    /// What can't be proved from here.
    pub(crate) limit: &'static str,
}

/// One step of the proof.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckPart {
    pub(crate) claim: &'static str,
    pub(crate) holds: bool,
    pub(crate) evidence: String,
}

impl From<Report> for ReportBody {
    fn from(report: Report) -> ReportBody {
        let holds = report.is_proved();
        let Report {
            at,
            facts,
            entries,
            redrives,
            net,
            proof,
        } = report;
        let checks = proof.into_iter().map(|check| CheckPart {
            claim: check.claim,
            holds: check.holds,
            evidence: check.evidence,
        });
        ReportBody {
            at: rfc3339(at),
            counts: Counts::of(&facts.task),
            failures: facts.groups.into_iter().map(Group::from).collect(),
            net: Net {
                abandoned: net.abandoned,
                made_good: net.made_good,
                still_failed: net.still_failed,
                exact: net.is_exact,
            },
            redrives: redrives.iter().map(redrive_part).collect(),
            runs: facts.runs.into_iter().map(run_part).collect(),
            shards: facts.task.shards.iter().map(shard_part).collect(),
            timeline: entries.into_iter().map(entry).collect(),
            proof: Proof {
                holds,
                checks: checks.collect(),
                limit: LIMIT_OF_PROOF,
            },
            task: task_part(&facts.task),
        }
    }
}

fn task_part(task: &TaskView) -> TaskPart {
    let took = task
        .started_at
        .zip(task.finished_at)
        .map(|(begin, end)| end.since(begin).as_secs_f64());
    TaskPart {
        id: task.id.to_string(),
        business: task.business.clone(),
        name: task.name.clone(),
        status: task.status.as_str(),
        result: task.result.map(|result| result.as_str()),
        stop_reason: task.stop_reason.map(|reason| reason.as_str()),
        status_text: task.status_text.clone(),
        parent: task.parent.map(|id| id.to_string()),
        source: value(&task.source),
        settings: task.tuning.clone(),
        labels: task.labels.clone(),
        starts: task.start_no,
        created_at: rfc3339(task.created_at),
        started_at: task.started_at.map(rfc3339),
        finished_at: task.finished_at.map(rfc3339),
        took_seconds: took,
    }
}

fn redrive_part(task: &TaskView) -> RedrivePart {
    RedrivePart {
        id: task.id.to_string(),
        name: task.name.clone(),
        status: task.status.as_str(),
        result: task.result.map(|result| result.as_str()),
        stop_reason: task.stop_reason.map(|reason| reason.as_str()),
        counts: Counts::of(task),
    }
}

fn run_part(run: RunRecord) -> RunPart {
    RunPart {
        shard: run.shard.no,
        run: run.run.0,
        node: run.node,
        started_at: rfc3339(run.started_at),
        ended_at: run.ended_at.map(rfc3339),
        end_reason: run.end_reason,
        end_text: run.end_text,
        low_water: run.low_water.0,
        settled: run.settled.iter().sum(),
    }
}

fn shard_part(shard: &ShardLife) -> ShardPart {
    ShardPart {
        shard: shard.no,
        state: shard.state.as_str(),
        first: shard.first.0,
        end: shard.end.0,
        range_end: shard.range_end.0,
        low_water: shard.low_water.0,
        high_water: shard.high_water.0,
    }
}

fn entry(entry: AuditEntry) -> Entry {
    Entry {
        at: rfc3339(entry.at),
        actor: entry.actor,
        source: entry.source,
        action: entry.action,
        reason: entry.reason,
    }
}

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// For machines.
    Json,
    /// For people.
    Markdown,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReportParams {
    /// How it is written; else as `Accept` says, JSON without.
    #[param(inline)]
    format: Option<Format>,
}

/// Report.
///
/// What the task was, what came of it, and the proof that every item is accounted for.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/report", tag = "tasks", operation_id = "task_report",
    security(("bearer" = ["viewer", "business"])), params(ReportParams),
    responses(
        (status = 200, description = "The report", content((ReportBody = "application/json"), (String = "text/markdown"))),
    )
)]
pub(crate) async fn report(
    State(app): State<App>,
    PathTask(task): PathTask,
    Params(params): Params<ReportParams>,
    headers: HeaderMap,
) -> HttpResult {
    let mut body = ReportBody::from(app.service.reports.of_task(task.id).await?);
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
