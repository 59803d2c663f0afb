//! Most items of a call for fresh items: halved by calls that fail as a whole, doubled by answers.

use crate::ids::Moment;

/// Size of calls for fresh items.
#[derive(Clone, Copy, Debug)]
pub(in crate::execution) struct CallSize {
    most: u32,
    halved_at: Moment,
}

impl CallSize {
    /// Calls as large as they may be; of one item where the handler may be down.
    pub(super) fn new(batch: u32, is_down: bool) -> CallSize {
        CallSize {
            most: if is_down { 1 } else { batch },
            halved_at: Moment(0),
        }
    }

    /// Most items of a call.
    pub(in crate::execution) fn most(self) -> u32 {
        self.most
    }

    /// Calls for fresh items have one: the handler may be down.
    pub(super) fn on_down(&mut self) {
        self.most = 1;
    }

    /// The handler answers: calls may be twice as large again.
    #[inline]
    pub(super) fn on_answered(&mut self, batch: u32) {
        if self.most < batch {
            self.most = self.most.saturating_mul(2).min(batch);
        }
    }

    /// A call of so many items failed as a whole. One of fewer than fresh items have now says nothing new, nor does one that
    /// left before they had so few: calls that were out together are halved once.
    pub(super) fn on_shared_failure(&mut self, items: u32, departed: Moment, now: Moment) {
        if items >= self.most && departed >= self.halved_at {
            (self.most, self.halved_at) = ((self.most / 2).max(1), now);
        }
    }
}
