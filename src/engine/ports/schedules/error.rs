//! Why a schedule could not be changed, or a fire not ordered.

use crate::ports::StoreError;
use crate::ports::schedules::store::{BACKFILL_MAX, PER_BUSINESS_MAX};
use windrow_core::ids::{ScheduleId, WallMs};
use windrow_core::schedule::Overlap;

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
    #[error("a task of {0} has not ended, or is still to be made, and the schedule says overlap = {1}")]
    Busy(ScheduleId, Overlap),
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
