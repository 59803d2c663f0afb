//! When nothing is left but items that failed without a verdict: the last ones of a task, the head of an ordered one, a redrive
//! of items that are all bad. No other item can show whether the handler answers.
//!
//! Items that also failed while others were answered have shown what they are: they are judged by their attempts. Else each
//! of them is called `max_attempts` times more, spread over `judge_after`; probes take longer. If nothing is answered in all that time, the
//! outage isn't believed any longer: attempts count, and who has used all of them is exhausted. A task of which no item
//! ever succeeded stops instead, unless `judge_after` is zero: then people have decided that it is the items.

use std::time::Duration;

use super::Execution;
use super::types::{Effects, Now};
use crate::domain::ids::{ItemIndex, Moment};
use crate::domain::verdict::Failure;
use crate::domain::waiting::{Doing, Trouble};

/// How often it is looked whether this is so: it walks all troubled items.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// While the circuit is open, and none of the items failed beside an answered one, an outage is likelier than that all of
/// them are bad: they are tried for so many times longer, two hours as configured.
const OUTAGE_FACTOR: u32 = 12;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Alone {
    since: Option<Moment>,
    looked: Moment,
    over: bool,
}

impl Alone {
    /// Whether an answered call would end it.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.since.is_some() || self.over
    }

    /// Whether the time of trying is over: nothing excuses a failed attempt.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Something was answered.
    pub(super) fn end(&mut self) {
        *self = Alone { looked: self.looked, ..Alone::default() };
    }
}

impl Execution {
    /// Looks whether only items without a verdict are left, and what follows; says when to look again.
    pub(super) fn judge_alone(&mut self, now: Now, fx: &mut Effects) -> Option<Moment> {
        let matters = self.troubles.held_first().is_some() || !self.judge.circuit.is_closed();
        if !matters || self.judge.alone.over {
            return None;
        }
        let next = self.judge.alone.looked.plus(LOOK_EVERY);
        if now.moment < next {
            return Some(next);
        }
        self.judge.alone.looked = now.moment;
        if !self.is_alone() {
            self.judge.alone.since = None;
            return Some(now.moment.plus(LOOK_EVERY));
        }
        let since = *self.judge.alone.since.get_or_insert(now.moment);
        if self.is_tried_enough(since, now) {
            self.give_up_alone(now, fx);
        } else {
            self.call_held(now);
        }
        Some(now.moment.plus(LOOK_EVERY))
    }

    /// Nothing fresh can leave, and every troubled item failed without a verdict.
    fn is_alone(&self) -> bool {
        let is_fresh_left = self.cursor < self.fresh_end() && self.cursor < self.window.limit();
        let may_leave = is_fresh_left && !self.tuning.ordered;
        if may_leave || !self.again.is_empty() || self.troubles.is_empty() {
            return false;
        }
        let in_flight = self.troubles.iter().filter(|(_, t)| t.doing == Doing::InFlight).count() as u64;
        in_flight == self.counters.in_flight && self.troubles.iter().all(|(_, t)| self.is_without_verdict(t))
    }

    fn is_without_verdict(&self, trouble: &Trouble) -> bool {
        let circuit = &self.judge.circuit;
        let in_outage = !circuit.is_closed() && trouble.outage == circuit.outages();
        in_outage || trouble.held.is_some() || !trouble.doubts.is_empty()
    }

    fn is_tried_enough(&self, since: Moment, now: Now) -> bool {
        let answered = self.judge.circuit.answered();
        // It also failed while others were answered: it has shown what it is.
        let is_proven = |t: &Trouble| t.doubts.iter().any(|departed| *departed <= answered);
        let proven = self.troubles.iter().filter(|(_, t)| is_proven(t)).count();
        if proven == self.troubles.len() && self.has_succeeded() {
            return true;
        }
        let (after, most) = (self.whole.judge_after, self.tuning.max_attempts.get());
        let waited = now.moment.since(since);
        if !self.judge.circuit.is_closed() {
            return waited >= if proven > 0 { after } else { after.saturating_mul(OUTAGE_FACTOR) };
        }
        let is_called = |t: &Trouble| t.held.is_some_and(|(_, calls)| calls >= most || after.is_zero());
        waited >= after && self.troubles.iter().all(|(_, t)| is_called(t))
    }

    /// Held items are due again, one by one over the whole span.
    fn call_held(&mut self, now: Now) {
        let step = self.whole.judge_after / self.tuning.max_attempts.get();
        let since = self.judge.alone.since.unwrap_or(now.moment);
        let is_due = |t: &Trouble| {
            t.held.is_some_and(|(_, calls)| now.moment >= since.plus(step.saturating_mul(calls)))
        };
        let held = self.troubles.held().filter(|index| self.troubles.get(*index).is_some_and(is_due));
        let due: Vec<ItemIndex> = held.collect();
        for index in due {
            if let Some(mut trouble) = self.troubles.take(index) {
                trouble.held = trouble.held.map(|(since, calls)| (since, calls + 1));
                trouble.doing = Doing::Waiting(now.moment);
                self.troubles.put(index, trouble);
            }
        }
    }

    /// How long until items without a verdict are judged without one.
    pub(super) fn judged_in(&self, now: Now) -> Option<Duration> {
        let since = self.judge.alone.since?;
        Some(since.plus(self.whole.judge_after).since(now.moment))
    }

    fn give_up_alone(&mut self, now: Now, fx: &mut Effects) {
        if !self.has_succeeded() && !self.whole.judge_after.is_zero() {
            let last = self.judge.errors.last().map(|error| Failure::new(error.code.clone(), &error.example));
            return self.stop_without_success(&last.unwrap_or_else(|| Failure::new("UNKNOWN", "nothing")));
        }
        self.believe_attempts(now, fx);
    }

    /// It is the items: no failed attempt is excused any more, until something is answered.
    pub(super) fn believe_attempts(&mut self, now: Now, fx: &mut Effects) {
        self.judge.alone.over = true;
        self.judge.circuit.give_up_waiting(now.moment);
        let held: Vec<ItemIndex> = self.troubles.held().collect();
        for index in held {
            self.give_up_held(index, now, fx);
        }
    }
}
