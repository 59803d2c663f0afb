//! Errors of changing a schedule, or of ordering a fire.

use std::fmt;

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
        match self.task {
            Some(task) => write!(f, "{task} of {} has not ended", self.schedule)?,
            None => write!(f, "a task of {} is still to be made", self.schedule)?,
        }
        match self.waiting {
            0 => {}
            1 => f.write_str(", one fire waits already")?,
            more => write!(f, ", {more} fires wait already")?,
        }
        write!(f, ", and the schedule says overlap = {}", self.overlap)
    }
}

/// Error of making, changing or deleting a schedule. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// No schedule has this number.
    #[error("there is no schedule {0}")]
    NotFound(ScheduleId),
    /// No business has this slug.
    #[error("there is no business {0}")]
    NoBusiness(String),
    /// The business has a schedule of this name already.
    #[error("the schedule {0} already exists")]
    Taken(String),
    /// The schedule was changed since the caller read it.
    #[error("the schedule was changed: it has revision {found}, not {expected}")]
    Changed {
        /// Revision that the caller saw.
        expected: u64,
        /// Revision that it has.
        found: u64,
    },
    /// The business has as many schedules as allowed.
    #[error("{0} has {PER_BUSINESS_MAX} schedules, as many as a business may")]
    Full(String),
    /// A running or waiting task is in the way of a fire now.
    #[error(transparent)]
    Busy(Box<InTheWay>),
    /// More fires would wait than allowed.
    #[error("{waiting} fires of the schedule wait already, and at most {BACKFILL_MAX} may")]
    Crowded {
        /// Number of fires that wait.
        waiting: u64,
    },
    /// No fire of this time waits or is being made.
    #[error("the schedule has no fire at {} that waits, or whose task is being made", .0.to_rfc3339())]
    NotOpen(WallMs),
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}
