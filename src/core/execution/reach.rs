//! How far fresh items may leave: no further than the store was told before.
//!
//! What an owner that died had called since its last checkpoint, nobody knows. Each checkpoint therefore says ahead how
//! far fresh items may leave until the next one, and nothing leaves beyond it. An early finish after a crash leaves
//! out only what lies above: whatever may have been called is called again, and counted for what it comes to.
//!
//! The reach follows the speed, so that a finish after a crash calls little that was never called, and a store that is away
//! for some seconds holds nothing up: fifteen seconds of the rate; of a run without one, sixteen times what left between the
//! last two drafts. Half of it asks for a checkpoint, so that at an even speed the tick's come first, and a run that begins
//! has all it wants after a few.

use crate::execution::items::Items;
use std::time::Duration;

use super::Execution;
use super::types::{Phase, Restored};
use crate::ids::{INDEX_MAX, ItemIndex};

/// How many items beyond the saved high water may leave under a claim alone. Unit: items.
pub const REACH_OF_CLAIM: u64 = 100;
/// A run without a rate reaches so many times as far as the way between its last two drafts.
const AHEAD_OF_DRAFTS: u64 = 16;
/// So does one with a rate whose checkpoints are far apart: half of it must not come before the next one.
const AHEAD_OF_PACED_DRAFTS: u64 = 3;
/// A paced run reaches this far ahead at least: as long as a session is trusted without its store.
const AHEAD_OF_PACE: Duration = Duration::from_secs(15);

/// How far fresh items may leave, and may have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// This run's fresh items leave below it.
    pub may_leave: ItemIndex,
    /// What runs before this one may have sent lies below it.
    pub may_have_left: ItemIndex,
}

impl Default for Reach {
    /// Of a run whose progress nobody keeps: unbounded.
    fn default() -> Reach {
        Reach {
            may_leave: ItemIndex(u64::MAX),
            may_have_left: ItemIndex(0),
        }
    }
}

#[derive(Debug)]
pub(super) struct Ahead {
    stored: Reach,
    /// High water of the last draft.
    drafted_high: ItemIndex,
    /// High water at which a checkpoint is due.
    due_at: ItemIndex,
}

impl Ahead {
    pub(super) fn new(restored: &Restored, low: ItemIndex) -> Ahead {
        let (stored, high) = (restored.reach, restored.high_water.max(low));
        Ahead {
            stored,
            drafted_high: high,
            due_at: half_way(high, stored.may_leave),
        }
    }

    pub(super) fn on_stored(&mut self, reach: ItemIndex) {
        self.stored.may_leave = reach;
    }

    /// High water was raised by so many items that never left.
    pub(super) fn on_passed(&mut self, items: u64) {
        self.drafted_high = self.drafted_high.plus(items);
    }

    /// The draft that asked for more is lost: the next one is due at once, wherever the gate stands.
    pub(super) fn on_lost(&mut self, high: ItemIndex) {
        self.due_at = high;
    }
}

impl Execution {
    /// Tells whether half of what may leave before the next checkpoint has left.
    #[inline]
    pub(super) fn is_reach_due(&self) -> bool {
        self.items.high >= self.items.ahead.due_at
            && (self.items.ahead.stored.may_leave < self.items.end || self.items.supply.is_open())
            && self.phase == Phase::Running
    }

    /// The reach of a draft: of a run that sends nothing more, what may have left.
    pub(super) fn draft_reach(&mut self) -> ItemIndex {
        if self.phase != Phase::Running {
            return self.items.lowest_end();
        }
        let since = self.items.high.0 - self.items.ahead.drafted_high.0;
        let by_speed = match self.pace.rate() {
            Some(rate) => rate.items_in(AHEAD_OF_PACE).max(AHEAD_OF_PACED_DRAFTS * since),
            None => AHEAD_OF_DRAFTS * since,
        };
        let ahead = by_speed
            .max(u64::from(self.settings.limits.concurrency))
            .max(REACH_OF_CLAIM);
        let end = self.items.farthest_end();
        let reach = self.items.high.plus(ahead).min(end);
        let reach = reach.max(self.items.ahead.stored.may_leave.min(end));
        self.items.ahead.drafted_high = self.items.high;
        self.items.ahead.due_at = half_way(self.items.high, reach);
        reach.max(self.items.lowest_end())
    }
}

impl Items {
    /// One past the last index that may leave now, as far as the canary lets it.
    #[inline]
    pub(in crate::execution) fn fresh_end(&self) -> ItemIndex {
        self.canary.limit(self.end)
    }

    /// One past the last fresh index that may leave now.
    #[inline]
    pub(in crate::execution) fn fresh_limit(&self) -> ItemIndex {
        let open = self.window.limit().min(self.fresh_end()).min(self.source_ready);
        open.min(self.ahead.stored.may_leave)
    }

    /// Whether fresh items wait for a checkpoint.
    pub(in crate::execution) fn is_out_of_reach(&self) -> bool {
        self.cursor >= self.ahead.stored.may_leave
    }

    /// One past the last index that may ever leave. Of an open task nobody knows: what is added leaves without waiting for
    /// a checkpoint first.
    pub(in crate::execution) fn farthest_end(&self) -> ItemIndex {
        if self.supply.is_open() {
            ItemIndex(INDEX_MAX)
        } else {
            self.end
        }
    }

    /// The lowest end that leaves out nothing which may have been called.
    pub(in crate::execution) fn lowest_end(&self) -> ItemIndex {
        self.high.max(self.ahead.stored.may_have_left)
    }
}

fn half_way(from: ItemIndex, to: ItemIndex) -> ItemIndex {
    from.plus(to.0.saturating_sub(from.0) / 2)
}
