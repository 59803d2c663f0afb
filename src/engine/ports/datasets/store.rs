//! Datasets and their generations, as readers and people see them. Every change by people keeps an audit entry in its
//! transaction.

use std::num::NonZeroU32;
use windrow_words::engine as say;

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::tasks::results::ResultShard;
use crate::ports::tasks::store::Write;
use windrow_core::dataset::{GenerationNo, GenerationState, Pointer, Sink, behind_since};
use windrow_core::ids::{Epoch, ItemIndex, TaskId, WallMs};

/// A dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataset {
    /// A number that no other dataset ever has: a name may be used again.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// The slug of the business whose tasks publish it.
    pub business: String,
    /// So many of the newest generations stay.
    pub keep: NonZeroU32,
    /// Which generation is current.
    pub pointer: Pointer,
    /// When the pointer moved last.
    pub published_at: Option<WallMs>,
    /// The number that was given last.
    pub last: GenerationNo,
    /// Grows with each change, publications too.
    pub version: u64,
    /// When its first task was made.
    pub created_at: WallMs,
    /// When it was changed last.
    pub updated_at: WallMs,
    /// Where it is copied to, and what readers find there.
    pub sink: Option<SinkView>,
}

impl Dataset {
    /// Since when readers of its sink find something else than what is current; none where they don't.
    pub fn behind_since(&self) -> Option<WallMs> {
        let sink = self.sink.as_ref()?;
        let copied = sink.copied.map(|copied| copied.publication);
        behind_since(self.pointer, self.published_at, (copied, sink.since))
    }
}

/// What readers of a sink find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkView {
    /// The newest copy; none before the first, and after it was lost.
    pub copied: Option<CopiedView>,
    /// Since when it is wanted, or was lost.
    pub since: WallMs,
    /// Why the last try to copy failed; none where it didn't.
    pub fault: Option<String>,
}

/// A copy that readers find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedView {
    /// The publication.
    pub publication: u64,
    /// Its generation.
    pub generation: GenerationNo,
    /// Since when they find it.
    pub at: WallMs,
}

/// A generation of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Its number.
    pub no: GenerationNo,
    /// The task whose results it is; it may be gone.
    pub task: TaskId,
    /// Where it stands.
    pub state: GenerationState,
    /// Whether it stays however many come after it.
    pub pinned: bool,
    /// How many results it has.
    pub results: u64,
    /// Where they lie, in index order; of a published one.
    pub shards: Vec<ResultShard>,
    /// By which member of the outputs it can be looked up, and the claim that wrote the keys.
    pub key: Option<(String, Epoch)>,
    /// The publication by which it first became current.
    pub publication: Option<u64>,
    /// Why it was withheld.
    pub why: Option<String>,
    /// When its task was made.
    pub created_at: WallMs,
    /// When it was published.
    pub published_at: Option<WallMs>,
}

/// A generation with its dataset and its summary, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The dataset.
    pub dataset: Dataset,
    /// The generation.
    pub generation: Generation,
    /// Its summary as JSON text.
    pub summary: Option<Box<str>>,
}

/// Which generation is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one that the pointer names.
    Current,
    /// The one of this number.
    No(GenerationNo),
}

/// What people change of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetChange {
    /// What isn't there stays as it is.
    Edit {
        /// So many of the newest generations stay; those beyond go.
        keep: Option<NonZeroU32>,
        /// Where the current one is copied to.
        sink: Option<Sink>,
    },
    /// Whether a generation stays however many come after it.
    Pin(GenerationNo, bool),
    /// A published generation becomes current again.
    RollBack(GenerationNo),
}

impl DatasetChange {
    /// The change as the audit names it.
    pub fn action(self) -> &'static str {
        match self {
            DatasetChange::Edit { .. } => "dataset.edit",
            DatasetChange::Pin(_, true) => "dataset.pin",
            DatasetChange::Pin(_, false) => "dataset.unpin",
            DatasetChange::RollBack(_) => "dataset.rollback",
        }
    }
}

/// A dataset could not be changed. Nothing was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatasetError {
    /// There is none of this name.
    #[error("{}", say::no_dataset(.0))]
    NotFound(String),
    /// It has no published generation of this number.
    #[error("{}", say::no_generation(.0, .1.to_string()))]
    NoGeneration(String, GenerationNo),
    /// It was changed since the caller looked.
    #[error("{}", say::dataset_changed(found.to_string(), expected.to_string()))]
    Changed {
        /// What the caller saw.
        expected: u64,
        /// What it is.
        found: u64,
    },
    /// As many of its generations are pinned as may be.
    #[error("{}", say::pins_full(*.0))]
    TooManyPins(u32),
    /// A task that has not ended is to publish it.
    #[error("{}", say::to_publish(.0.to_string()))]
    InUse(TaskId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads datasets, and changes them for people.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait DatasetStore: Send + Sync {
    /// A dataset by its name.
    async fn dataset(&self, name: &str) -> Result<Option<Dataset>, StoreError>;

    /// Datasets in the order of their names, after one, at most `count`; of one business, if one is given.
    async fn datasets(
        &self,
        business: Option<&str>,
        after: Option<&str>,
        count: u32,
    ) -> Result<Vec<Dataset>, StoreError>;

    /// A generation with its dataset, as of one moment.
    async fn reading(&self, name: &str, which: Which) -> Result<Option<Reading>, StoreError>;

    /// Generations of a dataset, the newest first, below one, at most `count`; without those that are no longer kept.
    async fn generations(
        &self,
        name: &str,
        below: Option<GenerationNo>,
        count: u32,
    ) -> Result<Vec<Generation>, StoreError>;

    /// The indexes of items whose keys have this hash, ascending, from one on, at most `count`; of those that one claim
    /// wrote. Other keys may have the same hash.
    async fn key_indexes(
        &self,
        task: TaskId,
        epoch: Epoch,
        hash: u64,
        from: ItemIndex,
        count: u32,
    ) -> Result<Vec<ItemIndex>, StoreError>;

    /// Changes a dataset; with `expected` only while it has that version. What changes nothing is accepted.
    ///
    /// # Errors
    /// See [`DatasetError`].
    async fn change_dataset(
        &self,
        name: &str,
        expected: Option<u64>,
        change: DatasetChange,
        write: &Write,
        now: WallMs,
    ) -> Result<Dataset, DatasetError>;

    /// Deletes a dataset that no task is about to publish, with all its generations; answers what it was.
    ///
    /// # Errors
    /// `NotFound`, `InUse`.
    async fn delete_dataset(&self, name: &str, write: &Write, now: WallMs) -> Result<Dataset, DatasetError>;
}
