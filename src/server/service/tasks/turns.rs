//! One after the other, by task: for changes that touch more than the store.

use tokio::sync::{Mutex, MutexGuard};

use windrow_core::ids::TaskId;

/// Tasks that share a turn wait for each other needlessly; with so many turns that is rare.
const TURNS: usize = 64;

/// The turns of all tasks.
#[derive(Debug)]
pub(in crate::service) struct Turns(Vec<Mutex<()>>);

impl Default for Turns {
    fn default() -> Turns {
        Turns((0..TURNS).map(|_| Mutex::new(())).collect())
    }
}

impl Turns {
    /// Waits for the task's turn, which lasts until the guard is dropped.
    pub(super) async fn turn(&self, task: TaskId) -> MutexGuard<'_, ()> {
        let at = usize::try_from(task.0.rem_euclid(TURNS as i64)).unwrap_or_default();
        self.0[at].lock().await
    }
}
