//! Identity of the embedded database's files, as they were opened. If one is deleted or replaced while the process
//! runs, SQLite continues silently with a file that nobody will find again; so each statement checks that its file is
//! still there.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use sea_orm::DbErr;

use windrow_engine::ports::FILE_GONE;

/// Device and inode of a file.
type Identity = (u64, u64);

/// Database files that must keep their names.
#[derive(Debug)]
pub(crate) struct Anchor {
    files: Vec<(PathBuf, Identity)>,
    /// Set while a file is missing, so that it is logged once.
    is_told: AtomicBool,
}

impl Anchor {
    /// Records the files of the database open at `path`: the database itself and its write-ahead log.
    ///
    /// # Errors
    /// If the database is missing.
    pub(crate) fn of(path: &Path) -> io::Result<Anchor> {
        let mut files = vec![(path.to_owned(), identity(path)?)];
        let mut journal = path.as_os_str().to_owned();
        journal.push("-wal");
        let journal = PathBuf::from(journal);
        // Only a database in WAL mode has one.
        if let Ok(found) = identity(&journal) {
            files.push((journal, found));
        }
        Ok(Anchor {
            files,
            is_told: AtomicBool::new(false),
        })
    }

    /// Checks that every file is still the one that was opened.
    ///
    /// # Errors
    /// If a file is gone or replaced. Nothing written since then is kept.
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
                "{text}; nothing is saved any more. Put the file back, or stop the node and restore a backup"
            );
        }
        Err(DbErr::Custom(text))
    }
}

fn identity(path: &Path) -> io::Result<Identity> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}
