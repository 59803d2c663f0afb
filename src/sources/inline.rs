//! Short list of items that is part of the task itself.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::Deserializer as _;
use serde::de::{Error, SeqAccess, Visitor};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use super::ndjson::on_one_line;
use windrow_core::ids::{ItemCount, ItemIndex};
use windrow_engine::ports::sources::resolver::INLINE_BYTES_MAX;
use windrow_engine::ports::sources::source::{RowChunk, Source, SourceError};

/// Item list in memory.
#[derive(Clone, Debug)]
pub struct InlineSource {
    chunk: Arc<RowChunk>,
    checksum: u64,
}

impl InlineSource {
    /// Creates a list from a JSON array; `None` if it is longer than [`INLINE_BYTES_MAX`] or not an array.
    pub fn new(items: &RawValue) -> Option<InlineSource> {
        let mut reader = serde_json::Deserializer::from_str(items.get());
        let Rows { buffer, ends } = reader.deserialize_seq(Rows::default()).ok()?;
        // The ends are part of it, because ["12"] and ["1","2"] are different lists.
        let shape: Vec<u8> = ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        let checksum = xxh3_64(&buffer) ^ xxh3_64(&shape).rotate_left(32);
        let chunk = Arc::new(RowChunk::new(ItemIndex(0), Bytes::from(buffer), ends));
        Some(InlineSource { chunk, checksum })
    }

    /// Returns the checksum over all items.
    pub fn checksum(&self) -> u64 {
        self.checksum
    }
}

/// Builder that appends items to one buffer as they are read, without a separate value for each.
#[derive(Default)]
struct Rows {
    buffer: Vec<u8>,
    ends: Vec<u32>,
}

impl<'de> Visitor<'de> for Rows {
    type Value = Rows;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Rows, A::Error> {
        while let Some(item) = list.next_element::<&'de RawValue>()? {
            self.buffer.extend_from_slice(&on_one_line(item.get().as_bytes()));
            if self.buffer.len() > INLINE_BYTES_MAX {
                return Err(A::Error::custom("it is too long"));
            }
            self.ends
                .push(u32::try_from(self.buffer.len()).map_err(A::Error::custom)?);
        }
        Ok(self)
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
            Err(SourceError::BadRow(format!(
                "the list has {} items, not {}",
                self.chunk.end().0,
                at.0
            )))
        };
        Box::pin(async move { found })
    }
}
