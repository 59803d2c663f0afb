//! Dispatch while the handler may be down: one probe at a time, then small rounds.
//!
//! Probes alternate between a failed item, the next fresh one or one that never reached the handler, and one far
//! ahead: if neighbours are bad together, the one far ahead shows that the handler isn't down. A round prefers items
//! that haven't failed, because the failed ones may be bad.

use super::push_retry;
use crate::execution::Execution;
use crate::execution::judge::circuit::Room;
use crate::execution::types::{Effects, Now, Wait};
use crate::ids::Attempt;
use crate::items::run::IndexRun;
use crate::items::verdict::Dispatch;
use crate::items::waiting::{Doing, Place, RetryingItem};
use crate::stats::stall::StallReason;

impl Execution {
    /// Sets the number of items that fit into the handler; if it grew, a worker has started.
    pub(in crate::execution) fn on_slots(&mut self, slots: Option<u32>) {
        if let (Some(before), Some(now)) = (self.handler_slots, slots)
            && now > before
        {
            self.judge.circuit.on_news();
        }
        self.handler_slots = slots;
    }

    /// True if the circuit lets nothing through now; sets the time to ask again.
    pub(in crate::execution) fn is_circuit_shut(&mut self, now: Now, fx: &mut Effects) -> bool {
        fx.wait = match self.judge.circuit.room(now.moment) {
            Room::Unbounded | Room::Calls(_) => return false,
            Room::Until(moment) => Wait::Until(moment),
            Room::Completion => Wait::Completion,
        };
        self.starved = true;
        self.stall(Some(StallReason::HandlerDown), now.moment);
        true
    }

    /// Grants one call to test whether the handler is back; its items are of one kind.
    pub(in crate::execution) fn grant_probe(&mut self, room: u32, now: Now, fx: &mut Effects) -> u32 {
        let turn = self.judge.circuit.outage().map_or(0, |outage| outage.probes) % 3;
        let granted = (turn..turn + 3).find_map(|kind| {
            let granted = match kind % 3 {
                0 => self.grant_failed(room, fx),
                1 => self.grant_untried(room.min(1), fx),
                _ => self.grant_ahead(now, fx),
            };
            (granted > 0).then_some(granted)
        });
        self.depart(granted.unwrap_or(0), now.moment)
    }

    /// Grants failed items, due or not; otherwise those that are held.
    fn grant_failed(&mut self, room: u32, fx: &mut Effects) -> u32 {
        let mut granted = 0;
        while granted < room {
            let earliest = self.items.retrying_items.pop_earliest(Place::Window);
            let Some((index, attempts)) =
                earliest.or_else(|| self.items.retrying_items.pop_earliest(Place::Outside))
            else {
                break;
            };
            push_retry(&mut self.meters, index, attempts, fx);
            granted += 1;
        }
        granted
    }

    fn grant_untried(&mut self, room: u32, fx: &mut Effects) -> u32 {
        if self.settings.tuning.ordered && !self.items.retrying_items.is_empty() {
            return 0;
        }
        let mut granted = self.items.grant_again(room, fx);
        granted += self.items.grant_fresh(room - granted, fx);
        granted + self.grant_unreached(room - granted, fx)
    }

    /// Grants items whose calls never reached the handler, due or not: nothing is known against them.
    fn grant_unreached(&mut self, room: u32, fx: &mut Effects) -> u32 {
        if room == 0 {
            return 0;
        }
        let is_one = |t: &RetryingItem| {
            t.attempts == 0 && t.suspicion.turns.all == 0 && matches!(t.doing, Doing::Waiting(_))
        };
        let unreached = self.items.retrying_items.which(is_one);
        let mut granted = 0;
        for index in unreached.into_iter().take(room as usize) {
            if let Some(mut retrying) = self.items.retrying_items.take(index) {
                retrying.doing = Doing::InFlight;
                self.items.retrying_items.put(index, retrying);
                push_retry(&mut self.meters, index, 0, fx);
                granted += 1;
            }
        }
        granted
    }

    /// Grants the last item that the window, the source and the store allow. It is then tracked individually, so that
    /// it isn't sent again when the cursor reaches it.
    fn grant_ahead(&mut self, now: Now, fx: &mut Effects) -> u32 {
        let last = self.items.skips.last_below(self.items.fresh_limit());
        let Some(last) = last.filter(|last| *last > self.items.cursor) else {
            return 0;
        };
        let end = last.plus(1);
        let is_open = self.items.window.unsettled(last, end, 1) == Some(IndexRun::one(last));
        if self.settings.tuning.ordered || !is_open || self.items.retrying_items.get(last).is_some() {
            return 0;
        }
        self.items.high = self.items.high.max(end);
        let doing = Doing::InFlight;
        let retrying = RetryingItem {
            doing,
            ..RetryingItem::fresh(now.wall)
        };
        self.items.retrying_items.put(last, retrying);
        fx.dispatch.push(Dispatch {
            run: IndexRun::one(last),
            attempt: Attempt::FIRST,
        });
        self.judge.ahead = Some(last);
        1
    }

    /// Grants a round after an outage, or when only failed items were called, which can't show the state of the
    /// handler.
    pub(in crate::execution) fn grant_round(&mut self, room: u32, now: Now, fx: &mut Effects) -> u32 {
        let mut granted = self.grant_untried(room, fx);
        granted += self.grant_due(Place::Window, room - granted, now, fx);
        granted += self.grant_due(Place::Outside, room - granted, now, fx);
        self.depart(granted, now.moment)
    }
}
