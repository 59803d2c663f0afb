//! Making of the task of a fire.

use async_trait::async_trait;
use windrow_words::engine as say;

use crate::ports::StoreError;
use crate::ports::schedules::store::TakenFire;
use windrow_core::ids::TaskId;

/// Reason why no task was made of a fire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FireFault {
    /// The fire can't become a task as things are; the text says why, for people.
    #[error("{0}")]
    Refused(String),
    /// A bug of Windrow. Its cause is for the node's log, not for readers of the schedule.
    #[error("{}", say::bug(.0))]
    Bug(String),
    /// Another task has the name of its task. That stays so, and further tries don't help.
    #[error("{0}")]
    NameTaken(String),
    /// Another node made its task, or its schedule is gone: there is nothing to do.
    #[error("{}", say::fire_over())]
    Over,
    /// The store failed, or the node ends: another node, or this one again, takes the fire after its lease.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Maker of tasks from fires. Everything it needs is in the fire; a repeat finds the task that was made before.
#[async_trait]
pub trait FireMaker: Send + Sync {
    /// Reads the source that the schedule names, makes the task and starts it. Cancel safe: a fire whose task was not
    /// made stays pending.
    ///
    /// # Errors
    /// See [`FireFault`].
    async fn make(&self, fire: &TakenFire) -> Result<TaskId, FireFault>;
}
