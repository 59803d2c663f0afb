//! Maximum size of calls for fresh items: halved by calls that fail as a whole, doubled by answers.

use crate::ids::Moment;

/// Maximum size of calls for fresh items.
#[derive(Clone, Copy, Debug)]
pub(in crate::execution) struct CallSize {
    most: u32,
    halved_at: Moment,
}

impl CallSize {
    /// Starts with the full batch, or with one item if the handler may be down.
    pub(super) fn new(batch: u32, is_down: bool) -> CallSize {
        CallSize {
            most: if is_down { 1 } else { batch },
            halved_at: Moment(0),
        }
    }

    /// Returns the maximum items of a call.
    pub(in crate::execution) fn most(self) -> u32 {
        self.most
    }

    /// Limits calls for fresh items to one item, because the handler may be down.
    pub(super) fn on_down(&mut self) {
        self.most = 1;
    }

    /// Doubles the size of calls, because the handler answers.
    #[inline]
    pub(super) fn on_answered(&mut self, batch: u32) {
        if self.most < batch {
            self.most = self.most.saturating_mul(2).min(batch);
        }
    }

    /// Halves the size after a call of this many items failed as a whole. A call of fewer items than the current size
    /// says nothing new, nor does one that was sent before the last halving: calls that were out together halve it
    /// once.
    pub(super) fn on_shared_failure(&mut self, items: u32, departed: Moment, now: Moment) {
        if items >= self.most && departed >= self.halved_at {
            (self.most, self.halved_at) = ((self.most / 2).max(1), now);
        }
    }
}
