//! `GET /v1/tasks/{task}/stats`: what a task did lately, as series.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::http::App;
use crate::http::answer::silent::{SilentJson, silent};
use crate::http::answer::time::rfc3339;
use crate::http::guard::{Params, time_option};
use crate::http::problem::HttpResult;
use crate::http::tasks::path::PathTask;
use crate::service::ServiceError;
use crate::service::stats::of_task::{StatsRange, TaskStats};
use windrow_core::settings::text::parse_span;
use windrow_core::stats::histogram::Histogram;
use windrow_core::stats::permits::Permits;
use windrow_core::stats::series::Piece;
use windrow_core::stats::stall::StallReason;

/// Of what time, and how fine.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatsQuery {
    /// From when on; without it a quarter of an hour before the end.
    #[param(format = "date-time")]
    from: Option<String>,
    /// Until when; without it now.
    #[param(format = "date-time")]
    to: Option<String>,
    /// The length of a point, at least `1s`; without it the shortest that makes no more than 2160 points.
    #[param(max_length = 40, example = "10s")]
    step: Option<String>,
}

impl StatsQuery {
    fn read(&self) -> Result<StatsRange, ServiceError> {
        let step = self.step.as_deref().map(parse_span).transpose();
        Ok(StatsRange {
            from: time_option("from", self.from.as_ref())?,
            to: time_option("to", self.to.as_ref())?,
            step: step.map_err(|error| ServiceError::invalid("step", error.to_string()))?,
        })
    }
}

/// What a task did lately, or all together.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskStats)]
pub(crate) struct StatsJson {
    /// Where the series begin: later than asked for where less is kept.
    from: String,
    /// Where they end.
    to: String,
    /// The length of a point; older ones are kept in 10 s only, and one at an end may be shorter.
    step_seconds: f64,
    /// Lists of equal length: one entry a point, oldest first. Where nothing ran there is no point.
    series: SeriesJson,
    /// All points together.
    sums: SumsJson,
    /// How long the calls of all points took.
    latency: LatencyJson,
    /// Nodes that ran a part of it lately and can't be asked: what they counted is missing.
    unreachable: Vec<SilentJson>,
}

/// Series of a task.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = TaskSeries)]
pub(crate) struct SeriesJson {
    /// The end of each point.
    time: Vec<String>,
    /// How many seconds of each the task ran.
    seconds: Vec<f64>,
    /// Items settled per second: after a stall more than the target.
    rate: Vec<f64>,
    /// Attempts sent per second: what the target limits.
    sent: Vec<f64>,
    /// Attempts per second that might leave at the end of the point; null where no rate limits them, or nothing ran any more.
    target: Vec<Option<f64>>,
    /// The time in seconds that half of the calls took at most; null where none ended. This and the other percentiles
    /// are right to within 5 %, and never longer than the longest call.
    p50: Vec<Option<f64>>,
    /// The same of 95 of 100 calls.
    p95: Vec<Option<f64>>,
    /// The same of 99 of 100 calls.
    p99: Vec<Option<f64>>,
    /// Failed attempts per second.
    errors: Vec<f64>,
    /// Items with the handler at the end of the point.
    in_flight: Vec<u64>,
    /// Below it every item was settled or parked, at the end of the point.
    low_water: Vec<u64>,
    /// The window's size at the end of the point.
    window: Vec<u64>,
    /// How much of it lay between low water and the highest item dispatched.
    window_used: Vec<u64>,
    /// Attempts per second that might have left and didn't, by reason; a reason that is not there was none.
    #[schema(value_type = std::collections::BTreeMap<String, Vec<f64>>)]
    stalls: BTreeMap<&'static str, Vec<f64>>,
}

/// What a task did in a time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskSums)]
pub(crate) struct SumsJson {
    /// For how many seconds of it the task ran.
    seconds: f64,
    /// Settled well.
    succeeded: u64,
    /// Settled: nothing to do.
    skipped: u64,
    /// Failed for good.
    abandoned: u64,
    /// Attempts that failed.
    failed_attempts: u64,
}

/// How long calls took. What is answered at once, in this process, is not counted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskLatency)]
pub(crate) struct LatencyJson {
    /// How many calls.
    count: u64,
    /// The time that all took together.
    sum_seconds: f64,
    /// As in the series.
    p50: Option<f64>,
    /// As in the series.
    p95: Option<f64>,
    /// As in the series.
    p99: Option<f64>,
    /// The calls by how long they took, in six buckets a decade, without empty ones.
    buckets: Vec<BucketJson>,
}

/// Calls that took about as long.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LatencyBucket)]
pub(crate) struct BucketJson {
    /// At least so long.
    from_seconds: f64,
    /// Shorter than this.
    to_seconds: f64,
    /// How many.
    count: u64,
}

/// See what a task did lately.
///
/// Rates, times of calls, errors and why nothing left, as one list each: seconds of the last quarter of an hour, tens of
/// seconds of the last six hours, less while thousands of tasks run. Counted by the nodes that ran it, since each began,
/// and put together by the second; a task that didn't run has empty lists.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/stats", tag = "tasks", operation_id = "task_stats", params(StatsQuery),
    security(("bearer" = ["viewer", "business"])), responses((status = 200, body = StatsJson))
)]
pub(crate) async fn stats(
    State(app): State<App>,
    PathTask(task): PathTask,
    Params(query): Params<StatsQuery>,
) -> HttpResult<Json<StatsJson>> {
    let stats = app.service.stats.of_task(task.id, query.read()?).await?;
    Ok(Json(StatsJson::of(&stats)))
}

/// See what all tasks did lately.
///
/// The same as of a task, of all together and on all nodes: what is no sum (`low_water`, windows) is that of no task. Each node
/// counts since it began; where nothing ran there is no point.
#[utoipa::path(
    get, path = "/v1/cluster/stats", tag = "node", operation_id = "cluster_stats", params(StatsQuery),
    security(("bearer" = ["viewer"])), responses((status = 200, body = StatsJson))
)]
pub(crate) async fn of_all(
    State(app): State<App>,
    Params(query): Params<StatsQuery>,
) -> HttpResult<Json<StatsJson>> {
    let stats = app.service.stats.of_all(query.read()?).await?;
    Ok(Json(StatsJson::of(&stats)))
}

impl StatsJson {
    fn of(stats: &TaskStats) -> StatsJson {
        let sum = &stats.sum;
        let seconds: f64 = stats.points.iter().map(|point| point.running.as_secs_f64()).sum();
        StatsJson {
            from: rfc3339(stats.from),
            to: rfc3339(stats.to),
            step_seconds: stats.step.as_secs_f64(),
            series: SeriesJson::of(&stats.points),
            sums: SumsJson {
                seconds: rounded(seconds),
                succeeded: sum.succeeded,
                skipped: sum.skipped,
                abandoned: sum.abandoned,
                failed_attempts: sum.failed_attempts,
            },
            latency: LatencyJson::of(&sum.calls),
            unreachable: silent(&stats.silent),
        }
    }
}

impl SeriesJson {
    fn of(points: &[Piece]) -> SeriesJson {
        let mut series = SeriesJson::default();
        for Piece { to, running, point } in points {
            let seconds = running.as_secs_f64();
            let per_second = |count: f64| {
                if seconds > 0.0 {
                    rounded(count / seconds)
                } else {
                    0.0
                }
            };
            let gauges = &point.gauges;
            series.time.push(rfc3339(*to));
            series.seconds.push(rounded(seconds));
            series.rate.push(per_second(point.settled() as f64));
            series.sent.push(per_second(point.permits.sent() as f64 / 1e6));
            series
                .target
                .push(gauges.target_micros.map(|micros| micros as f64 / 1e6));
            series.p50.push(percentile(&point.calls, 50));
            series.p95.push(percentile(&point.calls, 95));
            series.p99.push(percentile(&point.calls, 99));
            series.errors.push(per_second(point.failed_attempts as f64));
            series.in_flight.push(gauges.in_flight);
            series.low_water.push(gauges.low_water);
            series.window.push(gauges.window);
            series.window_used.push(gauges.window_used);
            for (reason, micros) in lost(&point.permits) {
                series
                    .stalls
                    .entry(reason)
                    .or_default()
                    .push(per_second(micros as f64 / 1e6));
            }
        }
        series
            .stalls
            .retain(|_, lost| lost.iter().any(|lost| *lost > 0.0));
        series
    }
}

/// Permits that nothing was done with, by reason. Unit: millionths.
fn lost(permits: &Permits) -> impl Iterator<Item = (&'static str, u64)> {
    let reasons = StallReason::ALL
        .into_iter()
        .map(StallReason::as_str)
        .zip(permits.lost);
    reasons.chain([("late", permits.late), ("slowed", permits.slowed)])
}

impl LatencyJson {
    fn of(calls: &Histogram) -> LatencyJson {
        LatencyJson {
            count: calls.count(),
            sum_seconds: calls.sum_seconds(),
            p50: percentile(calls, 50),
            p95: percentile(calls, 95),
            p99: percentile(calls, 99),
            buckets: calls
                .groups()
                .into_iter()
                .map(|(from, to, count)| BucketJson {
                    from_seconds: from.as_secs_f64(),
                    to_seconds: to.as_secs_f64(),
                    count,
                })
                .collect(),
        }
    }
}

/// Unit: seconds.
fn percentile(calls: &Histogram, percent: u64) -> Option<f64> {
    calls
        .percentile(percent)
        .map(|took| took.as_micros() as f64 / 1e6)
}

/// To thousandths: what is finer is noise. The sum of nothing, -0, is 0.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0 + 0.0
}
