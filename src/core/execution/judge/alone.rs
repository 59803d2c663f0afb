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
use crate::execution::judge::Judge;
use crate::execution::settings::Settings;
use std::time::Duration;

use super::circuit::pause::PROBE_LONGEST;
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

impl Judge {
    /// Looks whether only items without a verdict are left, and what follows; says when to look again.
    pub(in crate::execution) fn judge_alone(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        now: Now,
        fx: &mut Effects,
    ) -> Option<Moment> {
        let is_tail = !items.troubles.is_empty() && !items.is_fresh_left();
        let matters = is_tail || items.troubles.held_first().is_some() || !self.circuit.is_closed();
        if !matters || self.alone.over {
            return None;
        }
        let next = self.alone.looked.plus(LOOK_EVERY);
        if now.moment < next {
            return Some(next);
        }
        self.alone.looked = now.moment;
        if !self.is_alone(items, settings) {
            self.alone = Alone {
                since: None,
                unavailable: false,
                shown: false,
                proven: false,
                contradicted: false,
                ..self.alone
            };
            return Some(now.moment.plus(LOOK_EVERY));
        }
        let since = *self.alone.since.get_or_insert(now.moment);
        if self.is_tried_enough(items, settings, since, now) {
            self.give_up_alone(items, settings, now, fx);
        } else {
            self.call_alone(items, settings, now);
        }
        Some(now.moment.plus(LOOK_EVERY))
    }

    /// Nothing can leave that never failed, so nothing is likely to show whether the handler answers.
    pub(in crate::execution) fn is_alone(&mut self, items: &mut Items, settings: &Settings) -> bool {
        let may_leave = items.is_fresh_left() && !settings.tuning.ordered;
        self.alone.unjudged = 0;
        if may_leave || !items.again.is_empty() || items.troubles.is_empty() {
            return false;
        }
        let in_flight = items.troubles.which(|t| t.doing == Doing::InFlight).len() as u64;
        // What shared its last call is told from others in calls of its own first.
        let failed = items
            .troubles
            .iter()
            .all(|(_, t)| t.attempts > 0 && t.call_max <= 1);
        in_flight == items.counters.in_flight && failed && self.may_judge_unavailable(items, settings)
    }

    /// Where 502 and 503 keep most of them here, most of those must have shown that it is them, or people have decided so: else
    /// the handler isn't there, however long it takes.
    pub(in crate::execution) fn may_judge_unavailable(
        &mut self,
        items: &mut Items,
        settings: &Settings,
    ) -> bool {
        let unavailable = items.troubles.which(Trouble::is_unavailable);
        let has_succeeded = items.has_succeeded();
        let shown =
            settings.is_decided() && has_succeeded || self.are_mostly_suspects(items, settings, &unavailable);
        let may = shown || unavailable.len() * 2 < items.troubles.len();
        let alone = &mut self.alone;
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
    pub(in crate::execution) fn is_known_to_fail(
        &self,
        items: &Items,
        settings: &Settings,
        trouble: &Trouble,
    ) -> bool {
        let says_so = !self.began_down
            && !settings.tuning.ordered
            && settings.tuning.batch.get() == 1
            && items.has_succeeded();
        says_so && trouble.is_restored()
    }

    pub(in crate::execution) fn is_tried_enough(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        since: Moment,
        now: Now,
    ) -> bool {
        let (answered, most) = (self.circuit.answered(), settings.tuning.max_attempts.get());
        // It also failed while others were answered: it has shown what it is.
        let is_proven = |t: &Trouble| t.doubts.iter().any(|departed| *departed <= answered);
        let proven = items.troubles.which(is_proven).len();
        let known = items
            .troubles
            .which(|t| self.is_known_to_fail(items, settings, t))
            .len();
        let is_proven = proven > 0 || known * 2 > items.troubles.len();
        let alone = &mut self.alone;
        alone.proven = alone.shown || is_proven && !alone.contradicted;
        if proven == items.troubles.len() && !alone.contradicted && items.has_succeeded() {
            return true;
        }
        let Some(span) = self.judged_after(items, settings) else {
            return false;
        };
        let is_called = |t: &Trouble| {
            let held = t.held.map_or(0, |(_, calls)| calls);
            held.max(t.uncharged) >= most || span.is_zero()
        };
        let is_enough = !self.circuit.is_closed() || items.troubles.iter().all(|(_, t)| is_called(t));
        now.moment.since(since) >= span && is_enough
    }

    /// How long items are tried before their attempts count; none for as long as it takes.
    pub(in crate::execution) fn judged_after(&self, items: &Items, settings: &Settings) -> Option<Duration> {
        let (after, in_order) = (self.judge_after(settings), self.alone.in_order);
        if after.is_zero() || self.alone.proven {
            return Some(after);
        }
        match (settings.tuning.ordered && items.has_succeeded(), in_order) {
            (true, InOrder::GivenUp) => None,
            (true, InOrder::Unknown) => Some(after.saturating_mul(OUTAGE_FACTOR)),
            (true, InOrder::Confirmed) => Some(after),
            (false, _) if self.circuit.is_closed() => Some(after),
            (false, _) => Some(after.saturating_mul(OUTAGE_FACTOR)),
        }
    }

    /// Where it is the items, they are called as usual, and not as probes.
    pub(in crate::execution) fn call_alone(&mut self, items: &mut Items, settings: &Settings, now: Now) {
        if self.alone.is_of_items() && !self.circuit.is_closed() {
            self.circuit.give_up_waiting(now.moment);
        }
        self.call_held(items, settings, now);
    }

    /// Held items are due again, one by one over the whole span.
    pub(in crate::execution) fn call_held(&mut self, items: &mut Items, settings: &Settings, now: Now) {
        let spread = self.judge_after(settings) / settings.tuning.max_attempts.get();
        let step = if settings.tuning.ordered {
            spread.min(PROBE_LONGEST)
        } else {
            spread
        };
        let since = self.alone.since.unwrap_or(now.moment);
        let is_due = |t: &Trouble| {
            t.held
                .is_some_and(|(_, calls)| now.moment >= since.plus(step.saturating_mul(calls)))
        };
        let held = items.troubles.held();
        let due: Vec<ItemIndex> = held
            .filter(|index| items.troubles.get(*index).is_some_and(is_due))
            .collect();
        for index in due {
            if let Some(mut trouble) = items.troubles.take(index) {
                trouble.held = trouble.held.map(|(since, calls)| (since, calls + 1));
                trouble.doing = Doing::Waiting(now.moment);
                items.troubles.put(index, trouble);
            }
        }
    }

    /// How many items are left that brought 502 or 503 each time, of which only people can say that it is them.
    pub(in crate::execution) fn unjudged(&self) -> u64 {
        match self.circuit.is_closed() {
            true => 0,
            false => self.alone.unjudged as u64,
        }
    }

    /// Items that are tried for lack of others to compare them with, or that wait for a witness.
    pub(in crate::execution) fn tried_alone(
        &self,
        items: &Items,
        settings: &Settings,
        now: Now,
    ) -> Vec<ItemIndex> {
        let since = self.alone.since.filter(|_| self.alone.is_of_items());
        if since.is_some_and(|since| now.moment.since(since) >= TOLD_AFTER.min(self.judge_after(settings))) {
            return items.troubles.which(|_| true);
        }
        items.troubles.held().collect()
    }

    /// How long until items without a verdict are judged without one.
    pub(in crate::execution) fn judged_in(
        &self,
        items: &Items,
        settings: &Settings,
        now: Now,
    ) -> Option<Duration> {
        let (since, after) = (self.alone.since?, self.judged_after(items, settings)?);
        Some(since.plus(after).since(now.moment))
    }

    /// How often the held item that was called least is still called before it is judged; 0 where this isn't so of all that
    /// are tried: items that brought 502 or 503 are called until it can't be chance.
    pub(in crate::execution) fn tries_left(&self, items: &Items, settings: &Settings, tried: usize) -> u32 {
        if items.troubles.held().count() < tried {
            return 0;
        }
        let calls = |index| items.troubles.get(index)?.held.map(|(_, calls)| calls);
        let least = items.troubles.held().filter_map(calls).min();
        least.map_or(0, |calls| {
            settings.tuning.max_attempts.get().saturating_sub(calls)
        })
    }

    /// Nothing else is left to do: items wait no longer than if the calls that prove it were spread over the whole span.
    pub(in crate::execution) fn at_most_alone(
        &self,
        items: &Items,
        settings: &Settings,
        wait: Duration,
    ) -> Duration {
        if self.alone.is_of_items() && self.alone.unavailable {
            let most = self.judge_after(settings) / self.calls_to_prove(items);
            return wait.min(most.max(LOOK_EVERY));
        }
        wait
    }

    pub(in crate::execution) fn give_up_alone(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        now: Now,
        fx: &mut Effects,
    ) {
        if !items.has_succeeded() && !settings.is_decided() {
            let last = self
                .errors
                .last()
                .map(|error| Failure::new(error.code.clone(), &error.example));
            return self.stop_without_success(&last.unwrap_or_else(|| Failure::new("UNKNOWN", "nothing")));
        }
        self.believe_attempts(items, settings, now, fx);
    }

    /// It is the items: no failed attempt is excused any more, until something is answered.
    pub(in crate::execution) fn believe_attempts(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        now: Now,
        fx: &mut Effects,
    ) {
        self.alone.over = true;
        self.circuit.give_up_waiting(now.moment);
        self.charge_last_unavailable(items, settings, now, fx);
        // Also those that wait since a call that doesn't count: they had used all their attempts.
        let held = |t: &Trouble| t.held.is_some() && t.doing != Doing::InFlight;
        for index in items.troubles.which(held) {
            self.give_up_held(items, settings, index, now, fx);
            if settings.tuning.ordered {
                self.alone.on_given_up_in_order();
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
