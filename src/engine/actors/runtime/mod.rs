//! What the actors of a node share: their context, their policy of restarts, the tree as people see it.

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

/// Locks what is whole after every statement, so that a panic of another holder broke nothing.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a store answers, or that it did not answer in time: a connection that vanished without a word would be waited for
/// for long.
pub(crate) async fn in_time<T>(
    patience: Duration,
    who: Message,
    asked: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let late = |_| Err(StoreError::Unavailable(say::late(who).to_string()));
    tokio::time::timeout(patience, asked).await.unwrap_or_else(late)
}
