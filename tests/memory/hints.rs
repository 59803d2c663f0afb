//! Hints among nodes of one process. Stands in for Redis' channels: what is said while it is cut is lost.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::Notify;

use windrow_engine::ports::ownership::hints::{Hint, Hints};

/// What a node may have unheard; more is dropped.
const UNHEARD_MAX: usize = 1024;

/// What the nodes of a process have in common.
#[derive(Default)]
pub struct HintHub {
    ears: Mutex<Vec<Arc<Ear>>>,
    is_cut: AtomicBool,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Ear {
    unheard: Mutex<BTreeSet<Hint>>,
    arrived: Notify,
}

/// One node's part of a [`HintHub`]; it stops hearing when it is dropped.
pub struct MemoryHints {
    hub: Arc<HintHub>,
    ear: Arc<Ear>,
}

impl HintHub {
    /// Another node, which hears the others from now on.
    pub fn join(self: &Arc<Self>) -> Arc<MemoryHints> {
        let ear = Arc::<Ear>::default();
        lock(&self.ears).push(ear.clone());
        Arc::new(MemoryHints {
            hub: self.clone(),
            ear,
        })
    }

    /// Loses every hint from now on, or no more.
    pub fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::SeqCst);
    }

    /// Hints that were lost.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::SeqCst)
    }

    fn lose(&self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Hints for MemoryHints {
    fn send(&self, hint: Hint) {
        if self.hub.is_cut.load(Ordering::SeqCst) {
            return self.hub.lose();
        }
        for ear in lock(&self.hub.ears)
            .iter()
            .filter(|ear| !Arc::ptr_eq(ear, &self.ear))
        {
            let mut unheard = lock(&ear.unheard);
            if unheard.len() < UNHEARD_MAX {
                unheard.insert(hint);
                ear.arrived.notify_one();
            } else {
                self.hub.lose();
            }
        }
    }

    async fn heard(&self) -> Vec<Hint> {
        loop {
            let heard = std::mem::take(&mut *lock(&self.ear.unheard));
            if !heard.is_empty() {
                return heard.into_iter().collect();
            }
            self.ear.arrived.notified().await;
        }
    }
}

impl Drop for MemoryHints {
    fn drop(&mut self) {
        lock(&self.hub.ears).retain(|ear| !Arc::ptr_eq(ear, &self.ear));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
