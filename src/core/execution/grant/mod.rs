//! Dispatch order: due retries first (they hold the watermark), then parked and fresh items.

mod batches;
mod held;
mod probe;
mod room;
mod stragglers;
mod waits;

pub(super) use batches::Batches;
pub(super) use stragglers::Stragglers;

use room::Room;

use super::Execution;
use super::picture::meters::Meters;
use super::types::{Effects, Now, Phase, RunEnd, Wait};
use crate::execution::items::Items;
use crate::ids::{Attempt, ItemIndex, Moment};
use crate::invariants::Invariant;
use crate::items::run::IndexRun;
use crate::items::verdict::Dispatch;
use crate::items::waiting::{Place, RetryingItem};
use crate::stats::stall::StallReason;

impl Execution {
    /// Appends the items to send to `fx.dispatch`, at most `want`, and sets the time to ask again.
    pub(in crate::execution) fn grant(&mut self, want: u32, now: Now, fx: &mut Effects) {
        fx.paced = self.pace.is_limited();
        fx.concurrency = self.settings.items_in_flight_max();
        if self.end_if_over(fx) {
            return;
        }
        if self.is_held && want == 0 && matches!(self.phase, Phase::Running) {
            return self.hold_back(now, fx);
        }
        if !matches!(self.phase, Phase::Running) || want == 0 {
            let shut = matches!(self.phase, Phase::Running).then_some(StallReason::Lease);
            self.stall(shut, now.moment);
            fx.wait = Wait::Completion;
            return;
        }
        let look = self.judge.judge_alone(&mut scope!(self, now, fx));
        self.obey_judge();
        self.judge_canary();
        self.judge_charges();
        if self.end_if_over(fx) {
            return;
        }
        if matches!(self.phase, Phase::Running) {
            self.grant_running(want, now, fx);
        } else {
            fx.wait = Wait::Completion;
        }
        self.hand_out(fx);
        if fx.dispatch.is_empty() {
            waits::wake_by(fx, look);
            waits::wake_by(fx, self.judge.first_contact().filter(|until| *until > now.moment));
        }
    }

    fn grant_running(&mut self, want: u32, now: Now, fx: &mut Effects) {
        if self.items.skips.is_due() {
            // Nothing is sent while items that must be skipped still wait.
            (self.starved, fx.wait) = (true, Wait::Completion);
            return self.stall(Some(StallReason::Checkpoint), now.moment);
        }
        if self.is_circuit_shut(now, fx) || self.items.solo.is_on() && self.grant_solo(now, fx) {
            return;
        }
        self.evict_stragglers(now);
        let was_of_parked = self.batches.was_of_parked();
        let (mut granted, mut room) = self.grant_calls(want, now, fx);
        if granted == 0 && was_of_parked {
            // Parked halves gave way, but nothing else can be sent.
            (granted, room) = self.grant_calls(want, now, fx);
        }
        fx.held_by_limit = self.is_held && granted == want && self.could_send_more(now);
        let bound_by = if fx.held_by_limit {
            Some(StallReason::Limit)
        } else {
            room.bound_by
        };
        let reason = bound_by.filter(|_| granted >= room.items).or_else(|| {
            (granted < room.items)
                .then(|| self.items.why_nothing_is_left(&self.settings))
                .flatten()
        });
        self.stall(reason, now.moment);
        if granted > 0 {
            self.check_bounds(fx);
        } else {
            self.starved = true;
            fx.wait = self.when_to_ask_again(room.items, now);
        }
    }

    /// Grants items for calls of one size; returns their number and the bound that applied.
    fn grant_calls(&mut self, want: u32, now: Now, fx: &mut Effects) -> (u32, Room) {
        let is_of_halves = self.size_calls(now);
        fx.call_items = self.batches.size();
        let room = self.room(want, now);
        let granted = match (room.items, is_of_halves) {
            (0, _) => 0,
            (items, true) => self.grant_halves(items, now, fx),
            (items, false) => self.grant_within(items, now, fx),
        };
        (granted, room)
    }

    /// Checks the bounds after a grant: a crash now repeats at most what is in flight or unsaved.
    fn check_bounds(&self, fx: &mut Effects) {
        if self.items.counters.in_flight > u64::from(self.settings.limits.concurrency) {
            fx.violations.push(Invariant::InFlightBounded);
        }
        if self.items.drafts.unsaved() > self.unsaved_max() {
            fx.violations.push(Invariant::UnsavedBounded);
        }
    }

    pub(in crate::execution) fn end_if_over(&mut self, fx: &mut Effects) -> bool {
        fx.wake_lanes |= self.end_what_is_over();
        let over = matches!(self.phase, Phase::Ended(_));
        if over {
            fx.wait = Wait::Ended;
        }
        over
    }

    /// Ends the run when nothing is in flight and nothing will be; returns true if it just did.
    pub(in crate::execution) fn end_what_is_over(&mut self) -> bool {
        let end = match &self.phase {
            Phase::Stopping(end) => end.clone(),
            Phase::Running if self.items.is_all_settled() => RunEnd::Done,
            Phase::Running | Phase::Ended(_) => return false,
        };
        if self.items.counters.in_flight > 0 {
            return false;
        }
        // A stop that arrives with the last item finds the task done.
        let done = end != RunEnd::Fenced && self.items.is_all_settled();
        if done {
            self.judge.circuit.end();
        }
        self.phase = Phase::Ended(if done { RunEnd::Done } else { end });
        self.pace.halt();
        self.items.unmark();
        true
    }

    fn grant_within(&mut self, room: u32, now: Now, fx: &mut Effects) -> u32 {
        if self.judge.circuit.is_open() {
            return self.grant_probe(room, now, fx);
        }
        if !self.judge.circuit.is_closed() || self.judge.wants_fresh() {
            return self.grant_round(room, now, fx);
        }
        let mut granted = self.grant_due(Place::Window, room, now, fx);
        if self.settings.tuning.ordered && !self.items.retrying_items.is_empty() {
            // Items parked before the task became ordered, if any.
            granted += self.grant_due(Place::Outside, room - granted, now, fx);
            return self.depart(granted, now.moment);
        }
        // A quarter of the remaining room goes to due parked items first, all of it when nothing is fresh. Quarters
        // add up over time: if one item is sent at a time, parked items that fail forever would otherwise block all
        // fresh ones.
        let quarters = u64::from(room - granted) + self.items.parked_quarters;
        self.items.parked_quarters = quarters % 4;
        let parked_first = (quarters / 4) as u32;
        granted += self.grant_due(Place::Outside, parked_first, now, fx);
        granted += self.items.grant_again(room - granted, fx);
        granted += self.items.grant_fresh(room - granted, fx);
        granted += self.grant_due(Place::Outside, room - granted, now, fx);
        self.depart(granted, now.moment)
    }

    /// Grants due items of calls that failed as a whole, of one size.
    fn grant_halves(&mut self, room: u32, now: Now, fx: &mut Effects) -> u32 {
        let mut granted = self.grant_due(Place::Window, room, now, fx);
        granted += self.grant_due(Place::Outside, room - granted, now, fx);
        self.depart(granted, now.moment)
    }

    pub(in crate::execution) fn depart(&mut self, granted: u32, now: Moment) -> u32 {
        if !self.judge.circuit.is_closed() && granted > 0 {
            self.judge.circuit.on_sent(self.batches.calls_of(granted), now);
        }
        self.meters.on_sent(granted, self.pace.lateness(granted));
        self.pace.take(granted);
        self.give_tickets(self.batches.calls_of(granted), now);
        self.items.counters.in_flight += u64::from(granted);
        granted
    }

    /// Grants due items that may share a call of this grant's size.
    pub(in crate::execution) fn grant_due(
        &mut self,
        place: Place,
        room: u32,
        now: Now,
        fx: &mut Effects,
    ) -> u32 {
        let mut granted = 0;
        let size = self.batches.size();
        let may_share = |retrying: &RetryingItem| retrying.call_max == 0 || retrying.call_max >= size;
        while granted < room
            && self
                .items
                .retrying_items
                .first_due(place, now.moment)
                .is_some_and(may_share)
        {
            let Some((index, attempts)) = self.items.retrying_items.pop_due(place, now.moment) else {
                break;
            };
            push_retry(&mut self.meters, index, attempts, fx);
            granted += 1;
        }
        granted
    }
}

impl Items {
    pub(in crate::execution) fn is_all_settled(&self) -> bool {
        !self.supply.is_open() && self.is_out_of_items()
    }

    /// Returns an upper bound on the items that may still be sent, without those that came back.
    pub(in crate::execution) fn left(&self) -> u64 {
        let (from, to) = (self.cursor, self.fresh_end());
        let fresh = to.0.saturating_sub(from.0) - self.skips.among(from, to);
        fresh + self.retrying_items.len() as u64
    }

    pub(in crate::execution) fn grant_again(&mut self, room: u32, fx: &mut Effects) -> u32 {
        let mut granted = 0;
        while let Some(left) = std::num::NonZeroU32::new(room - granted) {
            let Some(run) = self.again.pop_front() else {
                break;
            };
            let (now, later) = run.split(left);
            if let Some(later) = later {
                self.again.push_front(later);
            }
            push_fresh(fx, now);
            granted += now.len();
        }
        granted
    }

    #[inline]
    pub(in crate::execution) fn grant_fresh(&mut self, room: u32, fx: &mut Effects) -> u32 {
        if !self.skips.is_wanted() {
            return self.grant_fresh_below(self.fresh_limit(), room, fx);
        }
        let mut granted = 0;
        loop {
            self.pass_over(fx);
            let from = self.cursor;
            let to = self.skips.limit(from, self.fresh_limit());
            granted += self.grant_fresh_below(to, room - granted, fx);
            if granted >= room || self.cursor == from {
                return granted;
            }
        }
    }

    #[inline]
    pub(in crate::execution) fn grant_fresh_below(
        &mut self,
        to: ItemIndex,
        room: u32,
        fx: &mut Effects,
    ) -> u32 {
        let mut granted = 0;
        while granted < room {
            // Nothing beyond the high water was ever dispatched, so nothing there is settled.
            let run = if self.cursor >= self.high {
                let len = to.0.saturating_sub(self.cursor.0).min(u64::from(room - granted));
                IndexRun::new(self.cursor, len as u32)
            } else {
                self.window.unsettled(self.cursor, to, room - granted)
            };
            let Some(run) = run else {
                self.cursor = self.cursor.max(to.min(self.high));
                break;
            };
            let run = match self.before_retrying(run) {
                Ok(run) => run,
                Err(retrying) => {
                    self.cursor = retrying.plus(1);
                    continue;
                }
            };
            self.cursor = run.end();
            self.high = self.high.max(self.cursor);
            push_fresh(fx, run);
            granted += run.len();
        }
        granted
    }

    /// Returns the part of a run before its first retrying item, or that item as an error if it is at the front.
    #[inline]
    pub(in crate::execution) fn before_retrying(&self, run: IndexRun) -> Result<IndexRun, ItemIndex> {
        if run.first() >= self.high {
            return Ok(run);
        }
        match self.retrying_items.lowest_in(run) {
            None => Ok(run),
            Some(index) => IndexRun::new(run.first(), (index.0 - run.first().0) as u32).ok_or(index),
        }
    }
}

#[inline]
fn push_fresh(fx: &mut Effects, run: IndexRun) {
    if let Some(last) = fx.dispatch.last_mut()
        && last.attempt == Attempt::FIRST
        && last.run.try_extend(run)
    {
        return;
    }
    fx.dispatch.push(Dispatch {
        run,
        attempt: Attempt::FIRST,
    });
}

fn push_retry(meters: &mut Meters, index: ItemIndex, attempts: u32, fx: &mut Effects) {
    fx.dispatch.push(Dispatch {
        run: IndexRun::one(index),
        attempt: Attempt::new(attempts + 1),
    });
    if attempts > 0 {
        meters.on_repeat();
    }
}
