//! Ownership of shards, for people and for nodes that ask one another. SQL only.

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::ids::{RunNo, SessionId, ShardId, TaskId};
use windrow_core::items::verdict::Outage;
use windrow_core::life::ShardLife;
use windrow_core::task::lifecycle::ShardState;

/// Shard as stored in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredShard {
    /// Id of the shard.
    pub shard: ShardId,
    /// State and owner of the shard.
    pub life: ShardLife,
    /// Set if its handler was down at the last checkpoint.
    pub outage: Option<Outage>,
}

/// Shard that a session owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// Shard that is owned.
    pub shard: ShardId,
    /// Number of its newest run.
    pub run: RunNo,
    /// Session that owns it.
    pub session: SessionId,
}

/// Store that reads the ownership of shards.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait ShardMap: Send + Sync {
    /// Returns the shards of these tasks, by task and number.
    async fn shards_of(&self, tasks: &[TaskId]) -> Result<Vec<StoredShard>, StoreError>;

    /// Returns owned shards, by task and number, at most `limit`; those of one session only, if named.
    async fn holdings(&self, of: Option<SessionId>, limit: u32) -> Result<Vec<Holding>, StoreError>;

    /// Returns the number of shards in each state that isn't final, with an owner and without, each counted up to
    /// `most`. Shards without an owner that are not to be run, such as those of a task that was never started, are
    /// not counted.
    async fn shard_counts(&self, most: u32) -> Result<Vec<(ShardState, bool, u64)>, StoreError>;
}
