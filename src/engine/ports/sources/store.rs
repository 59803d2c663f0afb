//! Remembered index of a source: the start of each block of rows, and the hash of its bytes.

use async_trait::async_trait;

use crate::ports::StoreError;

/// Source after its one counting pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedSource {
    /// Kind of the source: `csv`, `ndjson`, `lines`, `inline` …
    pub kind: String,
    /// Canonical path or URL; unique together with `format`.
    pub location: String,
    /// Options that change how bytes become rows, as JSON text.
    pub format: String,
    /// Size of the file in bytes; of a compressed file, the compressed size.
    pub bytes: u64,
    /// Time at which the file last changed (content or status), in nanoseconds since the Unix epoch; 0 when it can't
    /// show a later change, so that the index is not used again.
    pub modified_ns: i64,
    /// Checksum over all bytes.
    pub checksum: u64,
    /// Number of rows, which are the task's items.
    pub rows: u64,
    /// Column names of a CSV, `line` of lines; empty otherwise.
    pub columns: Vec<String>,
    /// Number of rows per block.
    pub stride: u32,
}

/// Store of the indexes of sources. An index is written in parts of at most 64 KiB and never changes.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait SourceStore: Send + Sync {
    /// Stores a source with its index, replacing an older one of the same location and format, and returns its id.
    ///
    /// # Errors
    /// If the store can't be written; then nothing of it is stored.
    async fn save(&self, source: &IndexedSource, parts: &[Vec<u8>]) -> Result<i64, StoreError>;

    /// Returns the newest source of a location and format.
    async fn find(&self, location: &str, format: &str) -> Result<Option<(i64, IndexedSource)>, StoreError>;

    /// Returns one part of an index, by its 0-based number; `None` past the last.
    async fn part(&self, source: i64, number: u32) -> Result<Option<Vec<u8>>, StoreError>;
}
