//! Runs that are held back by a limit shared with others.

use crate::execution::Execution;
use crate::execution::types::{Effects, Now};
use crate::items::waiting::Place;
use crate::stats::stall::StallReason;

impl Execution {
    /// Sends nothing because of a shared limit, and notes whether anything could have been sent.
    pub(in crate::execution) fn hold_back(&mut self, now: Now, fx: &mut Effects) {
        if self.is_circuit_shut(now, fx) {
            return;
        }
        fx.held_by_limit = self.could_send_more(now);
        let reason = if fx.held_by_limit {
            Some(StallReason::Limit)
        } else {
            self.items.why_nothing_is_left(&self.settings)
        };
        self.stall(reason, now.moment);
        self.starved = true;
        fx.wait = self.when_to_ask_again(0, now);
    }

    /// True if another item could be sent without the shared limit.
    pub(in crate::execution) fn could_send_more(&mut self, now: Now) -> bool {
        if self.judge.circuit.room_for(1, self.batches.size(), now.moment) == 0 {
            return false;
        }
        let slots = self
            .settings
            .limits
            .concurrency
            .min(self.handler_slots.unwrap_or(u32::MAX));
        if self.items.counters.in_flight >= u64::from(slots) || self.pace.available(1, now.moment) == 0 {
            return false;
        }
        if self.steered_room(now.moment) == 0 || self.charged_room(now) == 0 {
            return false;
        }
        let places = [Place::Window, Place::Outside];
        if places.into_iter().any(|place| {
            self.items
                .retrying_items
                .next_due(place)
                .is_some_and(|due| due <= now.moment)
        }) {
            return true;
        }
        let waits_in_order = self.settings.tuning.ordered && !self.items.retrying_items.is_empty();
        !waits_in_order && (!self.items.again.is_empty() || self.items.cursor < self.items.fresh_limit())
    }
}
