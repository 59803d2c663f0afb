//! A file found on disk: open, regular, under its canonical path, with its first bytes.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use super::file::open_regular;
use super::open_error::OpenSourceError;
use super::packing::MAGIC_BYTES;
use super::rows::BOM;

/// Open regular file under its canonical path.
pub(super) struct Found {
    pub(super) file: File,
    pub(super) metadata: Metadata,
    pub(super) path: PathBuf,
    pub(super) location: String,
    /// First bytes of the file, which tell its type.
    pub(super) first: Vec<u8>,
}

impl Found {
    pub(super) fn has_bom(&self) -> bool {
        self.first.starts_with(BOM)
    }
}

pub(super) fn find(path: &Path) -> Result<Found, OpenSourceError> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => OpenSourceError::NotFound(path.to_owned()),
        io::ErrorKind::InvalidInput => OpenSourceError::NotAFile(path.to_owned()),
        _ => OpenSourceError::Unreadable {
            path: path.to_owned(),
            error,
        },
    };
    let canonical = path.canonicalize().map_err(unreadable)?;
    // Checked before opening: a process waiting to write into a pipe would take us for its reader.
    if !canonical.metadata().map_err(unreadable)?.is_file() {
        return Err(OpenSourceError::NotAFile(path.to_owned()));
    }
    let (file, metadata) = open_regular(&canonical).map_err(unreadable)?;
    let location = canonical
        .to_str()
        .ok_or_else(|| OpenSourceError::OddPath(path.to_owned()))?
        .to_owned();
    let first = first_bytes(&file).map_err(unreadable)?;
    Ok(Found {
        file,
        metadata,
        path: canonical,
        location,
        first,
    })
}

fn first_bytes(mut file: &File) -> io::Result<Vec<u8>> {
    let mut first = Vec::new();
    file.take(MAGIC_BYTES as u64).read_to_end(&mut first)?;
    file.rewind()?;
    Ok(first)
}
