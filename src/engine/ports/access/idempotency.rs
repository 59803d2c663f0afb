//! Remembered answers: a request that is sent again with the same key gets the first one's answer.

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::ids::{SessionId, WallMs};

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers that belong to it (`location`, `etag`, `content-type`) and its body, as JSON text.
    pub text: String,
}

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// Nothing: it is taken by this request now.
    New,
    /// An equal request is being answered.
    InProgress,
    /// It was used for another request.
    Reused,
    /// It was answered.
    Answered(StoredResponse),
}

/// Remembers answers for 24 hours.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait IdempotencyStore: Send + Sync {
    /// Takes a key for a request, which `holder` answers. One whose holder is fenced or gone is taken again; so is one
    /// that was taken more than `stale_after_ms` ago and never answered.
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

    /// Gives a taken key back, unanswered: the request failed in a way that another try may mend.
    async fn free_key(&self, scope: &str, key: &str) -> Result<(), StoreError>;

    /// Forgets keys older than a time, at most `limit`, and says how many.
    async fn forget_keys(&self, before: WallMs, limit: u32) -> Result<u64, StoreError>;
}
