//! Turns the source of a request into what is stored with a task.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use serde_json::value::RawValue;

use crate::ports::StoreError;
use crate::ports::sources::uploads::UploadId;
use windrow_core::ids::{ItemCount, TaskId, WallMs};

/// The longest inline list. Unit: bytes of JSON text. (It is one column of the task's row; longer lists are files.)
pub const INLINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Which items a task shall have, as a request says it.
#[derive(Clone, Debug)]
pub enum SourceRequest {
    /// Numbers only.
    Range {
        /// How many.
        total: ItemCount,
    },
    /// A short list.
    Inline {
        /// The items: a JSON array, as it was written.
        items: Box<RawValue>,
    },
    /// An upload that is ready.
    Upload {
        /// Which.
        upload: UploadId,
    },
    /// A file at an address; it is fetched now, once.
    Url {
        /// `http` or `https`.
        url: String,
        /// How its bytes become rows.
        format: RowFormat,
        /// Whether whoever asks may reach less than the node can: a business may.
        is_guarded: bool,
    },
    /// Failures of another task.
    Redrive(RedriveSpec),
    /// What will be appended to the task.
    Appended,
}

/// How bytes become rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// Comma-separated values and their relatives.
    Csv {
        /// Between fields.
        delimiter: char,
        /// Whether the first row names the columns.
        header: bool,
        /// Around fields; none reads quotes as text.
        quote: Option<char>,
        /// Takes rows whose quotes RFC 4180 doesn't have.
        lenient: bool,
    },
    /// One JSON value per line.
    Ndjson,
    /// One text per line.
    Lines,
    /// Texts that a NUL ends.
    Nul,
}

/// Failures of a task, by their places or by their indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedriveSpec {
    /// The task whose failures they are.
    pub origin: TaskId,
    /// The task whose keys the items carry; none gives them keys of the new task.
    pub keys_of: Option<TaskId>,
    /// Which, in the order of the new task's positions.
    pub parts: Vec<RedrivePart>,
}

/// Neighbouring positions of a redrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedrivePart {
    /// Places of a group.
    Places {
        /// The group's code.
        code: String,
        /// The first place.
        first: u64,
        /// How many.
        count: u64,
    },
    /// Neighbouring indexes of the origin.
    Indexes {
        /// The first.
        first: u64,
        /// How many.
        count: u64,
    },
}

impl RedrivePart {
    /// How many items.
    pub fn count(&self) -> u64 {
        match self {
            RedrivePart::Places { count, .. } | RedrivePart::Indexes { count, .. } => *count,
        }
    }
}

/// A source as it is stored with a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedSource {
    /// The description as JSON text, for `NewTask::source`.
    pub json: String,
    /// How many items.
    pub total: ItemCount,
    /// See `NewTask::meaning`.
    pub meaning: u64,
}

/// A source can't be a task's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// What the request says can't be done; for people, without paths of the node.
    #[error("{0}")]
    Refused(String),
    /// It is compressed, and can't be unpacked.
    #[error("{text}")]
    NotUnpacked {
        /// What is wrong in one word: `truncated`, `damaged`, `memory` or `expansion`.
        reason: &'static str,
        /// For people.
        text: String,
    },
    /// It is larger than the node takes.
    #[error("{0}")]
    TooLarge(String),
    /// Who sends it has stored as much as they may.
    #[error("{0}")]
    OverQuota(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Who sends a source, and how much of theirs is taken.
#[derive(Clone, Copy, Debug)]
pub struct Sender<'a> {
    /// Whose uploads it is counted with.
    pub by: &'a str,
    /// The longest source, as it is sent and unpacked. Unit: bytes.
    pub bytes_max: u64,
    /// What all their uploads may take; none is no bound. Unit: bytes.
    pub quota: Option<u64>,
}

/// The bytes of an upload as they come in; an error says why no more come.
pub type UploadBytes<'a> = BoxStream<'a, Result<Bytes, String>>;

/// An upload that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its number.
    pub id: UploadId,
    /// Rows, which are items.
    pub rows: u64,
    /// Size, as it is stored. Unit: bytes.
    pub bytes: u64,
    /// Column names of a CSV, `line` of lines; empty otherwise.
    pub columns: Vec<String>,
    /// The first rows as a JSON array.
    pub sample: String,
    /// SHA-256 of all bytes in hexadecimal, as they were sent.
    pub sha256: String,
    /// `gzip`, `zstd`, `bzip2` or `xz`; none when it was sent as it is.
    pub compression: Option<String>,
}

/// Where sources are looked at before a task is made of them.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait SourceResolver: Send + Sync {
    /// Looks at an upload and says what to store, without taking it.
    ///
    /// # Errors
    /// As [`SourceResolver::resolve`].
    async fn look_at_upload(&self, id: UploadId) -> Result<ResolvedSource, ResolveError>;

    /// Looks at a source, fetches it where it is a URL, and says what to store. An upload counts as taken then.
    ///
    /// # Errors
    /// See [`ResolveError`]; nothing is kept of a source that was refused.
    async fn resolve(
        &self,
        request: &SourceRequest,
        sender: &Sender<'_>,
        now: WallMs,
    ) -> Result<ResolvedSource, ResolveError>;

    /// Takes in an upload in constant memory: stores it in parts, counts and indexes its rows in the same pass. Cancel
    /// safe: what was received stays open and is removed later.
    ///
    /// # Errors
    /// See [`ResolveError`]; nothing is kept then.
    async fn receive(
        &self,
        format: &RowFormat,
        sender: &Sender<'_>,
        now: WallMs,
        body: UploadBytes<'_>,
    ) -> Result<Received, ResolveError>;

    /// An upload that is ready; none where it isn't, or isn't there.
    async fn received(&self, id: UploadId) -> Result<Option<Received>, ResolveError>;

    /// The redrive that a stored description is; none when it is another kind.
    ///
    /// # Errors
    /// When it can't be read.
    fn redrive_of(&self, json: &str) -> Result<Option<RedriveSpec>, ResolveError>;
}
