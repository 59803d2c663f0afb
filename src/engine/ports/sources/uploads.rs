//! Sources that were sent to the façade: their bytes in parts, so that any node can read them.

use async_trait::async_trait;
use windrow_words::engine as say;

use crate::ports::StoreError;
use windrow_core::ids::WallMs;
use windrow_core::text::quoted;

/// The size of every part but the last. Unit: bytes.
pub const PART_BYTES: usize = 4 * 1024 * 1024;

/// The number of an upload, never reused. Shown as `u7`.
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

/// How far an upload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadState {
    /// Bytes are being received.
    Open,
    /// Everything is here, counted and indexed.
    Ready,
}

/// An upload without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Its number.
    pub id: UploadId,
    /// How far it is.
    pub state: UploadState,
    /// `csv`, `ndjson` or `lines`.
    pub kind: String,
    /// How bytes become rows, and how they were compressed, as JSON text.
    pub format: String,
    /// Size, as it is stored: one that was compressed is so again. Of what there is so far while it is open. Unit: bytes.
    pub bytes: u64,
    /// Parts stored.
    pub parts: u32,
    /// SHA-256 of all bytes as they were sent, in hexadecimal; only when ready.
    pub sha256: Option<String>,
    /// The first rows as a JSON array; only when ready.
    pub sample: Option<String>,
    /// Who sent it.
    pub created_by: String,
    /// When it began.
    pub created_at: WallMs,
    /// When a task last took it; none when none did.
    pub used_at: Option<WallMs>,
}

/// What is known once everything is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadDone {
    /// The index of the rows, in the store of sources.
    pub source: i64,
    /// Size. Unit: bytes.
    pub bytes: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    /// The first rows as a JSON array.
    pub sample: String,
}

/// Keeps uploads. Each method is one short transaction: a slow sender holds no lock.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait UploadStore: Send + Sync {
    /// Begins an upload.
    async fn begin(&self, kind: &str, format: &str, by: &str, now: WallMs) -> Result<UploadId, StoreError>;

    /// Stores the next part of an open upload: `number` is how many there were. A repeat of the last one with the
    /// same bytes is a success.
    ///
    /// # Errors
    /// `Refused` when the upload isn't open, or the number isn't the next.
    async fn append(&self, id: UploadId, number: u32, body: &[u8]) -> Result<(), StoreError>;

    /// Makes an open upload ready.
    ///
    /// # Errors
    /// `Refused` when it isn't open.
    async fn finish(&self, id: UploadId, done: &UploadDone) -> Result<(), StoreError>;

    /// An upload.
    async fn upload(&self, id: UploadId) -> Result<Option<Upload>, StoreError>;

    /// One part; none past the last.
    async fn upload_part(&self, id: UploadId, number: u32) -> Result<Option<Vec<u8>>, StoreError>;

    /// What all uploads of a sender take, those that are still open too. Unit: bytes.
    async fn stored_by(&self, by: &str) -> Result<u64, StoreError>;

    /// The same of at most so many senders whose names begin so, who take most first.
    async fn stored_most(&self, prefix: &str, limit: u32) -> Result<Vec<(String, u64)>, StoreError>;

    /// Says that a task takes it: it is kept from now on.
    ///
    /// # Errors
    /// `Refused` when it isn't ready.
    async fn take(&self, id: UploadId, now: WallMs) -> Result<(), StoreError>;

    /// Removes an upload with its bytes, unless a task took it. One that isn't there is a success.
    async fn discard(&self, id: UploadId) -> Result<(), StoreError>;

    /// Removes what began before `before` and no task has: none took it, those that did were deleted, or the one that it
    /// was taken for before `before` was never made. Says how many uploads.
    async fn expire_uploads(&self, before: WallMs) -> Result<u64, StoreError>;
}
