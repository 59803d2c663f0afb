//! Items that failed without a verdict while no other item can be sent, so nothing is likely to show whether the
//! handler answers.
//!
//! *The tail*: the last items of a task or of its canary, once something succeeded. They are tried for `judge_after`,
//! from when only they were left or from the last answer, three times that at most. Then those without a verdict fail
//! as they are; a redrive calls them again. An outage that began while others were left is not held against them.
//!
//! *Elsewhere*: the head of an ordered task, a redrive of items that are all bad, the last items of an outage that
//! began before. They are tried for `judge_after`, and for twelve times that while the circuit is open or calls are
//! sent in order, because an outage is likelier than that all of them are bad. Then attempts count. A task in which
//! no item ever succeeded stops instead, unless `judge_after` is zero: then a person has decided that the items are
//! at fault.
//!
//! Suspects, which failed beside answered calls, wait for no bound: they are judged by their attempts.
//!
//! In an ordered task every failing item looks like an outage, and every outage like a failing item. The first one is
//! tried for as long as an outage is assumed. If nothing is answered after it failed either, it was an outage: no
//! further item fails. If the next one is answered, the task has bad items, and `judge_after` is enough.

use std::time::Duration;

use super::Judge;
use super::attempts::CHANCE_AMONG;
use super::circuit::pause::PROBE_LONGEST;
use super::trial::{ANSWERED_FACTOR, Bare, InOrder, State, Trial};
use crate::execution::Scope;
use crate::execution::items::Items;
use crate::execution::settings::Settings;
use crate::ids::{ItemIndex, Moment};
use crate::items::verdict::{Failure, FailureClass};
use crate::items::waiting::{Doing, RetryingItem};
use crate::settings::Auto;

/// Bounds of the time for which the last items are tried, which is as long as the run took before only they were
/// left.
const AUTO_SPAN: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(600));
/// Multiple of `judge_after` for which an outage is assumed: two hours as configured.
const OUTAGE_FACTOR: u32 = 12;
/// Maximum items left that may all be bad; more of them are evidence of an outage.
const FEW: usize = 10;
/// Interval between two scans, which walk all retrying items.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Judge {
    /// Checks whether only items without a verdict are left, and acts on it; returns the time of the next check.
    pub(in crate::execution) fn judge_alone(&mut self, cx: &mut Scope<'_>) -> Option<Moment> {
        self.note_bare(cx);
        let is_tail = self.is_tail(cx);
        if self.alone.is_over() && self.alone.is_tail() == is_tail {
            return None;
        }
        let (now, next) = (cx.now.moment, self.alone.looked.plus(LOOK_EVERY));
        let is_look_due = now >= next;
        if !is_tail {
            if !self.may_be_alone(cx) {
                if !cx.settings.tuning.ordered {
                    self.alone.state = State::No;
                }
                return None;
            }
            if !is_look_due {
                return Some(next);
            }
            self.alone.looked = now;
            if !self.is_alone(cx) {
                self.alone.state = State::No;
                return Some(now.plus(LOOK_EVERY));
            }
        }
        let known = self.alone.trial().filter(|trial| trial.is_tail == is_tail);
        let (since, answered) = (now, now);
        let trial = known.unwrap_or(Trial {
            since,
            answered,
            is_tail,
        });
        self.alone.state = State::Tried(trial);
        let end = self.span(cx).map(|span| trial.end(span));
        if end.is_some_and(|end| now >= end) && (is_tail || self.is_tried_enough(cx)) {
            self.alone.state = State::Over(trial);
            self.end_trial(cx, is_tail);
            return None;
        }
        if is_look_due {
            self.alone.looked = now;
            self.end_suspects(cx);
            self.call_held(cx, trial.since);
        }
        let look = (!is_tail || cx.items.retrying_items.held_first().is_some()).then(|| now.plus(LOOK_EVERY));
        let later = end.filter(|end| *end > now);
        look.into_iter().chain(later).min()
    }

    /// Notes when no item is left that was never called.
    fn note_bare(&mut self, cx: &Scope<'_>) {
        let items = &cx.items;
        let is_bare = items.cursor >= items.fresh_end() && items.again.is_empty() && !items.supply.is_open();
        let (answered, is_closed) = (self.others.answered, self.circuit.is_closed());
        self.alone.bare = match self.alone.bare {
            _ if !is_bare => None,
            None => Some(Bare { answered, is_closed }),
            bare => bare,
        };
    }

    /// True if only failed items are left, the last ones of a task or its canary, and the handler answered when they
    /// became the last: otherwise it is an outage and not their fault. It is also an outage if the handler is down
    /// for shards that have more to call.
    fn is_tail(&self, cx: &Scope<'_>) -> bool {
        let (items, shared) = (&cx.items, &cx.settings.shared);
        let is_fresh_out = items.retrying_items.in_flight() < items.counters.in_flight;
        let is_down_elsewhere = shared.all_down && !shared.share.is_all();
        let may = !items.retrying_items.is_empty() && !is_fresh_out && !is_down_elsewhere;
        let may = may && (items.has_succeeded() || self.is_proven && self.is_reached(cx));
        let Some(bare) = self.alone.bare.filter(|_| may) else {
            return false;
        };
        let was_there = self.others.answered > bare.answered || bare.is_closed && self.are_few_left(cx);
        self.alone.is_tail() || self.circuit.is_closed() || was_there
    }

    /// True if the last call of each item left reached the handler.
    fn is_reached(&self, cx: &Scope<'_>) -> bool {
        let is_before_work = |t: &RetryingItem| t.last.is_none_or(FailureClass::is_before_work);
        !cx.items.retrying_items.iter().any(|(_, t)| is_before_work(t))
    }

    /// True if few items are left that failed, and never beside others: they may all be bad, and are no evidence of
    /// an outage.
    fn are_few_left(&self, cx: &Scope<'_>) -> bool {
        let retrying_items = cx.items.retrying_items.iter();
        let unknown = retrying_items.filter(|(_, t)| !self.is_suspect(cx.items, cx.settings, t));
        unknown.take(FEW + 1).count() <= FEW
    }

    /// True if a scan, which walks all retrying items, may find something.
    fn may_be_alone(&self, cx: &Scope<'_>) -> bool {
        let retrying_items = &cx.items.retrying_items;
        let is_last = !retrying_items.is_empty() && !cx.items.is_fresh_left();
        is_last || retrying_items.held_first().is_some() || !self.circuit.is_closed()
    }

    /// True if only failed items can be sent, so nothing is likely to show whether the handler answers.
    fn is_alone(&self, cx: &Scope<'_>) -> bool {
        let items = &cx.items;
        let may_leave = items.is_fresh_left() && !cx.settings.tuning.ordered;
        if may_leave || !items.again.is_empty() || items.retrying_items.is_empty() {
            return false;
        }
        // Items that shared their last call are first called alone, to tell them apart.
        let failed = |t: &RetryingItem| t.attempts > 0 && t.call_max <= 1;
        items.retrying_items.in_flight() == items.counters.in_flight
            && items.retrying_items.iter().all(|(_, t)| failed(t))
            && self.may_judge_unavailable(cx)
    }

    /// True if the items may be judged. If most of them bring 502 or 503 and never failed beside others, the handler
    /// is down, however long it takes.
    fn may_judge_unavailable(&self, cx: &Scope<'_>) -> bool {
        let is_decided = cx.settings.is_decided() && cx.items.has_succeeded();
        is_decided || self.absent(cx.items, cx.settings) * 2 < cx.items.retrying_items.len()
    }

    pub(super) fn absent(&self, items: &Items, settings: &Settings) -> usize {
        let is_absent = |t: &RetryingItem| {
            let is_unavailable = t.last == Some(FailureClass::Unavailable) && t.suspicion.held.is_none();
            is_unavailable && !self.is_suspect(items, settings, t)
        };
        items.retrying_items.which(is_absent).len()
    }

    /// True if the item failed beside answered calls, in this run or an earlier one.
    pub(super) fn is_suspect(&self, items: &Items, settings: &Settings, retrying: &RetryingItem) -> bool {
        let tuning = &settings.tuning;
        let is_known = !self.began_down && !tuning.ordered && tuning.batch.get() == 1;
        let is_restored = is_known && items.has_succeeded() && retrying.is_restored();
        is_restored || self.chance_among(items, retrying) <= CHANCE_AMONG
    }

    fn is_tried_enough(&self, cx: &Scope<'_>) -> bool {
        let most = cx.settings.tuning.max_attempts.get();
        let is_called =
            |t: &RetryingItem| t.suspicion.held.map_or(0, |(_, calls)| calls).max(t.uncharged) >= most;
        let mut retrying_items = cx.items.retrying_items.iter();
        !self.circuit.is_closed() || cx.settings.is_decided() || retrying_items.all(|(_, t)| is_called(t))
    }

    /// Returns the time for which items are tried before their attempts count; `None` for as long as it takes.
    fn span(&self, cx: &Scope<'_>) -> Option<Duration> {
        self.span_of(cx.settings, cx.items.has_succeeded())
    }

    pub(super) fn span_of(&self, settings: &Settings, has_succeeded: bool) -> Option<Duration> {
        let after = self.judge_after(settings);
        if after.is_zero() || self.alone.is_tail() {
            return Some(after);
        }
        match (settings.tuning.ordered && has_succeeded, self.alone.in_order) {
            (true, InOrder::Failed) => None,
            (true, InOrder::Confirmed) => Some(after),
            (false, _) if self.circuit.is_closed() => Some(after),
            (true, InOrder::Unknown) | (false, _) => Some(after.saturating_mul(OUTAGE_FACTOR)),
        }
    }

    /// Returns the time for which items are tried that can't be compared with others.
    pub(super) fn judge_after(&self, settings: &Settings) -> Duration {
        let tail = self.alone.trial().filter(|trial| trial.is_tail);
        match (settings.whole.judge_after, tail) {
            (Auto::Fixed(span), _) => span,
            (Auto::Auto, Some(tail)) => tail.since.since(self.began).clamp(AUTO_SPAN.0, AUTO_SPAN.1),
            (Auto::Auto, None) => AUTO_SPAN.1,
        }
    }

    /// Returns the longest wait after an attempt that doesn't count: the last items get twice as many attempts as
    /// others in their time.
    pub(super) fn longest_wait(&self, settings: &Settings) -> Duration {
        match self.alone.is_tail() {
            true => self.judge_after(settings) / settings.tuning.max_attempts.get().saturating_mul(2),
            false => Duration::MAX,
        }
    }

    /// Ends held items that failed beside others: they need no further witness.
    fn end_suspects(&mut self, cx: &mut Scope<'_>) {
        let held: Vec<ItemIndex> = cx.items.retrying_items.held().collect();
        for index in held {
            let retrying = cx.items.retrying_items.get(index);
            if retrying.is_some_and(|retrying| self.is_suspect(cx.items, cx.settings, retrying)) {
                self.end_held(cx, index);
            }
        }
    }

    /// Makes held items due again, one by one over the whole span.
    fn call_held(&mut self, cx: &mut Scope<'_>, since: Moment) {
        let spread = self.judge_after(cx.settings) / cx.settings.tuning.max_attempts.get();
        let step = if cx.settings.tuning.ordered {
            spread.min(PROBE_LONGEST)
        } else {
            spread
        };
        let now = cx.now.moment;
        let is_due = |t: &RetryingItem| {
            let held = t.suspicion.held;
            held.is_some_and(|(_, calls)| now >= since.plus(step.saturating_mul(calls)))
        };
        let retrying_items = &mut cx.items.retrying_items;
        let held = retrying_items.held();
        let due: Vec<ItemIndex> = held
            .filter(|index| retrying_items.get(*index).is_some_and(is_due))
            .collect();
        for index in due {
            if let Some(mut retrying) = retrying_items.take(index) {
                let held = &mut retrying.suspicion.held;
                *held = held.map(|(since, calls)| (since, calls + 1));
                retrying.doing = Doing::Waiting(now);
                retrying_items.put(index, retrying);
            }
        }
    }

    /// Ends the trial of the items: no failed attempt is excused any more.
    fn end_trial(&mut self, cx: &mut Scope<'_>, is_tail: bool) {
        if !cx.items.has_succeeded() && !cx.settings.is_decided() && !is_tail {
            let last = self
                .errors
                .last()
                .map(|error| Failure::new(error.code.clone(), &error.example));
            return self.stop_without_success(&last.unwrap_or_else(|| Failure::new("UNKNOWN", "nothing")));
        }
        self.believe_attempts(cx);
        if is_tail {
            self.end_waiting(cx);
        }
    }

    /// Stops excusing failed attempts until something is answered.
    pub(super) fn believe_attempts(&mut self, cx: &mut Scope<'_>) {
        let (since, answered, is_tail) = (cx.now.moment, cx.now.moment, false);
        let trial = Trial {
            since,
            answered,
            is_tail,
        };
        self.alone.state = State::Over(self.alone.trial().unwrap_or(trial));
        self.circuit.fail_waiting(cx.now.moment);
        // Also items that wait after a call that doesn't count: they had used all their attempts.
        let held = |t: &RetryingItem| t.suspicion.held.is_some() && t.doing != Doing::InFlight;
        for index in cx.items.retrying_items.which(held) {
            self.end_held(cx, index);
        }
    }

    /// Ends items of the tail that wait after an attempt without a verdict; one that waits after a verdict gets its
    /// next attempt.
    fn end_waiting(&mut self, cx: &mut Scope<'_>) {
        let is_open = |t: &RetryingItem| {
            let is_silent = matches!(t.last, Some(FailureClass::Unclear | FailureClass::Unavailable));
            t.doing != Doing::InFlight && (t.uncharged > 0 || is_silent)
        };
        for index in cx.items.retrying_items.which(is_open) {
            if let Some(retrying) = cx.items.retrying_items.take(index) {
                self.end_open(cx, index, retrying);
            }
        }
    }

    /// Handles an item whose time is over and whose last attempt brought no verdict: it fails once it had as many
    /// attempts as any other. Until then it is called without a longer wait, and no longer than answers could have
    /// extended its time.
    pub(in crate::execution) fn end_open(
        &mut self,
        cx: &mut Scope<'_>,
        index: ItemIndex,
        retrying: RetryingItem,
    ) {
        let made = retrying.charged.max(retrying.suspicion.calls);
        let longest = self.judge_after(cx.settings).saturating_mul(ANSWERED_FACTOR + 1);
        let now = cx.now.moment;
        let since = self.alone.trial().map_or(now, |trial| trial.since);
        if made >= cx.settings.tuning.max_attempts.get() || now.since(since) >= longest {
            return self.end_unclear(cx, index, retrying);
        }
        let wait = cx.settings.tuning.backoff.first;
        cx.items
            .wait_for_retry(cx.settings, index, retrying, wait, cx.now);
    }
}
