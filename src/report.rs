//! How a job stands, and how it ended.

use windrow_core::items::counters::Counters;
use windrow_core::task::lifecycle::{Status, TaskResult};
use windrow_engine::ports::tasks::store::TaskView;

/// How far a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// How many items it has.
    pub total: u64,
    /// Handled well, or with nothing to do.
    pub succeeded: u64,
    /// Given up after all their attempts.
    pub failed: u64,
    /// Being handled now.
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

/// How a job ended, or where it stands since it was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Its number in the folder, `t1`.
    pub id: String,
    /// How it ended.
    pub end: End,
    /// How many items it has.
    pub total: u64,
    /// Handled well, or with nothing to do.
    pub succeeded: u64,
    /// Given up after all their attempts.
    pub failed: u64,
    /// The failed ones by their code, the most frequent first.
    pub failures: Vec<Failures>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// Every item succeeded, or had nothing to do.
    Succeeded,
    /// Every item was handled, some were failed.
    WithFailures,
    /// It was stopped; the same job goes on.
    Stopped {
        /// Why.
        reason: String,
    },
    /// It was given up for good.
    Cancelled,
}

/// Failed items of one code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failures {
    /// The code, `ERROR` for a handler's error that names none.
    pub code: String,
    /// How many.
    pub count: u64,
    /// What was said of one of them.
    pub example: String,
}

impl Report {
    /// Whether every item was handled.
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
