//! `GET /v1/tasks/{task}/stats`: recent activity of a task as time series.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::http::answer::Of;
use crate::http::answer::silent::silent;
use crate::http::answer::time::rfc3339;
use crate::http::front::App;
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

/// Time range and resolution of the series.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatsQuery {
    /// Start of the range; default: 15 minutes before the end.
    #[param(format = "date-time")]
    from: Option<String>,
    /// End of the range; default: now.
    #[param(format = "date-time")]
    to: Option<String>,
    /// Length of a point, at least `1s`; default: the shortest that gives at most 2,160 points.
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

/// Get recent statistics of a task.
///
/// Lists of rates, call durations, errors and stall reasons: per second for the last 15 minutes, per 10 seconds for
/// the last six hours, less while thousands of tasks run. Counted by each node since its start, and combined second
/// by second. A task that didn't run has empty lists.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/stats", tag = "tasks", operation_id = "task_stats", params(StatsQuery),
    security(("bearer" = ["viewer", "business"])), responses((status = 200, body = api::TaskStats))
)]
pub(crate) async fn stats(
    State(app): State<App>,
    PathTask(task): PathTask,
    Params(query): Params<StatsQuery>,
) -> HttpResult<Json<api::TaskStats>> {
    let stats = app.service.stats.of_task(task.id, query.read()?).await?;
    Ok(Json(api::TaskStats::of(&stats)))
}

/// Get recent statistics of all tasks.
///
/// Same as for a task, but summed over all tasks on all nodes. Values that can't be summed (`watermark`, windows) are
/// empty. Each node counts since its start; there are no points for times when nothing ran.
#[utoipa::path(
    get, path = "/v1/cluster/stats", tag = "node", operation_id = "cluster_stats", params(StatsQuery),
    security(("bearer" = ["viewer"])), responses((status = 200, body = api::TaskStats))
)]
pub(crate) async fn of_all(
    State(app): State<App>,
    Params(query): Params<StatsQuery>,
) -> HttpResult<Json<api::TaskStats>> {
    let stats = app.service.stats.of_all(query.read()?).await?;
    Ok(Json(api::TaskStats::of(&stats)))
}

impl Of<&TaskStats> for api::TaskStats {
    fn of(stats: &TaskStats) -> Self {
        let sum = &stats.sum;
        let seconds: f64 = stats.points.iter().map(|point| point.running.as_secs_f64()).sum();
        api::TaskStats {
            from: rfc3339(stats.from),
            to: rfc3339(stats.to),
            step_seconds: stats.step.as_secs_f64(),
            series: api::TaskSeries::of(&stats.points),
            sums: api::TaskSums {
                seconds: rounded(seconds),
                succeeded: sum.succeeded,
                skipped: sum.skipped,
                failed: sum.failed,
                failed_attempts: sum.failed_attempts,
            },
            latency: api::TaskLatency::of(&sum.calls),
            unreachable: silent(&stats.silent),
        }
    }
}

impl Of<&[Piece]> for api::TaskSeries {
    fn of(points: &[Piece]) -> Self {
        let mut series = api::TaskSeries::default();
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
            series.target.push(millionths(gauges.target_micros));
            series.found_rate.push(millionths(gauges.found_micros));
            series.refused_share.push(millionths(gauges.refused_ppm));
            series.p50.push(percentile(&point.calls, 50));
            series.p95.push(percentile(&point.calls, 95));
            series.p99.push(percentile(&point.calls, 99));
            series.errors.push(per_second(point.failed_attempts as f64));
            series.in_flight.push(gauges.in_flight);
            series.watermark.push(gauges.watermark);
            series.window.push(gauges.window);
            series.window_used.push(gauges.window_used);
            for (reason, micros) in lost(&point.permits) {
                series
                    .stalls
                    .entry(reason.to_owned())
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

fn millionths(number: Option<u64>) -> Option<f64> {
    number.map(|number| number as f64 / 1e6)
}

/// Returns unused permits by reason, in millionths.
fn lost(permits: &Permits) -> impl Iterator<Item = (&'static str, u64)> {
    let reasons = StallReason::ALL
        .into_iter()
        .map(StallReason::as_str)
        .zip(permits.lost);
    reasons.chain([("late", permits.late), ("slowed", permits.slowed)])
}

impl Of<&Histogram> for api::TaskLatency {
    fn of(calls: &Histogram) -> Self {
        api::TaskLatency {
            count: calls.count(),
            sum_seconds: calls.sum_seconds(),
            p50: percentile(calls, 50),
            p95: percentile(calls, 95),
            p99: percentile(calls, 99),
            buckets: calls
                .groups()
                .into_iter()
                .map(|(from, to, count)| api::LatencyBucket {
                    from_seconds: from.as_secs_f64(),
                    to_seconds: to.as_secs_f64(),
                    count,
                })
                .collect(),
        }
    }
}

/// Returns a percentile of the call durations, in seconds.
fn percentile(calls: &Histogram, percent: u64) -> Option<f64> {
    calls
        .percentile(percent)
        .map(|took| took.as_micros() as f64 / 1e6)
}

/// Rounds to thousandths; finer digits are noise. Adding 0 turns -0, the sum of nothing, into 0.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0 + 0.0
}
