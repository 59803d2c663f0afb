//! Long work on threads for such work, which ends when nobody waits for it any more.

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

/// Ends a pass when whoever waits for it goes away.
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
