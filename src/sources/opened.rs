//! A source that was opened, for whoever makes a task of it.

use std::fmt;
use std::sync::Arc;

use super::glob_walk::Skipped;
use super::packing::Packing;
use super::spec::SourceSpec;
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::sources::store::IndexedSource;

/// A source that is ready, and what is known of it.
pub struct OpenedSource {
    /// Reads the items.
    pub source: Arc<dyn Source>,
    /// The description to store with the task: paths are absolute, piped input is the spooled file.
    pub spec: SourceSpec,
    /// What the pass found; none without a file.
    pub indexed: Option<IndexedSource>,
    /// See `NewTask::meaning`.
    pub meaning: u64,
    /// Whether a pass was run now.
    pub fresh: bool,
    /// Whether the file begins with a byte order mark, which is no part of its first row.
    pub has_bom: bool,
    /// How the file is compressed; none where it isn't, and for what is kept.
    pub packing: Option<Packing>,
    /// Files that a pattern matches and that are no items; none where all are.
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
