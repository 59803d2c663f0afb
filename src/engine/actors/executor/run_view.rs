//! View of a live run for people: with its names and settings, or in numbers alone.

use std::time::Duration;

use crate::actors::executor::run_cell::RunCell;
use crate::ports::handling::handler::Workers;
use windrow_core::execution::Progress;
use windrow_core::explain::HeldBack;
use windrow_core::handler::failed_calls::FailedCalls;
use windrow_core::ids::{Moment, RunNo, ShardId};
use windrow_core::items::counters::Counters;
use windrow_core::settings::RateLimit;
use windrow_core::stats::histogram::Histogram;
use windrow_core::stats::permits::Permits;
use windrow_core::stats::series::Gauges;
use windrow_core::stats::tally::Tally;
use windrow_core::task::Tuning;

/// Live run on this node, as shown to people.
#[derive(Clone, Debug, PartialEq)]
pub struct RunView {
    /// Shard that the run works on.
    pub shard: ShardId,
    /// Number of the run.
    pub run: RunNo,
    /// Slug of the business.
    pub business: String,
    /// Name of the task when the run began.
    pub task_name: Option<String>,
    /// Settings currently in force.
    pub tuning: Tuning,
    /// Progress so far, and the drain if there is one.
    pub progress: Progress,
    /// Counters when the run began.
    pub began: Counters,
    /// Handler kind: `http`, `command` or `rust`.
    pub kind: &'static str,
    /// Tally of calls since the run began.
    pub tally: Tally,
    /// Calls that failed since the run began.
    pub failed_calls: FailedCalls,
    /// Time since the last save if completions are unsaved; zero when all are saved.
    pub unsaved_for: Duration,
    /// Time since the run began.
    pub age: Duration,
    /// Rate that the node has no room for, if any.
    pub held_back: Option<HeldBack>,
    /// Key of the shared limit that last held the run back; its limit in units follows, if one of these did.
    pub held_by: Option<String>,
    /// Worker processes of the run's handler; `None` if it has none of its own.
    pub workers: Option<Workers>,
}

impl RunView {
    pub(crate) fn of(cell: &RunCell) -> RunView {
        let progress = cell.progress();
        let unsaved_for = if progress.unsaved == 0 {
            Duration::ZERO
        } else {
            cell.clock.now().since(cell.saved_at())
        };
        let (tuning, tally) = cell.peek(|execution| (execution.tuning().clone(), execution.tally().clone()));
        let failed_calls = cell.peek(|execution| execution.failed_calls().clone());
        RunView {
            shard: cell.shard,
            run: cell.about.run,
            business: cell.about.business.clone(),
            task_name: cell.about.task_name.clone(),
            tuning,
            progress,
            began: cell.began,
            kind: cell.about.kind,
            tally,
            failed_calls,
            unsaved_for,
            age: cell.clock.now().since(cell.began_at),
            held_back: cell.held_back().map(|refused| HeldBack {
                rate: refused.rate,
                wanted: refused.wanted,
                age: cell.clock.now().since(refused.since),
                why: refused.why,
            }),
            held_by: cell.limits.held_by(),
            workers: cell.handler.workers(),
        }
    }
}

/// Counters of a live run, in numbers alone: cheap enough to take from every run each second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSample {
    /// Shard that the run works on.
    pub shard: ShardId,
    /// Number of the run.
    pub run: RunNo,
    /// Time at which the run began.
    pub began_at: Moment,
    /// Counters when the run began.
    pub began: Counters,
    /// Time of the sample.
    pub at: Moment,
    /// Counters at that time, without items skipped on request.
    pub counters: Counters,
    /// Use of the permits since the run began.
    pub permits: Permits,
    /// Call durations since the run began.
    pub calls: Histogram,
    /// Attempts that failed since it began.
    pub failed_attempts: u64,
    /// Gauges at the time of the sample.
    pub gauges: Gauges,
    /// Configured rate of the whole task.
    pub task_rate: RateLimit,
}

impl RunSample {
    /// Takes a sample; holds the core for about a microsecond.
    pub(crate) fn of(cell: &RunCell) -> RunSample {
        let now = cell.now();
        cell.peek(|execution| {
            let progress = execution.progress(now);
            let tally = execution.tally();
            RunSample {
                shard: cell.shard,
                run: cell.about.run,
                began_at: cell.began_at,
                began: cell.began,
                at: now.moment,
                counters: Counters {
                    // Items skipped on request used no permit, so they say nothing about the speed.
                    skipped: progress
                        .counters
                        .skipped
                        .saturating_sub(execution.skipped_unasked()),
                    ..progress.counters
                },
                permits: progress.permits,
                calls: tally.calls.clone(),
                failed_attempts: tally.failed.count_all(),
                task_rate: execution.task_rate(),
                gauges: Gauges {
                    in_flight: progress.counters.in_flight,
                    concurrency: u64::from(progress.concurrency),
                    window: u64::from(progress.window),
                    window_used: progress.high_water.0.saturating_sub(progress.watermark.0),
                    watermark: progress.watermark.0,
                    target_micros: progress.rate.map(|rate| rate.micros_per_second()),
                    stall: progress.stall,
                    found_micros: progress
                        .autopilot
                        .and_then(|found| found.rate)
                        .map(|rate| (rate * 1e6) as u64),
                    refused_ppm: progress.autopilot.map(|found| (found.refused_share * 1e6) as u64),
                },
            }
        })
    }
}
