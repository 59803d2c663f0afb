//! Why a task was not made, and what a redrive is made beside.

use std::collections::BTreeSet;

use crate::ports::StoreError;
use windrow_core::ids::{ScheduleId, TaskId, WallMs};

/// A task could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    /// No such business.
    #[error("there is no business {0}")]
    NoBusiness(String),
    /// The business has a task of this name already.
    #[error("the name {0:?} is taken by {1}")]
    NameTaken(String, TaskId),
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request (task {0})")]
    KeyReused(TaskId),
    /// The task whose failures it would do again is deleted, or being deleted.
    #[error("{0}, whose failures it would do again, is deleted")]
    NoParent(TaskId),
    /// There is no named limit of this name.
    #[error("there is no limit {0}")]
    NoLimit(String),
    /// The dataset that it would publish belongs to another business.
    #[error("the dataset {0} belongs to another business")]
    DatasetTaken(String),
    /// The business has as many datasets as it may.
    #[error("the business has {0} datasets, as many as it may")]
    TooManyDatasets(u64),
    /// The fire whose task it would be is settled, or gone.
    #[error("the fire of {0} at {time} needs no task any more", time = .1.to_rfc3339())]
    FireOver(ScheduleId, WallMs),
    /// Another redrive of the family was made since the caller looked.
    #[error("{0} was redriven by somebody else meanwhile")]
    Overtaken(TaskId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The redrives that a new one must leave out what they have: those of a task, of its redrives, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// The task that none of the others leads to; makers of its redrives follow one another.
    pub root: TaskId,
    /// All redrives that were seen, at whatever level.
    pub redrives: BTreeSet<TaskId>,
}

impl Family {
    /// Each of them.
    pub fn members(&self) -> impl Iterator<Item = TaskId> {
        std::iter::once(self.root).chain(self.redrives.iter().copied())
    }
}

/// A fire of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FireKey {
    /// The schedule.
    pub schedule: ScheduleId,
    /// The time that it names.
    pub time: WallMs,
}

/// What is done with a task that is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Making<'a> {
    /// It is started.
    pub starts: bool,
    /// It is made only while its family has no other redrives than these.
    pub beside: Option<&'a Family>,
    /// It is the task of this fire, which is settled with it.
    pub fire: Option<FireKey>,
}
