//! Why a store doesn't obey a command.

use crate::ports::StoreError;
use windrow_core::ids::{ShardId, TaskId};

pub use windrow_core::life::{CommandRefusal, TaskCommand, TaskEdit};

/// Shards of a task can't be moved to a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveRefusal {
    /// No session of that name lives.
    #[error("there is no live node {0}; `windrow node list` shows those that are")]
    NoNode(String),
    /// The node hands its own work over.
    #[error("the node {0} drains and takes nothing; undrain it first, or name another node")]
    Draining(String),
    /// The task has no such shard.
    #[error("there is no shard {0}")]
    NoShard(ShardId),
    /// Nothing of it runs, so nothing can be handed over.
    #[error("{0} does not run on any node now; only what runs can be moved")]
    NotRunning(String),
    /// It is where it is wanted.
    #[error("{0} is on the node {1} already")]
    AlreadyThere(String, String),
}

/// A command could not be obeyed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// No such task.
    #[error("there is no task {0}")]
    NotFound(TaskId),
    /// The task can't obey it.
    #[error(transparent)]
    Refused(#[from] CommandRefusal),
    /// It was changed since the caller looked.
    #[error("the task was changed: it has version {found}, not {expected}")]
    Changed {
        /// What the caller saw.
        expected: u64,
        /// What it is.
        found: u64,
    },
    /// It can't be moved to that node.
    #[error(transparent)]
    Move(#[from] MoveRefusal),
    /// A redrive of it has not ended, and needs its failures.
    #[error("its redrive {0} has not ended")]
    HasRedrive(TaskId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
