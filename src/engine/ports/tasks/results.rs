//! Results: what items came to, kept in segments that commit with the checkpoints which settle their items.
//!
//! A run seals the outputs of its newly settled items into segments. A segment's indexes lie within a window of one
//! another, so that a reader that merges segments holds few of them at a time; an item that settles far behind the
//! others (it was parked) is a segment of its own. The last segment of a run grows until it is full: a checkpoint writes
//! it again in place of what it was. An item is in exactly one segment, since it is settled once.

use std::sync::Arc;

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::ids::{Epoch, ItemIndex, ShardId, TaskId};
use windrow_core::task::room::Sample;

/// A segment is full above this. Unit: bytes of its outputs.
pub const SEGMENT_BYTES: usize = 256 << 10;

/// What one item came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemOutput {
    /// The item.
    pub index: ItemIndex,
    /// Minified JSON of at most `OUTPUT_KEPT_MAX` bytes.
    pub json: Box<str>,
}

/// Outputs of one run, in index order; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number among those of its run. The same number again takes the place of what was stored.
    pub no: u32,
    /// The outputs, in index order.
    pub outputs: Arc<[ItemOutput]>,
}

/// Where a stored segment stands: in the order of first indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentPlace {
    /// The first index in it.
    pub first: ItemIndex,
    /// The run that wrote it.
    pub epoch: Epoch,
    /// Its number there.
    pub no: u32,
}

/// A segment as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSegment {
    /// Where it stands.
    pub place: SegmentPlace,
    /// Its outputs, in index order; at least one.
    pub outputs: Vec<ItemOutput>,
}

/// How far the results of a shard can be read in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultShard {
    /// The shard.
    pub shard: ShardId,
    /// One past its last index.
    pub end: ItemIndex,
    /// The lowest index that is not settled yet; `end` where all are. Results below it never change.
    pub frontier: ItemIndex,
    /// How many results it came to; more than are stored once they are no longer kept.
    pub kept: u64,
}

/// How many results a shard has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultSum {
    /// The shard.
    pub shard: ShardId,
    /// How many results it has.
    pub items: u64,
    /// Their bytes, before they were packed.
    pub bytes: u64,
}

/// Reads results.
///
/// # Errors
/// Of each method: the store can't be read, or what it holds is damaged.
#[async_trait]
pub trait ResultStore: Send + Sync {
    /// The shards of a task in index order, as of one moment.
    async fn result_shards(&self, task: TaskId) -> Result<Vec<ResultShard>, StoreError>;

    /// How many results the shards of a task have; of those that have any. It looks at every segment.
    async fn result_sums(&self, task: TaskId) -> Result<Vec<ResultSum>, StoreError>;

    /// A few of the last segments of a task, as they are kept; and how many bytes may still be written there, where this
    /// machine can tell.
    async fn result_room(&self, _task: TaskId) -> Result<(Sample, Option<u64>), StoreError> {
        Ok((Sample::default(), None))
    }

    /// Segments of a shard that hold an index at or above `from`, in the order of their places, after a place; at most
    /// `limit` of them.
    async fn segments(
        &self,
        shard: ShardId,
        from: ItemIndex,
        after: Option<SegmentPlace>,
        limit: u32,
    ) -> Result<Vec<StoredSegment>, StoreError>;

    /// The output of one item, if it has one.
    async fn output(&self, shard: ShardId, index: ItemIndex) -> Result<Option<Box<str>>, StoreError>;
}
