//! The publication of a task's results: what its owner works out, and the one write that makes it known.

use async_trait::async_trait;
use windrow_words::engine as say;

use crate::ports::StoreError;
use crate::ports::ownership::run_store::CheckpointAck;
use crate::ports::tasks::store::TaskView;
use windrow_core::ids::{ClaimId, Epoch, ItemIndex, ShardId, WallMs};

/// Keys of one write: 4 MiB, which no other writer waits for long.
pub const KEYS_AT_ONCE: usize = 256 << 10;

/// Whose claim a write is made under (decision 0020, rule 15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnClaim {
    /// The shard that publishes.
    pub shard: ShardId,
    /// The epoch of the claim.
    pub epoch: Epoch,
    /// Its id.
    pub claim: ClaimId,
}

/// What stands in a generation beside its results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The answer of the reduce, minified JSON of at most
    /// [`SUMMARY_BYTES_MAX`](windrow_core::dataset::SUMMARY_BYTES_MAX).
    pub summary: Option<Box<str>>,
    /// Whether the keys of its results were written under the claim.
    pub is_keyed: bool,
}

/// A publication can't be prepared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// The reduce failed, or answered what can't be a summary; trying it again at once would end alike.
    #[error("{0}")]
    Failed(String),
    /// Not now; worth another try.
    #[error("{0}")]
    Unavailable(String),
    /// Another node owns the publication by now.
    #[error("{}", say::publishing_elsewhere())]
    Fenced,
}

/// Works out what stands in a generation beside its results: its keys and its summary.
///
/// *Cancel safety*: dropped, it ends what it began; nothing of it can be seen but under its claim.
#[async_trait]
pub trait Preparer: Send + Sync {
    /// Reads the results of a task whose items are settled, writes their keys and has them reduced.
    ///
    /// # Errors
    /// See [`PrepareError`].
    async fn prepare(&self, task: &TaskView, own: OwnClaim) -> Result<Prepared, PrepareError>;
}

/// A publication in the store.
#[async_trait]
pub trait PublicationStore: Send + Sync {
    /// Publishes the results of a task, finishes it and gives its last shard back, in one transaction and only under the
    /// current claim. A generation that comes too late is withheld instead, and the task finishes all the same. A repeat
    /// of an accepted one is accepted.
    ///
    /// # Errors
    /// The store can't be written.
    async fn publish(
        &self,
        own: OwnClaim,
        prepared: &Prepared,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError>;

    /// Keeps by which keys items are found, some at a time: hashes with the indexes of their items, in ascending order, at
    /// most [`KEYS_AT_ONCE`]; only under the current claim. A repeat of the same number takes the place of what was kept.
    ///
    /// # Errors
    /// The store can't be written.
    async fn write_keys(
        &self,
        own: OwnClaim,
        no: u32,
        keys: &[(u64, ItemIndex)],
    ) -> Result<CheckpointAck, StoreError>;

    /// Makes the token of this hash one with which the business reads the task's results, until the publication ends; only
    /// under the current claim.
    ///
    /// # Errors
    /// The store can't be written.
    async fn lend_token(
        &self,
        own: OwnClaim,
        token_hash: &str,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError>;
}
