//! What a report of a task is made of, read from its rows.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::tasks::list::RunRecord;
use crate::ports::tasks::store::{FailureGroup, TaskView};
use windrow_core::ids::{ItemIndex, ShardId, TaskId};

/// Where a shard's window stands, as it was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedWindow {
    /// Which shard.
    pub shard: ShardId,
    /// First index that is neither settled nor parked.
    pub watermark: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// Below it lies whatever left since, also what nobody saved any more: see [`windrow_core::execution::Reach`].
    pub reach: ItemIndex,
    /// The checkpoint, as `core::checkpoint` writes it; empty before the first.
    pub blob: Vec<u8>,
}

/// One moment of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFacts {
    /// The task.
    pub task: TaskView,
    /// Its failures by code, most frequent first.
    pub groups: Vec<FailureGroup>,
    /// Whether an item is still parked or waits for a retry in a row of its own.
    pub has_waiting_items: bool,
    /// Its newest runs, newest first.
    pub runs: Vec<RunRecord>,
}

/// Reads reports.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait ReportStore: Send + Sync {
    /// Everything about a task at one moment, with at most `runs` of its runs.
    async fn report_facts(&self, task: TaskId, runs: u32) -> Result<Option<ReportFacts>, StoreError>;

    /// Where the windows of a task's shards stand, by number.
    async fn saved_windows(&self, task: TaskId) -> Result<Vec<SavedWindow>, StoreError>;

    /// The items of a task that wait for another attempt, parked or not.
    async fn waiting_items(&self, task: TaskId) -> Result<Vec<ItemIndex>, StoreError>;

    /// The redrives of a task, oldest first, at most `limit`.
    async fn redrives_of(&self, task: TaskId, limit: u32) -> Result<Vec<TaskView>, StoreError>;

    /// Those of these tasks that have redrives, by number.
    async fn redriven_among(&self, tasks: &[TaskId]) -> Result<Vec<TaskId>, StoreError>;
}
