//! Items that failed, as people page through them and as a redrive addresses them.
//!
//! A failed item has a place: the 0-based ordinal in its group, in the order in which checkpoints committed it.
//! Places are dense and never change, so that the failures `[a, b)` of a group are the same ones for ever.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::tasks::store::FailureGroup;
use windrow_core::ids::{ItemIndex, TaskId, WallMs};

/// Indexes in one question of [`FailureList::among`].
pub const AMONG_MAX: usize = 10_000;

/// Where a troubled item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedState {
    /// Waits in the window for another attempt.
    Retrying,
    /// Waits outside the window for another attempt.
    Parked,
    /// Failed for good.
    Failed,
}

/// What is recorded of an item that failed at least once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedItem {
    /// The item.
    pub index: ItemIndex,
    /// Its shard's number.
    pub shard: u32,
    /// Where it stands.
    pub state: RecordedState,
    /// Attempts made.
    pub attempts: u32,
    /// Those that count against the item; see [`windrow_core::items::verdict::ItemTrouble::charged`].
    pub charged: u32,
    /// Given up, and nothing showed whether the handler failed for it alone.
    pub is_unconfirmed: bool,
    /// Calls for others that were answered meanwhile, at least; none unless it failed for good.
    pub others_answered: Option<u64>,
    /// When the next attempt is due; only when parked.
    pub due_at: Option<WallMs>,
    /// The last failure's code; none for an item that was parked while its first call was still out.
    pub code: Option<String>,
    /// Its message.
    pub message: Option<String>,
    /// The handler's own JSON about it.
    pub output: Option<String>,
    /// When it first failed.
    pub first_at: WallMs,
    /// When it last failed.
    pub last_at: WallMs,
    /// The failed attempts as a JSON array of `{attempt, at_ms, duration_ms, code, run}`.
    pub history: Option<String>,
    /// Its group and its place there; only when failed.
    pub place: Option<(String, u64)>,
}

/// Which failures a page holds, and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailurePage {
    /// All of them, in the order of their indexes, after an index.
    ByIndex(Option<ItemIndex>),
    /// Those of a group, in the order of their places, from a place on.
    OfGroup(String, u64),
}

/// Items that wait for another attempt after they failed with the same code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingCode {
    /// The last failure's code.
    pub code: String,
    /// How many there are, as far as they are saved.
    pub items: u64,
}

/// Finds items that failed.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait FailureList: Send + Sync {
    /// The groups of a task, most frequent first; nothing is counted for it.
    async fn groups(&self, task: TaskId) -> Result<Vec<FailureGroup>, StoreError>;

    /// The codes of the items of a task that failed and wait for another attempt, most frequent first, then by code.
    async fn waiting(&self, task: TaskId) -> Result<Vec<WaitingCode>, StoreError>;

    /// At most `limit` failed items.
    async fn page(
        &self,
        task: TaskId,
        page: &FailurePage,
        limit: u32,
    ) -> Result<Vec<RecordedItem>, StoreError>;

    /// The indexes of the failures at `count` places of a group from `first` on; fewer where it ends.
    async fn places(
        &self,
        task: TaskId,
        group: &str,
        first: u64,
        count: u32,
    ) -> Result<Vec<ItemIndex>, StoreError>;

    /// Those of at most [`AMONG_MAX`] indexes that are failed, in index order.
    ///
    /// # Errors
    /// When the store can't be read, or there are too many indexes.
    async fn among(&self, task: TaskId, indexes: &[ItemIndex]) -> Result<Vec<RecordedItem>, StoreError>;

    /// The indexes of at most `limit` unconfirmed failures after an index, in index order: those of these groups, of all
    /// where none is named.
    async fn unconfirmed(
        &self,
        task: TaskId,
        groups: &[String],
        after: Option<ItemIndex>,
        limit: u32,
    ) -> Result<Vec<ItemIndex>, StoreError>;

    /// What is recorded of one item.
    async fn item(&self, task: TaskId, index: ItemIndex) -> Result<Option<RecordedItem>, StoreError>;
}
