//! Recent statistics of a task, as time series.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::page::SilentNode;

/// Statistics of a task, recent or over its whole life.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskStats {
    /// Start of the series; later than requested if less history is kept.
    pub from: String,
    /// End of the series.
    pub to: String,
    /// Length of a point, in seconds. Older points are kept at 10 s only, and a point at either end may be shorter.
    pub step_seconds: f64,
    /// Lists of equal length, with one entry per point, oldest first. Times when nothing ran have no point.
    pub series: TaskSeries,
    /// Totals over all points.
    pub sums: TaskSums,
    /// Call durations over all points.
    pub latency: TaskLatency,
    /// Nodes that recently ran part of it and can't be asked; their numbers are missing.
    pub unreachable: Vec<SilentNode>,
}

/// Time series of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskSeries {
    /// End of each point.
    pub time: Vec<String>,
    /// Seconds of each point in which the task was running.
    pub seconds: Vec<f64>,
    /// Items settled per second; exceeds the target after a stall.
    pub rate: Vec<f64>,
    /// Attempts sent per second, which the target limits.
    pub sent: Vec<f64>,
    /// Attempts per second allowed at the end of the point; null if no rate limits them or nothing was running any
    /// more.
    pub target: Vec<Option<f64>>,
    /// Attempts per second above which the service refuses, as the autopilot found it; null if it refused none, and
    /// without autopilot.
    #[serde(default)]
    pub found_rate: Vec<Option<f64>>,
    /// Share of the last few hundred calls that the service refused, from 0 to 1; null without autopilot.
    #[serde(default)]
    pub refused_share: Vec<Option<f64>>,
    /// Median call duration, in seconds; null if no call ended. All percentiles are accurate to within 5 % and never
    /// exceed the longest call.
    pub p50: Vec<Option<f64>>,
    /// 95th percentile of the call duration, in seconds.
    pub p95: Vec<Option<f64>>,
    /// 99th percentile of the call duration, in seconds.
    pub p99: Vec<Option<f64>>,
    /// Failed attempts per second.
    pub errors: Vec<f64>,
    /// Items in flight at the end of the point.
    pub in_flight: Vec<u64>,
    /// Watermark at the end of the point: every item below it was settled or parked.
    pub watermark: Vec<u64>,
    /// Window size at the end of the point.
    pub window: Vec<u64>,
    /// Used part of the window, from the watermark to the highest dispatched item.
    pub window_used: Vec<u64>,
    /// Attempts per second that were allowed but not sent, by reason; an absent reason means zero.
    #[schema(value_type = BTreeMap<String, Vec<f64>>)]
    pub stalls: BTreeMap<String, Vec<f64>>,
}

/// Totals of a task over a period.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskSums {
    /// Seconds of the period in which the task was running.
    pub seconds: f64,
    /// Items settled with a success.
    pub succeeded: u64,
    /// Items with nothing to do.
    pub skipped: u64,
    /// Items that failed permanently.
    pub failed: u64,
    /// Number of failed attempts.
    pub failed_attempts: u64,
}

/// Distribution of call durations. Calls answered immediately within this process are not counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskLatency {
    /// Number of counted calls.
    pub count: u64,
    /// Total duration of all calls, in seconds.
    pub sum_seconds: f64,
    /// As in the series, over all calls.
    pub p50: Option<f64>,
    /// As in the series, over all calls.
    pub p95: Option<f64>,
    /// As in the series, over all calls.
    pub p99: Option<f64>,
    /// Histogram of call durations: six buckets per decade, empty ones omitted.
    pub buckets: Vec<LatencyBucket>,
}

/// Calls with a duration in the same range.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LatencyBucket {
    /// Shortest duration, inclusive, in seconds.
    pub from_seconds: f64,
    /// Longest duration, exclusive, in seconds.
    pub to_seconds: f64,
    /// Number of calls in the bucket.
    pub count: u64,
}
