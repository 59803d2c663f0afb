//! Why a schedule could not be changed, or a fire not ordered.

use std::fmt;

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

/// A schedule could not be made, changed or deleted. Nothing was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// There is none of this number.
    #[error("there is no schedule {0}")]
    NotFound(ScheduleId),
    /// No such business.
    #[error("there is no business {0}")]
    NoBusiness(String),
    /// The business has one of this name.
    #[error("the schedule {0} already exists")]
    Taken(String),
    /// It was changed since the caller looked.
    #[error("the schedule was changed: it has revision {found}, not {expected}")]
    Changed {
        /// What the caller saw.
        expected: u64,
        /// What it is.
        found: u64,
    },
    /// The business has as many as it may.
    #[error("{0} has {PER_BUSINESS_MAX} schedules, as many as a business may")]
    Full(String),
    /// What runs, or waits, is in the way of a fire now.
    #[error(transparent)]
    Busy(Box<InTheWay>),
    /// More fires would wait than may.
    #[error("{waiting} fires of the schedule wait already, and at most {BACKFILL_MAX} may")]
    Crowded {
        /// How many wait.
        waiting: u64,
    },
    /// No fire of this time waits or is being made.
    #[error("the schedule has no fire at {} that waits, or whose task is being made", .0.to_rfc3339())]
    NotOpen(WallMs),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
