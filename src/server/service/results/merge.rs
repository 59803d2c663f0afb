//! Segments merged into one sequence.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::vec;

use crate::service::ServiceError;
use windrow_core::ids::ItemIndex;
use windrow_engine::ports::tasks::results::{
    ItemOutput, ResultShard, ResultStore, SegmentPlace, StoredSegment,
};

/// Segments read at once: some 2 MiB of outputs.
const SEGMENTS_AT_ONCE: u32 = 8;
/// Bytes of outputs given at once, about.
const PAGE_BYTES: usize = 256 << 10;

/// Reads the results of a task, page by page.
pub struct Reader {
    store: Arc<dyn ResultStore>,
    shards: VecDeque<ResultShard>,
    from: ItemIndex,
    merge: Merge,
}

impl Reader {
    pub(super) fn new(store: Arc<dyn ResultStore>, shards: VecDeque<ResultShard>, from: ItemIndex) -> Reader {
        Reader {
            store,
            shards,
            from,
            merge: Merge::default(),
        }
    }

    /// The next outputs, in index order; none at the end of what can be read now.
    ///
    /// # Errors
    /// When the store can't be read, or what it holds is damaged.
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

/// Segments of one shard, of which those that have begun are open.
#[derive(Default)]
struct Merge {
    /// Those that have not begun yet, in order.
    waiting: VecDeque<StoredSegment>,
    /// The next output of each open one; its place in `open`.
    heads: BinaryHeap<Reverse<(ItemIndex, usize)>>,
    open: Vec<vec::IntoIter<ItemOutput>>,
    /// Places of `open` that are used up.
    free: Vec<usize>,
    /// The place of the last segment that was read.
    after: Option<SegmentPlace>,
    is_exhausted: bool,
}

impl Merge {
    /// Whether a segment that is not here may begin before the next output.
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

    /// The lowest output of all that are open.
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

    /// Notes what comes next of an open one.
    fn watch(&mut self, at: usize) {
        match self.open[at].as_slice().first() {
            Some(next) => self.heads.push(Reverse((next.index, at))),
            None => self.free.push(at),
        }
    }
}
