//! Results: the outputs of items, stored in segments that commit with the checkpoints which settle their items.
//!
//! A run seals the outputs of its newly settled items into segments. A segment's indexes lie within a window of one
//! another, so that a reader that merges segments holds few of them at a time; an item that settles far behind the
//! others (it was parked) gets a separate segment. The last segment of a run grows until it is full: a checkpoint
//! writes it again and replaces the earlier version. An item is in exactly one segment, since it is settled once.

use std::sync::Arc;

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::ids::{Epoch, ItemIndex, ShardId, TaskId};
use windrow_core::task::room::Sample;

/// Size above which a segment is full, in bytes of its outputs.
pub const SEGMENT_BYTES: usize = 256 << 10;

/// Output of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemOutput {
    /// Index of the item.
    pub index: ItemIndex,
    /// Output as minified JSON of at most `OUTPUT_KEPT_MAX` bytes.
    pub json: Box<str>,
}

/// Outputs of one run, in index order; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number among the segments of its run. A segment with the same number replaces the stored one.
    pub no: u32,
    /// Outputs in index order.
    pub outputs: Arc<[ItemOutput]>,
}

/// Place of a stored segment: by its first index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentPlace {
    /// First index in the segment.
    pub first: ItemIndex,
    /// Epoch of the run that wrote it.
    pub epoch: Epoch,
    /// Number among the segments of that run.
    pub no: u32,
}

/// Segment as stored in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSegment {
    /// Place of the segment.
    pub place: SegmentPlace,
    /// Outputs in index order; at least one.
    pub outputs: Vec<ItemOutput>,
}

/// Results of a shard that can be read in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultShard {
    /// Shard that has the results.
    pub shard: ShardId,
    /// One past its last index.
    pub end: ItemIndex,
    /// Lowest index that is not settled yet; `end` if all are. Results below it never change.
    pub frontier: ItemIndex,
    /// Number of results so far; more than are stored once they are no longer kept.
    pub kept: u64,
}

/// Number and size of a shard's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultSum {
    /// Shard that has the results.
    pub shard: ShardId,
    /// Number of its results.
    pub items: u64,
    /// Bytes of its results before they were packed.
    pub bytes: u64,
}

/// Store that reads results.
///
/// # Errors
/// Every method fails if the store can't be read, or what it holds is damaged.
#[async_trait]
pub trait ResultStore: Send + Sync {
    /// Returns the shards of a task in index order, as of one moment.
    async fn result_shards(&self, task: TaskId) -> Result<Vec<ResultShard>, StoreError>;

    /// Returns the number of results of each shard of a task that has any. Reads every segment.
    async fn result_sums(&self, task: TaskId) -> Result<Vec<ResultSum>, StoreError>;

    /// Returns a few of the last segments of a task, as stored, and the bytes that may still be written there, if
    /// this machine can tell.
    async fn result_room(&self, _task: TaskId) -> Result<(Sample, Option<u64>), StoreError> {
        Ok((Sample::default(), None))
    }

    /// Returns the segments of a shard that hold an index at or above `from`, in the order of their places, after a
    /// place, at most `limit`.
    async fn segments(
        &self,
        shard: ShardId,
        from: ItemIndex,
        after: Option<SegmentPlace>,
        limit: u32,
    ) -> Result<Vec<StoredSegment>, StoreError>;

    /// Returns the output of one item, if it has one.
    async fn output(&self, shard: ShardId, index: ItemIndex) -> Result<Option<Box<str>>, StoreError>;
}
