//! Lives that did nothing: the number after which the command itself is unusable.

use super::{FAILED_LIVES_MAX, Pool, State};
use windrow_core::items::verdict::Failure;

impl Pool {
    /// Records that a worker used up its startup timeout. Unless another one has answered before, that says as much
    /// about the command as several starts that failed at once.
    pub(in crate::command) fn on_late_start(&self) {
        self.change(|state| {
            if !state.has_answered {
                state.failed_starts = state.failed_starts.max(FAILED_LIVES_MAX - 1);
            }
        });
    }
}

impl State {
    pub(super) fn on_futile_life(&mut self, without_items: bool, why: &Failure) {
        if !without_items {
            self.mute_lives += 1;
            return;
        }
        self.failed_starts += 1;
        if self.failed_starts >= FAILED_LIVES_MAX && self.workers.iter().all(Option::is_none) {
            self.broken = Some(why.clone());
        }
    }
}
