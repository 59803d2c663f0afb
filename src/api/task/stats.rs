//! Recent figures of a task, as series.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::page::SilentNode;

/// What a task did recent, or all together.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskStats {
    /// Where the series begin: later than asked for where less is kept.
    pub from: String,
    /// Where they end.
    pub to: String,
    /// The length of a point; older ones are kept in 10 s only, and one at an end may be shorter.
    pub step_seconds: f64,
    /// Lists of equal length: one entry a point, oldest first. Where nothing ran there is no point.
    pub series: TaskSeries,
    /// All points together.
    pub sums: TaskSums,
    /// How long the calls of all points took.
    pub latency: TaskLatency,
    /// Nodes that ran a part of it recently and can't be asked: what they counted is missing.
    pub unreachable: Vec<SilentNode>,
}

/// Series of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskSeries {
    /// The end of each point.
    pub time: Vec<String>,
    /// How many seconds of each the task ran.
    pub seconds: Vec<f64>,
    /// Items settled per second: after a stall more than the target.
    pub rate: Vec<f64>,
    /// Attempts sent per second: what the target limits.
    pub sent: Vec<f64>,
    /// Attempts per second that might leave at the end of the point; null where no rate limits them, or nothing ran any more.
    pub target: Vec<Option<f64>>,
    /// The time in seconds that half of the calls took at most; null where none ended. This and the other percentiles
    /// are right to within 5 %, and never longer than the longest call.
    pub p50: Vec<Option<f64>>,
    /// The same of 95 of 100 calls.
    pub p95: Vec<Option<f64>>,
    /// The same of 99 of 100 calls.
    pub p99: Vec<Option<f64>>,
    /// Failed attempts per second.
    pub errors: Vec<f64>,
    /// Items with the handler at the end of the point.
    pub in_flight: Vec<u64>,
    /// Below it every item was settled or parked, at the end of the point.
    pub watermark: Vec<u64>,
    /// The window's size at the end of the point.
    pub window: Vec<u64>,
    /// How much of it lay between watermark and the highest item dispatched.
    pub window_used: Vec<u64>,
    /// Attempts per second that might have left and didn't, by reason; a reason that is not there was none.
    #[schema(value_type = BTreeMap<String, Vec<f64>>)]
    pub stalls: BTreeMap<String, Vec<f64>>,
}

/// What a task did in a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskSums {
    /// For how many seconds of it the task ran.
    pub seconds: f64,
    /// Settled well.
    pub succeeded: u64,
    /// Settled: nothing to do.
    pub skipped: u64,
    /// Failed for good.
    pub failed: u64,
    /// Attempts that failed.
    pub failed_attempts: u64,
}

/// How long calls took. What is answered at once, in this process, is not counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskLatency {
    /// How many calls.
    pub count: u64,
    /// The time that all took together.
    pub sum_seconds: f64,
    /// As in the series.
    pub p50: Option<f64>,
    /// As in the series.
    pub p95: Option<f64>,
    /// As in the series.
    pub p99: Option<f64>,
    /// The calls by how long they took, in six buckets a decade, without empty ones.
    pub buckets: Vec<LatencyBucket>,
}

/// Calls that took about as long.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LatencyBucket {
    /// At least so long.
    pub from_seconds: f64,
    /// Shorter than this.
    pub to_seconds: f64,
    /// How many.
    pub count: u64,
}
