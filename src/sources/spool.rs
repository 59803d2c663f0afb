//! Storage for piped input, so that it can be read again: written to a file while it is indexed, then treated like
//! any file.
//!
//! The file is named after the checksum of its content. The same input piped again is the same source, and its file
//! replaces the earlier one, which is identical. Only one process uses a spool directory (the state directory is
//! locked), so half-written files of other processes are remains of a crash and are removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::fault::IndexError;
use super::pass::{BlockLimits, IndexProgress, Indexed, index_bytes, index_packed};
use super::spec::Format;

const INCOMING: &str = "incoming-";
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Error of spooling; no file is left behind.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpoolError {
    /// The input can't be items.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The spool directory can't be written.
    #[error("{0}")]
    Write(io::Error),
}

/// Copies `reader` into `dir` while indexing it. Returns the file's name, once the file is synced to disk.
pub(super) fn spool(
    dir: &Path,
    reader: impl Read,
    format: &Format,
    prefix: &str,
    progress: &mut dyn FnMut(IndexProgress),
    cancel: &AtomicBool,
) -> Result<(String, Indexed), SpoolError> {
    fs::create_dir_all(dir)
        .and_then(|()| remove_leftovers(dir))
        .map_err(SpoolError::Write)?;
    let incoming = Incoming::create(dir).map_err(SpoolError::Write)?;
    let mut tee = Tee {
        reader,
        writer: BufWriter::new(&incoming.file),
        failed: None,
    };
    let indexed = index_bytes(&mut tee, None, format, BlockLimits::default(), progress, cancel);
    if let Some(error) = tee.failed {
        return Err(SpoolError::Write(error));
    }
    let indexed = indexed?;
    tee.writer.flush().map_err(SpoolError::Write)?;
    drop(tee);
    let name = format!("{prefix}-{:016x}.{}", indexed.checksum, format.kind());
    incoming.keep_as(dir, &name).map_err(SpoolError::Write)?;
    Ok((name, indexed))
}

/// Unpacks `reader` into `dir` while indexing it, and keeps its blocks compressed. `name_of` returns the file's name,
/// or an error to discard it. Synced like `spool`.
pub(super) fn spool_packed(
    dir: &Path,
    reader: impl Read,
    format: &Format,
    progress: &mut dyn FnMut(IndexProgress),
    cancel: &AtomicBool,
    name_of: impl FnOnce(&Indexed) -> Result<String, IndexError>,
) -> Result<(String, Indexed), SpoolError> {
    fs::create_dir_all(dir)
        .and_then(|()| remove_leftovers(dir))
        .map_err(SpoolError::Write)?;
    let incoming = Incoming::create(dir).map_err(SpoolError::Write)?;
    let mut keep = Keep {
        writer: BufWriter::new(&incoming.file),
        failed: None,
    };
    let indexed = index_packed(reader, format, &mut keep, progress, cancel);
    let indexed = indexed.and_then(|indexed| indexed.with_rows(format));
    if let Some(error) = keep.failed {
        return Err(SpoolError::Write(error));
    }
    let indexed = indexed?;
    keep.writer.flush().map_err(SpoolError::Write)?;
    drop(keep);
    let name = name_of(&indexed)?;
    incoming.keep_as(dir, &name).map_err(SpoolError::Write)?;
    Ok((name, indexed))
}

/// File that is removed unless it is kept.
struct Incoming {
    file: File,
    path: PathBuf,
    kept: bool,
}

impl Incoming {
    fn create(dir: &Path) -> io::Result<Incoming> {
        let name = format!(
            "{INCOMING}{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = dir.join(name);
        // Only for the owner, because items may be personal data.
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Incoming {
            file,
            path,
            kept: false,
        })
    }

    fn keep_as(mut self, dir: &Path, name: &str) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, dir.join(name))?;
        self.kept = true;
        File::open(dir)?.sync_all()
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.kept
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "can't delete a partly spooled input");
        }
    }
}

fn remove_leftovers(dir: &Path) -> io::Result<()> {
    let own = format!("{INCOMING}{}-", std::process::id());
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(INCOMING) && !name.starts_with(&own) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Reader that also writes the bytes it reads.
struct Tee<R, W> {
    reader: R,
    writer: W,
    /// Error of writing, to distinguish it from a failed read.
    failed: Option<io::Error>,
}

impl<R: Read, W: Write> Read for Tee<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        if let Err(error) = self.writer.write_all(&buffer[..read]) {
            self.failed = Some(error);
            return Err(io::Error::other("the spool can't be written"));
        }
        Ok(read)
    }
}

/// Writer that remembers its error, to distinguish it from a failed read.
struct Keep<W> {
    writer: W,
    failed: Option<io::Error>,
}

impl<W: Write> Write for Keep<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes).map_err(|error| self.fails(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(|error| self.fails(error))
    }
}

impl<W> Keep<W> {
    fn fails(&mut self, error: io::Error) -> io::Error {
        let kind = error.kind();
        if kind != io::ErrorKind::Interrupted {
            self.failed = Some(error);
        }
        io::Error::new(kind, "the copy can't be written")
    }
}
