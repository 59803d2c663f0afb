//! Opens compressed files and streams. They are unpacked in the single pass and kept in the spool with one frame per
//! block; from then on rows are read from there.
//!
//! A file counts as unchanged while its size and time of change are. After that it is unpacked again, and the
//! unpacked data decides: a file that was only compressed anew is the same source. There is one copy per path and
//! format.

use std::fs;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use xxhash_rust::xxh3::xxh3_64;

use super::block_index::{BlockIndex, DamagedIndex};
use super::fault::IndexError;
use super::file::{FileSource, modified_ns};
use super::found::{Found, find};
use super::frames::Frames;
use super::off_thread::{CancelOnDrop, blocking};
use super::open::{IndexWatch, Opening, index_of, spool_error, steady_ns};
use super::open_error::OpenSourceError;
use super::opened::OpenedSource;
use super::packing::Packing;
use super::pass::{BlockLimits, IndexProgress, Indexed, index_bytes};
use super::rows::BOM;
use super::spec::{Format, Input, SourceSpec};
use super::spool::{SpoolError, spool_packed};
use super::unpack::{MemoryLog, Unpacker};
use super::unpack_error::Expansion;
use windrow_core::ids::ItemCount;
use windrow_engine::ports::sources::store::{IndexedSource, SourceStore};

/// Unpacked rows in the spool.
struct Copy {
    file: File,
    path: PathBuf,
    frames: Frames,
    has_bom: bool,
}

/// A source's stored facts, with its copy.
struct Kept {
    indexed: IndexedSource,
    index: BlockIndex,
    copy: Copy,
}

/// Opens a compressed file, reusing an earlier copy if allowed.
pub(super) async fn open_packed(
    spec: SourceSpec,
    found: Found,
    packing: Packing,
    format: &Format,
    opening: &Opening<'_>,
) -> Result<OpenedSource, OpenSourceError> {
    let name = found.location.clone();
    let remembered = match opening.reuse {
        true => remembered(&found, None, format, opening).await?,
        false => None,
    };
    let (kept, fresh) = match remembered {
        Some(kept) => (kept, false),
        None => (unpacked(found, packing, format, opening).await?, true),
    };
    let opened = finish(spec, name, format, kept, fresh);
    Ok(OpenedSource {
        packing: Some(packing),
        ..opened
    })
}

/// Opens a compressed stream by unpacking it into the spool.
pub(super) async fn open_packed_pipe(
    format: &Format,
    opening: &Opening<'_>,
    packing: Packing,
    piped: impl Read + Send + 'static,
) -> Result<OpenedSource, OpenSourceError> {
    let (dir, watch, wanted) = (opening.spool.to_owned(), opening.watch.clone(), format.clone());
    let (guard, expansion) = (CancelOnDrop::new(&watch), opening.expansion);
    let (name, found, copy, indexed) = blocking(move || {
        let name_of =
            |indexed: &Indexed| Ok(format!("stdin-{:016x}.{}.zst", indexed.checksum, wanted.kind()));
        let spooled = unpack_into(&dir, piped, (packing, None, expansion), &wanted, &watch, name_of);
        let (name, indexed) = spooled.map_err(|error| spool_error("standard input", &dir, error))?;
        let found = find(&dir.join(&name))?;
        let copy = Copy::open(&found.path)?;
        Ok((name, found, copy, indexed))
    })
    .await?;
    guard.disarm();
    // Valid however recent, since nobody else writes into the spool.
    let modified = modified_ns(&found.metadata);
    let kept = save(indexed, &found, copy, format, modified, opening.store).await?;
    let spec = SourceSpec::File {
        input: Input::Spooled(name.clone()),
        format: format.clone(),
    };
    let opened = finish(spec, found.location, format, kept, true);
    Ok(OpenedSource {
        packing: Some(packing),
        ..opened
    })
}

/// Opens the spooled copy of a compressed stream.
pub(super) async fn open_container(
    spec: &SourceSpec,
    format: &Format,
    opening: &Opening<'_>,
    path: PathBuf,
) -> Result<OpenedSource, OpenSourceError> {
    let (found, copy) = blocking(move || {
        let found = find(&path)?;
        let copy = Copy::open(&found.path)?;
        Ok((found, copy))
    })
    .await?;
    let name = found.location.clone();
    if opening.reuse {
        let copy = Copy::open(&found.path)?;
        if let Some(kept) = remembered(&found, Some(copy), format, opening).await? {
            return Ok(finish(spec.clone(), name, format, kept, false));
        }
    }
    let (watch, wanted) = (opening.watch.clone(), format.clone());
    let guard = CancelOnDrop::new(&watch);
    let (found, indexed) = blocking(move || {
        let failed = |error| OpenSourceError::Index {
            name: found.location.clone(),
            error,
        };
        let unpacker = Unpacker::new(Packing::Zstd, &found.file, Expansion::NONE, MemoryLog::OWN);
        let unpacker = unpacker.map_err(|error| failed(error.into()))?;
        let progress = &mut |progress| (watch.progress)(progress);
        let limits = BlockLimits::default();
        let indexed = index_bytes(unpacker, None, &wanted, limits, progress, &watch.cancel);
        let indexed = indexed.map_err(failed)?;
        Ok((found, indexed))
    })
    .await?;
    guard.disarm();
    let modified = modified_ns(&found.metadata);
    let kept = save(indexed, &found, copy, format, modified, opening.store).await?;
    Ok(finish(spec.clone(), name, format, kept, true))
}

/// Unpacks a file into the spool, replacing an earlier copy.
async fn unpacked(
    found: Found,
    packing: Packing,
    format: &Format,
    opening: &Opening<'_>,
) -> Result<Kept, OpenSourceError> {
    let (dir, watch, wanted) = (opening.spool.to_owned(), opening.watch.clone(), format.clone());
    let (guard, expansion) = (CancelOnDrop::new(&watch), opening.expansion);
    let (found, copy, indexed) = blocking(move || {
        let before = found.metadata.clone();
        let name_of = |indexed: &Indexed| {
            let now = found.file.metadata()?;
            let is_steady = modified_ns(&now) == modified_ns(&before) && now.len() == before.len();
            match is_steady {
                true => Ok(copy_name(&found.location, &wanted, indexed.checksum)),
                false => Err(IndexError::ChangedMeanwhile),
            }
        };
        let all = Some(before.len());
        let spooled = unpack_into(
            &dir,
            &found.file,
            (packing, all, expansion),
            &wanted,
            &watch,
            name_of,
        );
        let (name, indexed) = spooled.map_err(|error| spool_error(&found.location, &dir, error))?;
        remove_other_copies(&dir, &name);
        let copy = Copy::open(&dir.join(&name))?;
        Ok((found, copy, indexed))
    })
    .await?;
    guard.disarm();
    let modified = steady_ns(modified_ns(&found.metadata), opening.now);
    save(indexed, &found, copy, format, modified, opening.store).await
}

/// Runs one pass over the unpacked data, with progress in compressed bytes.
fn unpack_into(
    dir: &Path,
    packed: impl Read,
    (packing, packed_bytes, expansion): (Packing, Option<u64>, Expansion),
    format: &Format,
    watch: &IndexWatch,
    name_of: impl FnOnce(&Indexed) -> Result<String, IndexError>,
) -> Result<(String, Indexed), SpoolError> {
    let unpacker = Unpacker::new(packing, packed, expansion, MemoryLog::OWN);
    let unpacker = unpacker.map_err(IndexError::Unreadable)?;
    let read = unpacker.progress();
    let progress = &mut |progress: IndexProgress| {
        (watch.progress)(IndexProgress {
            bytes: read.load(Ordering::Relaxed),
            bytes_total: packed_bytes,
            ..progress
        });
    };
    spool_packed(dir, unpacker, format, progress, &watch.cancel, name_of)
}

/// Returns the copy's name, built from the file's location and content.
fn copy_name(location: &str, format: &Format, checksum: u64) -> String {
    let place = xxh3_64(format!("{location}\n{}", format.to_text()).as_bytes());
    format!("unpacked-{place:016x}-{checksum:016x}.{}.zst", format.kind())
}

/// Removes copies of the file's earlier contents. Readers keep theirs open.
fn remove_other_copies(dir: &Path, kept: &str) {
    let Some((place, _)) = kept.rsplit_once('-') else {
        return;
    };
    let Ok(entries) = fs::read_dir(dir) else { return };
    for name in entries.flatten().map(|entry| entry.file_name()) {
        let is_other = name
            .to_str()
            .is_some_and(|name| name != kept && name.starts_with(&format!("{place}-")));
        if is_other && let Err(error) = fs::remove_file(dir.join(&name)) {
            tracing::warn!(name = %name.display(), %error, "can't delete the copy of older content");
        }
    }
}

/// Returns an earlier pass over the same file, if all of it still exists. `copy` is given if the file is itself a
/// copy.
async fn remembered(
    found: &Found,
    copy: Option<Copy>,
    format: &Format,
    opening: &Opening<'_>,
) -> Result<Option<Kept>, OpenSourceError> {
    let Some((id, indexed)) = opening.store.find(&found.location, &format.to_text()).await? else {
        return Ok(None);
    };
    let is_same_time = indexed.modified_ns != 0 && indexed.modified_ns == modified_ns(&found.metadata);
    if !is_same_time || indexed.bytes != found.metadata.len() {
        return Ok(None);
    }
    let copy = match copy {
        Some(copy) => Ok(copy),
        None => {
            let path = opening
                .spool
                .join(copy_name(&found.location, format, indexed.checksum));
            blocking(move || Copy::open(&path)).await
        }
    };
    let Ok(copy) = copy else { return Ok(None) };
    let index = index_of(id, &indexed, copy.frames.unpacked(), opening.store).await?;
    match index.and_then(|index| copy.frames.fit(&index).map(|()| index)) {
        Ok(index) => Ok(Some(Kept { indexed, index, copy })),
        Err(error) => {
            tracing::warn!(location = %found.location, %error, "unpacking the source again");
            Ok(None)
        }
    }
}

async fn save(
    indexed: Indexed,
    found: &Found,
    copy: Copy,
    format: &Format,
    modified_ns: i64,
    store: &dyn SourceStore,
) -> Result<Kept, OpenSourceError> {
    copy.frames
        .fit(&indexed.index)
        .map_err(|error| damaged(&found.location, error))?;
    let parts = indexed.index.to_parts();
    let (source, index) = indexed.into_source(format, found.location.clone(), modified_ns);
    let indexed = IndexedSource {
        bytes: found.metadata.len(),
        ..source
    };
    store.save(&indexed, &parts).await?;
    Ok(Kept { indexed, index, copy })
}

fn damaged(name: &str, error: DamagedIndex) -> OpenSourceError {
    OpenSourceError::Index {
        name: name.to_owned(),
        error: IndexError::Unreadable(io::Error::other(error)),
    }
}

impl Copy {
    /// Opens an unpacked copy.
    ///
    /// # Errors
    /// `NotFound` and other errors of `find`; `Index` if it is not a copy.
    fn open(path: &Path) -> Result<Copy, OpenSourceError> {
        let found = find(path)?;
        let failed = |error: io::Error| OpenSourceError::Unreadable {
            path: path.to_owned(),
            error,
        };
        let frames = Frames::of_file(&found.file, found.metadata.len()).map_err(failed)?;
        let frames = frames.ok_or_else(|| {
            let what = "the end of the kept copy is missing".to_owned();
            damaged(&found.location, DamagedIndex(what))
        })?;
        let has_bom = frames.first(&found.file, BOM.len()).map_err(failed)? == BOM;
        Ok(Copy {
            file: found.file,
            path: found.path,
            frames,
            has_bom,
        })
    }
}

fn finish(spec: SourceSpec, name: String, format: &Format, kept: Kept, fresh: bool) -> OpenedSource {
    let Kept { indexed, index, copy } = kept;
    let meaning = spec.meaning(indexed.checksum, ItemCount(indexed.rows));
    let has_bom = copy.has_bom;
    let place = (copy.file, copy.path, copy.frames);
    let source = FileSource::over_copy(place, name, format.clone(), &indexed, index);
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
