//! What a report of a task is made of, read from its rows.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::tasks::store::{FailureGroup, TaskView};
use windrow_core::ids::{ItemIndex, RunNo, ShardId, TaskId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::task::lifecycle::ShardState;

/// A shard as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardFacts {
    /// Which.
    pub shard: ShardId,
    /// Where it stands.
    pub state: ShardState,
    /// Its first index.
    pub first: ItemIndex,
    /// One past the last index that is to be done; lower than `range_end` after finishing early.
    pub end: ItemIndex,
    /// One past its last index.
    pub range_end: ItemIndex,
    /// First index that is neither settled nor parked.
    pub low_water: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// The saved counters of its range.
    pub counters: Counters,
}

/// Where a shard's window stands, as it was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedWindow {
    /// Which shard.
    pub shard: ShardId,
    /// First index that is neither settled nor parked.
    pub low_water: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// The checkpoint, as `domain::checkpoint` writes it; empty before the first.
    pub blob: Vec<u8>,
}

/// A run as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFacts {
    /// Of which shard.
    pub shard: ShardId,
    /// Its number.
    pub run: RunNo,
    /// The node; none when an older program began it and its session is forgotten.
    pub node: Option<String>,
    /// When it began.
    pub started_at: WallMs,
    /// When it ended; none until then.
    pub ended_at: Option<WallMs>,
    /// `released`, `done`, `stopped`, `recovering`, or `lost` with its node.
    pub end_reason: Option<String>,
    /// The shard's low water at its end.
    pub low_water: ItemIndex,
    /// The shard's settled items at its end.
    pub settled: u64,
}

/// One moment of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFacts {
    /// The task.
    pub task: TaskView,
    /// Its shards by number.
    pub shards: Vec<ShardFacts>,
    /// Its failures by code, most frequent first.
    pub groups: Vec<FailureGroup>,
    /// Whether an item is still parked or waits for a retry in a row of its own.
    pub has_waiting_items: bool,
    /// Its newest runs, newest first.
    pub runs: Vec<RunFacts>,
}

/// Reads reports.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait ReportStore: Send + Sync {
    /// Everything about a task at one moment, with at most `runs` of its runs.
    async fn report_facts(&self, task: TaskId, runs: u32) -> Result<Option<ReportFacts>, StoreError>;

    /// The shards of a task by number.
    async fn shard_facts(&self, task: TaskId) -> Result<Vec<ShardFacts>, StoreError>;

    /// Where the windows of a task's shards stand, by number.
    async fn saved_windows(&self, task: TaskId) -> Result<Vec<SavedWindow>, StoreError>;

    /// The items of a task that wait for another attempt, parked or not.
    async fn waiting_items(&self, task: TaskId) -> Result<Vec<ItemIndex>, StoreError>;

    /// The redrives of a task, oldest first, at most `limit`.
    async fn redrives_of(&self, task: TaskId, limit: u32) -> Result<Vec<TaskView>, StoreError>;
}
