//! What the actors need from the world, as traits, and the values that they pass. No implementations.
//!
//! `tasks`, `schedules` and `access` are what people and nodes ask of the store; `ownership` says which node runs what; `sources`
//! where items come from; `handling` what does the work and what is noted of it; `datasets` what finished tasks publish.

#![warn(missing_docs)]

pub mod access;
pub mod clock;
pub mod datasets;
pub mod handling;
pub mod ownership;
pub mod schedules;
pub mod sources;
pub mod tasks;

/// What an error of an adapter means to its caller; nobody looks at message texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// Worth another try of the same thing, with the same sequence number.
    Transient,
    /// Another try can't help.
    Permanent,
}

/// A store could not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Locked, busy, disconnected, timed out: the outcome may be unknown; ask again with the same values.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// The request itself is wrong or the data is damaged.
    #[error("store refused: {0}")]
    Refused(String),
    /// The schema is newer than this program.
    #[error("the database was written by a newer windrow (migration {0}); this one can't read it")]
    NewerSchema(String),
    /// The schema of a database server is older than this program, or there is none yet.
    #[error(
        "the database hasn't this program's schema; `windrow db migrate` brings it up to date (or store.migrate_on_start = true)"
    )]
    OlderSchema,
}

/// What is said of a database file whose restore did not come to its end.
pub const RESTORE_CUT_OFF: &str = "a restore was cut off";

impl StoreError {
    /// What is wrong, without that it was the store that said it.
    pub fn text(&self) -> String {
        match self {
            StoreError::Unavailable(text) | StoreError::Refused(text) => text.clone(),
            StoreError::NewerSchema(_) | StoreError::OlderSchema => self.to_string(),
        }
    }

    /// Whether the file of the database is no longer what was written (SQLite's own words).
    pub fn is_damaged(&self) -> bool {
        let text = self.text();
        ["database disk image is malformed", "file is not a database"]
            .iter()
            .any(|words| text.contains(words))
    }

    /// Whether another try may help.
    pub fn class(&self) -> ErrorClass {
        match self {
            StoreError::Unavailable(_) => ErrorClass::Transient,
            StoreError::Refused(_) | StoreError::NewerSchema(_) | StoreError::OlderSchema => {
                ErrorClass::Permanent
            }
        }
    }
}
