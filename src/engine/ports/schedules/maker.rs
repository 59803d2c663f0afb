//! Makes the task of a fire.

use async_trait::async_trait;
use windrow_words::engine as say;

use crate::ports::StoreError;
use crate::ports::schedules::store::TakenFire;
use windrow_core::ids::TaskId;

/// No task was made of a fire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FireFault {
    /// It can't become one as things are: what is wrong, for people.
    #[error("{0}")]
    Refused(String),
    /// A bug of ours. What it came from is for the node's log, and for nobody who reads the schedule.
    #[error("{}", say::bug(.0))]
    Bug(String),
    /// The name of its task is another's. It stays so, and further tries don't help.
    #[error("{0}")]
    NameTaken(String),
    /// Its task was made by another node, or its schedule is gone: there is nothing to do.
    #[error("{}", say::fire_over())]
    Over,
    /// The store failed, or the node ends: the fire is somebody else's, or this node's again, after its lease.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes tasks of fires. What it needs of them is in the fire; a repeat finds the task that was made before.
#[async_trait]
pub trait FireMaker: Send + Sync {
    /// Reads the source that the schedule names, makes the task and starts it. Cancel safe: a fire whose task was not
    /// made stays pending.
    ///
    /// # Errors
    /// See [`FireFault`].
    async fn make(&self, fire: &TakenFire) -> Result<TaskId, FireFault>;
}
