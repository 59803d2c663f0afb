//! Errors of changing a schedule, or of ordering a fire.

use std::fmt;
use windrow_words::engine as say;

use crate::ports::StoreError;
use crate::ports::schedules::store::{BACKFILL_MAX, PER_BUSINESS_MAX};
use windrow_core::ids::{ScheduleId, TaskId, WallMs};
use windrow_core::schedule::Overlap;

/// Obstacle that keeps a schedule from firing now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InTheWay {
    /// Schedule as people name it: `business/name`.
    pub schedule: String,
    /// Setting of the schedule for tasks that overlap.
    pub overlap: Overlap,
    /// Task that has not ended; `None` if it is still to be made.
    pub task: Option<TaskId>,
    /// Number of fires that wait already.
    pub waiting: u64,
}

impl std::error::Error for InTheWay {}

impl fmt::Display for InTheWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (schedule, waiting, overlap) = (&self.schedule, self.waiting, self.overlap.to_string());
        let text = match (self.task.map(|task| task.to_string()), waiting) {
            (Some(task), 0) => say::running_task(task, schedule, overlap),
            (Some(task), _) => say::running_task_fires(task, schedule, waiting, overlap),
            (None, 0) => say::coming_task(schedule, overlap),
            (None, _) => say::coming_task_fires(schedule, waiting, overlap),
        };
        text.fmt(f)
    }
}

/// Error of making, changing or deleting a schedule. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// No schedule has this number.
    #[error("{}", say::no_schedule(.0.to_string()))]
    NotFound(ScheduleId),
    /// No business has this slug.
    #[error("{}", say::no_business(.0))]
    NoBusiness(String),
    /// The business has a schedule of this name already.
    #[error("{}", say::schedule_exists(.0))]
    Taken(String),
    /// The schedule was changed since the caller read it.
    #[error("{}", say::schedule_changed(found.to_string(), expected.to_string()))]
    Changed {
        /// Revision that the caller saw.
        expected: u64,
        /// Revision that it has.
        found: u64,
    },
    /// The business has as many schedules as allowed.
    #[error("{}", say::schedules_full(.0, PER_BUSINESS_MAX))]
    Full(String),
    /// A running or waiting task is in the way of a fire now.
    #[error(transparent)]
    Busy(Box<InTheWay>),
    /// More fires would wait than allowed.
    #[error("{}", say::fires_full(*waiting, BACKFILL_MAX))]
    Crowded {
        /// Number of fires that wait.
        waiting: u64,
    },
    /// No fire of this time waits or is being made.
    #[error("{}", say::fire_not_open(.0.to_rfc3339()))]
    NotOpen(WallMs),
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}
