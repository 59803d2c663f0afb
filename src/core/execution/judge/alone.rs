//! When nothing is left but items that failed without a verdict: the last ones of a task, the head of an ordered one, a redrive
//! of items that are all bad. No other item can show whether the handler answers.
//!
//! Items that also failed while others were answered have shown what they are: they are judged by their attempts. Else each
//! of them is called `max_attempts` times more, spread over `judge_after`. If nothing is answered in all that time, the
//! outage isn't believed any longer: attempts count, and who has used all of them is exhausted. A task of which no item
//! ever succeeded stops instead, unless `judge_after` is zero: then people have decided that it is the items.
//!
//! Items that brought 502 or 503 are among them where most of them have shown that it is them (`unavailable`). Where the last ones
//! have shown what they are, no outage is told or saved.
//!
//! Where calls leave in order, every failing item looks like an outage, and every outage like a failing item. So it is called
//! as often as a probe is sent, and the first one is tried for as long as an outage is believed. Where nothing is
//! answered after it was given up either, it was an outage: no further one is given up. Where the next one is answered, the
//! task has such items: from then on `judge_after` will do.

use crate::execution::items::Items;
use std::time::Duration;

use super::circuit::pause::PROBE_LONGEST;
use crate::execution::Execution;
use crate::execution::types::{Effects, Now};
use crate::ids::{ItemIndex, Moment};
use crate::items::verdict::Failure;
use crate::items::waiting::{Doing, Trouble};

/// How often it is looked whether this is so: it walks all retrying items.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The last items are told after so long: most of them are over by then.
const TOLD_AFTER: Duration = Duration::from_secs(15);

/// While the circuit is open or calls leave in order, and none of the items failed beside an answered one, an outage is
/// likelier than that all of them are bad: they are tried for so many times longer, two hours as configured.
const OUTAGE_FACTOR: u32 = 12;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alone {
    since: Option<Moment>,
    looked: Moment,
    over: bool,
    /// Whether some of the items are there because of 502 or 503 …
    unavailable: bool,
    /// … and most of those have shown that it is them.
    shown: bool,
    /// How many are left of which only people can say that it is them.
    unjudged: usize,
    /// Whether the last of their calls couldn't be made at all, or failed in another way than before: then it is likelier that
    /// nobody is there.
    contradicted: bool,
    /// Whether one also failed while others were answered, or most did before this run, outside an outage.
    proven: bool,
    in_order: InOrder,
}

/// What became of the items that were given up without a verdict where calls leave in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum InOrder {
    /// There was none.
    #[default]
    Unknown,
    /// Nothing was answered since.
    GivenUp,
    /// The next call was answered: it was the item.
    Confirmed,
}

impl Alone {
    /// Whether an answered call would end it.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.since.is_some() || self.over || self.in_order == InOrder::GivenUp
    }

    /// Whether the time of trying is over: nothing excuses a failed attempt.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// A call couldn't be made at all: that is an outage, and the wait begins anew after it.
    pub(super) fn on_unreachable(&mut self, now: Moment) {
        if self.since.is_some() || self.over {
            (self.since, self.over, self.contradicted) = (Some(now), false, true);
        }
    }

    /// A call failed: as before, or oddly, which speaks for an outage.
    pub(super) fn on_failed(&mut self, is_odd: bool) {
        self.contradicted = self.since.is_some() && is_odd;
    }

    /// Whether it is likely that the items that are left cause it, and not that nobody is there.
    pub(super) fn is_of_items(&self) -> bool {
        self.since.is_some() && self.proven
    }

    /// Whether some of the items are there because of 502 or 503, by calls of their own.
    pub(super) fn has_unavailable(&self) -> bool {
        self.unavailable
    }

    /// Whether the time of trying is over for 502 and 503 too.
    pub(super) fn charges_unavailable(&self) -> bool {
        self.over && self.unavailable
    }

    pub(super) fn end(&mut self) {
        let in_order = match self.in_order {
            InOrder::Unknown => InOrder::Unknown,
            InOrder::GivenUp | InOrder::Confirmed => InOrder::Confirmed,
        };
        *self = Alone {
            looked: self.looked,
            in_order,
            ..Alone::default()
        };
    }

    /// An item was given up where calls leave in order: the next one is tried anew.
    pub(super) fn on_given_up_in_order(&mut self) {
        (self.since, self.over) = (None, false);
        if self.in_order == InOrder::Unknown {
            self.in_order = InOrder::GivenUp;
        }
    }
}

impl Execution {
    /// Looks whether only items without a verdict are left, and what follows; says when to look again.
    pub(in crate::execution) fn judge_alone(&mut self, now: Now, fx: &mut Effects) -> Option<Moment> {
        let is_tail = !self.items.troubles.is_empty() && !self.items.is_fresh_left();
        let matters =
            is_tail || self.items.troubles.held_first().is_some() || !self.judge.circuit.is_closed();
        if !matters || self.judge.alone.over {
            return None;
        }
        let next = self.judge.alone.looked.plus(LOOK_EVERY);
        if now.moment < next {
            return Some(next);
        }
        self.judge.alone.looked = now.moment;
        if !self.is_alone() {
            self.judge.alone = Alone {
                since: None,
                unavailable: false,
                shown: false,
                proven: false,
                contradicted: false,
                ..self.judge.alone
            };
            return Some(now.moment.plus(LOOK_EVERY));
        }
        let since = *self.judge.alone.since.get_or_insert(now.moment);
        if self.is_tried_enough(since, now) {
            self.give_up_alone(now, fx);
        } else {
            self.call_alone(now);
        }
        Some(now.moment.plus(LOOK_EVERY))
    }

    /// Nothing can leave that never failed, so nothing is likely to show whether the handler answers.
    fn is_alone(&mut self) -> bool {
        let may_leave = self.items.is_fresh_left() && !self.settings.tuning.ordered;
        self.judge.alone.unjudged = 0;
        if may_leave || !self.items.again.is_empty() || self.items.troubles.is_empty() {
            return false;
        }
        let in_flight = self.items.troubles.which(|t| t.doing == Doing::InFlight).len() as u64;
        // What shared its last call is told from others in calls of its own first.
        let failed = self
            .items
            .troubles
            .iter()
            .all(|(_, t)| t.attempts > 0 && t.call_max <= 1);
        in_flight == self.items.counters.in_flight && failed && self.may_judge_unavailable()
    }

    /// Where 502 and 503 keep most of them here, most of those must have shown that it is them, or people have decided so: else
    /// the handler isn't there, however long it takes.
    fn may_judge_unavailable(&mut self) -> bool {
        let unavailable = self.items.troubles.which(Trouble::is_unavailable);
        let has_succeeded = self.items.has_succeeded();
        let shown = self.settings.is_decided() && has_succeeded || self.are_mostly_suspects(&unavailable);
        let may = shown || unavailable.len() * 2 < self.items.troubles.len();
        let alone = &mut self.judge.alone;
        alone.unavailable = !unavailable.is_empty();
        alone.shown = alone.unavailable && shown && !alone.contradicted;
        alone.unjudged = if may || !has_succeeded {
            0
        } else {
            unavailable.len()
        };
        may
    }

    /// Whether an earlier run saw it fail, outside an outage and beside others that succeeded.
    pub(super) fn is_known_to_fail(&self, trouble: &Trouble) -> bool {
        let says_so = !self.judge.began_down
            && !self.settings.tuning.ordered
            && self.settings.tuning.batch.get() == 1
            && self.items.has_succeeded();
        says_so && trouble.is_restored()
    }

    fn is_tried_enough(&mut self, since: Moment, now: Now) -> bool {
        let (answered, most) = (
            self.judge.circuit.answered(),
            self.settings.tuning.max_attempts.get(),
        );
        // It also failed while others were answered: it has shown what it is.
        let is_proven = |t: &Trouble| t.doubts.iter().any(|departed| *departed <= answered);
        let proven = self.items.troubles.which(is_proven).len();
        let known = self.items.troubles.which(|t| self.is_known_to_fail(t)).len();
        let is_proven = proven > 0 || known * 2 > self.items.troubles.len();
        let alone = &mut self.judge.alone;
        alone.proven = alone.shown || is_proven && !alone.contradicted;
        if proven == self.items.troubles.len() && !alone.contradicted && self.items.has_succeeded() {
            return true;
        }
        let Some(span) = self.judged_after() else {
            return false;
        };
        let is_called = |t: &Trouble| {
            let held = t.held.map_or(0, |(_, calls)| calls);
            held.max(t.uncharged) >= most || span.is_zero()
        };
        let is_enough =
            !self.judge.circuit.is_closed() || self.items.troubles.iter().all(|(_, t)| is_called(t));
        now.moment.since(since) >= span && is_enough
    }

    /// How long items are tried before their attempts count; none for as long as it takes.
    fn judged_after(&self) -> Option<Duration> {
        let (after, in_order) = (self.judge_after(), self.judge.alone.in_order);
        if after.is_zero() || self.judge.alone.proven {
            return Some(after);
        }
        match (
            self.settings.tuning.ordered && self.items.has_succeeded(),
            in_order,
        ) {
            (true, InOrder::GivenUp) => None,
            (true, InOrder::Unknown) => Some(after.saturating_mul(OUTAGE_FACTOR)),
            (true, InOrder::Confirmed) => Some(after),
            (false, _) if self.judge.circuit.is_closed() => Some(after),
            (false, _) => Some(after.saturating_mul(OUTAGE_FACTOR)),
        }
    }

    /// Where it is the items, they are called as usual, and not as probes.
    fn call_alone(&mut self, now: Now) {
        if self.judge.alone.is_of_items() && !self.judge.circuit.is_closed() {
            self.judge.circuit.give_up_waiting(now.moment);
        }
        self.call_held(now);
    }

    /// Held items are due again, one by one over the whole span.
    fn call_held(&mut self, now: Now) {
        let spread = self.judge_after() / self.settings.tuning.max_attempts.get();
        let step = if self.settings.tuning.ordered {
            spread.min(PROBE_LONGEST)
        } else {
            spread
        };
        let since = self.judge.alone.since.unwrap_or(now.moment);
        let is_due = |t: &Trouble| {
            t.held
                .is_some_and(|(_, calls)| now.moment >= since.plus(step.saturating_mul(calls)))
        };
        let held = self.items.troubles.held();
        let due: Vec<ItemIndex> = held
            .filter(|index| self.items.troubles.get(*index).is_some_and(is_due))
            .collect();
        for index in due {
            if let Some(mut trouble) = self.items.troubles.take(index) {
                trouble.held = trouble.held.map(|(since, calls)| (since, calls + 1));
                trouble.doing = Doing::Waiting(now.moment);
                self.items.troubles.put(index, trouble);
            }
        }
    }

    /// How many items are left that brought 502 or 503 each time, of which only people can say that it is them.
    pub(in crate::execution) fn unjudged(&self) -> u64 {
        match self.judge.circuit.is_closed() {
            true => 0,
            false => self.judge.alone.unjudged as u64,
        }
    }

    /// Items that are tried for lack of others to compare them with, or that wait for a witness.
    pub(in crate::execution) fn tried_alone(&self, now: Now) -> Vec<ItemIndex> {
        let since = self.judge.alone.since.filter(|_| self.judge.alone.is_of_items());
        if since.is_some_and(|since| now.moment.since(since) >= TOLD_AFTER.min(self.judge_after())) {
            return self.items.troubles.which(|_| true);
        }
        self.items.troubles.held().collect()
    }

    /// How long until items without a verdict are judged without one.
    pub(in crate::execution) fn judged_in(&self, now: Now) -> Option<Duration> {
        let (since, after) = (self.judge.alone.since?, self.judged_after()?);
        Some(since.plus(after).since(now.moment))
    }

    /// How often the held item that was called least is still called before it is judged; 0 where this isn't so of all that
    /// are tried: items that brought 502 or 503 are called until it can't be chance.
    pub(in crate::execution) fn tries_left(&self, tried: usize) -> u32 {
        if self.items.troubles.held().count() < tried {
            return 0;
        }
        let calls = |index| self.items.troubles.get(index)?.held.map(|(_, calls)| calls);
        let least = self.items.troubles.held().filter_map(calls).min();
        least.map_or(0, |calls| {
            self.settings.tuning.max_attempts.get().saturating_sub(calls)
        })
    }

    /// Nothing else is left to do: items wait no longer than if the calls that prove it were spread over the whole span.
    pub(in crate::execution) fn at_most_alone(&self, wait: Duration) -> Duration {
        if self.judge.alone.is_of_items() && self.judge.alone.unavailable {
            let most = self.judge_after() / self.calls_to_prove();
            return wait.min(most.max(LOOK_EVERY));
        }
        wait
    }

    fn give_up_alone(&mut self, now: Now, fx: &mut Effects) {
        if !self.items.has_succeeded() && !self.settings.is_decided() {
            let last = self
                .judge
                .errors
                .last()
                .map(|error| Failure::new(error.code.clone(), &error.example));
            return self.stop_without_success(&last.unwrap_or_else(|| Failure::new("UNKNOWN", "nothing")));
        }
        self.believe_attempts(now, fx);
    }

    /// It is the items: no failed attempt is excused any more, until something is answered.
    pub(in crate::execution) fn believe_attempts(&mut self, now: Now, fx: &mut Effects) {
        self.judge.alone.over = true;
        self.judge.circuit.give_up_waiting(now.moment);
        self.charge_last_unavailable(now, fx);
        // Also those that wait since a call that doesn't count: they had used all their attempts.
        let held = |t: &Trouble| t.held.is_some() && t.doing != Doing::InFlight;
        for index in self.items.troubles.which(held) {
            self.give_up_held(index, now, fx);
            if self.settings.tuning.ordered {
                self.judge.alone.on_given_up_in_order();
            }
        }
    }
}

impl Items {
    /// Whether an item could leave that was never called.
    pub(in crate::execution) fn is_fresh_left(&self) -> bool {
        self.cursor < self.fresh_end() && self.cursor < self.window.limit()
    }
}
