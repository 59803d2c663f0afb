//! Waiting for the next publication of a dataset, with one shared poll of the store, and no polls while nobody waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use windrow_engine::ports::datasets::store::DatasetStore;

/// Time between two polls of a dataset.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Last known id and publication number of a dataset; `None` if it was deleted.
type Seen = Option<(i64, u64)>;

/// Datasets that clients are waiting for.
#[derive(Clone)]
pub(super) struct Watches {
    store: Arc<dyn DatasetStore>,
    watched: Arc<Mutex<HashMap<String, watch::Sender<Seen>>>>,
}

impl Watches {
    pub(super) fn new(store: Arc<dyn DatasetStore>) -> Watches {
        let watched = Arc::default();
        Watches { store, watched }
    }

    /// Waits until a dataset with the state `known` has a publication newer than `after`, is deleted, or is recreated
    /// under its name; for at most `patience`. Cancel safe.
    pub(super) async fn wait(&self, name: &str, known: (i64, u64), after: u64, patience: Duration) {
        let mut seen = self.listen(name, known);
        let (id, _) = known;
        let is_news = |seen: &Seen| seen.is_none_or(|(now, publication)| now != id || publication > after);
        // Event and timeout are treated alike: the caller reads the dataset again anyway.
        drop(tokio::time::timeout(patience, seen.wait_for(is_news)).await);
    }

    fn listen(&self, name: &str, known: (i64, u64)) -> watch::Receiver<Seen> {
        let mut watched = self.lock();
        if let Some(sender) = watched.get(name) {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(Some(known));
        watched.insert(name.to_owned(), sender);
        tokio::spawn(self.clone().look(name.to_owned()));
        receiver
    }

    /// Polls a dataset until nobody waits for it.
    async fn look(self, name: String) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if self.is_over(&name) {
                return;
            }
            match self.store.dataset(&name).await {
                Ok(found) => {
                    let seen = found.map(|dataset| (dataset.id, dataset.pointer.publication));
                    self.tell(&name, seen);
                }
                Err(error) => {
                    tracing::debug!(dataset = name, %error, "read of an awaited dataset failed")
                }
            }
        }
    }

    /// Stops watching a dataset without listeners. Holds the lock, so no new listener can appear meanwhile.
    fn is_over(&self, name: &str) -> bool {
        let mut watched = self.lock();
        let is_over = watched
            .get(name)
            .is_none_or(|sender| sender.receiver_count() == 0);
        if is_over {
            watched.remove(name);
        }
        is_over
    }

    fn tell(&self, name: &str, seen: Seen) {
        if let Some(sender) = self.lock().get(name) {
            sender.send_if_modified(|known| std::mem::replace(known, seen) != seen);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<Seen>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
