//! Retries at startup: if the database server restarts while a node starts, the node waits for it, whichever query it
//! leaves unanswered.

use std::time::Duration;

use tokio::time::Instant;

use crate::ports::{ErrorClass, STAYED_AWAY, StoreError};

/// Time for which each query at startup is repeated. The node waits as long for the first connection.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Delay between two tries.
const TRY_EVERY: Duration = Duration::from_millis(500);

/// Asks the store until it answers. `ask` must be safe to repeat: a lost answer may have been a yes.
///
/// # Errors
/// At once if another try can't help; after [`PATIENCE`] if the store stays unavailable.
pub async fn asked<T, F>(mut ask: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut asking = Asking::default();
    loop {
        if let Some(answer) = asking.heard(ask().await).await {
            return answer;
        }
    }
}

/// Query that is repeated until it is answered.
#[derive(Debug, Default)]
pub struct Asking {
    /// Time until which it is repeated; `None` before its first failure.
    end: Option<Instant>,
}

impl Asking {
    /// Returns the answer if it is the last one, or `None`, after a rest, if the query must be repeated.
    pub async fn heard<T>(&mut self, answer: Result<T, StoreError>) -> Option<Result<T, StoreError>> {
        let error = match answer {
            Err(error) if may_pass(&error) => error,
            answer => return Some(answer),
        };
        let seconds = PATIENCE.as_secs();
        if self.end.is_none() {
            tracing::warn!(
                %error,
                "database stopped responding during the start; retrying for {seconds} s"
            );
        }
        if Instant::now() >= *self.end.get_or_insert_with(|| Instant::now() + PATIENCE) {
            let text = format!("{STAYED_AWAY} for {seconds} s: {}", error.text());
            return Some(Err(StoreError::Unavailable(text)));
        }
        tokio::time::sleep(TRY_EVERY).await;
        None
    }
}

/// True if another try may help. Waiting mends neither a full disk nor a damaged file.
fn may_pass(error: &StoreError) -> bool {
    error.class() == ErrorClass::Transient && !error.is_full() && !error.is_damaged()
}
