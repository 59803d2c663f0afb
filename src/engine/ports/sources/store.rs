//! The remembered index of a source: where each block of rows begins and what its bytes hash to.

use async_trait::async_trait;

use crate::ports::StoreError;

/// A source after its one counting pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedSource {
    /// `csv`, `ndjson`, `lines`, `inline` …
    pub kind: String,
    /// Canonical path or URL; unique together with `format`.
    pub location: String,
    /// The options that change how bytes become rows, as JSON text.
    pub format: String,
    /// Size, as the file lies there: of a compressed one that. Unit: bytes.
    pub bytes: u64,
    /// When the file last changed (content or status). Unit: nanoseconds since the Unix epoch; 0 when a later
    /// change can't be told by it, so that the index is not used again.
    pub modified_ns: i64,
    /// Checksum over all bytes.
    pub checksum: u64,
    /// Rows, which are the task's items.
    pub rows: u64,
    /// Column names of a CSV, `line` of lines; empty otherwise.
    pub columns: Vec<String>,
    /// Rows per block.
    pub stride: u32,
}

/// Remembers indexes of sources. An index is written in parts of at most 64 KiB and never changes.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait SourceStore: Send + Sync {
    /// Stores a source with its index, replacing an older one of the same location and format, and returns its id.
    ///
    /// # Errors
    /// When the store can't be written; then nothing of it is stored.
    async fn save(&self, source: &IndexedSource, parts: &[Vec<u8>]) -> Result<i64, StoreError>;

    /// The newest source of a location and format.
    async fn find(&self, location: &str, format: &str) -> Result<Option<(i64, IndexedSource)>, StoreError>;

    /// One part of an index, by its 0-based number; none past the last.
    async fn part(&self, source: i64, number: u32) -> Result<Option<Vec<u8>>, StoreError>;
}
