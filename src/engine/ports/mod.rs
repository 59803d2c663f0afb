//! Ports of the actors to the outside, as traits, and the values passed through them. No implementations.
//!
//! `tasks`, `schedules` and `access` are the requests of people and nodes to the store; `ownership` decides which
//! node runs what; `sources` supply items; `handling` does the work and records it; `datasets` hold what finished
//! tasks publish.

#![warn(missing_docs)]

pub mod access;
pub mod clock;
pub mod datasets;
pub mod durability;
pub mod handling;
pub mod ownership;
pub mod schedules;
pub mod sources;
pub mod tasks;

use windrow_words::engine as say;

/// Meaning of an adapter's error to its caller; message texts are never inspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// Worth another try of the same thing, with the same sequence number.
    Transient,
    /// Another try can't help.
    Permanent,
}

/// Error of a request to a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Locked, busy, disconnected, timed out: the outcome may be unknown; ask again with the same values.
    #[error("{}", say::store_unavailable(.0))]
    Unavailable(String),
    /// The request itself is wrong or the data is damaged.
    #[error("{}", say::store_refused(.0))]
    Refused(String),
    /// The schema is newer than this program.
    #[error("{}", say::newer_schema(.0))]
    NewerSchema(String),
    /// The schema of a database server is older than this program, or there is no schema yet.
    #[error(
        "{}",
        say::older_schema("windrow db migrate", "store.migrate_on_start = true")
    )]
    OlderSchema,
}

/// Error text for a database file whose restore did not finish.
pub const RESTORE_CUT_OFF: &str = "a restore was cut off";
/// Error text for a database file that was deleted, moved or replaced while a process works with it.
pub const FILE_GONE: &str = "the database's file was deleted or replaced";
/// Error text for a server that has no database of the name; the name follows.
pub const NO_DATABASE: &str = "the server runs, but has no database ";
/// Error text for a server that answered while a node started, then went away and did not come back.
pub const STAYED_AWAY: &str = "the database went away while the node started, and stayed away";

impl StoreError {
    /// Returns the error without naming the store as its origin.
    pub fn text(&self) -> String {
        match self {
            StoreError::Unavailable(text) | StoreError::Refused(text) => text.clone(),
            StoreError::NewerSchema(_) | StoreError::OlderSchema => self.to_string(),
        }
    }

    /// True if the file of the database is no longer what was written (SQLite's own words).
    pub fn is_damaged(&self) -> bool {
        let text = self.text();
        ["database disk image is malformed", "file is not a database"]
            .iter()
            .any(|words| text.contains(words))
    }

    /// True if the file of the database was taken away under the process.
    pub fn is_gone(&self) -> bool {
        self.text().contains(FILE_GONE)
    }

    /// True if the disk of the database is full (the words of SQLite, PostgreSQL, and MariaDB).
    pub fn is_full(&self) -> bool {
        let text = self.text();
        ["database or disk is full", "No space left on device", "disk full"]
            .iter()
            .any(|words| text.contains(words))
    }

    /// Returns the class, which says whether another try may help.
    pub fn class(&self) -> ErrorClass {
        match self {
            StoreError::Unavailable(_) => ErrorClass::Transient,
            StoreError::Refused(_) | StoreError::NewerSchema(_) | StoreError::OlderSchema => {
                ErrorClass::Permanent
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StoreError;

    #[test]
    fn a_full_disk_and_a_damaged_file_are_told_from_a_database_that_is_away() {
        let told = |text: &str| StoreError::Unavailable(text.to_owned());
        let full = told("error returned from database: (code: 13) database or disk is full");
        assert!(full.is_full() && !full.is_damaged());
        let damaged = told("(code: 11) database disk image is malformed");
        assert!(damaged.is_damaged() && !damaged.is_full());
        let away = told("pool timed out while waiting for an open connection");
        assert!(!away.is_full() && !away.is_damaged());
    }
}
