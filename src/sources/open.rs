//! Opens the source described by a task: indexes it, or uses the index of an earlier pass.
//!
//! An index is reused if size and time of change are those of the pass; nothing is read then. File system clocks are
//! coarse: a file that had changed just before its pass could change again at the same clock time, so its index isn't
//! reused. Changes that escape both checks are noticed when the block is read.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::block_index::{BlockIndex, DamagedIndex};
use super::file::{FileSource, modified_ns};
use super::found::{Found, find};
use super::glob::Listing;
use super::inline::InlineSource;
use super::off_thread::{CancelOnDrop, blocking};
use super::open_error::OpenSourceError;
use super::open_packed::{open_container, open_packed};
use super::opened::OpenedSource;
use super::packing::Packing;
use super::pass::{IndexProgress, Indexed, index_open_file};
use super::piped::{keep_piped, open_pipe, read_once, tells_no_size};
use super::range::RangeSource;
use super::spec::{Format, Input, SourceSpec};
use super::spool::{SpoolError, spool};
use super::unpack_error::Expansion;
use windrow_core::ids::{INDEX_MAX, ItemCount, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::sources::store::{IndexedSource, SourceStore};

/// Coarsest clock of a file system in use, in nanoseconds. FAT counts in 2 s, ext4 in a few ms.
const CLOCK_COARSE_NS: i64 = 2_000_000_000;

/// Observer of a pass, which can also cancel it.
#[derive(Clone)]
pub struct IndexWatch {
    /// Called after each read of 256 KiB, on the blocking thread.
    pub progress: Arc<dyn Fn(IndexProgress) + Send + Sync>,
    /// Set to cancel the pass. A read of standard input that is waiting for data is not interrupted.
    pub cancel: Arc<AtomicBool>,
}

impl Default for IndexWatch {
    /// Creates a watch that reports nothing and never cancels.
    fn default() -> IndexWatch {
        IndexWatch {
            progress: Arc::new(|_| {}),
            cancel: Arc::new(AtomicBool::new(false)),
        }
    }
}

/// Parameters for opening a source.
pub struct Opening<'a> {
    /// Store of the indexes.
    pub store: &'a dyn SourceStore,
    /// Directory for piped input; created if missing.
    pub spool: &'a Path,
    /// Observer of the pass.
    pub watch: IndexWatch,
    /// True if the index of an earlier pass may be reused.
    pub reuse: bool,
    /// Limit on the unpacked size of compressed data.
    pub expansion: Expansion,
    /// Time when opening begins.
    pub now: WallMs,
}

/// Opens a source; `-` is this process's standard input.
///
/// Cancel safe: a pass without a waiter ends on its own and stores nothing.
///
/// # Errors
/// All causes of [`OpenSourceError`].
pub async fn open(spec: &SourceSpec, opening: &Opening<'_>) -> Result<OpenedSource, OpenSourceError> {
    let piped = matches!(
        spec,
        SourceSpec::File {
            input: Input::Stdin,
            ..
        }
    );
    if piped && io::stdin().is_terminal() {
        return Err(OpenSourceError::Terminal);
    }
    open_piped(spec, opening, io::stdin()).await
}

/// Opens a source, with `piped` as the input for `-`.
///
/// # Errors
/// As [`open`].
pub async fn open_piped(
    spec: &SourceSpec,
    opening: &Opening<'_>,
    piped: impl Read + Send + 'static,
) -> Result<OpenedSource, OpenSourceError> {
    match spec {
        SourceSpec::Range { total } => open_range(spec, *total),
        SourceSpec::Inline { items } => {
            let source = InlineSource::new(items).ok_or(OpenSourceError::InlineTooLong)?;
            let (total, checksum) = (source.total(), source.checksum());
            finish_small(spec, Arc::new(source), checksum, total)
        }
        SourceSpec::File { input, format } => {
            format.check().map_err(OpenSourceError::BadSpec)?;
            match input {
                Input::Stdin => keep_piped(format, opening, "standard input", piped).await,
                Input::Glob { pattern, strict } => open_glob(pattern, *strict, opening).await,
                Input::Path(path) if read_once(Path::new(path)) || tells_no_size(Path::new(path)) => {
                    open_pipe(path, format, opening).await
                }
                Input::Path(path) => open_file(spec, format, opening, PathBuf::from(path)).await,
                Input::Spooled(name) if name.ends_with(".zst") => {
                    open_container(spec, format, opening, opening.spool.join(name)).await
                }
                Input::Spooled(name) => open_file(spec, format, opening, opening.spool.join(name)).await,
                Input::Upload(id) => Err(OpenSourceError::BadSpec(format!(
                    "{id} is an upload; only a node can open it"
                ))),
            }
        }
        SourceSpec::Appended => Err(OpenSourceError::BadSpec(
            "appended items are kept on a node, not in a file".to_owned(),
        )),
        SourceSpec::Redrive(_) => Err(OpenSourceError::BadSpec(
            "it is a redrive; only a node can open it".to_owned(),
        )),
    }
}

fn open_range(spec: &SourceSpec, total: ItemCount) -> Result<OpenedSource, OpenSourceError> {
    if total.0 > INDEX_MAX {
        return Err(OpenSourceError::BadSpec(format!(
            "there are more than {INDEX_MAX} items"
        )));
    }
    finish_small(spec, Arc::new(RangeSource::new(total)), 0, total)
}

fn finish_small(
    spec: &SourceSpec,
    source: Arc<dyn Source>,
    checksum: u64,
    total: ItemCount,
) -> Result<OpenedSource, OpenSourceError> {
    if total.0 == 0 {
        return Err(OpenSourceError::NoItems);
    }
    let meaning = spec.meaning(checksum, total);
    Ok(OpenedSource {
        source,
        spec: spec.clone(),
        indexed: None,
        meaning,
        fresh: false,
        has_bom: false,
        packing: None,
        skipped: None,
    })
}

async fn open_file(
    spec: &SourceSpec,
    format: &Format,
    opening: &Opening<'_>,
    path: PathBuf,
) -> Result<OpenedSource, OpenSourceError> {
    let found = blocking(move || find(&path)).await?;
    let spec = match spec {
        SourceSpec::File {
            input: Input::Path(_),
            ..
        } => SourceSpec::File {
            input: Input::Path(found.location.clone()),
            format: format.clone(),
        },
        _ => spec.clone(),
    };
    if let Some(packing) = Packing::of(&found.first).or_else(|| Packing::begun(&found.first, &found.path)) {
        return open_packed(spec, found, packing, format, opening).await;
    }
    if opening.reuse
        && let Some((indexed, index)) = remembered(&found, format, opening.store).await?
    {
        return Ok(finish_file(spec, found, format, indexed, index, false));
    }
    let (found, indexed) = run_pass(found, format.clone(), &opening.watch).await?;
    let modified = steady_ns(modified_ns(&found.metadata), opening.now);
    let (indexed, index) = save(indexed, &found, format, modified, opening.store).await?;
    Ok(finish_file(spec, found, format, indexed, index, true))
}

/// Returns a file's time of change, or 0 if it is too recent to detect a later change.
pub(super) fn steady_ns(modified_ns: i64, now: WallMs) -> i64 {
    let age_ns = now.0.saturating_mul(1_000_000).saturating_sub(modified_ns);
    if age_ns > CLOCK_COARSE_NS { modified_ns } else { 0 }
}

/// Lists the matching files, once for all starts of a job.
async fn open_glob(
    pattern: &str,
    strict: bool,
    opening: &Opening<'_>,
) -> Result<OpenedSource, OpenSourceError> {
    let (dir, wanted) = (opening.spool.to_owned(), pattern.to_owned());
    let listing = blocking(move || {
        let made = std::fs::create_dir_all(&dir);
        made.map_err(|error| spool_error(&wanted, &dir, SpoolError::Write(error)))?;
        Listing::of(&wanted, &dir, strict)
    })
    .await?;
    let skipped = listing.skipped();
    let opened = keep(&Format::Ndjson, opening, ("glob", pattern.to_owned()), listing).await?;
    Ok(OpenedSource { skipped, ..opened })
}

/// Opens rows that a program makes, as NDJSON: they are read once, and kept in the spool.
///
/// # Errors
/// As [`open`], and if the rows can't be made.
pub async fn open_rows(
    rows: impl Read + Send + 'static,
    opening: &Opening<'_>,
) -> Result<OpenedSource, OpenSourceError> {
    keep(&Format::Ndjson, opening, ("rows", "the rows".to_owned()), rows).await
}

/// Spools input that can be read only once, in a file with a name prefix. `what` names the input in messages.
pub(super) async fn keep(
    format: &Format,
    opening: &Opening<'_>,
    (prefix, what): (&'static str, String),
    piped: impl Read + Send + 'static,
) -> Result<OpenedSource, OpenSourceError> {
    let (dir, watch, wanted) = (opening.spool.to_owned(), opening.watch.clone(), format.clone());
    let guard = CancelOnDrop::new(&watch);
    let (name, found, indexed) = blocking(move || {
        let progress = &mut |progress| (watch.progress)(progress);
        let spooled = spool(&dir, piped, &wanted, prefix, progress, &watch.cancel);
        let (name, indexed) = spooled.map_err(|error| spool_error(&what, &dir, error))?;
        let found = find(&dir.join(&name))?;
        Ok((name, found, indexed))
    })
    .await?;
    guard.disarm();
    // Valid however recent, since nobody else writes into the spool.
    let modified = modified_ns(&found.metadata);
    let (indexed, index) = save(indexed, &found, format, modified, opening.store).await?;
    let spec = SourceSpec::File {
        input: Input::Spooled(name),
        format: format.clone(),
    };
    Ok(finish_file(spec, found, format, indexed, index, true))
}

pub(super) fn spool_error(name: &str, dir: &Path, error: SpoolError) -> OpenSourceError {
    let name = name.to_owned();
    match error {
        SpoolError::Index(error) => OpenSourceError::Index { name, error },
        SpoolError::Write(error) => OpenSourceError::Spool {
            name,
            path: dir.to_owned(),
            error,
        },
    }
}

async fn remembered(
    found: &Found,
    format: &Format,
    store: &dyn SourceStore,
) -> Result<Option<(IndexedSource, BlockIndex)>, OpenSourceError> {
    let Some((id, indexed)) = store.find(&found.location, &format.to_text()).await? else {
        return Ok(None);
    };
    let same_time = indexed.modified_ns != 0 && indexed.modified_ns == modified_ns(&found.metadata);
    if !same_time || indexed.bytes != found.metadata.len() {
        return Ok(None);
    }
    match index_of(id, &indexed, indexed.bytes, store).await? {
        Ok(index) => Ok(Some((indexed, index))),
        Err(error) => {
            tracing::warn!(location = %found.location, %error, "indexing the source again");
            Ok(None)
        }
    }
}

/// Returns the block index of a source with this many (unpacked) bytes, if its stored parts are intact.
pub(super) async fn index_of(
    id: i64,
    indexed: &IndexedSource,
    bytes: u64,
    store: &dyn SourceStore,
) -> Result<Result<BlockIndex, DamagedIndex>, StoreError> {
    let mut parts = Vec::new();
    while let Some(part) = store
        .part(id, u32::try_from(parts.len()).unwrap_or(u32::MAX))
        .await?
    {
        parts.push(part);
    }
    Ok(BlockIndex::from_parts(&parts, indexed.rows, bytes))
}

async fn run_pass(
    found: Found,
    format: Format,
    watch: &IndexWatch,
) -> Result<(Found, Indexed), OpenSourceError> {
    let (watch, guard) = (watch.clone(), CancelOnDrop::new(watch));
    let done = blocking(move || {
        let progress = &mut |p| (watch.progress)(p);
        match index_open_file(&found.file, &found.metadata, &format, progress, &watch.cancel) {
            Ok(indexed) => Ok((found, indexed)),
            Err(error) => Err(OpenSourceError::Index {
                name: found.location,
                error,
            }),
        }
    })
    .await?;
    guard.disarm();
    Ok(done)
}

async fn save(
    indexed: Indexed,
    found: &Found,
    format: &Format,
    modified_ns: i64,
    store: &dyn SourceStore,
) -> Result<(IndexedSource, BlockIndex), OpenSourceError> {
    let parts = indexed.index.to_parts();
    let (source, index) = indexed.into_source(format, found.location.clone(), modified_ns);
    store.save(&source, &parts).await?;
    Ok((source, index))
}

fn finish_file(
    spec: SourceSpec,
    found: Found,
    format: &Format,
    indexed: IndexedSource,
    index: BlockIndex,
    fresh: bool,
) -> OpenedSource {
    let meaning = spec.meaning(indexed.checksum, ItemCount(indexed.rows));
    let has_bom = found.has_bom();
    let source = FileSource::over(found.file, found.path, format.clone(), &indexed, index);
    OpenedSource {
        source: Arc::new(source),
        spec,
        indexed: Some(indexed),
        meaning,
        fresh,
        has_bom,
        packing: None,
        skipped: None,
    }
}
