//! Why a task was not made, and what a redrive is made beside.

use std::collections::BTreeSet;
use windrow_words::engine as say;

use crate::ports::StoreError;
use windrow_core::ids::{ScheduleId, TaskId, WallMs};

/// A task could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    /// No such business.
    #[error("{}", say::no_business(.0))]
    NoBusiness(String),
    /// The business has a task of this name already.
    #[error("{}", say::name_taken(format!("{:?}", .0), .1.to_string()))]
    NameTaken(String, TaskId),
    /// The idempotency key was used for another request.
    #[error("{}", say::key_reused(.0.to_string()))]
    KeyReused(TaskId),
    /// The task whose failures it would do again is deleted, or being deleted.
    #[error("{}", say::no_parent(.0.to_string()))]
    NoParent(TaskId),
    /// There is no named limit of this name.
    #[error("{}", say::no_limit(.0))]
    NoLimit(String),
    /// The dataset that it would publish belongs to another business.
    #[error("{}", say::dataset_taken(.0))]
    DatasetTaken(String),
    /// The business has as many datasets as it may.
    #[error("{}", say::too_many_datasets(*.0))]
    TooManyDatasets(u64),
    /// The fire whose task it would be is settled, or gone.
    #[error("{}", say::fire_settled(.0.to_string(), .1.to_rfc3339()))]
    FireOver(ScheduleId, WallMs),
    /// Another redrive of the family was made since the caller looked.
    #[error("{}", say::redriven(.0.to_string()))]
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
