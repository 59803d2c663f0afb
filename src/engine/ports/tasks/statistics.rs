//! What was done in each day: sums that outlive crashes, nodes and tasks.
//!
//! They are counted by the transactions that change what they count: a checkpoint adds what it settles to its shard's day,
//! a deletion moves what a task did to its business's days. So at any moment the days of a shard sum up to its counters.

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::ids::{ShardId, TaskId};
use windrow_core::stats::daily::{Cells, Settled, UtcDay};
use windrow_core::task::lifecycle::Status;

/// Which part of the past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// The first day.
    pub from: UtcDay,
    /// The day after the last one.
    pub until: UtcDay,
    /// Of this business only.
    pub business: Option<String>,
}

impl Period {
    /// Whether a day belongs to it.
    pub fn has(&self, day: UtcDay) -> bool {
        self.from <= day && day < self.until
    }

    /// Whether a business belongs to it.
    pub fn is_of(&self, business: &str) -> bool {
        self.business.as_deref().is_none_or(|own| own == business)
    }
}

/// What a task that is still kept did in a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskTotals {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: Option<String>,
    /// Its business.
    pub business: String,
    /// Where it stands now.
    pub status: Status,
    /// Its items that were settled in the period.
    pub items: Settled,
}

/// What a shard settled in a day, by the clock of the node that ran it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardDay {
    /// The shard.
    pub shard: ShardId,
    /// The day.
    pub day: UtcDay,
    /// What it settled.
    pub items: Settled,
}

/// Reads statistics, and forgets old ones.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait StatisticsStore: Send + Sync {
    /// What each business did in each day, with tasks that were deleted since; nothing where nothing was done.
    async fn cells(&self, period: &Period) -> Result<Cells, StoreError>;

    /// The tasks that settled something in a period and are still kept, newest first, after (below) one, at most `limit`.
    async fn task_totals(
        &self,
        period: &Period,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<Vec<TaskTotals>, StoreError>;

    /// The days of a task's shards, by shard and day.
    async fn shard_days(&self, task: TaskId) -> Result<Vec<ShardDay>, StoreError>;
}
