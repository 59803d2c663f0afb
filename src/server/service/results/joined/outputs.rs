//! Outputs of redrives by position. Positions are requested roughly in order, so segments already read are cached.

use std::collections::VecDeque;
use std::sync::Arc;

use super::END;
use super::redrive::Redrive;
use crate::service::ServiceError;
use windrow_core::ids::{ItemIndex, ShardId};
use windrow_engine::ports::tasks::results::{ItemOutput, ResultStore};

/// Segments read at a time: about 2 MiB of outputs.
const SEGMENTS_AT_ONCE: u32 = 8;
/// Most reads kept in the cache.
const READS_KEPT: usize = 8;

/// Cached reader for outputs of redrives.
pub(super) struct Outputs {
    store: Arc<dyn ResultStore>,
    /// Most recent reads, oldest first.
    reads: VecDeque<Read>,
}

/// All outputs of a shard in an index range, each segment in index order.
struct Read {
    shard: ShardId,
    from: ItemIndex,
    to: ItemIndex,
    segments: Vec<Vec<ItemOutput>>,
}

impl Outputs {
    pub(super) fn new(store: Arc<dyn ResultStore>) -> Outputs {
        let reads = VecDeque::new();
        Outputs { store, reads }
    }

    /// Returns the output for an item of a redrive; `None` if it has none (yet).
    pub(super) async fn find(
        &mut self,
        redrive: &Redrive,
        at: ItemIndex,
    ) -> Result<Option<Box<str>>, ServiceError> {
        let number = redrive.shards.partition_point(|shard| shard.end <= at);
        let Some(shard) = redrive.shards.get(number).map(|shard| shard.shard) else {
            return Ok(None);
        };
        let holds = |read: &Read| read.shard == shard && read.from <= at && at < read.to;
        if let Some(read) = self.reads.iter().find(|read| holds(read)) {
            return Ok(read.output(at));
        }
        let read = self.read(shard, at).await?;
        let output = read.output(at);
        if self.reads.len() >= READS_KEPT {
            self.reads.pop_front();
        }
        self.reads.push_back(read);
        Ok(output)
    }

    async fn read(&self, shard: ShardId, from: ItemIndex) -> Result<Read, ServiceError> {
        let found = self.store.segments(shard, from, None, SEGMENTS_AT_ONCE).await?;
        let is_all = found.len() < SEGMENTS_AT_ONCE as usize;
        // Segments are ordered by first index, so the next ones can't begin before the last one read.
        let to = match found.last() {
            Some(last) if !is_all => last.place.first,
            _ => END,
        };
        if to <= from {
            // More segments overlap here than are read at a time.
            let json = self.store.output(shard, from).await?;
            let output = json.map(|json| ItemOutput { index: from, json });
            let (to, segments) = (from.plus(1), vec![output.into_iter().collect()]);
            return Ok(Read {
                shard,
                from,
                to,
                segments,
            });
        }
        let segments = found.into_iter().map(|segment| segment.outputs).collect();
        Ok(Read {
            shard,
            from,
            to,
            segments,
        })
    }
}

impl Read {
    fn output(&self, at: ItemIndex) -> Option<Box<str>> {
        self.segments.iter().find_map(|outputs| {
            let found = outputs.binary_search_by_key(&at, |output| output.index).ok()?;
            Some(outputs[found].json.clone())
        })
    }
}
