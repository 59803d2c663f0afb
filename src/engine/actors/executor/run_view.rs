//! A live run as people see it: with its names and settings, or in numbers alone.

use std::time::Duration;

use crate::actors::executor::run_cell::RunCell;
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

/// A run that is live on this node, as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunView {
    /// Its shard.
    pub shard: ShardId,
    /// Its number.
    pub run: RunNo,
    /// The business's slug.
    pub business: String,
    /// The task's name when the run began.
    pub task_name: Option<String>,
    /// The settings in force.
    pub tuning: Tuning,
    /// How far it is, and whether it drains.
    pub progress: Progress,
    /// The terms when it began.
    pub began: Counters,
    /// `http`, `command` or `rust`.
    pub kind: &'static str,
    /// What was counted since it began.
    pub tally: Tally,
    /// Calls that failed since it began.
    pub failed_calls: FailedCalls,
    /// For how long its newest completions have not been saved; zero when all are.
    pub unsaved_for: Duration,
    /// How long ago it began.
    pub age: Duration,
    /// The part of the rate that its node has no room for.
    pub held_back: Option<HeldBack>,
    /// The key of the shared limit that held it back last.
    pub held_by: Option<String>,
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
            held_by: cell.limits.held_by().map(str::to_owned),
        }
    }
}

/// What a live run has counted so far, in numbers alone: cheap enough to be taken of every run each second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSample {
    /// The run's shard.
    pub shard: ShardId,
    /// Its number.
    pub run: RunNo,
    /// When the run began.
    pub began_at: Moment,
    /// The terms when it began.
    pub began: Counters,
    /// When this was taken.
    pub at: Moment,
    /// The terms.
    pub counters: Counters,
    /// What became of the permits since it began.
    pub permits: Permits,
    /// How long calls took since it began.
    pub calls: Histogram,
    /// Attempts that failed since it began.
    pub failed_attempts: u64,
    /// How it stands.
    pub gauges: Gauges,
    /// The rate of its whole task, as it was set.
    pub task_rate: RateLimit,
}

impl RunSample {
    /// Takes it; the core is held for about a microsecond.
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
                    // No permit was used for what people want skipped: it says nothing of the speed.
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
                },
            }
        })
    }
}
