//! Reads blocks of an indexed file, and checks each against the index before any of its rows is used.
//!
//! The file is opened once and its descriptor kept. A file that is deleted or replaced by renaming thus keeps serving
//! the indexed bytes, and the next start notices the new one. After an I/O error (a network file system came back)
//! the path is opened again, which is safe because reads are checked. Bytes appended after the indexed ones are
//! ignored, and the rows before them stay valid.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use rustix::fs::OFlags;
use xxhash_rust::xxh3::xxh3_64;

use super::block_index::{BlockIndex, Located};
use super::csv::CsvRows;
use super::fault::FaultKind;
use super::frames::{Frames, unpack};
use super::json_rows::JsonRows;
use super::lines::TextLines;
use super::ndjson::NdjsonRows;
use super::rows::{Beginning, RowFormat, Split};
use super::spec::Format;
use windrow_core::ids::{ItemCount, ItemIndex};
use windrow_engine::ports::sources::source::{RowChunk, Source, SourceError};
use windrow_engine::ports::sources::store::IndexedSource;

/// Rows of an indexed file.
#[derive(Debug)]
pub struct FileSource {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// Name of the compressed file whose unpacked copy is at `path`, with the copy's frames.
    copy: Option<(String, Frames)>,
    format: Format,
    columns: Vec<String>,
    rows: u64,
    index: BlockIndex,
    /// `None` after an I/O error, until the path can be opened again.
    file: Mutex<Option<Arc<File>>>,
}

impl FileSource {
    /// Opens an indexed file.
    ///
    /// # Errors
    /// Fails if the path is not a readable regular file.
    pub fn open(
        path: &Path,
        format: Format,
        indexed: &IndexedSource,
        index: BlockIndex,
    ) -> io::Result<FileSource> {
        let (file, _) = open_regular(path)?;
        Ok(FileSource::over(file, path.to_owned(), format, indexed, index))
    }

    /// Reads from an open file. `path` is used in messages and to open it again.
    pub(super) fn over(
        file: File,
        path: PathBuf,
        format: Format,
        indexed: &IndexedSource,
        index: BlockIndex,
    ) -> FileSource {
        let (columns, rows) = (indexed.columns.clone(), indexed.rows);
        let file = Mutex::new(Some(Arc::new(file)));
        FileSource {
            inner: Arc::new(Inner {
                path,
                copy: None,
                format,
                columns,
                rows,
                index,
                file,
            }),
        }
    }

    /// Reads from the unpacked copy of a compressed file. `name` is used in messages.
    pub(super) fn over_copy(
        (file, path, frames): (File, PathBuf, Frames),
        name: String,
        format: Format,
        indexed: &IndexedSource,
        index: BlockIndex,
    ) -> FileSource {
        FileSource {
            inner: Arc::new(Inner {
                path,
                copy: Some((name, frames)),
                format,
                columns: indexed.columns.clone(),
                rows: indexed.rows,
                index,
                file: Mutex::new(Some(Arc::new(file))),
            }),
        }
    }
}

impl Source for FileSource {
    fn total(&self) -> ItemCount {
        ItemCount(self.inner.rows)
    }

    fn has_data(&self) -> bool {
        true
    }

    fn columns(&self) -> &[String] {
        &self.inner.columns
    }

    /// Cancel safe: a read without a waiter finishes on its own and changes nothing.
    fn read(&self, at: ItemIndex) -> BoxFuture<'_, Result<Arc<RowChunk>, SourceError>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || inner.read(at)).await;
            read.unwrap_or_else(|error| Err(SourceError::Unreadable(format!("the reader ended: {error}"))))
        })
    }
}

impl Inner {
    fn read(&self, at: ItemIndex) -> Result<Arc<RowChunk>, SourceError> {
        let Some(block) = self.index.locate(at) else {
            let text = format!(
                "{} has {} rows; there is no item {}",
                self.name(),
                self.rows,
                at.0
            );
            return Err(SourceError::BadRow(text));
        };
        let bytes = self.read_block(&block)?;
        if xxh3_64(&bytes) != block.checksum {
            return Err(self.changed(&block, "their bytes differ from those read before the task began"));
        }
        match parse(&self.format, &self.columns, &bytes, &block) {
            Ok(chunk) => Ok(Arc::new(chunk)),
            Err(kind) => Err(SourceError::BadRow(format!(
                "{}: {kind}",
                self.rows_named(&block)
            ))),
        }
    }

    fn read_block(&self, block: &Located) -> Result<Vec<u8>, SourceError> {
        let file = self.file().map_err(|error| self.unreadable(block, &error))?;
        let len = usize::try_from(block.bytes.end - block.bytes.start)
            .map_err(|_| self.changed(block, "the block is larger than memory"))?;
        let place = self.copy.as_ref().map(|(_, frames)| frames.place(block));
        let (start, stored) = match &place {
            Some(place) => (place.start, usize::try_from(place.end - place.start).unwrap_or(0)),
            None => (block.bytes.start, len),
        };
        let mut bytes = vec![0; stored];
        match file.read_exact_at(&mut bytes, start) {
            Ok(()) if place.is_some() => {
                unpack(&bytes, len).ok_or_else(|| self.changed(block, "its unpacked copy is damaged"))
            }
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.changed(block, "the file is shorter than before"))
            }
            Err(error) => {
                *self.file.lock().unwrap_or_else(PoisonError::into_inner) = None;
                Err(self.unreadable(block, &error))
            }
        }
    }

    fn file(&self) -> io::Result<Arc<File>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*file {
            return Ok(Arc::clone(file));
        }
        let opened = Arc::new(open_regular(&self.path)?.0);
        *file = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn name(&self) -> String {
        match &self.copy {
            Some((name, _)) => name.clone(),
            None => self.path.display().to_string(),
        }
    }

    fn rows_named(&self, block: &Located) -> String {
        format!(
            "{}: rows {} to {}",
            self.name(),
            block.rows.start,
            block.rows.end - 1
        )
    }

    fn changed(&self, block: &Located, because: &str) -> SourceError {
        if self.copy.is_some() {
            return SourceError::Changed(format!(
                "{} can't be read: {because}; try: delete {} and start again, to unpack the file again",
                self.rows_named(block),
                self.path.display()
            ));
        }
        SourceError::Changed(format!(
            "{} have changed: {because}; try: restore the old file and start again, or create a task from \
             the current file (run: --restart)",
            self.rows_named(block)
        ))
    }

    fn unreadable(&self, block: &Located, error: &io::Error) -> SourceError {
        SourceError::Unreadable(format!(
            "{} can't be read: {error}; try: check that the file exists and its disk is mounted",
            self.rows_named(block)
        ))
    }
}

/// Parses the rows of a block whose bytes match the index.
pub(super) fn parse(
    format: &Format,
    columns: &[String],
    bytes: &[u8],
    block: &Located,
) -> Result<RowChunk, FaultKind> {
    match format {
        Format::Csv(csv) => parse_block(CsvRows::new(csv, columns), bytes, block),
        Format::Ndjson => parse_block(NdjsonRows, bytes, block),
        Format::Lines => parse_block(TextLines::LF, bytes, block),
        Format::Nul => parse_block(TextLines::NUL, bytes, block),
    }
}

fn parse_block<F: RowFormat>(mut format: F, block: &[u8], place: &Located) -> Result<RowChunk, FaultKind> {
    let mut rest = block;
    if place.bytes.start == 0 {
        match format.begin(block, true) {
            Beginning::Read { len, .. } => rest = &block[len..],
            Beginning::Faults(mut kinds) if !kinds.is_empty() => return Err(kinds.remove(0)),
            Beginning::Faults(_) | Beginning::More => return Err(FaultKind::UnclosedQuote),
        }
    }
    let expected = place.rows.end - place.rows.start;
    let count = usize::try_from(expected).map_err(|_| FaultKind::TooLong)?;
    let mut rows = JsonRows::with_room(count, block.len() + count * format.overhead());
    loop {
        let ahead = format.write_ahead(rest, &mut rows)?;
        rest = &rest[ahead..];
        if rest.is_empty() {
            break;
        }
        let len = match format.split(rest, true) {
            Split::Row(len) => {
                format.write(&rest[..len], &mut rows)?;
                rows.end_row()?;
                len
            }
            Split::Blank(len) => len,
            Split::Fault(kind) => return Err(kind),
            Split::More => return Err(FaultKind::UnclosedQuote),
        };
        rest = &rest[len..];
    }
    if rows.count() != expected {
        return Err(FaultKind::RowCount {
            expected,
            actual: rows.count(),
        });
    }
    Ok(rows.into_chunk(ItemIndex(place.rows.start)))
}

/// Opens regular files only: a pipe or device would block or never end.
pub(super) fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Returns the time of the last change, in nanoseconds since the Unix epoch: the later of modification and status
/// change, because programs that copy files reset the former.
pub(super) fn modified_ns(metadata: &Metadata) -> i64 {
    let ns = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    ns(metadata.mtime(), metadata.mtime_nsec()).max(ns(metadata.ctime(), metadata.ctime_nsec()))
}
