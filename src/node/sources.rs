//! Sources as whoever composes a job names and opens them.

use std::path::Path;

use crate::adapters::memory::MemoryStore;
pub use crate::adapters::source::{
    CsvFormat, Format, IndexProgress, IndexWatch, Input, OpenSourceError, OpenedSource, Opening, SourceSpec,
    open,
};
use crate::domain::ids::WallMs;

/// Opens a file for a look: it is read anew, and nothing is remembered of it.
///
/// # Errors
/// As [`open`].
pub async fn open_for_a_look(spec: &SourceSpec, now: WallMs) -> Result<OpenedSource, OpenSourceError> {
    let store = MemoryStore::new();
    let watch = IndexWatch::default();
    open(spec, &Opening { store: &store, spool: Path::new(""), watch, reuse: false, now }).await
}
