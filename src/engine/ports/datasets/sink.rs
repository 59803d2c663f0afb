//! Copies of what is current, where readers have it nearer. The store says what is to be copied, one node has a claim on
//! each copy at a time, and whoever holds the copies refuses a claim that is older than one it has met.

use std::time::Duration;
use windrow_words::engine as say;

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::dataset::GenerationNo;

/// How long a claim on a copy is nobody else's; it is kept while the copy is made.
pub const SINK_LEASE: Duration = Duration::from_secs(30);

/// A copy that this node is to make, or to take away, until its claim is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkJob {
    /// The dataset, by a number that no other ever has.
    pub dataset: i64,
    /// Its name.
    pub name: String,
    /// The number of the claim: it grows with each one.
    pub epoch: u64,
    /// Whether the copy is to be taken away: it is no longer wanted, or the dataset is gone.
    pub removes: bool,
    /// How often that was tried before.
    pub attempts: u32,
}

/// What there is to copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkAgenda {
    /// What this node is to do.
    pub jobs: Vec<SinkJob>,
    /// Datasets whose readers find something else than what is current.
    pub behind: u64,
    /// The longest time for which that is so.
    pub lag: Duration,
}

/// What became of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkEnd {
    /// Readers find this.
    Copied {
        /// The publication.
        publication: u64,
        /// Its generation.
        generation: GenerationNo,
    },
    /// Readers find nothing any more.
    Removed,
    /// It failed; it is tried again after a while.
    Failed {
        /// Why.
        text: String,
        /// The wait.
        again: Duration,
    },
}

/// A copy as it was made last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The dataset.
    pub dataset: i64,
    /// Its name.
    pub name: String,
    /// The publication that readers find.
    pub publication: u64,
}

/// Which copies are wanted and which there are, in the store. Times are the database's.
///
/// # Errors
/// Of each method: the store can't be read or written.
#[async_trait]
pub trait SinkStore: Send + Sync {
    /// Takes what nobody has a claim on, at most `limit`, and says how far all copies are behind.
    async fn take_sinks(&self, limit: u32) -> Result<SinkAgenda, StoreError>;

    /// Keeps a claim for as long as one lasts; false once it is no longer this node's.
    async fn keep_sink(&self, job: &SinkJob) -> Result<bool, StoreError>;

    /// Notes what became of a copy and gives the claim back; false where another node has one by now.
    async fn end_sink(&self, job: &SinkJob, end: &SinkEnd) -> Result<bool, StoreError>;

    /// Copies that are up to date, in the order of their datasets, after one, at most `limit`.
    async fn sinks_copied(&self, after: Option<i64>, limit: u32) -> Result<Vec<Copied>, StoreError>;

    /// Notes that readers no longer find a copy: it is made again. Without effect once another was made.
    async fn lose_sink(&self, lost: &Copied) -> Result<(), StoreError>;
}

/// A copy could not be made, looked at or taken away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// A newer claim was met there, or what was begun is gone.
    #[error("{}", say::sink_fenced())]
    Fenced,
    /// Not now; worth another try.
    #[error("{0}")]
    Failed(String),
}

impl From<StoreError> for SinkError {
    fn from(error: StoreError) -> SinkError {
        SinkError::Failed(error.text())
    }
}

/// Makes copies for readers.
///
/// *Cancel safety*: dropped, it leaves what readers find as it was; what was copied meanwhile is gone on with, or goes by
/// itself.
#[async_trait]
pub trait SinkCopier: Send + Sync {
    /// Copies what is current now, all of it, and has readers find it at once; or takes away what they find.
    ///
    /// # Errors
    /// See [`SinkError`].
    async fn follow(&self, job: &SinkJob) -> Result<SinkEnd, SinkError>;

    /// Whether readers find a copy, whole.
    ///
    /// # Errors
    /// It can't be looked at.
    async fn is_there(&self, copied: &Copied) -> Result<bool, SinkError>;
}
