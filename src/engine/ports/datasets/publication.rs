//! Publication of a task's results: the parts that its owner prepares, and the one write that makes it visible.

use async_trait::async_trait;
use windrow_words::engine as say;

use crate::ports::StoreError;
use crate::ports::ownership::run_store::CheckpointAck;
use crate::ports::tasks::store::TaskView;
use windrow_core::ids::{ClaimId, Epoch, ItemIndex, ShardId, WallMs};

/// Maximum number of keys per write: 4 MiB, for which no other writer waits long.
pub const KEYS_AT_ONCE: usize = 256 << 10;

/// Claim under which a write is made (decision 0020, rule 15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnClaim {
    /// Shard that publishes the results.
    pub shard: ShardId,
    /// Epoch of the claim.
    pub epoch: Epoch,
    /// Id of the claim.
    pub claim: ClaimId,
}

/// Parts of a generation other than its results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Answer of the reduce: minified JSON of at most
    /// [`SUMMARY_BYTES_MAX`](windrow_core::dataset::SUMMARY_BYTES_MAX).
    pub summary: Option<Box<str>>,
    /// True if the keys of its results were written under the claim.
    pub is_keyed: bool,
}

/// Error of preparing a publication.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// The reduce failed, or its answer can't be a summary; another try at once would end alike.
    #[error("{0}")]
    Failed(String),
    /// Unavailable for now; worth another try.
    #[error("{0}")]
    Unavailable(String),
    /// Another node owns the publication by now.
    #[error("{}", say::publishing_elsewhere())]
    Fenced,
}

/// Preparation of the parts of a generation other than its results: its keys and its summary.
///
/// *Cancel safety*: if dropped, it ends what it began; nothing of it is visible except under its claim.
#[async_trait]
pub trait Preparer: Send + Sync {
    /// Reads the results of a task whose items are settled, writes their keys and has them reduced.
    ///
    /// # Errors
    /// See [`PrepareError`].
    async fn prepare(&self, task: &TaskView, own: OwnClaim) -> Result<Prepared, PrepareError>;
}

/// Store that publishes the results of tasks.
#[async_trait]
pub trait PublicationStore: Send + Sync {
    /// Publishes the results of a task, finishes it and releases its last shard, in one transaction and only under
    /// the current claim. A generation that comes too late is withheld instead, and the task finishes all the same. A
    /// repeat of an accepted publication is accepted.
    ///
    /// # Errors
    /// If the store can't be written.
    async fn publish(
        &self,
        own: OwnClaim,
        prepared: &Prepared,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError>;

    /// Writes the keys by which items are found, some at a time: hashes with the indexes of their items, in ascending
    /// order, at most [`KEYS_AT_ONCE`]; only under the current claim. A repeat of the same number replaces the
    /// earlier keys.
    ///
    /// # Errors
    /// If the store can't be written.
    async fn write_keys(
        &self,
        own: OwnClaim,
        no: u32,
        keys: &[(u64, ItemIndex)],
    ) -> Result<CheckpointAck, StoreError>;

    /// Lets the business read the task's results with the token of this hash until the publication ends; only under
    /// the current claim.
    ///
    /// # Errors
    /// If the store can't be written.
    async fn lend_token(
        &self,
        own: OwnClaim,
        token_hash: &str,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError>;
}
