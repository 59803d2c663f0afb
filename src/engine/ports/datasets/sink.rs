//! Copies of current generations where readers have them nearer. The store says which copies to make, one node at a
//! time has a claim on each copy, and the sink refuses a claim older than one it has met.

use std::time::Duration;
use windrow_words::engine as say;

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::dataset::GenerationNo;

/// Lifetime of a claim on a copy; it is renewed while the copy is made.
pub const SINK_LEASE: Duration = Duration::from_secs(30);

/// Copy that this node is to make or remove, until its claim is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkJob {
    /// Dataset, by a number that no other ever has.
    pub dataset: i64,
    /// Name of the dataset.
    pub name: String,
    /// Number of the claim, which grows with each one.
    pub epoch: u64,
    /// True if the copy is to be removed: it is no longer wanted, or the dataset is gone.
    pub removes: bool,
    /// Number of tries before this one.
    pub attempts: u32,
}

/// Copies to make or remove, and the lag of all copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkAgenda {
    /// Jobs that this node is to do.
    pub jobs: Vec<SinkJob>,
    /// Datasets whose readers find something other than the current generation.
    pub behind: u64,
    /// Longest time for which that is so.
    pub lag: Duration,
}

/// Outcome of a copy job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkEnd {
    /// Readers find this publication now.
    Copied {
        /// Number of the publication.
        publication: u64,
        /// Generation that it published.
        generation: GenerationNo,
    },
    /// Readers find nothing any more.
    Removed,
    /// The job failed; it is tried again after a while.
    Failed {
        /// Reason for the failure.
        text: String,
        /// Delay before the next try.
        again: Duration,
    },
}

/// Copy of a dataset as last made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Number of the dataset.
    pub dataset: i64,
    /// Name of the dataset.
    pub name: String,
    /// Publication that readers find.
    pub publication: u64,
}

/// Store of the wanted and the existing copies. Times are the database's.
///
/// # Errors
/// Every method fails if the store can't be read or written.
#[async_trait]
pub trait SinkStore: Send + Sync {
    /// Takes jobs without a claim, at most `limit`, and returns how far all copies are behind.
    async fn take_sinks(&self, limit: u32) -> Result<SinkAgenda, StoreError>;

    /// Renews a claim. Returns false once it is no longer this node's.
    async fn keep_sink(&self, job: &SinkJob) -> Result<bool, StoreError>;

    /// Records the outcome of a job and gives the claim back. Returns false if another node has one by now.
    async fn end_sink(&self, job: &SinkJob, end: &SinkEnd) -> Result<bool, StoreError>;

    /// Returns copies that are up to date, in the order of their datasets, after one, at most `limit`.
    async fn sinks_copied(&self, after: Option<i64>, limit: u32) -> Result<Vec<Copied>, StoreError>;

    /// Records that readers no longer find a copy, so that it is made again. No effect once another was made.
    async fn lose_sink(&self, lost: &Copied) -> Result<(), StoreError>;
}

/// Error of making, checking or removing a copy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// The sink has met a newer claim, or the copy begun there is gone.
    #[error("{}", say::sink_fenced())]
    Fenced,
    /// Unavailable for now; worth another try.
    #[error("{0}")]
    Failed(String),
}

impl From<StoreError> for SinkError {
    fn from(error: StoreError) -> SinkError {
        SinkError::Failed(error.text())
    }
}

/// Maker of copies for readers.
///
/// *Cancel safety*: if dropped, readers find the same as before; a partial copy is continued later, or expires.
#[async_trait]
pub trait SinkCopier: Send + Sync {
    /// Copies the whole current generation and lets readers find it at once, or removes what they find.
    ///
    /// # Errors
    /// See [`SinkError`].
    async fn follow(&self, job: &SinkJob) -> Result<SinkEnd, SinkError>;

    /// True if readers find a copy, whole.
    ///
    /// # Errors
    /// If it can't be checked.
    async fn is_there(&self, copied: &Copied) -> Result<bool, SinkError>;
}
