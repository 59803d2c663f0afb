//! Remembered answers: a request sent again with the same key gets the answer of the first one.

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::ids::{SessionId, WallMs};

/// Answer to a request, as remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    /// HTTP status of the answer.
    pub status: u16,
    /// Headers of the answer (`location`, `etag`, `content-type`) and its body, as JSON text.
    pub text: String,
}

/// State of an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// The key was unknown; this request has taken it now.
    New,
    /// An equal request is being answered.
    InProgress,
    /// The key was used for a different request.
    Reused,
    /// The request was answered before, with this.
    Answered(StoredResponse),
}

/// Store that remembers answers for 24 hours.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait IdempotencyStore: Send + Sync {
    /// Takes a key for a request that `holder` answers. A key is taken again if its holder is fenced or gone, or if
    /// it was taken more than `stale_after_ms` ago and never answered.
    async fn take_key(
        &self,
        scope: &str,
        key: &str,
        fingerprint: &str,
        holder: Option<SessionId>,
        stale_after_ms: i64,
        now: WallMs,
    ) -> Result<KeyState, StoreError>;

    /// Records the answer of a taken key.
    async fn answer_key(&self, scope: &str, key: &str, answer: &StoredResponse) -> Result<(), StoreError>;

    /// Gives a taken key back unanswered, after a failure that another try may mend.
    async fn free_key(&self, scope: &str, key: &str) -> Result<(), StoreError>;

    /// Forgets keys older than a time, at most `limit`, and returns their number.
    async fn forget_keys(&self, before: WallMs, limit: u32) -> Result<u64, StoreError>;
}
