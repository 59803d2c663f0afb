//! Why a schedule could not be changed, or a fire not ordered.

use std::fmt;
use windrow_words::engine as say;

use crate::ports::StoreError;
use crate::ports::schedules::store::{BACKFILL_MAX, PER_BUSINESS_MAX};
use windrow_core::ids::{ScheduleId, TaskId, WallMs};
use windrow_core::schedule::Overlap;

/// What keeps a fire from being now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InTheWay {
    /// The schedule, as people name it: `business/name`.
    pub schedule: String,
    /// What it says of tasks that run.
    pub overlap: Overlap,
    /// Its task that has not ended; none where that is still to be made.
    pub task: Option<TaskId>,
    /// How many fires wait already.
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

/// A schedule could not be made, changed or deleted. Nothing was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// There is none of this number.
    #[error("{}", say::no_schedule(.0.to_string()))]
    NotFound(ScheduleId),
    /// No such business.
    #[error("{}", say::no_business(.0))]
    NoBusiness(String),
    /// The business has one of this name.
    #[error("{}", say::schedule_exists(.0))]
    Taken(String),
    /// It was changed since the caller looked.
    #[error("{}", say::schedule_changed(found.to_string(), expected.to_string()))]
    Changed {
        /// What the caller saw.
        expected: u64,
        /// What it is.
        found: u64,
    },
    /// The business has as many as it may.
    #[error("{}", say::schedules_full(.0, PER_BUSINESS_MAX))]
    Full(String),
    /// What runs, or waits, is in the way of a fire now.
    #[error(transparent)]
    Busy(Box<InTheWay>),
    /// More fires would wait than may.
    #[error("{}", say::fires_full(*waiting, BACKFILL_MAX))]
    Crowded {
        /// How many wait.
        waiting: u64,
    },
    /// No fire of this time waits or is being made.
    #[error("{}", say::fire_not_open(.0.to_rfc3339()))]
    NotOpen(WallMs),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
