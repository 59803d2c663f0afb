//! A start's patience with its store: a server that restarts while a node starts is waited for, whichever question it
//! leaves without an answer.

use std::time::Duration;

use tokio::time::Instant;

use crate::ports::{ErrorClass, STAYED_AWAY, StoreError};

/// How long each question of a start is asked again. The first connection is waited for as long.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The rest between two tries.
const TRY_EVERY: Duration = Duration::from_millis(500);

/// Asks the store until it answers. `ask` must bear repetition: an answer that was lost may have been a yes.
///
/// # Errors
/// At once where another try can't help. After [`PATIENCE`] that the store stayed away.
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

/// A question that is being asked.
#[derive(Debug, Default)]
pub struct Asking {
    /// Until when it is asked again; none before its first failure.
    end: Option<Instant>,
}

impl Asking {
    /// The answer, if it is the last one; none, after a rest, where the question is to be asked again.
    pub async fn heard<T>(&mut self, answer: Result<T, StoreError>) -> Option<Result<T, StoreError>> {
        let error = match answer {
            Err(error) if may_pass(&error) => error,
            answer => return Some(answer),
        };
        let seconds = PATIENCE.as_secs();
        if self.end.is_none() {
            tracing::warn!(
                %error,
                "the database stopped answering while the node starts; it is asked again for {seconds} s"
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

/// Time mends no full disk and no damaged file.
fn may_pass(error: &StoreError) -> bool {
    error.class() == ErrorClass::Transient && !error.is_full() && !error.is_damaged()
}
