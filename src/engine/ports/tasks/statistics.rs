//! Daily totals: sums that outlive crashes, nodes and tasks.
//!
//! The transactions that change the counted values also count them: a checkpoint adds what it settles to its shard's
//! day, a deletion moves the totals of a task to its business's days. So at any moment the days of a shard sum up to
//! its counters.

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::ids::{ShardId, TaskId};
use windrow_core::stats::daily::{Cells, Settled, UtcDay};
use windrow_core::task::lifecycle::Status;

/// Period of days, optionally of one business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// First day of the period.
    pub from: UtcDay,
    /// Day after the last one.
    pub until: UtcDay,
    /// Only this business, if set.
    pub business: Option<String>,
}

impl Period {
    /// True if a day belongs to it.
    pub fn has(&self, day: UtcDay) -> bool {
        self.from <= day && day < self.until
    }

    /// True if a business belongs to it.
    pub fn is_of(&self, business: &str) -> bool {
        self.business.as_deref().is_none_or(|own| own == business)
    }
}

/// Totals of an existing task in a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskTotals {
    /// Id of the task.
    pub task: TaskId,
    /// Name of the task.
    pub name: Option<String>,
    /// Slug of its business.
    pub business: String,
    /// Current status of the task.
    pub status: Status,
    /// Items of it that were settled in the period.
    pub items: Settled,
}

/// Items that a shard settled in a day, by the clock of the node that ran it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardDay {
    /// Shard that settled them.
    pub shard: ShardId,
    /// Day by that clock.
    pub day: UtcDay,
    /// Settled items of the day.
    pub items: Settled,
}

/// Store that reads statistics, and forgets old ones.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait StatisticsStore: Send + Sync {
    /// Returns the totals of each business and day, including tasks that were deleted since; days without any are
    /// left out.
    async fn cells(&self, period: &Period) -> Result<Cells, StoreError>;

    /// Returns the existing tasks that settled something in a period, newest first, after (below) one, at most
    /// `limit`.
    async fn task_totals(
        &self,
        period: &Period,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<Vec<TaskTotals>, StoreError>;

    /// Returns the days of a task's shards, by shard and day.
    async fn shard_days(&self, task: TaskId) -> Result<Vec<ShardDay>, StoreError>;
}
