//! What the other modules share: a store in memory, files, and reading rows back.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use windrow_core::ids::{ItemIndex, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::sources::source::{Source, SourceError};
use windrow_engine::ports::sources::store::{IndexedSource, SourceStore};
use windrow_sources::{
    BlockLimits, CsvFormat, Expansion, FileSource, Format, IndexError, IndexWatch, Indexed, Opening,
    index_bytes,
};

/// A time at which every file of the tests is old.
pub(crate) const FAR_FUTURE: WallMs = WallMs(9_000_000_000_000);

/// Blocks so small that a few rows make several.
pub(crate) const TINY: BlockLimits = BlockLimits {
    rows: 3,
    bytes: 1 << 20,
    far: u64::MAX,
};

pub(crate) fn csv() -> Format {
    Format::Csv(CsvFormat::default())
}

/// An index pass over bytes in memory.
pub(crate) fn index(bytes: &[u8], format: &Format, limits: BlockLimits) -> Result<Indexed, IndexError> {
    index_bytes(bytes, None, format, limits, &mut |_| {}, &AtomicBool::new(false))
}

/// A file of these bytes and its source, cut as `limits` say.
pub(crate) fn file_source(dir: &Path, bytes: &[u8], format: &Format, limits: BlockLimits) -> FileSource {
    let path = dir.join("rows");
    std::fs::write(&path, bytes).expect("the directory is writable");
    let indexed = index(bytes, format, limits).expect("the rows are good");
    let (source, blocks) = indexed.into_source(format, "rows".to_owned(), 0);
    FileSource::open(&path, format.clone(), &source, blocks).expect("the file is there")
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts")
}

/// One row as JSON, through the block that holds it.
pub(crate) async fn row(source: &dyn Source, at: u64) -> Result<serde_json::Value, SourceError> {
    let chunk = source.read(ItemIndex(at)).await?;
    let text = chunk
        .row(ItemIndex(at))
        .expect("the block holds the row that was asked for");
    assert!(!text.contains(['\n', '\r']), "a row is one line: {text:?}");
    Ok(serde_json::from_str(text).expect("a row is JSON"))
}

/// All rows as JSON, block by block.
pub(crate) async fn rows(source: &dyn Source) -> Vec<serde_json::Value> {
    let mut all = Vec::new();
    while (all.len() as u64) < source.total().0 {
        all.push(row(source, all.len() as u64).await.expect("nothing changed"));
    }
    all
}

/// A directory with a file, a store and a spool.
pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: MemoryStore,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place {
            dir: tempfile::tempdir().expect("a directory can be made"),
            store: MemoryStore::default(),
        }
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, bytes).expect("the directory is writable");
        path
    }

    pub(crate) fn spool(&self) -> PathBuf {
        self.dir.path().join("spool")
    }

    /// Opens with reuse, at a time when no file is young.
    pub(crate) fn opening<'a>(&'a self, spool: &'a Path) -> Opening<'a> {
        Opening {
            store: &self.store,
            spool,
            watch: IndexWatch::default(),
            reuse: true,
            expansion: Expansion::default(),
            now: FAR_FUTURE,
        }
    }
}

/// Sources in memory; the newest of a location and format counts.
#[derive(Default)]
pub(crate) struct MemoryStore {
    pub(crate) saved: Mutex<Vec<(IndexedSource, Vec<Vec<u8>>)>>,
}

#[async_trait]
impl SourceStore for MemoryStore {
    async fn save(&self, source: &IndexedSource, parts: &[Vec<u8>]) -> Result<i64, StoreError> {
        let mut saved = self.saved.lock().expect("nobody panicked");
        saved.push((source.clone(), parts.to_vec()));
        Ok(saved.len() as i64 - 1)
    }

    async fn find(&self, location: &str, format: &str) -> Result<Option<(i64, IndexedSource)>, StoreError> {
        let saved = self.saved.lock().expect("nobody panicked");
        let found = saved
            .iter()
            .rposition(|(s, _)| s.location == location && s.format == format);
        Ok(found.map(|at| (at as i64, saved[at].0.clone())))
    }

    async fn part(&self, source: i64, number: u32) -> Result<Option<Vec<u8>>, StoreError> {
        let saved = self.saved.lock().expect("nobody panicked");
        Ok(saved[source as usize].1.get(number as usize).cloned())
    }
}
