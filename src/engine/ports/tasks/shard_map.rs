//! Who owns which shard, for people and for nodes that ask one another. SQL only.

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::ids::{RunNo, SessionId, ShardId, TaskId};
use windrow_core::items::verdict::Outage;
use windrow_core::life::ShardLife;
use windrow_core::task::lifecycle::ShardState;

/// A shard as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredShard {
    /// The shard.
    pub shard: ShardId,
    /// Its life.
    pub life: ShardLife,
    /// The outage of its handler, as the last checkpoint knew it.
    pub outage: Option<Outage>,
}

/// A shard that a session owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The shard.
    pub shard: ShardId,
    /// The number of its newest run.
    pub run: RunNo,
    /// The owner.
    pub session: SessionId,
}

/// Reads who owns what.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait ShardMap: Send + Sync {
    /// The shards of these tasks, by task and number.
    async fn shards_of(&self, tasks: &[TaskId]) -> Result<Vec<StoredShard>, StoreError>;

    /// Shards that somebody owns, by task and number, at most `limit`; of one session only, where it is named.
    async fn holdings(&self, of: Option<SessionId>, limit: u32) -> Result<Vec<Holding>, StoreError>;

    /// How many shards there are in each state that isn't final, with an owner and without, each counted up to
    /// `most`. Those without one that are not to be run, as of a task that nobody has started, are not counted.
    async fn shard_counts(&self, most: u32) -> Result<Vec<(ShardState, bool, u64)>, StoreError>;
}
