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

/// Dataset as stored in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataset {
    /// Number that no other dataset ever has: a name may be used again.
    pub id: i64,
    /// Name of the dataset.
    pub name: String,
    /// Slug of the business whose tasks publish it.
    pub business: String,
    /// Number of newest generations that stay.
    pub keep: NonZeroU32,
    /// Pointer to the current generation.
    pub pointer: Pointer,
    /// Time at which the pointer last moved.
    pub published_at: Option<WallMs>,
    /// Number that was given to a generation last.
    pub last: GenerationNo,
    /// Version, incremented by each change, including publications.
    pub version: u64,
    /// Time at which it was created, by itself or with its first task.
    pub created_at: WallMs,
    /// Time of its last change.
    pub updated_at: WallMs,
    /// Sink that it is copied to, and the copy that readers find there.
    pub sink: Option<SinkView>,
}

impl Dataset {
    /// Returns the time since when readers of its sink find something other than the current generation; `None` if
    /// they don't.
    pub fn behind_since(&self) -> Option<WallMs> {
        let sink = self.sink.as_ref()?;
        let copied = sink.copied.map(|copied| copied.publication);
        behind_since(self.pointer, self.published_at, (copied, sink.since))
    }
}

/// Sink of a dataset, and the copy that readers find in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkView {
    /// Newest copy; `None` before the first, and after it was lost.
    pub copied: Option<CopiedView>,
    /// Time since when it is wanted, or was lost.
    pub since: WallMs,
    /// Reason why the last try to copy failed; `None` if it didn't.
    pub fault: Option<String>,
}

/// Copy that readers find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedView {
    /// Number of the publication.
    pub publication: u64,
    /// Generation that it published.
    pub generation: GenerationNo,
    /// Time since when readers find it.
    pub at: WallMs,
}

/// Generation of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Number of the generation.
    pub no: GenerationNo,
    /// Task whose results it holds; it may be gone.
    pub task: TaskId,
    /// State of the generation.
    pub state: GenerationState,
    /// True if it stays however many come after it.
    pub pinned: bool,
    /// Number of its results.
    pub results: u64,
    /// Shards that hold the results, in index order; only for a published generation.
    pub shards: Vec<ResultShard>,
    /// Member of the outputs by which results can be looked up, and the claim that wrote the keys.
    pub key: Option<(String, Epoch)>,
    /// Publication by which it first became current.
    pub publication: Option<u64>,
    /// Reason why it was withheld.
    pub why: Option<String>,
    /// Time at which its task was made.
    pub created_at: WallMs,
    /// Time at which it was published.
    pub published_at: Option<WallMs>,
}

/// Generation with its dataset and its summary, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Dataset that it belongs to.
    pub dataset: Dataset,
    /// Generation that was requested.
    pub generation: Generation,
    /// Summary of the results as JSON text.
    pub summary: Option<Box<str>>,
}

/// Generation that is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one that the pointer names.
    Current,
    /// The one of this number.
    No(GenerationNo),
}

/// Dataset to create before any task publishes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDataset {
    /// Name of the dataset.
    pub name: String,
    /// Slug of the business whose tasks may publish it.
    pub business: String,
    /// Number of newest generations that stay; `None` for the default.
    pub keep: Option<NonZeroU32>,
    /// Sink that the current generation is copied to; `None` for none.
    pub sink: Option<Sink>,
}

/// Change of a dataset by people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetChange {
    /// Changes settings; `None` leaves one as it is.
    Edit {
        /// Number of newest generations that stay; those beyond are removed.
        keep: Option<NonZeroU32>,
        /// Sink that the current generation is copied to.
        sink: Option<Sink>,
    },
    /// Pins a generation, so that it stays however many come after it, or unpins it.
    Pin(GenerationNo, bool),
    /// Makes a published generation current again.
    RollBack(GenerationNo),
}

impl DatasetChange {
    /// Returns the name of the change in the audit.
    pub fn action(self) -> &'static str {
        match self {
            DatasetChange::Edit { .. } => "dataset.edit",
            DatasetChange::Pin(_, true) => "dataset.pin",
            DatasetChange::Pin(_, false) => "dataset.unpin",
            DatasetChange::RollBack(_) => "dataset.rollback",
        }
    }
}

/// Error of changing a dataset. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatasetError {
    /// No dataset has this name.
    #[error("{}", say::no_dataset(.0))]
    NotFound(String),
    /// No business has this slug.
    #[error("{}", say::no_business(.0))]
    NoBusiness(String),
    /// Another dataset has this name.
    #[error("{}", say::dataset_exists(.0))]
    Taken(String),
    /// The business has as many datasets as allowed.
    #[error("{}", say::too_many_datasets(*.0))]
    Full(u64),
    /// The dataset has no published generation of this number.
    #[error("{}", say::no_generation(.0, .1.to_string()))]
    NoGeneration(String, GenerationNo),
    /// The dataset was changed since the caller read it.
    #[error("{}", say::dataset_changed(found.to_string(), expected.to_string()))]
    Changed {
        /// Version that the caller saw.
        expected: u64,
        /// Version that it has.
        found: u64,
    },
    /// As many of its generations are pinned as allowed.
    #[error("{}", say::pins_full(*.0))]
    TooManyPins(u32),
    /// A task that has not ended is to publish the dataset.
    #[error("{}", say::to_publish(.0.to_string()))]
    InUse(TaskId),
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Store of datasets, read by all and changed by people.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait DatasetStore: Send + Sync {
    /// Returns a dataset by its name.
    async fn dataset(&self, name: &str) -> Result<Option<Dataset>, StoreError>;

    /// Returns datasets in the order of their names, after one, at most `count`; those of one business, if given.
    async fn datasets(
        &self,
        business: Option<&str>,
        after: Option<&str>,
        count: u32,
    ) -> Result<Vec<Dataset>, StoreError>;

    /// Returns a generation with its dataset, as of one moment.
    async fn reading(&self, name: &str, which: Which) -> Result<Option<Reading>, StoreError>;

    /// Returns the generations of a dataset below one, newest first, at most `count`; without those that are no
    /// longer kept.
    async fn generations(
        &self,
        name: &str,
        below: Option<GenerationNo>,
        count: u32,
    ) -> Result<Vec<Generation>, StoreError>;

    /// Returns the indexes of items whose keys have this hash, ascending, from one on, at most `count`, among the
    /// keys that one claim wrote. Other keys may have the same hash.
    async fn key_indexes(
        &self,
        task: TaskId,
        epoch: Epoch,
        hash: u64,
        from: ItemIndex,
        count: u32,
    ) -> Result<Vec<ItemIndex>, StoreError>;

    /// Creates a dataset without generations.
    ///
    /// # Errors
    /// `NoBusiness`, `Taken`, `Full`.
    async fn create_dataset(
        &self,
        new: &NewDataset,
        write: &Write,
        now: WallMs,
    ) -> Result<Dataset, DatasetError>;

    /// Changes a dataset; with `expected` only while it has that version. A change without effect is accepted.
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

    /// Deletes a dataset that no task is about to publish, with all its generations, and returns its last state.
    ///
    /// # Errors
    /// `NotFound`, `InUse`.
    async fn delete_dataset(&self, name: &str, write: &Write, now: WallMs) -> Result<Dataset, DatasetError>;
}
