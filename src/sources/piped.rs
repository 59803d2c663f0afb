//! What gives its bytes only once, under any name: standard input, named pipes, `/dev/stdin`, `<(…)` of a shell. It is kept in
//! the spool directory, and known by its content.

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

/// True for a file of size 0, which may have content all the same, as those of /proc do.
pub(super) fn tells_no_size(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|seen| seen.is_file() && seen.len() == 0)
}

/// Waits for whoever writes into a named pipe.
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

/// What is piped in, and how it is compressed by its first bytes.
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
