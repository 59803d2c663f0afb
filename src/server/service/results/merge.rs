//! Merging of result segments into one sequence.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::vec;

use crate::service::ServiceError;
use windrow_core::ids::ItemIndex;
use windrow_engine::ports::tasks::results::{
    ItemOutput, ResultShard, ResultStore, SegmentPlace, StoredSegment,
};

/// Segments read at a time: about 2 MiB of outputs.
const SEGMENTS_AT_ONCE: u32 = 8;
/// Approximate size of a page of outputs, in bytes.
const PAGE_BYTES: usize = 256 << 10;

/// Paged reader for the results of a task.
pub struct Reader {
    store: Arc<dyn ResultStore>,
    shards: VecDeque<ResultShard>,
    from: ItemIndex,
    merge: Merge,
}

impl Reader {
    pub fn new(store: Arc<dyn ResultStore>, shards: VecDeque<ResultShard>, from: ItemIndex) -> Reader {
        Reader {
            store,
            shards,
            from,
            merge: Merge::default(),
        }
    }

    /// Returns the end of the indexes that can be read now, exclusive.
    pub(super) fn end(&self) -> ItemIndex {
        let mut shards = self.shards.iter();
        let open = shards.find(|shard| shard.frontier < shard.end);
        let end = |shard: &ResultShard| shard.frontier;
        open.or_else(|| self.shards.back()).map_or(ItemIndex(0), end)
    }

    /// Returns the next outputs in index order; empty at the end of those available now.
    ///
    /// # Errors
    /// If the store can't be read or its data is damaged.
    pub async fn page(&mut self) -> Result<Vec<ItemOutput>, ServiceError> {
        let (mut page, mut bytes) = (Vec::new(), 0);
        while let Some(shard) = self.shards.front().copied() {
            if self.from >= shard.frontier {
                if shard.frontier < shard.end {
                    self.shards.clear();
                } else {
                    self.next_shard();
                }
                continue;
            }
            self.merge.open_due();
            if self.merge.needs_more() {
                let (after, limit) = (self.merge.after, SEGMENTS_AT_ONCE);
                let found = self.store.segments(shard.shard, self.from, after, limit).await?;
                self.merge.take_in(found);
                continue;
            }
            let Some(output) = self.merge.pop() else {
                self.from = shard.frontier;
                continue;
            };
            if output.index >= shard.frontier {
                self.from = shard.frontier;
            } else if output.index >= self.from {
                self.from = output.index.plus(1);
                bytes += output.json.len();
                page.push(output);
            }
            if bytes >= PAGE_BYTES {
                break;
            }
        }
        Ok(page)
    }

    fn next_shard(&mut self) {
        self.shards.pop_front();
        self.merge = Merge::default();
    }
}

/// Segments of one shard; those that have begun are open.
#[derive(Default)]
struct Merge {
    /// Segments that have not begun yet, in order.
    waiting: VecDeque<StoredSegment>,
    /// Next output of each open segment, with the segment's place in `open`.
    heads: BinaryHeap<Reverse<(ItemIndex, usize)>>,
    open: Vec<vec::IntoIter<ItemOutput>>,
    /// Unused places in `open`.
    free: Vec<usize>,
    /// Place of the last segment read.
    after: Option<SegmentPlace>,
    is_exhausted: bool,
}

impl Merge {
    /// Returns true if a segment that isn't loaded yet may begin before the next output.
    fn needs_more(&self) -> bool {
        self.waiting.is_empty() && !self.is_exhausted
    }

    fn take_in(&mut self, found: Vec<StoredSegment>) {
        self.is_exhausted = found.len() < SEGMENTS_AT_ONCE as usize;
        self.after = found.last().map(|segment| segment.place).or(self.after);
        self.waiting.extend(found);
    }

    /// Opens the segments that begin before the next output.
    fn open_due(&mut self) {
        let is_due = |segment: &mut StoredSegment, head: Option<&Reverse<(ItemIndex, usize)>>| {
            head.is_none_or(|Reverse((head, _))| segment.place.first <= *head)
        };
        while let Some(segment) = self
            .waiting
            .pop_front_if(|segment| is_due(segment, self.heads.peek()))
        {
            self.open(segment.outputs);
        }
    }

    /// Returns the lowest output of all open segments.
    fn pop(&mut self) -> Option<ItemOutput> {
        let Reverse((_, at)) = self.heads.pop()?;
        let output = self.open.get_mut(at)?.next()?;
        self.watch(at);
        Some(output)
    }

    fn open(&mut self, outputs: Vec<ItemOutput>) {
        let outputs = outputs.into_iter();
        let at = match self.free.pop() {
            Some(at) => {
                self.open[at] = outputs;
                at
            }
            None => {
                self.open.push(outputs);
                self.open.len() - 1
            }
        };
        self.watch(at);
    }

    /// Registers the next output of an open segment.
    fn watch(&mut self, at: usize) {
        match self.open[at].as_slice().first() {
            Some(next) => self.heads.push(Reverse((next.index, at))),
            None => self.free.push(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use proptest::prelude::*;
    use windrow_core::ids::{Epoch, ShardId, TaskId};
    use windrow_engine::ports::StoreError;
    use windrow_engine::ports::tasks::results::ResultSum;

    use super::*;

    /// Segments in memory; those of shard 1 begin at item 100.
    struct Fake(Vec<StoredSegment>);

    #[async_trait]
    impl ResultStore for Fake {
        async fn result_shards(&self, _: TaskId) -> Result<Vec<ResultShard>, StoreError> {
            Ok(Vec::new())
        }

        async fn result_sums(&self, _: TaskId) -> Result<Vec<ResultSum>, StoreError> {
            Ok(Vec::new())
        }

        async fn segments(
            &self,
            shard: ShardId,
            from: ItemIndex,
            after: Option<SegmentPlace>,
            limit: u32,
        ) -> Result<Vec<StoredSegment>, StoreError> {
            let range = ItemIndex(u64::from(shard.no) * 100)..ItemIndex(u64::from(shard.no + 1) * 100);
            let mut found: Vec<StoredSegment> = self.0.clone();
            found.retain(|segment| {
                let reaches = segment.outputs.last().is_some_and(|last| last.index >= from);
                range.contains(&segment.place.first)
                    && reaches
                    && after.is_none_or(|after| segment.place > after)
            });
            found.sort_by_key(|segment| segment.place);
            found.truncate(limit as usize);
            Ok(found)
        }

        async fn output(&self, _: ShardId, _: ItemIndex) -> Result<Option<Box<str>>, StoreError> {
            Ok(None)
        }
    }

    /// Items of two shards, each in one segment or in none, and how far each shard can be read.
    fn cases() -> impl Strategy<Value = (Vec<Option<u8>>, [u64; 2], u64)> {
        let segments = proptest::collection::vec(proptest::option::weighted(0.8, 0..40_u8), 200);
        (segments, [0..=100_u64, 0..=100_u64], 0..200_u64)
    }

    fn store(of_items: &[Option<u8>]) -> Fake {
        let mut segments = Vec::new();
        for shard in 0..2_usize {
            for no in 0..40_u8 {
                let items = shard * 100..(shard + 1) * 100;
                let outputs: Vec<ItemOutput> = items
                    .filter(|item| of_items[*item] == Some(no))
                    .map(|item| ItemOutput {
                        index: ItemIndex(item as u64),
                        json: item.to_string().into(),
                    })
                    .collect();
                let place = outputs.first().map(|first| SegmentPlace {
                    first: first.index,
                    epoch: Epoch(u64::from(no % 3)),
                    no: u32::from(no),
                });
                segments.extend(place.map(|place| StoredSegment { place, outputs }));
            }
        }
        Fake(segments)
    }

    proptest! {
        #[test]
        fn every_output_below_the_frontier_comes_once_in_order((of_items, done, from) in cases()) {
            let shards = [0, 1].map(|no: u32| {
                let first = u64::from(no) * 100;
                ResultShard {
                    shard: ShardId { task: TaskId(1), no },
                    end: ItemIndex(first + 100),
                    frontier: ItemIndex(first + done[no as usize]),
                    kept: 0,
                }
            });
            // What the second shard has can be read only once the first is done.
            let frontier = if done[0] < 100 { done[0] } else { 100 + done[1] };
            let expected: Vec<u64> = (from..frontier).filter(|item| of_items[*item as usize].is_some()).collect();
            let mut reader = Reader::new(Arc::new(store(&of_items)), shards.into(), ItemIndex(from));
            let found = futures_util::FutureExt::now_or_never(async {
                let mut found = Vec::new();
                loop {
                    let page = reader.page().await.expect("it can be read");
                    if page.is_empty() {
                        return found;
                    }
                    found.extend(page.into_iter().map(|output| output.index.0));
                }
            });
            prop_assert_eq!(found, Some(expected));
        }
    }
}
