//! A short list of items that came with the task itself.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use super::ndjson::push_on_one_line;
use crate::domain::ids::{ItemCount, ItemIndex};
use crate::ports::source::{RowChunk, Source, SourceError};

/// The longest inline list. Unit: bytes of JSON text. (It is one column of the task's row; longer lists are files.)
pub const INLINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A list in memory.
#[derive(Clone, Debug)]
pub struct InlineSource {
    chunk: Arc<RowChunk>,
    checksum: u64,
}

impl InlineSource {
    /// The items in their order; none when the list is longer than [`INLINE_BYTES_MAX`].
    pub fn new(items: &[Box<RawValue>]) -> Option<InlineSource> {
        let mut buffer = Vec::new();
        let mut ends = Vec::with_capacity(items.len());
        for item in items {
            push_on_one_line(item.get().as_bytes(), &mut buffer);
            if buffer.len() > INLINE_BYTES_MAX {
                return None;
            }
            ends.push(u32::try_from(buffer.len()).ok()?);
        }
        // The ends take part: ["12"] and ["1","2"] are different lists.
        let shape: Vec<u8> = ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        let checksum = xxh3_64(&buffer) ^ xxh3_64(&shape).rotate_left(32);
        let chunk = Arc::new(RowChunk::new(ItemIndex(0), Bytes::from(buffer), ends));
        Some(InlineSource { chunk, checksum })
    }

    /// Checksum over all items.
    pub fn checksum(&self) -> u64 {
        self.checksum
    }
}

impl Source for InlineSource {
    fn total(&self) -> ItemCount {
        ItemCount(self.chunk.end().0)
    }

    fn has_data(&self) -> bool {
        true
    }

    fn read(&self, at: ItemIndex) -> BoxFuture<'_, Result<Arc<RowChunk>, SourceError>> {
        let found = if at < self.chunk.end() {
            Ok(Arc::clone(&self.chunk))
        } else {
            Err(SourceError::BadRow(format!("the list has {} items, not {}", self.chunk.end().0, at.0)))
        };
        Box::pin(async move { found })
    }
}
