//! Items that failed, as people page through them and as a redrive addresses them.
//!
//! An item that failed for good has a place: the 0-based ordinal in its group, in the order in which checkpoints
//! committed it. Places are dense and never change, so that the failures `[a, b)` of a group are the same ones
//! forever.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::tasks::store::FailureGroup;
use windrow_core::ids::{ItemIndex, TaskId, WallMs};

/// Maximum number of indexes per query of [`FailureList::among`].
pub const AMONG_MAX: usize = 10_000;

/// State of an item that failed at least once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedState {
    /// Retrying inside the window.
    Retrying,
    /// Retrying outside the window, in the parked set.
    Parked,
    /// Failed for good, without another attempt.
    Failed,
}

/// Record of an item that failed at least once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedItem {
    /// Index of the item.
    pub index: ItemIndex,
    /// Number of its shard.
    pub shard: u32,
    /// State of the item.
    pub state: RecordedState,
    /// Number of attempts made.
    pub attempts: u32,
    /// Attempts that count against the item; see [`windrow_core::items::verdict::FailingItem::charged`].
    pub charged: u32,
    /// True if it failed for good, and nothing showed that the handler failed for it alone.
    pub is_unconfirmed: bool,
    /// Minimum number of calls for other items that were answered meanwhile; `None` unless it failed for good.
    pub others_answered: Option<u64>,
    /// Time at which the next attempt is due; only when parked.
    pub due_at: Option<WallMs>,
    /// Code of the last failure; `None` for an item that was parked while its first call was still in flight.
    pub code: Option<String>,
    /// Message of the last failure.
    pub message: Option<String>,
    /// JSON of the handler about the last failure.
    pub output: Option<String>,
    /// Time at which it first failed.
    pub first_at: WallMs,
    /// Time at which it last failed.
    pub last_at: WallMs,
    /// Failed attempts as a JSON array of `{attempt, at_ms, duration_ms, code, run}`.
    pub history: Option<String>,
    /// Group and place in it; only when failed for good.
    pub place: Option<(String, u64)>,
}

/// Failures on a page, and the place where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailurePage {
    /// All failures in the order of their indexes, after an index.
    ByIndex(Option<ItemIndex>),
    /// Failures of a group in the order of their places, from a place on.
    OfGroup(String, u64),
}

/// Retrying items that failed with the same code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingCode {
    /// Code of the last failure.
    pub code: String,
    /// Number of these items, as far as saved.
    pub items: u64,
}

/// Store that finds items that failed.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait FailureList: Send + Sync {
    /// Returns the groups of a task, most frequent first, without counting rows.
    async fn groups(&self, task: TaskId) -> Result<Vec<FailureGroup>, StoreError>;

    /// Returns the codes of a task's retrying items, most frequent first, then by code.
    async fn waiting(&self, task: TaskId) -> Result<Vec<WaitingCode>, StoreError>;

    /// Returns at most `limit` items that failed for good.
    async fn page(
        &self,
        task: TaskId,
        page: &FailurePage,
        limit: u32,
    ) -> Result<Vec<RecordedItem>, StoreError>;

    /// Returns the indexes of the failures at `count` places of a group from `first` on; fewer at its end.
    async fn places(
        &self,
        task: TaskId,
        group: &str,
        first: u64,
        count: u32,
    ) -> Result<Vec<ItemIndex>, StoreError>;

    /// Returns those of at most [`AMONG_MAX`] indexes that failed for good, in index order.
    ///
    /// # Errors
    /// If the store can't be read, or there are too many indexes.
    async fn among(&self, task: TaskId, indexes: &[ItemIndex]) -> Result<Vec<RecordedItem>, StoreError>;

    /// Returns the indexes of at most `limit` unconfirmed failures after an index, in index order: those of these
    /// groups, or of all if none is named.
    async fn unconfirmed(
        &self,
        task: TaskId,
        groups: &[String],
        after: Option<ItemIndex>,
        limit: u32,
    ) -> Result<Vec<ItemIndex>, StoreError>;

    /// Returns the record of one item.
    async fn item(&self, task: TaskId, index: ItemIndex) -> Result<Option<RecordedItem>, StoreError>;
}
