//! Long work on blocking threads, cancelled when nobody waits for it any more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::fault::IndexError;
use super::open::IndexWatch;
use super::open_error::OpenSourceError;

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OpenSourceError> + Send + 'static,
) -> Result<T, OpenSourceError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        let error = IndexError::Unreadable(io::Error::other(error));
        Err(OpenSourceError::Index {
            name: "the source".to_owned(),
            error,
        })
    })
}

/// Guard that cancels a pass when its waiter is dropped.
pub(super) struct CancelOnDrop(Option<Arc<AtomicBool>>);

impl CancelOnDrop {
    pub(super) fn new(watch: &IndexWatch) -> CancelOnDrop {
        CancelOnDrop(Some(Arc::clone(&watch.cancel)))
    }

    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.store(true, Ordering::Relaxed);
        }
    }
}
