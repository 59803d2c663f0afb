//! Read-ahead of rows for the lanes: verified blocks in memory from the watermark to a little beyond the cursor. For
//! an open task, it continues when items are added.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::actors::runtime::lock;
use crate::ports::sources::source::{RowChunk, Source, SourceError};
use windrow_core::execution::Execution;
use windrow_core::ids::ItemIndex;

/// Blocks kept ready beyond the one at the cursor.
const BLOCKS_AHEAD: usize = 2;

/// Positions in a run that decide how far to read ahead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) watermark: ItemIndex,
    pub(crate) cursor: ItemIndex,
    /// One past the last known item.
    pub(crate) end: ItemIndex,
    /// True if more items may be added.
    pub(crate) is_open: bool,
}

impl Places {
    pub(crate) fn of(execution: &Execution) -> Places {
        Places {
            watermark: execution.watermark(),
            cursor: execution.cursor(),
            end: execution.known_end(),
            is_open: execution.is_open(),
        }
    }
}

pub(crate) struct RowFeed {
    source: Arc<dyn Source>,
    chunks: Mutex<VecDeque<Arc<RowChunk>>>,
    hungry: Notify,
}

impl RowFeed {
    pub(crate) fn new(source: Arc<dyn Source>) -> RowFeed {
        RowFeed {
            source,
            chunks: Mutex::default(),
            hungry: Notify::new(),
        }
    }

    /// Returns the block of an item if it is in memory, and wakes the reader to look for more.
    pub(crate) fn ready(&self, index: ItemIndex) -> Option<Arc<RowChunk>> {
        let chunks = lock(&self.chunks);
        let at = chunks.partition_point(|chunk| chunk.end() <= index);
        let found = chunks.get(at).filter(|chunk| chunk.first() <= index).cloned();
        drop(chunks);
        self.look();
        found
    }

    /// Wakes the reader: the cursor may have passed settled items, whose rows nobody requests.
    pub(crate) fn look(&self) {
        self.hungry.notify_one();
    }

    /// Returns the block of an item, read from the source if it is not (or no longer) in memory: a retry below the
    /// watermark.
    pub(crate) async fn fetch(&self, index: ItemIndex) -> Result<Arc<RowChunk>, SourceError> {
        match self.ready(index) {
            Some(chunk) => Ok(chunk),
            None => self.source.read(index).await,
        }
    }

    /// Keeps the blocks ahead of the cursor in memory until the shard's end, and calls `on_ready` with the index read
    /// up to. Ends at the first block that can't be read. Cancel safe.
    pub(crate) async fn read_ahead(
        &self,
        mut places: impl FnMut() -> Places,
        mut on_ready: impl FnMut(ItemIndex),
    ) -> Result<(), SourceError> {
        let mut next = self.resume_at(places().watermark, &mut on_ready);
        loop {
            let places = places();
            if next >= places.end && !places.is_open {
                return Ok(());
            }
            if next >= places.end || !self.wants_more(places.watermark, places.cursor) {
                self.hungry.notified().await;
                continue;
            }
            // The watermark may have passed items that nobody calls: their rows aren't needed.
            let chunk = self.source.read(next.max(places.watermark)).await?;
            next = chunk.end();
            lock(&self.chunks).push_back(chunk);
            on_ready(next);
        }
    }

    /// Returns the index to read from: the end of the blocks in memory (an executor was restarted), else the
    /// watermark.
    fn resume_at(&self, watermark: ItemIndex, on_ready: &mut impl FnMut(ItemIndex)) -> ItemIndex {
        let mut chunks = lock(&self.chunks);
        if chunks.front().is_some_and(|first| first.first() > watermark) {
            chunks.clear();
        }
        let end = chunks.back().map(|chunk| chunk.end());
        drop(chunks);
        end.inspect(|end| on_ready(*end)).unwrap_or(watermark)
    }

    /// Drops blocks below the watermark. Returns true if fewer blocks than wanted lie ahead of the cursor.
    fn wants_more(&self, watermark: ItemIndex, cursor: ItemIndex) -> bool {
        let mut chunks = lock(&self.chunks);
        while chunks.front().is_some_and(|chunk| chunk.end() <= watermark) && chunks.len() > 1 {
            chunks.pop_front();
        }
        chunks.iter().filter(|chunk| chunk.end() > cursor).count() <= BLOCKS_AHEAD
    }
}
