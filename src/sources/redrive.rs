//! Failures of another task as items: position `p` is the `p`-th failure of the description.
//!
//! A block has at most 256 positions. Its indexes come from the places of failures, which never change, and its rows
//! from the origin's own source, so creating a redrive copies nothing. Each row carries its index in the original
//! task; if the origin is itself a redrive, that is the index in *its* origin.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;

use windrow_core::ids::{ItemCount, ItemIndex};
use windrow_engine::ports::sources::resolver::{RedrivePart, RedriveSpec};
use windrow_engine::ports::sources::source::{RowChunk, Source, SourceError};
use windrow_engine::ports::tasks::failure_list::FailureList;

/// Positions per block; each may need a different block of the origin.
const BLOCK: u64 = 256;
/// Number of the origin's blocks cached for the next reads.
const KEPT: usize = 4;

/// Source of a redrive, over failures of another task.
pub struct RedriveSource {
    spec: RedriveSpec,
    total: u64,
    failures: Arc<dyn FailureList>,
    origin: Arc<dyn Source>,
    kept: Mutex<VecDeque<Arc<RowChunk>>>,
}

impl RedriveSource {
    /// Creates a source over a task's failures, with items read from `origin`.
    pub fn new(spec: RedriveSpec, failures: Arc<dyn FailureList>, origin: Arc<dyn Source>) -> RedriveSource {
        let total = spec.parts.iter().map(RedrivePart::count).sum();
        RedriveSource {
            spec,
            total,
            failures,
            origin,
            kept: Mutex::default(),
        }
    }

    /// Returns the origin's items at positions `[first, end)`.
    async fn items(&self, first: u64, end: u64) -> Result<Vec<ItemIndex>, SourceError> {
        let mut items = Vec::with_capacity(usize::try_from(end - first).unwrap_or(0));
        let mut begins = 0;
        for part in &self.spec.parts {
            let ends = begins + part.count();
            let (from, to) = (first.max(begins), end.min(ends));
            if from < to {
                self.add(part, from - begins, to - from, &mut items).await?;
            }
            begins = ends;
        }
        Ok(items)
    }

    /// Adds `count` items of a group, starting with its `skip`-th.
    async fn add(
        &self,
        part: &RedrivePart,
        skip: u64,
        count: u64,
        items: &mut Vec<ItemIndex>,
    ) -> Result<(), SourceError> {
        match part {
            RedrivePart::Indexes { first, .. } => {
                items.extend((0..count).map(|at| ItemIndex(first + skip + at)));
            }
            RedrivePart::Places { code, first, .. } => {
                let (origin, count) = (self.spec.origin, u32::try_from(count).unwrap_or(u32::MAX));
                let found = self.failures.places(origin, code, first + skip, count).await;
                let found = found.map_err(|error| SourceError::Unreadable(error.to_string()))?;
                if found.len() != count as usize {
                    let text = format!("failures {code} of {origin} are no longer kept; try: a new redrive");
                    return Err(SourceError::Changed(text));
                }
                items.extend(found);
            }
        }
        Ok(())
    }

    async fn read_block(&self, at: ItemIndex) -> Result<Arc<RowChunk>, SourceError> {
        if at.0 >= self.total {
            let text = format!("the redrive has {} items; there is no item {}", self.total, at.0);
            return Err(SourceError::BadRow(text));
        }
        let first = at.0 - at.0 % BLOCK;
        let items = self.items(first, self.total.min(first + BLOCK)).await?;
        let mut rows = vec![(Vec::new(), 0); items.len()];
        // In the order of the origin, so that each of its blocks is read once.
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_unstable_by_key(|at| items[*at]);
        for at in order {
            rows[at] = self.row(items[at]).await?;
        }
        let (mut buffer, mut ends, mut origins) = (Vec::new(), Vec::new(), Vec::new());
        for (row, origin) in rows {
            buffer.extend_from_slice(&row);
            let end = u32::try_from(buffer.len());
            ends.push(end.map_err(|_| SourceError::BadRow("256 rows are longer than 4 GiB".to_owned()))?);
            origins.push(origin);
        }
        let chunk = RowChunk::new(ItemIndex(first), Bytes::from(buffer), ends);
        Ok(Arc::new(chunk.of_origins(origins)))
    }

    /// Returns an item's data, empty if it has none, and its index in the original task.
    async fn row(&self, item: ItemIndex) -> Result<(Vec<u8>, u64), SourceError> {
        if !self.origin.has_data() {
            return Ok((Vec::new(), item.0));
        }
        let chunk = self.chunk(item).await?;
        let row = chunk
            .row(item)
            .map(|row| row.as_bytes().to_vec())
            .unwrap_or_default();
        Ok((row, chunk.origin(item).unwrap_or(item).0))
    }

    async fn chunk(&self, item: ItemIndex) -> Result<Arc<RowChunk>, SourceError> {
        let holds = |chunk: &Arc<RowChunk>| chunk.first() <= item && item < chunk.end();
        let known = self
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .find(|c| holds(c))
            .cloned();
        if let Some(chunk) = known {
            return Ok(chunk);
        }
        let chunk = self.origin.read(item).await?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back(chunk.clone());
        Ok(chunk)
    }
}

impl Source for RedriveSource {
    fn total(&self) -> ItemCount {
        ItemCount(self.total)
    }

    /// True even over a range: each row carries its item's index in the original task.
    fn has_data(&self) -> bool {
        true
    }

    fn columns(&self) -> &[String] {
        self.origin.columns()
    }

    /// Cancel safe: a dropped read has no effect.
    fn read(&self, at: ItemIndex) -> BoxFuture<'_, Result<Arc<RowChunk>, SourceError>> {
        Box::pin(self.read_block(at))
    }
}
