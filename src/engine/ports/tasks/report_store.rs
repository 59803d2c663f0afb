//! Parts of a task's report, read from its rows.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::tasks::list::RunRecord;
use crate::ports::tasks::store::{FailureGroup, TaskView};
use windrow_core::ids::{ItemIndex, ShardId, TaskId};

/// Window of a shard as it was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedWindow {
    /// Shard of the window.
    pub shard: ShardId,
    /// First index that is neither settled nor parked.
    pub watermark: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// Dispatch horizon: everything sent since lies below it, even if it was never saved; see
    /// [`windrow_core::execution::Horizon`].
    pub horizon: ItemIndex,
    /// Checkpoint as `core::checkpoint` writes it; empty before the first.
    pub blob: Vec<u8>,
}

/// Facts about a task at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFacts {
    /// Task that the report is about.
    pub task: TaskView,
    /// Failures of the task by code, most frequent first.
    pub groups: Vec<FailureGroup>,
    /// True if an item is still parked, or retrying with a row of its own.
    pub has_waiting_items: bool,
    /// Newest runs of the task, newest first.
    pub runs: Vec<RunRecord>,
}

/// Store that reads the parts of reports.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait ReportStore: Send + Sync {
    /// Returns everything about a task at one moment, with at most `runs` of its runs.
    async fn report_facts(&self, task: TaskId, runs: u32) -> Result<Option<ReportFacts>, StoreError>;

    /// Returns the saved windows of a task's shards, by number.
    async fn saved_windows(&self, task: TaskId) -> Result<Vec<SavedWindow>, StoreError>;

    /// Returns the retrying items of a task, parked or not.
    async fn waiting_items(&self, task: TaskId) -> Result<Vec<ItemIndex>, StoreError>;

    /// Returns the redrives of a task, oldest first, at most `limit`.
    async fn redrives_of(&self, task: TaskId, limit: u32) -> Result<Vec<TaskView>, StoreError>;

    /// Returns those of these tasks that have redrives, by number.
    async fn redriven_among(&self, tasks: &[TaskId]) -> Result<Vec<TaskId>, StoreError>;
}
