//! Errors of making a task, and the redrives that a new one must respect.

use std::collections::BTreeSet;
use windrow_words::engine as say;

use crate::ports::StoreError;
use crate::ports::tasks::store::NewTask;
use windrow_core::ids::{ScheduleId, TaskId, WallMs};
use windrow_core::items::stretches::Stretches;

/// Error of making a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    /// No business has this slug.
    #[error("{}", say::no_business(.0))]
    NoBusiness(String),
    /// The business has a task of this name already.
    #[error("{}", say::name_taken(format!("{:?}", .0), .1.to_string()))]
    NameTaken(String, TaskId),
    /// The idempotency key was used for another request.
    #[error("{}", say::key_reused(.0.to_string()))]
    KeyReused(TaskId),
    /// The task whose failures it would redrive is deleted, or being deleted.
    #[error("{}", say::no_parent(.0.to_string()))]
    NoParent(TaskId),
    /// No named limit has this name.
    #[error("{}", say::no_limit(.0))]
    NoLimit(String),
    /// The dataset that it would publish belongs to another business.
    #[error("{}", say::dataset_taken(.0))]
    DatasetTaken(String),
    /// The business has as many datasets as allowed.
    #[error("{}", say::too_many_datasets(*.0))]
    TooManyDatasets(u64),
    /// The fire whose task it would be is settled, or gone.
    #[error("{}", say::fire_settled(.0.to_string(), .1.to_rfc3339()))]
    FireOver(ScheduleId, WallMs),
    /// Another redrive of the family was made since the caller looked.
    #[error("{}", say::redriven(.0.to_string()))]
    Overtaken(TaskId),
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Redrives whose items a new one must leave out: those of a task, of its redrives, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Root of the family, which no other member leads to; redrives of it are made one after another.
    pub root: TaskId,
    /// All redrives that were seen, at whatever level.
    pub redrives: BTreeSet<TaskId>,
}

impl Family {
    /// Iterates over the root and all redrives.
    pub fn members(&self) -> impl Iterator<Item = TaskId> {
        std::iter::once(self.root).chain(self.redrives.iter().copied())
    }
}

/// Key of a schedule's fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FireKey {
    /// Schedule that the fire belongs to.
    pub schedule: ScheduleId,
    /// Time that the schedule names.
    pub time: WallMs,
}

/// Options for making a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct Making<'a> {
    /// True if it is started.
    pub starts: bool,
    /// Make it only while its family has no other redrives than these.
    pub beside: Option<&'a Family>,
    /// Fire whose task it is, which is settled with it.
    pub fire: Option<FireKey>,
    /// Items of its parent that it replays; the parent's audit names them.
    pub replay: Option<&'a Stretches>,
}

impl Making<'_> {
    /// Returns the task whose items are replayed by `made`, and what its audit says after that.
    pub fn replayed(&self, new: &NewTask, made: TaskId) -> Option<(TaskId, String)> {
        let (items, origin) = self.replay.zip(new.parent)?;
        let after = serde_json::json!({ "indexes": items.to_string(), "by": made.to_string() });
        Some((origin, after.to_string()))
    }
}
