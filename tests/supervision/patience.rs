//! Waiting on the virtual clock until something is so.

use std::future::{Future, ready};
use std::time::Duration;

use tokio::time::Instant;

/// Longer than whatever a test awaits without saying how long.
pub const PATIENCE: Duration = Duration::from_secs(600);
/// How finely a limit is looked at.
const LOOKS: u32 = 60_000;

/// Looks again and again until there is something; none when the limit is over.
pub async fn within<T, F>(limit: Duration, mut look: impl FnMut() -> F) -> Option<T>
where
    F: Future<Output = Option<T>>,
{
    let begun = Instant::now();
    loop {
        let found = look().await;
        if found.is_some() || begun.elapsed() >= limit {
            return found;
        }
        // Tokio's clock knows no less.
        tokio::time::sleep((limit / LOOKS).max(Duration::from_millis(1))).await;
    }
}

/// Waits until this holds; false when the limit is over.
pub async fn holds_within(limit: Duration, holds: impl Fn() -> bool) -> bool {
    within(limit, || ready(holds().then_some(()))).await.is_some()
}
