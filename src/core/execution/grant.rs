//! What leaves now: due retries first (they hold low water), then parked and fresh items.

use super::Execution;
use super::failed::fresh_trouble;
use super::types::{Effects, Now, Phase, RunEnd, Wait};
use crate::ids::{Attempt, ItemIndex, Moment};
use crate::invariants::Invariant;
use crate::items::run::IndexRun;
use crate::items::verdict::Dispatch;
use crate::items::waiting::{Doing, Place, Trouble};
use crate::stats::stall::StallReason;

/// How much may leave, and what bounds it.
struct Room {
    items: u32,
    bound_by: Option<StallReason>,
}

impl Execution {
    /// Appends what may leave to `fx.dispatch`, at most `want` items, and says when to ask again.
    pub(super) fn grant(&mut self, want: u32, now: Now, fx: &mut Effects) {
        fx.paced = self.pace.is_limited();
        fx.concurrency = self.limits.concurrency;
        if self.end_if_over(fx) {
            return;
        }
        if self.is_held && want == 0 && matches!(self.phase, Phase::Running) {
            return self.hold_back(now, fx);
        }
        if !matches!(self.phase, Phase::Running) || want == 0 {
            let shut = matches!(self.phase, Phase::Running).then_some(StallReason::Trust);
            self.stall(shut, now.moment);
            fx.wait = Wait::Completion;
            return;
        }
        let look = self.judge_alone(now, fx);
        if self.end_if_over(fx) {
            return;
        }
        if matches!(self.phase, Phase::Running) {
            self.grant_running(want, now, fx);
        } else {
            fx.wait = Wait::Completion;
        }
        if fx.dispatch.is_empty() {
            Execution::wake_by(fx, look);
            Execution::wake_by(fx, self.judge.first_contact().filter(|until| *until > now.moment));
        }
    }

    fn grant_running(&mut self, want: u32, now: Now, fx: &mut Effects) {
        if self.is_circuit_shut(now, fx) || self.solo.is_on() && self.grant_solo(now, fx) {
            return;
        }
        self.evict_stragglers(now);
        let room = self.room(want, now);
        let granted = if room.items == 0 {
            0
        } else {
            self.grant_within(room.items, now, fx)
        };
        fx.held_by_limit = self.is_held && granted == want && self.could_send_more(now);
        let bound_by = if fx.held_by_limit {
            Some(StallReason::Limit)
        } else {
            room.bound_by
        };
        let reason = bound_by.filter(|_| granted >= room.items).or_else(|| {
            (granted < room.items)
                .then(|| self.why_nothing_is_left())
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

    /// What left must have had room: a crash now repeats at most what is in flight or unsaved.
    fn check_bounds(&self, fx: &mut Effects) {
        if self.counters.in_flight > u64::from(self.limits.concurrency) {
            fx.violations.push(Invariant::InFlightBounded);
        }
        if self.drafts.unsaved() > self.unsaved_max() {
            fx.violations.push(Invariant::UnsavedBounded);
        }
    }

    pub(super) fn end_if_over(&mut self, fx: &mut Effects) -> bool {
        fx.wake_lanes |= self.end_what_is_over();
        let over = matches!(self.phase, Phase::Ended(_));
        if over {
            fx.wait = Wait::Ended;
        }
        over
    }

    /// Ends the run when nothing is in flight and nothing will be; says whether it just did.
    pub(super) fn end_what_is_over(&mut self) -> bool {
        let end = match &self.phase {
            Phase::Stopping(end) => end.clone(),
            Phase::Running if self.is_all_settled() => RunEnd::Done,
            Phase::Running | Phase::Ended(_) => return false,
        };
        if self.counters.in_flight > 0 {
            return false;
        }
        // A stop that arrives with the last item finds a task that is done.
        let done = end != RunEnd::Fenced && self.is_all_settled();
        if done {
            self.circuit.end();
        }
        self.phase = Phase::Ended(if done { RunEnd::Done } else { end });
        self.pace.halt();
        self.unmark();
        true
    }

    fn is_all_settled(&self) -> bool {
        self.window.low_water() >= self.end && self.troubles.is_empty()
    }

    /// The smallest of what the pace, the slots and the unsaved completions allow.
    fn room(&mut self, want: u32, now: Now) -> Room {
        let in_flight = u32::try_from(self.counters.in_flight).unwrap_or(u32::MAX);
        let slots = self.handler_slots.unwrap_or(u32::MAX);
        let free = self.limits.concurrency.min(slots).saturating_sub(in_flight);
        let unsaved_max = self.unsaved_max();
        let unsaved_room =
            u32::try_from(unsaved_max.saturating_sub(self.drafts.unsaved())).unwrap_or(u32::MAX);
        let bounds = [
            (
                free,
                if slots < self.limits.concurrency {
                    StallReason::HandlerSlots
                } else {
                    StallReason::Concurrency
                },
            ),
            (unsaved_room, StallReason::Unsaved),
            (self.drafts.side_room(), StallReason::Checkpoint),
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
        let items = self.whole_batches(credit, now);
        Room {
            items: self.room_of_circuit(items, now),
            bound_by,
        }
    }

    /// Items leave in whole batches, unless they have waited `batch_linger` for the batch to fill.
    fn whole_batches(&mut self, credit: u32, now: Now) -> u32 {
        // More than the concurrency never comes together.
        let batch = self.tuning.batch.get().min(self.limits.concurrency);
        if batch == 1 || credit == 0 {
            return credit;
        }
        if credit >= batch {
            self.short_since = None;
            return credit - credit % batch;
        }
        let left = self.left();
        let since = *self.short_since.get_or_insert(now.moment);
        let waited = now.moment.since(since) >= self.tuning.batch_linger;
        if waited || u64::from(credit) >= left {
            self.short_since = None;
            return credit;
        }
        0
    }

    /// An upper bound on the items that may still leave, but for those that came back.
    pub(super) fn left(&self) -> u64 {
        self.fresh_end().0.saturating_sub(self.cursor.0) + self.troubles.len() as u64
    }

    fn grant_within(&mut self, room: u32, now: Now, fx: &mut Effects) -> u32 {
        if self.circuit.is_open() {
            return self.grant_probe(room, now, fx);
        }
        if !self.circuit.is_closed() {
            return self.grant_round(room, now, fx);
        }
        let mut granted = self.grant_due(Place::Window, room, now, fx);
        if self.tuning.ordered && !self.troubles.is_empty() {
            // Parked before the task became ordered, if at all.
            granted += self.grant_due(Place::Outside, room - granted, now, fx);
            return self.depart(granted, now.moment);
        }
        // At least a quarter of what is left goes to due parked items, the whole of it when nothing is fresh.
        let left = room - granted;
        let parked_first = left.div_ceil(4);
        granted += self.grant_due(Place::Outside, parked_first, now, fx);
        granted += self.grant_again(room - granted, fx);
        granted += self.grant_fresh(room - granted, fx);
        granted += self.grant_due(Place::Outside, room - granted, now, fx);
        self.depart(granted, now.moment)
    }

    pub(super) fn depart(&mut self, granted: u32, now: Moment) -> u32 {
        if !self.circuit.is_closed() && granted > 0 {
            self.circuit
                .on_sent(granted.div_ceil(self.tuning.batch.get()), now);
        }
        self.meters.on_sent(granted, self.pace.lateness(granted));
        self.pace.take(granted);
        self.counters.in_flight += u64::from(granted);
        granted
    }

    pub(super) fn grant_due(&mut self, place: Place, room: u32, now: Now, fx: &mut Effects) -> u32 {
        let mut granted = 0;
        while granted < room {
            let Some((index, attempts)) = self.troubles.pop_due(place, now.moment) else {
                break;
            };
            self.push_troubled(index, attempts, fx);
            granted += 1;
        }
        granted
    }

    pub(super) fn push_troubled(&mut self, index: ItemIndex, attempts: u32, fx: &mut Effects) {
        fx.dispatch.push(Dispatch {
            run: IndexRun::one(index),
            attempt: Attempt::new(attempts + 1),
        });
        if attempts > 0 {
            self.meters.on_repeat();
        }
    }

    pub(super) fn grant_again(&mut self, room: u32, fx: &mut Effects) -> u32 {
        let mut granted = 0;
        while let Some(left) = std::num::NonZeroU32::new(room - granted) {
            let Some(run) = self.again.pop_front() else { break };
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
    pub(super) fn grant_fresh(&mut self, room: u32, fx: &mut Effects) -> u32 {
        let mut granted = 0;
        let to = self.fresh_limit();
        while granted < room {
            let Some(run) = self.window.unsettled(self.cursor, to, room - granted) else {
                self.cursor = self.cursor.max(to.min(self.high));
                break;
            };
            let run = match self.untroubled(run) {
                Ok(run) => run,
                Err(troubled) => {
                    self.cursor = troubled.plus(1);
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

    /// The part of a run before its first troubled item; the item itself when it stands at the front.
    #[inline]
    fn untroubled(&self, run: IndexRun) -> Result<IndexRun, ItemIndex> {
        if run.first() >= self.high {
            return Ok(run);
        }
        match self.troubles.lowest_in(run) {
            None => Ok(run),
            Some(index) => IndexRun::new(run.first(), (index.0 - run.first().0) as u32).ok_or(index),
        }
    }

    /// Parks what has held a full window for `straggler_after` while slots are free, even in flight: everything
    /// unsettled in the window's lower half, since its upper half was dispatched later and is done.
    fn evict_stragglers(&mut self, now: Now) {
        let held = !self.tuning.ordered
            && self.circuit.is_closed()
            && self.cursor >= self.window.limit()
            && self.cursor < self.end
            && self.counters.in_flight < u64::from(self.limits.concurrency);
        if !held {
            self.full_since = None;
            return;
        }
        let since = *self.full_since.get_or_insert(now.moment);
        if now.moment.since(since) < self.tuning.straggler_after {
            return;
        }
        self.full_since = None;
        let half = self
            .window
            .low_water()
            .plus(u64::from(self.window.size() / 2).max(1));
        let mut from = self.window.low_water();
        while let Some(run) = self
            .window
            .unsettled(from, half, 1)
            .filter(|_| self.has_room_to_park())
        {
            from = run.end();
            self.evict(run.first(), now);
        }
    }

    fn evict(&mut self, index: ItemIndex, now: Now) {
        if self.again.iter().any(|run| run.contains(index)) {
            return;
        }
        if self.window.settle(IndexRun::one(index)).is_err() {
            return;
        }
        let fresh = || Trouble {
            doing: Doing::InFlight,
            ..fresh_trouble(now)
        };
        let mut trouble = self.troubles.take(index).unwrap_or_else(fresh);
        trouble.place = Place::Outside;
        self.drafts.on_completed(1);
        self.record(index, &trouble);
        self.troubles.put(index, trouble);
    }

    /// Why less left than there was room for.
    pub(super) fn why_nothing_is_left(&mut self) -> Option<StallReason> {
        if self.cursor >= self.end {
            let waits = self
                .troubles
                .next_due(Place::Window)
                .or_else(|| self.troubles.next_due(Place::Outside));
            return Some(if waits.is_some() {
                StallReason::RetryWait
            } else {
                StallReason::Tail
            });
        }
        if self.cursor >= self.fresh_end() {
            return Some(StallReason::Canary);
        }
        if self.tuning.ordered && !self.troubles.is_empty() {
            return Some(StallReason::RetryWait);
        }
        // Before the source: rows are read only a little beyond what the window lets out.
        if self.cursor >= self.window.limit() {
            let can_park = self.has_room_to_park();
            return Some(if can_park {
                StallReason::WindowFull
            } else {
                StallReason::ParkedFull
            });
        }
        if self.cursor >= self.source_ready {
            return Some(StallReason::SourceWait);
        }
        self.is_out_of_reach().then_some(StallReason::Checkpoint)
    }

    /// The earliest time at which something changes by itself; completions and events wake the lanes anyway.
    pub(super) fn when_to_ask_again(&mut self, room: u32, now: Now) -> Wait {
        let mut earliest: Option<Moment> = None;
        let mut consider = |moment: Moment| {
            if moment > now.moment {
                earliest = Some(earliest.map_or(moment, |e| e.min(moment)));
            }
        };
        if room == 0 && self.pace.is_limited() {
            let batch = self.tuning.batch.get();
            consider(self.pace.next_at(batch));
            if batch > 1 && self.short_since.is_none() {
                // A batch that never fills still leaves.
                consider(self.pace.next_at(1).plus(self.tuning.batch_linger));
            }
        }
        if let Some(paused) = self.pace.paused(now.moment) {
            consider(paused);
        }
        if let Some(since) = self.short_since {
            consider(since.plus(self.tuning.batch_linger).max(self.pace.next_at(1)));
        }
        if let Some(since) = self.full_since {
            consider(since.plus(self.tuning.straggler_after));
        }
        for place in [Place::Window, Place::Outside] {
            if let Some(due) = self.troubles.next_due(place) {
                consider(due.max(self.pace.next_at(1)));
            }
        }
        earliest.map_or(Wait::Completion, Wait::Until)
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
