//! Errors of opening a source, in the three parts that every surface shows: what, because, what to try.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::fault::IndexError;
use super::glob_walk::Skipped;
use windrow_engine::ports::sources::resolver::INLINE_BYTES_MAX;
use windrow_engine::ports::{ErrorClass, StoreError};

/// Reason why a source can't be opened. Nothing was stored.
#[derive(Debug)]
pub enum OpenSourceError {
    /// The description is invalid.
    BadSpec(String),
    /// The source has no items.
    NoItems,
    /// No file matches the pattern.
    NoMatch(String),
    /// A matching file can't be listed, and skipping isn't allowed or no other file is left.
    Unlisted(Skipped),
    /// The pattern is invalid.
    BadPattern {
        /// Pattern as it was written.
        pattern: String,
        /// Description of the fault.
        why: String,
    },
    /// The file doesn't exist.
    NotFound(PathBuf),
    /// The path is a directory, pipe, device or socket.
    NotAFile(PathBuf),
    /// The path isn't UTF-8 and can't be stored.
    OddPath(PathBuf),
    /// Permission is denied, or the disk fails.
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// Standard input is a terminal.
    Terminal,
    /// The inline list is longer than [`INLINE_BYTES_MAX`].
    InlineTooLong,
    /// Some rows can't be items.
    Index {
        /// Name of the file, or standard input.
        name: String,
        /// Cause of the failure.
        error: IndexError,
    },
    /// Piped or unpacked input can't be spooled.
    Spool {
        /// Name of the file, or standard input.
        name: String,
        /// Path of the spool directory.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The store can't be read or written.
    Store(StoreError),
}

impl OpenSourceError {
    /// Returns what failed, for people.
    pub fn what(&self) -> String {
        match self {
            OpenSourceError::BadSpec(_) => "the description of the source is invalid".to_owned(),
            OpenSourceError::NoItems => "there are no items".to_owned(),
            OpenSourceError::NoMatch(_) => "there are no files".to_owned(),
            OpenSourceError::Unlisted(skipped) => format!("{} can't be listed", skipped.first.display()),
            OpenSourceError::BadPattern { pattern, .. } => format!("the pattern {pattern} is invalid"),
            OpenSourceError::NotFound(path)
            | OpenSourceError::NotAFile(path)
            | OpenSourceError::OddPath(path)
            | OpenSourceError::Unreadable { path, .. } => format!("{} can't be read", path.display()),
            OpenSourceError::Terminal => "standard input can't be read".to_owned(),
            OpenSourceError::InlineTooLong => "the inline list is too long".to_owned(),
            OpenSourceError::Index { name, .. } => format!("{name} can't be used as items"),
            OpenSourceError::Spool { name, path, .. } => {
                format!("{name} can't be stored in {}", path.display())
            }
            OpenSourceError::Store(_) => "the source can't be saved".to_owned(),
        }
    }

    /// Returns the cause, for people.
    pub fn because(&self) -> String {
        match self {
            OpenSourceError::BadSpec(reason) => reason.clone(),
            OpenSourceError::NoItems => "the source has 0 items".to_owned(),
            OpenSourceError::NoMatch(pattern) => format!("no file matches {pattern}"),
            OpenSourceError::Unlisted(skipped) => skipped.why.clone(),
            OpenSourceError::BadPattern { why, .. } => why.clone(),
            OpenSourceError::NotFound(_) => "there is no such file".to_owned(),
            OpenSourceError::NotAFile(path) if path.is_dir() => "it is a directory".to_owned(),
            OpenSourceError::NotAFile(_) => "it is not a regular file".to_owned(),
            OpenSourceError::OddPath(_) => "its path is not UTF-8".to_owned(),
            OpenSourceError::Unreadable { error, .. } | OpenSourceError::Spool { error, .. } => {
                error.to_string()
            }
            OpenSourceError::Terminal => "nothing is piped in".to_owned(),
            OpenSourceError::InlineTooLong => format!("it is longer than {} KiB", INLINE_BYTES_MAX / 1024),
            OpenSourceError::Index { error, .. } => error.to_string(),
            OpenSourceError::Store(error) => error.to_string(),
        }
    }

    /// Returns a suggestion for people.
    pub fn hint(&self) -> &'static str {
        match self {
            OpenSourceError::BadSpec(_) => "see the documentation of sources",
            OpenSourceError::NoItems => "give at least one item",
            OpenSourceError::NoMatch(_) => {
                "check the directory; ** also matches subdirectories; hidden files match only a pattern \
                 with a leading dot"
            }
            OpenSourceError::Unlisted(_) => "remove, rename or repair it, or narrow the pattern",
            OpenSourceError::BadPattern { .. } => {
                "use shell syntax: 'in/*.png', 'in/**/*.{png,jpg}'; \\ escapes a character"
            }
            OpenSourceError::NotFound(_) => "check the path",
            OpenSourceError::NotAFile(path) if path.is_dir() => "pass a file in it",
            OpenSourceError::NotAFile(_) => "pipe it in: pass - as the path, and use < or |",
            OpenSourceError::OddPath(_) => "rename the file",
            OpenSourceError::Unreadable { .. } => "check its permissions and its disk",
            OpenSourceError::Terminal => "pipe items in, or pass a file",
            OpenSourceError::InlineTooLong => "put the list into an NDJSON file",
            OpenSourceError::Index { error, .. } => error.hint(),
            OpenSourceError::Spool { .. } => "check the free space and permissions of the state directory",
            OpenSourceError::Store(_) => "check the database and try again",
        }
    }
}

impl OpenSourceError {
    /// True if the source is valid and empty: there is nothing to do, and nothing failed.
    pub fn is_nothing(&self) -> bool {
        matches!(
            self,
            OpenSourceError::NoItems
                | OpenSourceError::NoMatch(_)
                | OpenSourceError::Index {
                    error: IndexError::NoRows { .. },
                    ..
                }
        )
    }

    /// Returns `Transient` if a retry of the same operation may help.
    pub fn class(&self) -> ErrorClass {
        match self {
            OpenSourceError::Store(error) => error.class(),
            OpenSourceError::Unreadable { .. } | OpenSourceError::Spool { .. } => ErrorClass::Transient,
            OpenSourceError::Index { error, .. } => match error {
                IndexError::Unreadable(_) | IndexError::ChangedMeanwhile => ErrorClass::Transient,
                IndexError::BadRows { .. }
                | IndexError::NoHeader
                | IndexError::NoRows { .. }
                | IndexError::NotText(_)
                | IndexError::BadFormat(_)
                | IndexError::Packed(_)
                | IndexError::Cancelled => ErrorClass::Permanent,
            },
            OpenSourceError::BadSpec(_)
            | OpenSourceError::NoItems
            | OpenSourceError::NoMatch(_)
            | OpenSourceError::Unlisted(_)
            | OpenSourceError::BadPattern { .. }
            | OpenSourceError::NotFound(_)
            | OpenSourceError::NotAFile(_)
            | OpenSourceError::OddPath(_)
            | OpenSourceError::Terminal
            | OpenSourceError::InlineTooLong => ErrorClass::Permanent,
        }
    }
}

impl fmt::Display for OpenSourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; try: {}", self.what(), self.because(), self.hint())
    }
}

impl std::error::Error for OpenSourceError {}

impl From<StoreError> for OpenSourceError {
    fn from(error: StoreError) -> OpenSourceError {
        OpenSourceError::Store(error)
    }
}
