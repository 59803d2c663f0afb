//! Conversion of the source in a request into the description stored with a task.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use serde_json::value::RawValue;

use crate::ports::StoreError;
use crate::ports::sources::uploads::UploadId;
use windrow_core::ids::{ItemCount, TaskId, WallMs};

/// Longest inline list, in bytes of JSON text. (It is one column of the task's row; longer lists are files.)
pub const INLINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Items of a task, as a request describes them.
#[derive(Clone, Debug)]
pub enum SourceRequest {
    /// Numbers only, without data.
    Range {
        /// Number of items of the task.
        total: ItemCount,
    },
    /// A short list of items in the request.
    Inline {
        /// Items as a JSON array, as it was written.
        items: Box<RawValue>,
    },
    /// An upload that is ready.
    Upload {
        /// Id of the upload.
        upload: UploadId,
    },
    /// A file at an address; it is fetched now, once.
    Url {
        /// Address, with `http` or `https`.
        url: String,
        /// Format that turns its bytes into rows.
        format: RowFormat,
        /// True if the sender may reach less than the node can, as for a business.
        is_guarded: bool,
    },
    /// Failures of another task.
    Redrive(RedriveSpec),
    /// Items that will be appended to the task.
    Appended,
}

/// Format that turns bytes into rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// Comma-separated values and their relatives.
    Csv {
        /// Character between two fields.
        delimiter: char,
        /// True if the first row names the columns.
        header: bool,
        /// Character around fields; `None` reads quotes as text.
        quote: Option<char>,
        /// True accepts rows whose quotes RFC 4180 doesn't allow.
        lenient: bool,
    },
    /// One JSON value per line.
    Ndjson,
    /// One text per line.
    Lines,
    /// Texts that each end with a NUL.
    Nul,
}

/// Failures of a task, by their places or by their indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedriveSpec {
    /// Task whose failures they are.
    pub origin: TaskId,
    /// Task whose keys the items carry; `None` gives them keys of the new task.
    pub keys_of: Option<TaskId>,
    /// Parts, in the order of the new task's positions.
    pub parts: Vec<RedrivePart>,
    /// True if a person named the items, so that some of them may not have failed.
    pub is_replay: bool,
}

/// Contiguous positions of a redrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedrivePart {
    /// Contiguous places of a group.
    Places {
        /// Code of the group.
        code: String,
        /// First of the places.
        first: u64,
        /// Number of places in a row.
        count: u64,
    },
    /// Contiguous indexes of the origin.
    Indexes {
        /// First of the indexes.
        first: u64,
        /// Number of indexes in a row.
        count: u64,
    },
}

impl RedrivePart {
    /// Returns the number of items.
    pub fn count(&self) -> u64 {
        match self {
            RedrivePart::Places { count, .. } | RedrivePart::Indexes { count, .. } => *count,
        }
    }
}

/// Source as stored with a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedSource {
    /// Description as JSON text, for `NewTask::source`.
    pub json: String,
    /// Number of its items.
    pub total: ItemCount,
    /// Fingerprint of the meaning, for `NewTask::meaning`.
    pub meaning: u64,
}

/// Error of turning a request into a task's source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The request can't be fulfilled; the text is for people, without paths of the node.
    #[error("{0}")]
    Refused(String),
    /// The source is compressed, and can't be unpacked.
    #[error("{text}")]
    NotUnpacked {
        /// Problem in one word: `truncated`, `damaged`, `memory` or `expansion`.
        reason: &'static str,
        /// Problem as text for people.
        text: String,
    },
    /// The source is larger than the node accepts.
    #[error("{0}")]
    TooLarge(String),
    /// The sender has stored as much as allowed.
    #[error("{0}")]
    OverQuota(String),
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Sender of a source, with the bounds for it.
#[derive(Clone, Copy, Debug)]
pub struct Sender<'a> {
    /// Name that the sender's uploads are counted under.
    pub by: &'a str,
    /// Longest source in bytes, as sent and unpacked.
    pub bytes_max: u64,
    /// Maximum number of bytes of all uploads of the sender; `None` is no bound.
    pub quota: Option<u64>,
}

/// Bytes of an upload as they come in; an error says why no more come.
pub type UploadBytes<'a> = BoxStream<'a, Result<Bytes, String>>;

/// Upload that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Number of the upload.
    pub id: UploadId,
    /// Number of rows, which are items.
    pub rows: u64,
    /// Size as stored, in bytes.
    pub bytes: u64,
    /// Column names of a CSV, `line` of lines; empty otherwise.
    pub columns: Vec<String>,
    /// First rows as a JSON array.
    pub sample: String,
    /// SHA-256 of all bytes in hexadecimal, as they were sent.
    pub sha256: String,
    /// Compression: `gzip`, `zstd`, `bzip2` or `xz`; `None` when it was sent uncompressed.
    pub compression: Option<String>,
}

/// Inspection of sources before a task is made of them.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait SourceResolver: Send + Sync {
    /// Inspects an upload and returns the description to store, without taking it.
    ///
    /// # Errors
    /// As [`SourceResolver::resolve`].
    async fn look_at_upload(&self, id: UploadId) -> Result<ResolvedSource, ResolveError>;

    /// Inspects a source, fetches it if it is a URL, and returns the description to store. An upload counts as taken
    /// then.
    ///
    /// # Errors
    /// See [`ResolveError`]; nothing is kept of a source that was refused.
    async fn resolve(
        &self,
        request: &SourceRequest,
        sender: &Sender<'_>,
        now: WallMs,
    ) -> Result<ResolvedSource, ResolveError>;

    /// Receives an upload in constant memory: stores it in parts, counts and indexes its rows in the same pass.
    /// Cancel safe: the part received so far stays open and is removed later.
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

    /// Returns an upload that is ready; `None` if it isn't ready or doesn't exist.
    async fn received(&self, id: UploadId) -> Result<Option<Received>, ResolveError>;

    /// Returns the redrive in a stored description; `None` for other kinds of source.
    ///
    /// # Errors
    /// If it can't be read.
    fn redrive_of(&self, json: &str) -> Result<Option<RedriveSpec>, ResolveError>;
}
