//! Source of the items' data: verified blocks of rows, read by index.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::ports::ErrorClass;
use windrow_core::ids::{ItemCount, ItemIndex};

/// Rows of contiguous items in one buffer; each row is one JSON value as text.
#[derive(Clone, Debug)]
pub struct RowChunk {
    first: ItemIndex,
    buffer: Bytes,
    /// `ends[i]` is one past the last byte of row `i`.
    ends: Vec<u32>,
    /// Index that each row has in the first task, for a redrive; empty otherwise.
    origins: Vec<u64>,
}

impl RowChunk {
    /// Creates a chunk of rows from `first` on; `ends[i]` is one past the last byte of row `i` in `buffer`.
    pub fn new(first: ItemIndex, buffer: Bytes, ends: Vec<u32>) -> RowChunk {
        RowChunk {
            first,
            buffer,
            ends,
            origins: Vec::new(),
        }
    }

    /// Adds the origins of a redrive: `origins[i]` is the index that row `i` has in the task that failed first. Rows
    /// of a range have no data and no bytes.
    #[must_use]
    pub fn of_origins(self, origins: Vec<u64>) -> RowChunk {
        RowChunk { origins, ..self }
    }

    /// Returns the index that handlers know an item by, if it differs from the item's own.
    pub fn origin(&self, index: ItemIndex) -> Option<ItemIndex> {
        let at = usize::try_from(index.0.checked_sub(self.first.0)?).ok()?;
        self.origins.get(at).copied().map(ItemIndex)
    }

    /// Returns the index of the first row.
    pub fn first(&self) -> ItemIndex {
        self.first
    }

    /// Returns one past the index of the last row.
    pub fn end(&self) -> ItemIndex {
        self.first.plus(self.ends.len() as u64)
    }

    /// Returns the approximate size of the chunk in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.buffer.len() + self.ends.len() * 4 + self.origins.len() * 8
    }

    /// Returns the row of an item as JSON text; `None` outside the chunk, and for an item without data: no JSON is
    /// empty.
    pub fn row(&self, index: ItemIndex) -> Option<&str> {
        let at = usize::try_from(index.0.checked_sub(self.first.0)?).ok()?;
        let end = *self.ends.get(at)? as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        std::str::from_utf8(self.buffer.get(start..end)?)
            .ok()
            .filter(|row| !row.is_empty())
    }
}

/// Error of reading a source as it was when the task began.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The bytes of a block differ from those indexed before the task started; the task stops as `source_changed`.
    #[error("{0}")]
    Changed(String),
    /// The source can't be read now (file vanished, disk error); worth another try.
    #[error("{0}")]
    Unreadable(String),
    /// A row is ragged or undecodable; the text names the line.
    #[error("{0}")]
    BadRow(String),
}

impl SourceError {
    /// Returns the class, which says whether another try may help.
    pub fn class(&self) -> ErrorClass {
        match self {
            SourceError::Unreadable(_) => ErrorClass::Transient,
            SourceError::Changed(_) | SourceError::BadRow(_) => ErrorClass::Permanent,
        }
    }
}

/// Items of a task, addressable by index without reading those before.
pub trait Source: Send + Sync {
    /// Returns the number of items.
    fn total(&self) -> ItemCount;

    /// True if items carry data; without data `read` is never called.
    fn has_data(&self) -> bool;

    /// Returns the columns that every row has; empty if rows need not have the same members.
    fn columns(&self) -> &[String] {
        &[]
    }

    /// Reads and verifies the whole block that contains `at`.
    ///
    /// # Errors
    /// `Changed` if its bytes are not those that were indexed, before any of its items can be sent.
    fn read(&self, at: ItemIndex) -> BoxFuture<'_, Result<Arc<RowChunk>, SourceError>>;
}
