//! Report of a task, with its proof.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::failures::FailureGroup;
use super::view::TaskCounts;
use windrow_core::settings::table::Tuning;

/// Complete report of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Report {
    /// Time when the report was made.
    #[schema(format = DateTime)]
    pub at: String,
    /// Identity and settings of the task.
    pub task: ReportTask,
    /// Item counts, which add up to the total.
    pub counts: ReportCounts,
    /// Failures grouped by code.
    pub failures: Vec<FailureGroup>,
    /// Failures that remain after redrives.
    pub net: ReportNet,
    /// Redrives of the task's failures.
    pub redrives: Vec<ReportRedrive>,
    /// Latest runs, newest first.
    pub runs: Vec<ReportRun>,
    /// Shards of the task.
    pub shards: Vec<ReportShard>,
    /// Actions of people and of Windrow, oldest first.
    pub timeline: Vec<ReportEntry>,
    /// Proof that every item is accounted for.
    pub proof: ReportProof,
}

/// Identity and settings of a reported task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportTask {
    pub id: String,
    pub business: String,
    pub name: Option<String>,
    pub status: String,
    /// Result; only when finished.
    pub result: Option<String>,
    /// Reason; only when stopping or stopped.
    pub stop_reason: Option<String>,
    pub status_text: Option<String>,
    /// Task whose failures it redrives.
    pub parent: Option<String>,
    /// Description of the source.
    pub source: Value,
    /// Settings in their written form.
    #[schema(value_type = Value)]
    pub settings: Tuning,
    pub labels: BTreeMap<String, String>,
    /// Number of times it was started.
    pub starts: u32,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub started_at: Option<String>,
    #[schema(format = DateTime)]
    pub finished_at: Option<String>,
    /// Time from its first start to its end, in seconds.
    pub took_seconds: Option<f64>,
}

/// Item counts of a task as saved, so nothing is in flight.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportCounts {
    pub total: u64,
    #[serde(flatten)]
    pub terms: TaskCounts,
}

/// Failures of a task that remain after its redrives.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportNet {
    pub failed: u64,
    /// Items recovered by redrives, including redrives of redrives.
    pub recovered: u64,
    pub still_failed: u64,
    /// False only if redrives may share items and there are too many to check each; then `still_failed` is a lower
    /// bound.
    pub exact: bool,
}

/// A redrive of the reported task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportRedrive {
    pub id: String,
    pub name: Option<String>,
    pub status: String,
    pub result: Option<String>,
    pub stop_reason: Option<String>,
    pub counts: ReportCounts,
}

/// A run of the reported task.
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
    /// Explanation of the end, for people.
    pub end_text: Option<String>,
    pub watermark: u64,
    /// Settled items of its shard at its end.
    pub settled: u64,
}

/// A shard of the reported task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportShard {
    pub shard: u32,
    pub state: String,
    pub first: u64,
    /// Last index to be done, plus one.
    pub end: u64,
    pub range_end: u64,
    pub watermark: u64,
    pub high_water: u64,
}

/// An action on the task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportEntry {
    #[schema(format = DateTime)]
    pub at: String,
    pub actor: String,
    pub source: String,
    pub action: String,
    pub reason: Option<String>,
}

/// Proof that every item is accounted for, from sums over shards and failure groups.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportProof {
    /// True if the task is finished and every check holds.
    pub holds: bool,
    pub checks: Vec<ReportCheck>,
    /// Facts that this proof can't establish.
    pub limit: String,
}

/// One step of the proof.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReportCheck {
    pub claim: String,
    pub holds: bool,
    pub evidence: String,
}
