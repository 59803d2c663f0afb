//! Serialization by task, for changes that touch more than the store.

use tokio::sync::{Mutex, MutexGuard};

use windrow_core::ids::TaskId;

/// Number of locks. Tasks that share one wait for each other needlessly, which is rare with this many.
const TURNS: usize = 64;

/// Locks that serialize changes of each task.
#[derive(Debug)]
pub(in crate::service) struct Turns(Vec<Mutex<()>>);

impl Default for Turns {
    fn default() -> Turns {
        Turns((0..TURNS).map(|_| Mutex::new(())).collect())
    }
}

impl Turns {
    /// Waits for the task's lock and returns its guard.
    pub(super) async fn turn(&self, task: TaskId) -> MutexGuard<'_, ()> {
        let at = usize::try_from(task.0.rem_euclid(TURNS as i64)).unwrap_or_default();
        self.0[at].lock().await
    }
}
