//! Sources that were sent to the API server: their bytes in parts, so that any node can read them.

use async_trait::async_trait;
use windrow_words::engine as say;

use crate::ports::StoreError;
use windrow_core::ids::WallMs;
use windrow_core::text::quoted;

/// Size of every part but the last, in bytes.
pub const PART_BYTES: usize = 4 * 1024 * 1024;

/// Number of an upload, never reused. Shown as `u7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UploadId(pub i64);

impl std::fmt::Display for UploadId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "u{}", self.0)
    }
}

impl std::str::FromStr for UploadId {
    type Err = String;

    fn from_str(text: &str) -> Result<UploadId, String> {
        let number = text
            .strip_prefix('u')
            .and_then(|digits| digits.parse::<i64>().ok());
        number
            .filter(|n| *n > 0)
            .map(UploadId)
            .ok_or_else(|| say::no_upload(quoted(text), "u7").to_string())
    }
}

/// Progress of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadState {
    /// Bytes are being received.
    Open,
    /// All bytes are stored, counted and indexed.
    Ready,
}

/// Upload without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Number of the upload.
    pub id: UploadId,
    /// Progress of the upload.
    pub state: UploadState,
    /// Kind of rows: `csv`, `ndjson` or `lines`.
    pub kind: String,
    /// Format of its rows and its compression, as JSON text.
    pub format: String,
    /// Size as stored, in bytes, which is the compressed size if it was sent compressed; the size so far while it is
    /// open.
    pub bytes: u64,
    /// Number of parts stored.
    pub parts: u32,
    /// SHA-256 of all bytes as they were sent, in hexadecimal; only when ready.
    pub sha256: Option<String>,
    /// The first rows as a JSON array; only when ready.
    pub sample: Option<String>,
    /// Name of the sender.
    pub created_by: String,
    /// Time at which it began.
    pub created_at: WallMs,
    /// Time at which a task last took it; `None` if none did.
    pub used_at: Option<WallMs>,
}

/// Facts about an upload that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadDone {
    /// Index of the rows, in the store of sources.
    pub source: i64,
    /// Size of the upload in bytes.
    pub bytes: u64,
    /// SHA-256 of its bytes in hexadecimal.
    pub sha256: String,
    /// First rows as a JSON array.
    pub sample: String,
}

/// Store of uploads. Each method is one short transaction: a slow sender holds no lock.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait UploadStore: Send + Sync {
    /// Begins an upload and returns its number.
    async fn begin(&self, kind: &str, format: &str, by: &str, now: WallMs) -> Result<UploadId, StoreError>;

    /// Stores the next part of an open upload: `number` is the number of parts before it. A repeat of the last one
    /// with the same bytes is a success.
    ///
    /// # Errors
    /// `Refused` if the upload isn't open, or the number isn't the next.
    async fn append(&self, id: UploadId, number: u32, body: &[u8]) -> Result<(), StoreError>;

    /// Makes an open upload ready.
    ///
    /// # Errors
    /// `Refused` if it isn't open.
    async fn finish(&self, id: UploadId, done: &UploadDone) -> Result<(), StoreError>;

    /// Returns an upload by its number.
    async fn upload(&self, id: UploadId) -> Result<Option<Upload>, StoreError>;

    /// Returns one part of an upload; `None` past the last.
    async fn upload_part(&self, id: UploadId, number: u32) -> Result<Option<Vec<u8>>, StoreError>;

    /// Returns the bytes stored by all uploads of a sender, including open ones.
    async fn stored_by(&self, by: &str) -> Result<u64, StoreError>;

    /// Returns the same for senders whose names begin with `prefix`, largest first, at most `limit`.
    async fn stored_most(&self, prefix: &str, limit: u32) -> Result<Vec<(String, u64)>, StoreError>;

    /// Records that a task takes an upload, which is kept from now on.
    ///
    /// # Errors
    /// `Refused` if it isn't ready.
    async fn take(&self, id: UploadId, now: WallMs) -> Result<(), StoreError>;

    /// Removes an upload with its bytes, unless a task took it. An upload that doesn't exist is a success.
    async fn discard(&self, id: UploadId) -> Result<(), StoreError>;

    /// Removes uploads that began before `before` and that no task has: none took them, those that did were deleted,
    /// or the task that they were taken for before `before` was never made. Returns the number of uploads.
    async fn expire_uploads(&self, before: WallMs) -> Result<u64, StoreError>;
}
