//! An opened source, ready to create a task from.

use std::fmt;
use std::sync::Arc;

use super::glob_walk::Skipped;
use super::packing::Packing;
use super::spec::SourceSpec;
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::sources::store::IndexedSource;

/// Opened source with its properties.
pub struct OpenedSource {
    /// Reader of the items.
    pub source: Arc<dyn Source>,
    /// Description to store with the task: absolute paths, and the spooled file in place of piped input.
    pub spec: SourceSpec,
    /// Facts found by the pass; `None` without a file.
    pub indexed: Option<IndexedSource>,
    /// Fingerprint of the items, stored as `NewTask::meaning`.
    pub meaning: u64,
    /// True if a pass was run for this opening.
    pub fresh: bool,
    /// True if the file starts with a byte order mark, which is not part of its first row.
    pub has_bom: bool,
    /// Compression of the file; `None` if uncompressed, and for spooled input.
    pub packing: Option<Packing>,
    /// Matching files that are not items; `None` if all are.
    pub skipped: Option<Skipped>,
}

impl fmt::Debug for OpenedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OpenedSource {
            source,
            spec,
            indexed,
            meaning,
            fresh,
            has_bom,
            packing,
            skipped,
        } = self;
        let mut text = f.debug_struct("OpenedSource");
        text.field("total", &source.total())
            .field("spec", spec)
            .field("indexed", indexed);
        text.field("meaning", meaning)
            .field("fresh", fresh)
            .field("has_bom", has_bom)
            .field("packing", packing)
            .field("skipped", skipped)
            .finish()
    }
}
