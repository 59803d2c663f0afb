//! Number of lines dropped on their way to the data log, until it is stored.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ports::handling::data_log::{DataLog, DropReason};
use windrow_core::ids::TaskId;

/// Dropped lines of each task. Touched only when a line is lost, never for one that is kept.
#[derive(Debug, Default)]
pub struct DroppedLines {
    waiting: Mutex<BTreeMap<TaskId, u64>>,
    total: AtomicU64,
}

impl DroppedLines {
    /// Counts lines of a task that were lost.
    pub fn add(&self, task: TaskId, lines: u64) {
        self.total.fetch_add(lines, Ordering::Relaxed);
        self.keep(task, lines);
    }

    /// Returns the number of all lost lines, stored or not.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// True if every number is stored.
    pub fn is_stored(&self) -> bool {
        self.lock().is_empty()
    }

    /// Stores the numbers; those that can't be stored wait for the next time.
    pub async fn store(&self, log: &dyn DataLog) {
        let waiting = std::mem::take(&mut *self.lock());
        for (task, lines) in waiting {
            if let Err(error) = log.count_dropped(task, DropReason::Queue, lines).await {
                tracing::debug!(%task, %error, "dropped lines not counted yet");
                self.keep(task, lines);
            }
        }
    }

    fn keep(&self, task: TaskId, lines: u64) {
        *self.lock().entry(task).or_default() += lines;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskId, u64>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
