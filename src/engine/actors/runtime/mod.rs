//! Shared parts of a node's actors: their context, their restart policy, the tree as shown to people.

use windrow_words::{Message, engine as say};
pub(crate) mod actor;
pub(crate) mod address;
pub mod begin;
pub mod context;
pub mod handle;
pub mod new_ids;
pub mod policy;
pub(crate) mod routes;
pub mod tree;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ports::StoreError;

/// Locks data that is consistent after every statement, so that a panic of another holder broke nothing.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the answer of a store, or an error if it is late: a connection that vanished silently would otherwise
/// block for long.
pub(crate) async fn in_time<T>(
    patience: Duration,
    who: Message,
    asked: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let late = |_| Err(StoreError::Unavailable(say::late(who).to_string()));
    tokio::time::timeout(patience, asked).await.unwrap_or_else(late)
}
