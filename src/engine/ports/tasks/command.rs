//! Errors of commands: the ones that a store refuses, and the reasons.

use crate::ports::StoreError;
use windrow_core::ids::{SessionId, ShardId, TaskId};
use windrow_core::life::ShardLife;
use windrow_core::task::lifecycle::ShardState;
use windrow_words::engine as say;

pub use windrow_core::life::{CommandRefusal, TaskCommand, TaskEdit};

/// Reason why shards of a task can't be moved to a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveRefusal {
    /// No session of that name lives.
    #[error("{}", say::no_node(.0))]
    NoNode(String),
    /// The node is draining and takes nothing.
    #[error("{}", say::node_drains(.0))]
    Draining(String),
    /// The task has no such shard.
    #[error("{}", say::no_shard(.0.to_string()))]
    NoShard(ShardId),
    /// Nothing of the task runs, so nothing can be handed over.
    #[error("{}", say::not_running(.0))]
    NotRunning(String),
    /// The shards are on that node already.
    #[error("{}", say::already_there(.0, .1))]
    AlreadyThere(String, String),
}

/// Returns the numbers of a task's shards, or of `only` one of them, that run outside the sessions `at` of node `to`
/// and so can be moved there.
///
/// # Errors
/// If there are no such shards.
pub fn shards_to_move(
    (task, only): (TaskId, Option<u32>),
    to: &str,
    at: &[SessionId],
    shards: &[ShardLife],
) -> Result<Vec<u32>, MoveRefusal> {
    let name = only.map_or_else(|| task.to_string(), |no| ShardId { task, no }.to_string());
    let mut found: Vec<&ShardLife> = shards.iter().collect();
    if let Some(no) = only {
        found.retain(|shard| shard.no == no);
        if found.is_empty() {
            return Err(MoveRefusal::NoShard(ShardId { task, no }));
        }
    }
    found.retain(|shard| shard.state == ShardState::Running && shard.session.is_some());
    if found.is_empty() {
        return Err(MoveRefusal::NotRunning(name));
    }
    found.retain(|shard| shard.session.is_some_and(|owner| !at.contains(&owner)));
    match found.is_empty() {
        true => Err(MoveRefusal::AlreadyThere(name, to.to_owned())),
        false => Ok(found.into_iter().map(|shard| shard.no).collect()),
    }
}

/// Error of a command; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// No task has this id.
    #[error("{}", say::no_task(.0.to_string()))]
    NotFound(TaskId),
    /// The task can't carry it out in its current state.
    #[error(transparent)]
    Refused(#[from] CommandRefusal),
    /// The task was changed since the caller read it.
    #[error("{}", say::task_changed(found.to_string(), expected.to_string()))]
    Changed {
        /// Version that the caller saw.
        expected: u64,
        /// Version that it has.
        found: u64,
    },
    /// The task can't be moved to that node.
    #[error(transparent)]
    Move(#[from] MoveRefusal),
    /// A redrive of the task has not ended, and needs its failures.
    #[error("{}", say::has_redrive(.0.to_string()))]
    HasRedrive(TaskId),
    /// The task must be archived before it is deleted, and can't be now.
    #[error("{}", say::not_archived(.0.to_string()))]
    NotArchived(StoreError),
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}
