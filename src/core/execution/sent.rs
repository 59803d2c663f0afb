//! What left and what came back, in items: the part of `Permits` that the pace can't know.

use super::Execution;
use crate::ids::Moment;
use crate::stats::permits::{MICRO, Permits};
use crate::stats::stall::StallReason;

/// See the module. Unit: items since the run began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    /// What left and didn't come back unused.
    pub(super) all: u64,
    /// Of these, attempts beyond the first of their item.
    pub(super) repeats: u64,
    /// What came back unused.
    pub(super) returned: u64,
    /// What a busy handler turned away.
    pub(super) refused: u64,
}

impl Sent {
    /// `items` came back, so many `repeats` among them.
    pub(super) fn take_back(&mut self, items: u64, repeats: u64) {
        self.all = self.all.saturating_sub(items);
        self.repeats = self.repeats.saturating_sub(repeats);
        self.returned += items;
    }
}

impl Execution {
    /// From `now` on this is why nothing leaves; what is lost from here on is lost for this reason.
    #[inline]
    pub(super) fn stall(&mut self, reason: Option<StallReason>, now: Moment) {
        if self.stalls.current() != reason {
            self.pace.blame(reason, now);
            self.stalls.on(reason, now);
        }
    }

    /// What became of every permit since the run began.
    pub(super) fn permits(&self, now: Moment) -> Permits {
        let sent = &self.sent;
        let mut permits = self.pace.permits(now);
        permits.first = sent.all.saturating_sub(sent.repeats).saturating_mul(MICRO);
        permits.repeats = sent.repeats.saturating_mul(MICRO);
        permits.returned = sent.returned.saturating_mul(MICRO);
        let turned_away = &mut permits.lost[StallReason::BackPressure as usize];
        *turned_away = turned_away.saturating_add(sent.refused.saturating_mul(MICRO));
        permits
    }
}
