//! Inputs that can be read only once, under any name: standard input, named pipes, `/dev/stdin`, `<(…)` of a shell.
//! They are kept in the spool directory and identified by their content.

use std::fs::File;
use std::io::{Cursor, IsTerminal, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::off_thread::blocking;
use super::open::{Opening, keep, spool_error};
use super::open_error::OpenSourceError;
use super::open_packed::open_packed_pipe;
use super::opened::OpenedSource;
use super::packing::{MAGIC_BYTES, Packing};
use super::spec::Format;
use super::spool::SpoolError;

/// True for pipes and character devices.
pub fn read_once(path: &Path) -> bool {
    path.metadata().is_ok_and(|seen| {
        let kind = seen.file_type();
        kind.is_fifo() || kind.is_char_device()
    })
}

/// True for a file of size 0, which may have content nevertheless, like those in /proc.
pub(super) fn tells_no_size(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|seen| seen.is_file() && seen.len() == 0)
}

/// Opens a named pipe, waiting for its writer.
pub(super) async fn open_pipe(
    path: &str,
    format: &Format,
    opening: &Opening<'_>,
) -> Result<OpenedSource, OpenSourceError> {
    let wanted = PathBuf::from(path);
    let piped = blocking(move || {
        let opened = File::open(&wanted);
        opened.map_err(|error| OpenSourceError::Unreadable { path: wanted, error })
    })
    .await?;
    if piped.is_terminal() {
        return Err(OpenSourceError::Terminal);
    }
    keep_piped(format, opening, path, piped).await
}

pub(super) async fn keep_piped(
    format: &Format,
    opening: &Opening<'_>,
    name: &str,
    piped: impl Read + Send + 'static,
) -> Result<OpenedSource, OpenSourceError> {
    let called = name.to_owned();
    let (piped, packing) = blocking(move || sniff(piped, &called)).await?;
    if let Some(packing) = packing {
        return open_packed_pipe(format, opening, packing, piped).await;
    }
    keep(format, opening, ("stdin", name.to_owned()), piped).await
}

/// Reads the first bytes and detects the compression. Returns the whole input with it.
fn sniff<R: Read>(
    mut piped: R,
    name: &str,
) -> Result<(impl Read + use<R>, Option<Packing>), OpenSourceError> {
    let mut first = Vec::new();
    let read = (&mut piped).take(MAGIC_BYTES as u64).read_to_end(&mut first);
    read.map_err(|error| spool_error(name, Path::new(""), SpoolError::Index(error.into())))?;
    let packing = Packing::of(&first);
    Ok((Cursor::new(first).chain(piped), packing))
}
