//! The files of the embedded database, as they were opened. Where one is deleted or replaced under the process, SQLite goes
//! on in silence with a file that nobody will find again; so each statement looks whether its file is still there.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use sea_orm::DbErr;

use windrow_engine::ports::FILE_GONE;

/// Device and inode of a file.
type Identity = (u64, u64);

/// Files that must keep their names.
#[derive(Debug)]
pub(crate) struct Anchor {
    files: Vec<(PathBuf, Identity)>,
    /// Set while a file is missing, so that it is told once.
    is_told: AtomicBool,
}

impl Anchor {
    /// The database that is open at `path`, and its journal of what wasn't merged yet.
    ///
    /// # Errors
    /// When the database isn't there.
    pub(crate) fn of(path: &Path) -> io::Result<Anchor> {
        let mut files = vec![(path.to_owned(), identity(path)?)];
        let mut journal = path.as_os_str().to_owned();
        journal.push("-wal");
        let journal = PathBuf::from(journal);
        // A database that isn't in WAL mode has none.
        if let Ok(found) = identity(&journal) {
            files.push((journal, found));
        }
        Ok(Anchor {
            files,
            is_told: AtomicBool::new(false),
        })
    }

    /// # Errors
    /// When one of the files is gone, or another one has its name. Nothing that was written since is kept then.
    pub(crate) fn holds(&self) -> Result<(), DbErr> {
        let lost = self
            .files
            .iter()
            .find(|(path, was)| !identity(path).is_ok_and(|is| is == *was));
        let was_told = self.is_told.swap(lost.is_some(), Ordering::Relaxed);
        let Some((path, _)) = lost else { return Ok(()) };
        let text = format!("{FILE_GONE}: {}", path.display());
        if !was_told {
            tracing::error!(
                "{text}; nothing is acknowledged any more. Put the file back, or stop the node and restore a backup"
            );
        }
        Err(DbErr::Custom(text))
    }
}

fn identity(path: &Path) -> io::Result<Identity> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}
