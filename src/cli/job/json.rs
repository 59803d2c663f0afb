//! JSON form of a job, filled by its process or from its directory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use windrow_core::meter::metering::Metering;
use windrow_core::settings::table::TuningPatch;
use windrow_core::task::Tuning;
use windrow_core::task::spec::TaskSpec;

/// Job as `windrow job` prints it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) name: String,
    /// Number of the job's task. `None` if the directory can't be read.
    pub(crate) task: Option<String>,
    /// Process that runs the job, or `None` if none does.
    pub(crate) process: Option<u32>,
    pub(crate) status: Option<String>,
    pub(crate) why: Option<String>,
    pub(crate) total: Option<u64>,
    pub(crate) percent: Option<f64>,
    pub(crate) counts: Option<api::TaskCounts>,
    pub(crate) actual_rate: Option<f64>,
    pub(crate) eta_seconds: Option<u64>,
    pub(crate) settings: Option<TuningPatch>,
    /// Limits in units; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metering: Option<Metering>,
    /// Command that resumes the job. The outer `None` means unknown: the job's own process doesn't know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) go_on: Option<Option<String>>,
    #[serde(default)]
    pub(crate) costs: Option<BTreeMap<String, api::TaskCost>>,
    #[serde(flatten)]
    pub(crate) live: Option<JobLive>,
    #[serde(flatten)]
    pub(crate) kept: Option<JobKept>,
}

/// Facts that only the job's process knows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct JobLive {
    pub(crate) latency_p95_seconds: Option<f64>,
    pub(crate) stall: Option<String>,
    pub(crate) autopilot: Option<api::TaskAutopilot>,
    pub(crate) handler: Option<String>,
}

/// Facts that only the job's directory holds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct JobKept {
    /// Result of the job. The outer `None` means that the directory can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Option<String>>,
    pub(crate) recovered: Option<u64>,
    pub(crate) still_failed: Option<u64>,
    pub(crate) may_repeat: Option<u64>,
    pub(crate) ran_at: Option<String>,
    pub(crate) place: PathBuf,
}

impl Job {
    /// Returns the status as one word, empty if unknown.
    pub(crate) fn status(&self) -> &str {
        self.status.as_deref().unwrap_or_default()
    }

    /// Returns the time of the last run, if the directory holds it.
    pub(crate) fn ran_at(&self) -> Option<&str> {
        self.kept.as_ref()?.ran_at.as_deref()
    }
}

/// Settings of a job, before and after a change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JobChange {
    pub(crate) before: TuningPatch,
    pub(crate) after: TuningPatch,
}

/// Returns the limits in units, if there are any.
pub(crate) fn metering(spec: &TaskSpec) -> Option<Metering> {
    Some(Metering::clone(&spec.metering)).filter(|metering| !metering.is_empty())
}

/// Returns the settings that can change while the job runs.
pub(crate) fn settings(tuning: &Tuning) -> TuningPatch {
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
