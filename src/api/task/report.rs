//! Report of a task with its proof.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::failures::FailureGroup;
use super::view::TaskCounts;
use windrow_core::settings::table::Tuning;

/// The whole story of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Report {
    /// When it was made.
    #[schema(format = DateTime)]
    pub at: String,
    /// What the task was.
    pub task: ReportTask,
    /// Its terms: they add up to the total.
    pub counts: ReportCounts,
    /// Failures by code.
    pub failures: Vec<FailureGroup>,
    /// What is left of them after redrives.
    pub net: ReportNet,
    /// Tasks that did failures again.
    pub redrives: Vec<ReportRedrive>,
    /// The newest runs, newest first.
    pub runs: Vec<ReportRun>,
    /// Its parts.
    pub shards: Vec<ReportShard>,
    /// What people and windrow did, oldest first.
    pub timeline: Vec<ReportEntry>,
    /// Whether every item is accounted for.
    pub proof: ReportProof,
}

/// What a task was.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportTask {
    pub id: String,
    pub business: String,
    pub name: Option<String>,
    pub status: String,
    /// Only when finished.
    pub result: Option<String>,
    /// Only when stopping or stopped.
    pub stop_reason: Option<String>,
    pub status_text: Option<String>,
    /// The task whose failures it did again.
    pub parent: Option<String>,
    /// The source's description.
    pub source: Value,
    /// The settings as written.
    #[schema(value_type = Value)]
    pub settings: Tuning,
    pub labels: BTreeMap<String, String>,
    /// How often it was started.
    pub starts: u32,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub started_at: Option<String>,
    #[schema(format = DateTime)]
    pub finished_at: Option<String>,
    /// From its first start to its end. Unit: seconds.
    pub took_seconds: Option<f64>,
}

/// The terms of a task; the saved ones, so nothing is in flight.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportCounts {
    pub total: u64,
    #[serde(flatten)]
    pub terms: TaskCounts,
}

/// What is left of a task's failures after its redrives.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportNet {
    pub failed: u64,
    /// Settled well by redrives, and redrives of them.
    pub recovered: u64,
    pub still_failed: u64,
    /// False only where redrives may share items and there are too many to look at each: then at least so many failed
    /// still.
    pub exact: bool,
}

/// A redrive.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportRedrive {
    pub id: String,
    pub name: Option<String>,
    pub status: String,
    pub result: Option<String>,
    pub stop_reason: Option<String>,
    pub counts: ReportCounts,
}

/// A run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportRun {
    pub shard: u32,
    pub run: u32,
    pub node: Option<String>,
    #[schema(format = DateTime)]
    pub started_at: String,
    #[schema(format = DateTime)]
    pub ended_at: Option<String>,
    pub end_reason: Option<String>,
    /// Why, for people.
    pub end_text: Option<String>,
    pub watermark: u64,
    /// Items of its shard that were settled at its end.
    pub settled: u64,
}

/// A part of the task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportShard {
    pub shard: u32,
    pub state: String,
    pub first: u64,
    /// One past the last index that was to be done.
    pub end: u64,
    pub range_end: u64,
    pub watermark: u64,
    pub high_water: u64,
}

/// Something that was done to the task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportEntry {
    #[schema(format = DateTime)]
    pub at: String,
    pub actor: String,
    pub source: String,
    pub action: String,
    pub reason: Option<String>,
}

/// Whether every item is accounted for, from sums over parts and groups.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportProof {
    /// The task is finished and each check holds.
    pub holds: bool,
    pub checks: Vec<ReportCheck>,
    /// What can't be proved from here.
    pub limit: String,
}

/// One step of the proof.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportCheck {
    pub claim: String,
    pub holds: bool,
    pub evidence: String,
}
