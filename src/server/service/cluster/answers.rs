//! Remembered answers of repeated requests.

use crate::service::{Service, ServiceError};
use windrow_engine::ports::access::idempotency::{Answer, KeyState};

impl Service {
    /// Takes a key for a request.
    ///
    /// # Errors
    /// When the store can't be written.
    pub async fn take_key(
        &self,
        scope: &str,
        key: &str,
        fingerprint: &str,
        stale_after_ms: i64,
    ) -> Result<KeyState, ServiceError> {
        Ok(self
            .parts
            .answers
            .take_key(scope, key, fingerprint, stale_after_ms, self.now())
            .await?)
    }

    /// Records the answer of a taken key.
    ///
    /// # Errors
    /// When the store can't be written.
    pub async fn answer_key(&self, scope: &str, key: &str, answer: &Answer) -> Result<(), ServiceError> {
        Ok(self.parts.answers.answer_key(scope, key, answer).await?)
    }

    /// Gives a taken key back, unanswered.
    ///
    /// # Errors
    /// When the store can't be written.
    pub async fn free_key(&self, scope: &str, key: &str) -> Result<(), ServiceError> {
        Ok(self.parts.answers.free_key(scope, key).await?)
    }
}
