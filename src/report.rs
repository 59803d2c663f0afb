//! Progress and results of jobs.

use windrow_core::items::counters::Counters;
use windrow_core::task::lifecycle::{Status, TaskResult};
use windrow_engine::ports::tasks::store::TaskView;

/// Progress of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Total number of items.
    pub total: u64,
    /// Items that succeeded or had nothing to do.
    pub succeeded: u64,
    /// Items that failed after all their attempts.
    pub failed: u64,
    /// Items in flight at this moment.
    pub in_flight: u64,
}

impl Progress {
    pub(crate) fn of(total: u64, counters: &Counters) -> Progress {
        let Counters {
            succeeded,
            skipped,
            failed,
            in_flight,
            ..
        } = *counters;
        Progress {
            total,
            succeeded: succeeded + skipped,
            failed,
            in_flight,
        }
    }
}

/// Result of a job, or its state since it was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Id of the job in its folder, e.g. `t1`.
    pub id: String,
    /// Way in which the job ended.
    pub end: End,
    /// Total number of items.
    pub total: u64,
    /// Items that succeeded or had nothing to do.
    pub succeeded: u64,
    /// Items that failed after all their attempts.
    pub failed: u64,
    /// Failed items by code, most frequent first.
    pub failures: Vec<Failures>,
}

/// Way in which a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// Every item succeeded or had nothing to do.
    Succeeded,
    /// Every item was handled, and some failed.
    WithFailures,
    /// The job was stopped; running it again resumes it.
    Stopped {
        /// Reason for the stop.
        reason: String,
    },
    /// The job was cancelled for good.
    Cancelled,
}

/// Failed items with the same code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failures {
    /// Failure code; `ERROR` for a handler's error without one.
    pub code: String,
    /// Number of these items.
    pub count: u64,
    /// Failure message of one of them.
    pub example: String,
}

impl Report {
    /// True if every item was handled.
    pub fn is_finished(&self) -> bool {
        matches!(self.end, End::Succeeded | End::WithFailures)
    }

    pub(crate) fn of(task: &TaskView, failures: Vec<Failures>) -> Report {
        let Progress {
            total,
            succeeded,
            failed,
            ..
        } = Progress::of(task.total.0, &task.counters);
        Report {
            id: task.id.to_string(),
            end: end_of(task),
            total,
            succeeded,
            failed,
            failures,
        }
    }
}

fn end_of(task: &TaskView) -> End {
    match (task.status, task.result) {
        (Status::Cancelled, _) => End::Cancelled,
        (Status::Finished, Some(TaskResult::WithFailures)) => End::WithFailures,
        (Status::Finished, _) => End::Succeeded,
        _ => End::Stopped {
            reason: task.status_text.clone().unwrap_or_else(|| "stopped".to_owned()),
        },
    }
}
