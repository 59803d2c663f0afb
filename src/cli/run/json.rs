//! A job as it is told: by its process, or of its directory.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use windrow_core::settings::table::TuningPatch;
use windrow_core::task::Tuning;

/// A job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::run) struct Job {
    pub(in crate::run) name: String,
    /// None where its directory can't be read.
    pub(in crate::run) task: Option<String>,
    /// None where none runs it.
    pub(in crate::run) process: Option<u32>,
    pub(in crate::run) status: Option<String>,
    pub(in crate::run) why: Option<String>,
    pub(in crate::run) total: Option<u64>,
    pub(in crate::run) percent: Option<f64>,
    pub(in crate::run) counts: Option<api::TaskCounts>,
    pub(in crate::run) actual_rate: Option<f64>,
    pub(in crate::run) eta_seconds: Option<u64>,
    pub(in crate::run) settings: Option<TuningPatch>,
    /// The command that goes on with it. Its process doesn't know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::run) go_on: Option<Option<String>>,
    #[serde(flatten)]
    pub(in crate::run) live: Option<JobLive>,
    #[serde(flatten)]
    pub(in crate::run) kept: Option<JobKept>,
}

/// What only its process knows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::run) struct JobLive {
    pub(in crate::run) latency_p95_seconds: Option<f64>,
    pub(in crate::run) stall: Option<String>,
    pub(in crate::run) handler: Option<String>,
}

/// What only its directory tells.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::run) struct JobKept {
    /// Absent where the directory can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::run) result: Option<Option<String>>,
    pub(in crate::run) made_good: Option<u64>,
    pub(in crate::run) still_failed: Option<u64>,
    pub(in crate::run) may_repeat: Option<u64>,
    pub(in crate::run) ran_at: Option<String>,
    pub(in crate::run) place: PathBuf,
}

impl Job {
    /// The word of its status.
    pub(in crate::run) fn status(&self) -> &str {
        self.status.as_deref().unwrap_or_default()
    }

    /// When it ran last.
    pub(in crate::run) fn ran_at(&self) -> Option<&str> {
        self.kept.as_ref()?.ran_at.as_deref()
    }
}

/// Settings of a job before and after a change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::run) struct JobChange {
    pub(in crate::run) before: TuningPatch,
    pub(in crate::run) after: TuningPatch,
}

/// What can be changed while it runs.
pub(in crate::run) fn settings(tuning: &Tuning) -> TuningPatch {
    TuningPatch {
        rate: Some(tuning.rate),
        burst: Some(tuning.burst),
        concurrency: Some(tuning.concurrency),
        window: Some(tuning.window),
        batch: Some(tuning.batch),
        timeout: Some(tuning.timeout),
        max_attempts: Some(tuning.max_attempts),
        backoff: Some(tuning.backoff),
        on_exhausted: Some(tuning.on_exhausted),
        error_budget: Some(tuning.error_budget),
        ordered: Some(tuning.ordered),
        outage_patience: Some(tuning.outage_patience),
        judge_after: Some(tuning.judge_after),
        ..TuningPatch::default()
    }
}
