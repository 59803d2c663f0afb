//! Room for items now: the smallest of all bounds, and the reason that binds.

use crate::execution::Execution;
use crate::execution::types::Now;
use crate::ids::Moment;
use crate::stats::stall::StallReason;

/// Number of items that may be sent, and the bound that applies.
pub(super) struct Room {
    pub(super) items: u32,
    pub(super) bound_by: Option<StallReason>,
}

impl Execution {
    /// Returns the smallest of what the pace, the slots and the unsaved completions allow.
    pub(super) fn room(&mut self, want: u32, now: Now) -> Room {
        let in_flight = u32::try_from(self.items.counters.in_flight).unwrap_or(u32::MAX);
        let slots = self.handler_slots.unwrap_or(u32::MAX);
        let concurrency = self.settings.limits.concurrency;
        let free = concurrency.min(slots).saturating_sub(in_flight);
        let unsaved_max = self.unsaved_max();
        let unsaved_room =
            u32::try_from(unsaved_max.saturating_sub(self.items.drafts.unsaved())).unwrap_or(u32::MAX);
        let bounds = [
            (
                free,
                if slots < concurrency {
                    StallReason::HandlerSlots
                } else {
                    StallReason::Concurrency
                },
            ),
            (unsaved_room, StallReason::Unsaved),
            (self.items.drafts.side_room(), StallReason::Checkpoint),
            (self.careful_room(in_flight), StallReason::BackPressure),
            (self.steered_room(now.moment), StallReason::Autopilot),
            (self.charged_room(now), StallReason::Usage),
            (
                if self.are_results_full { 0 } else { u32::MAX },
                StallReason::ResultsUnsaved,
            ),
        ];
        let (bound, reason) = bounds
            .into_iter()
            .min_by_key(|(items, _)| *items)
            .unwrap_or((free, StallReason::Concurrency));
        let paused = self.pace.paused(now.moment).is_some();
        let credit = self.pace.available(want.min(bound), now.moment);
        let bound_by = match (paused, bound < want && credit == bound) {
            (true, _) => Some(StallReason::BackPressure),
            (false, true) => Some(reason),
            (false, false) => None,
        };
        let (left, linger) = (self.items.left(), self.settings.tuning.batch_linger);
        let items = self.batches.whole(credit, left, linger, now.moment);
        Room {
            items: self
                .judge
                .circuit
                .room_for(items, self.batches.size(), now.moment),
            bound_by,
        }
    }

    /// Returns the items that may be sent after a pause that was cut short: one call at a time.
    fn careful_room(&self, in_flight: u32) -> u32 {
        match self.judge.pauses.is_careful() {
            true => self.batches.size().saturating_sub(in_flight),
            false => u32::MAX,
        }
    }

    /// Returns the items that the autopilot lets be sent now; it doesn't hold back the probes of a circuit.
    pub(in crate::execution) fn steered_room(&mut self, now: Moment) -> u32 {
        match self.judge.circuit.is_closed() {
            true => self
                .autopilot
                .room(self.tickets.out(), now)
                .saturating_mul(self.batches.size()),
            false => u32::MAX,
        }
    }

    /// Returns the items that limits in units let be sent now.
    pub(in crate::execution) fn charged_room(&mut self, now: Now) -> u32 {
        if !self.charges.is_on() {
            return u32::MAX;
        }
        let leave = self.charges.leave(now);
        self.charged_until = leave.until;
        leave.calls.saturating_mul(self.batches.size())
    }
}
