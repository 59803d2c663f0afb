//! Dispatch horizon: fresh items are sent no further than a stored checkpoint allows.
//!
//! Nobody knows what a dead owner has called since its last checkpoint. Each checkpoint therefore records in advance
//! how far fresh items may be sent until the next one, and nothing is sent beyond it. An early finish after a crash
//! leaves out only what lies above: whatever may have been called is called again, and counted by its outcome.
//!
//! The horizon follows the speed, so that a finish after a crash calls few items that were never called, and a store
//! that is away for some seconds holds nothing up: fifteen seconds of the rate; for a run without one, sixteen times
//! what was sent between the last two drafts. Half of it requests a checkpoint, so that at an even speed the tick's
//! come first, and a new run has its full horizon after a few.

use crate::execution::items::Items;
use std::time::Duration;

use super::Execution;
use super::types::{Phase, Restored};
use crate::ids::{INDEX_MAX, ItemIndex};

/// Number of items beyond the saved high water that may be sent under a claim alone.
pub const HORIZON_OF_CLAIM: u64 = 100;
/// Horizon of a run without a rate, as a multiple of the distance between its last two drafts.
const AHEAD_OF_DRAFTS: u64 = 16;
/// Same for a run with a rate whose checkpoints are far apart: half of the horizon must not come before the next one.
const AHEAD_OF_PACED_DRAFTS: u64 = 3;
/// Minimum horizon of a paced run: as long as a session's lease is valid without its store.
const AHEAD_OF_PACE: Duration = Duration::from_secs(15);

/// Dispatch horizon of fresh items, for this run and for earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// Fresh items of this run are sent only below it.
    pub may_leave: ItemIndex,
    /// Everything that earlier runs may have sent lies below it.
    pub may_have_left: ItemIndex,
}

impl Default for Horizon {
    /// Unbounded, for a run whose progress is not kept.
    fn default() -> Horizon {
        Horizon {
            may_leave: ItemIndex(u64::MAX),
            may_have_left: ItemIndex(0),
        }
    }
}

#[derive(Debug)]
pub(super) struct Ahead {
    stored: Horizon,
    /// High water of the last draft.
    drafted_high: ItemIndex,
    /// High water at which a checkpoint is due.
    due_at: ItemIndex,
}

impl Ahead {
    pub(super) fn new(restored: &Restored, low: ItemIndex) -> Ahead {
        let (stored, high) = (restored.horizon, restored.high_water.max(low));
        Ahead {
            stored,
            drafted_high: high,
            due_at: half_way(high, stored.may_leave),
        }
    }

    pub(super) fn on_stored(&mut self, horizon: ItemIndex) {
        self.stored.may_leave = horizon;
    }

    /// Accounts for a high water raised by items that were never sent.
    pub(super) fn on_passed(&mut self, items: u64) {
        self.drafted_high = self.drafted_high.plus(items);
    }

    /// Makes the next draft due at once, wherever the horizon is, because the one that asked for more is lost.
    pub(super) fn on_lost(&mut self, high: ItemIndex) {
        self.due_at = high;
    }
}

impl Execution {
    /// True if half of what may be sent before the next checkpoint was sent.
    #[inline]
    pub(super) fn is_horizon_due(&self) -> bool {
        self.items.high >= self.items.ahead.due_at
            && (self.items.ahead.stored.may_leave < self.items.end || self.items.supply.is_open())
            && self.phase == Phase::Running
    }

    /// Returns the horizon for a draft; if the run sends nothing more, the bound on what may have been sent.
    pub(super) fn draft_horizon(&mut self) -> ItemIndex {
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
            .max(HORIZON_OF_CLAIM);
        let end = self.items.farthest_end();
        let horizon = self.items.high.plus(ahead).min(end);
        let horizon = horizon.max(self.items.ahead.stored.may_leave.min(end));
        self.items.ahead.drafted_high = self.items.high;
        self.items.ahead.due_at = half_way(self.items.high, horizon);
        horizon.max(self.items.lowest_end())
    }
}

impl Items {
    /// Returns one past the last index that may be sent now, as far as the canary allows.
    #[inline]
    pub(in crate::execution) fn fresh_end(&self) -> ItemIndex {
        self.canary.limit(self.end)
    }

    /// Returns one past the last fresh index that may be sent now.
    #[inline]
    pub(in crate::execution) fn fresh_limit(&self) -> ItemIndex {
        let open = self.window.limit().min(self.fresh_end()).min(self.source_ready);
        open.min(self.ahead.stored.may_leave)
    }

    /// True if fresh items wait for a checkpoint.
    pub(in crate::execution) fn is_out_of_reach(&self) -> bool {
        self.cursor >= self.ahead.stored.may_leave
    }

    /// Returns one past the last index that may ever be sent. For an open task that is unknown: added items are sent
    /// without waiting for a checkpoint first.
    pub(in crate::execution) fn farthest_end(&self) -> ItemIndex {
        if self.supply.is_open() {
            ItemIndex(INDEX_MAX)
        } else {
            self.end
        }
    }

    /// Returns the lowest end that leaves out nothing that may have been called.
    pub(in crate::execution) fn lowest_end(&self) -> ItemIndex {
        self.high.max(self.ahead.stored.may_have_left)
    }
}

fn half_way(from: ItemIndex, to: ItemIndex) -> ItemIndex {
    from.plus(to.0.saturating_sub(from.0) / 2)
}
