//! Failed attempts of one item: whether they count against it, and whether it is retried, held or failed.
//!
//! An item may fail for what *it* did, never for what happened to every item. Its witnesses are calls for others:
//!
//! | class | an attempt counts |
//! |---|---|
//! | answered, exited | always: it is a verdict. A row of exit codes beyond chance is read as unavailable (`exited`) |
//! | faulty | once the handler has given a verdict about any item |
//! | unsendable | once others could be sent, or none is left |
//! | rejected | where others that departed later were answered (`refused`) |
//! | unclear | provisionally: an outage excuses those that departed after the last answered call. When all are used, the item is *held* until a call that departed later was answered |
//! | unavailable | where it is no chance any more that others were answered between so many of them |
//! | unreachable, unstarted | never |
//!
//! Attempts prove less while many calls for others fail: an item then has twice as many.

use std::time::Duration;

use windrow_words::execution as say;

use super::Judge;
use crate::execution::Scope;
use crate::execution::failed::item_trouble;
use crate::execution::items::Items;
use crate::execution::types::RunEnd;
use crate::ids::{Attempt, ItemIndex};
use crate::items::retry::{self, Verdict};
use crate::items::verdict::{Failed, FailingItem, Failure, FailureClass, RetryAdvice, SideRecord};
use crate::items::waiting::{Doing, RetryingItem};
use crate::settings::{FailedAttempts, OnExhausted};
use crate::task::lifecycle::StopReason;

/// Minimum number of calls with 502 or 503 before they count, with answered calls for others between any two.
const UNAVAILABLE_MIN: usize = 5;
/// Probability above which chance is an explanation: once in 10^9 places.
pub(super) const CHANCE: f64 = 1e-9;
/// Probability that any good item fails like this one, up to which the item is at fault: one in ten thousand tasks.
pub(super) const CHANCE_AMONG: f64 = 0.0001;
/// Share of failed calls for others above which attempts without a verdict prove little.
const SHED_SHARE: f64 = 0.05;
/// Minimum wait after an attempt that doesn't count, however short the back-off is: otherwise two items could
/// alternate forever, and it would never show that all others fail alike.
const UNCHARGED_WAIT_MIN: Duration = Duration::from_secs(1);
/// Code of an item that may not be retried and whose only attempt was lost in an outage.
const OUTCOME_UNKNOWN: &str = "OUTCOME_UNKNOWN";

impl Judge {
    /// Handles a failed attempt of this item: records whether it counts, and decides what follows.
    pub(in crate::execution) fn on_failed(
        &mut self,
        cx: &mut Scope<'_>,
        failed: Failed,
        mut retrying: RetryingItem,
    ) {
        // The item was alone in this call, even if it may share one.
        retrying.call_max = retrying.call_max.min(1);
        retrying.suspicion.calls += 1;
        let is_charged = self.charge(cx, &failed, &mut retrying);
        if failed.class.is_before_work() {
            self.alone.on_unreachable(cx.now.moment);
        }
        cx.items
            .note_attempt(&failed, &mut retrying, Some(is_charged), cx.now);
        let (index, class, advice) = (failed.index, failed.class, failed.advice);
        if is_charged {
            self.count_against_budget(cx, class, &failed.failure);
        }
        retrying.failure = Some(failed.failure);
        let is_over = self.alone.is_over() && self.alone.is_tail();
        if is_over && (!is_charged || class == FailureClass::Unclear) {
            self.end_open(cx, index, retrying);
        } else if is_charged {
            self.on_charged(cx, index, retrying, (class, advice));
        } else {
            self.on_uncharged(cx, index, retrying, advice);
        }
    }

    /// Returns true if the attempt counts against its item, and keeps it as evidence.
    fn charge(&mut self, cx: &Scope<'_>, failed: &Failed, retrying: &mut RetryingItem) -> bool {
        match failed.class {
            FailureClass::Answered | FailureClass::Exited => true,
            FailureClass::Faulty => self.contacted,
            FailureClass::Unsendable => self.is_item_unsendable(cx),
            FailureClass::Rejected => self.charge_refusal(cx, failed, retrying),
            FailureClass::Unavailable => self.charge_unavailable(cx, failed, retrying),
            FailureClass::Unreachable | FailureClass::Unstarted => false,
            FailureClass::Unclear => self.charge_unclear(cx, failed, retrying),
        }
    }

    fn charge_unclear(&mut self, cx: &Scope<'_>, failed: &Failed, retrying: &mut RetryingItem) -> bool {
        let may_excuse = self.circuit.excuses(failed.departed) && !self.alone.is_over();
        if may_excuse && self.try_excuse(cx, retrying) {
            return false;
        }
        retrying.suspicion.add(failed.departed, &mut self.others, false);
        true
    }

    /// Returns true if the outage excuses the item; each outage counts once. An item that has been in as many outages
    /// as it has attempts may be their cause.
    fn try_excuse(&self, cx: &Scope<'_>, retrying: &mut RetryingItem) -> bool {
        let (most, outage) = (cx.settings.tuning.max_attempts.get(), self.circuit.outages());
        let suspicion = &mut retrying.suspicion;
        let may = suspicion.outage == outage || most > 1 && suspicion.excused < most;
        if may && suspicion.outage != outage {
            (suspicion.excused, suspicion.outage) = (suspicion.excused + 1, outage);
        }
        may
    }

    /// Charges a 502 or 503, and those before it, once the item is proven to be the cause: a gateway returns them
    /// when a record kills the process behind it.
    fn charge_unavailable(&mut self, cx: &Scope<'_>, failed: &Failed, retrying: &mut RetryingItem) -> bool {
        if self.circuit.excuses(failed.departed) && !self.alone.is_over() {
            return false;
        }
        let (answered, suspicion) = (self.others.departed, &mut retrying.suspicion);
        let before = suspicion.own.len() as u32;
        let is_unseen = suspicion.own.last().is_some_and(|last| *last > answered);
        suspicion.add(failed.departed, &mut self.others, is_unseen);
        if !is_unseen && self.is_proven(retrying) {
            retrying.charged = retrying.charged.max(before);
            return true;
        }
        self.alone.is_on() && self.is_suspect(cx.items, cx.settings, retrying)
    }

    fn is_proven(&self, retrying: &RetryingItem) -> bool {
        let chance = retrying.suspicion.chance(self.others);
        retrying.suspicion.own.len() >= UNAVAILABLE_MIN && chance <= CHANCE
    }

    /// Excuses attempts at the start of an outage: those without a verdict that were sent after the last answered
    /// call say nothing about their items.
    pub(super) fn excuse_all(&mut self, cx: &mut Scope<'_>) {
        self.doubtful = 0;
        let answered = self.others.departed;
        let doubted = |t: &RetryingItem| t.suspicion.own.iter().any(|departed| *departed > answered);
        for index in cx.items.retrying_items.which(doubted) {
            let Some(mut retrying) = cx.items.retrying_items.take(index) else {
                continue;
            };
            if self.try_excuse(cx, &mut retrying) {
                let excused = retrying.suspicion.excuse_since_answer(&mut self.others);
                retrying.charged = retrying.charged.saturating_sub(excused);
                if matches!(retrying.doing, Doing::Held(_)) {
                    retrying.doing = Doing::Waiting(cx.now.moment);
                    retrying.suspicion.held = None;
                }
                cx.items.record(index, &retrying);
            }
            cx.items.retrying_items.put(index, retrying);
        }
    }

    /// Counts a charged attempt against the error budget: at once, or once an answer shows that it wasn't an outage.
    fn count_against_budget(&mut self, cx: &Scope<'_>, class: FailureClass, failure: &Failure) {
        if class == FailureClass::Unclear {
            self.doubtful += 1;
        } else if self.count_failed_attempt(cx) {
            self.recover_from_failures(cx.settings, &failure.code, &failure.message);
        }
    }

    /// Counts a failed attempt; returns true if that exceeds the error budget. Once every item was sent, those that
    /// are left failed before: their share says nothing about the handler.
    pub(super) fn count_failed_attempt(&mut self, cx: &Scope<'_>) -> bool {
        let items = &cx.items;
        let is_over = self
            .budget
            .on_failed_attempt(items.counters.succeeded, cx.now.moment);
        let is_of_share = matches!(
            cx.settings.whole.error_budget.failed_attempts,
            Some(FailedAttempts::Most(_))
        );
        is_over && (!is_of_share || items.cursor < items.fresh_end())
    }

    /// Handles an attempt that counts: the item is retried while it has attempts left; otherwise it is over, unless
    /// the effect of the last one is unknown.
    fn on_charged(
        &mut self,
        cx: &mut Scope<'_>,
        index: ItemIndex,
        retrying: RetryingItem,
        (class, advice): (FailureClass, RetryAdvice),
    ) {
        let charged = Attempt::new(retrying.charged);
        let spread = retry::spread(cx.items.shard.task, index, Attempt::new(retrying.attempts.max(1)));
        let tuning = &cx.settings.tuning;
        match retry::decide(
            advice,
            charged,
            tuning.max_attempts.get(),
            &tuning.backoff,
            spread,
        ) {
            Verdict::RetryAfter(wait) => cx
                .items
                .wait_for_retry(cx.settings, index, retrying, wait, cx.now),
            Verdict::Failed => self.fail(cx, index, &retrying),
            Verdict::Exhausted if class == FailureClass::Unclear => self.hold(cx, index, retrying),
            Verdict::Exhausted if class == FailureClass::Unavailable => self.end_unclear(cx, index, retrying),
            Verdict::Exhausted => self.exhaust(cx, index, retrying),
        }
    }

    /// Handles an attempt that doesn't count: other items go first, to show whether they fail alike.
    fn on_uncharged(
        &mut self,
        cx: &mut Scope<'_>,
        index: ItemIndex,
        retrying: RetryingItem,
        advice: RetryAdvice,
    ) {
        let steady = self.wait_after(cx, index, Attempt::new(retrying.uncharged));
        let wait = match advice {
            RetryAdvice::Retry { after: Some(chosen) } => chosen.min(retry::RETRY_AFTER_MAX).max(steady),
            RetryAdvice::Retry { after: None } => steady,
            // The item fails as soon as an attempt counts.
            RetryAdvice::Fail => UNCHARGED_WAIT_MIN,
        };
        cx.items
            .wait_for_retry(cx.settings, index, retrying, wait, cx.now);
    }

    /// Returns the back-off after this many attempts, at least as long as others need to show whether they fail
    /// alike.
    fn wait_after(&self, cx: &Scope<'_>, index: ItemIndex, made: Attempt) -> Duration {
        let spread = retry::spread(cx.items.shard.task, index, made);
        retry::wait(&cx.settings.tuning.backoff, made, spread)
            .min(self.longest_wait(cx.settings))
            .max(UNCHARGED_WAIT_MIN)
    }

    /// Holds an item that has used all attempts, the last one without a verdict, until a witness is found.
    fn hold(&mut self, cx: &mut Scope<'_>, index: ItemIndex, mut retrying: RetryingItem) {
        if cx.settings.tuning.max_attempts.get() == 1 {
            return self.end_only_attempt(cx, index, retrying);
        }
        if self.alone.is_over() {
            return self.end_unclear(cx, index, retrying);
        }
        cx.items.park_if_room(cx.settings, index, &mut retrying);
        retrying.suspicion.held.get_or_insert((cx.now.moment, 0));
        retrying.doing = Doing::Held(cx.now.moment);
        retrying.due_at = cx.now.wall;
        cx.items.record(index, &retrying);
        cx.items.retrying_items.put(index, retrying);
    }

    /// Fails an item with a single attempt, even in an outage, and notes that its outcome is unknown.
    fn end_only_attempt(&mut self, cx: &mut Scope<'_>, index: ItemIndex, mut retrying: RetryingItem) {
        let last = retrying.suspicion.own.last();
        retrying.suspicion.is_unconfirmed = last.is_some_and(|departed| self.circuit.excuses(*departed));
        let is_unconfirmed = retrying.suspicion.is_unconfirmed;
        if let Some(failure) = retrying.failure.as_mut().filter(|_| is_unconfirmed) {
            let message = say::only_attempt(failure.message.clone()).to_string();
            *failure = Failure::new(OUTCOME_UNKNOWN, message);
        }
        self.exhaust(cx, index, retrying);
    }

    /// Ends a held item that has its witness, or no longer waits for one.
    pub(super) fn end_held(&mut self, cx: &mut Scope<'_>, index: ItemIndex) {
        if let Some(retrying) = cx.items.retrying_items.take(index) {
            self.end_unclear(cx, index, retrying);
        }
    }

    /// Fails an item whose last attempt brought no verdict: unconfirmed if it never failed beside answered calls, or
    /// if others fail alike. While others do, it has twice as many attempts.
    pub(super) fn end_unclear(&mut self, cx: &mut Scope<'_>, index: ItemIndex, mut retrying: RetryingItem) {
        let is_shed = retrying.suspicion.share(self.others) > SHED_SHARE
            && self.chance_among(cx.items, &retrying) > CHANCE_AMONG;
        let most = cx.settings.tuning.max_attempts.get().saturating_mul(2);
        if is_shed && retrying.charged < most && !self.alone.is_over() && !self.is_proven(&retrying) {
            retrying.suspicion.held = None;
            let wait = self.wait_after(cx, index, Attempt::new(retrying.charged));
            return cx
                .items
                .wait_for_retry(cx.settings, index, retrying, wait, cx.now);
        }
        let is_confirmed = self.is_confirmed(cx, &retrying, is_shed);
        retrying.suspicion.is_unconfirmed = !is_confirmed;
        if cx.settings.tuning.ordered {
            self.alone.on_failed_in_order();
        }
        self.exhaust(cx, index, retrying);
    }

    /// Returns the likelihood that any good item of the task fails as often beside answered calls as this one.
    pub(super) fn chance_among(&self, items: &Items, retrying: &RetryingItem) -> f64 {
        let called = items.counters.settled();
        retrying.suspicion.chance_among(called, self.others)
    }

    /// True if the item was compared with others: its calls can't be chance, or each one that counts has its witness.
    fn is_confirmed(&self, cx: &Scope<'_>, retrying: &RetryingItem, is_shed: bool) -> bool {
        let suspicion = &retrying.suspicion;
        let witnessed = suspicion.witnessed(self.others);
        let is_unclear = retrying.last == Some(FailureClass::Unclear);
        let is_compared = is_unclear && witnessed > 0 && witnessed == suspicion.own.len();
        // A single one may have been bad luck before an outage that began when only this item was left.
        let is_likely =
            suspicion.charged(self.others) > 1 && self.chance_among(cx.items, retrying) <= CHANCE_AMONG;
        self.is_proven(retrying) || is_likely || is_compared && !is_shed
    }

    /// Handles an item that has used all attempts, which certainly count.
    fn exhaust(&mut self, cx: &mut Scope<'_>, index: ItemIndex, retrying: RetryingItem) {
        if cx.settings.tuning.on_exhausted == OnExhausted::Fail {
            return self.fail(cx, index, &retrying);
        }
        let text = say::attempts_used(index.0.to_string(), retrying.charged).to_string();
        self.stop(RunEnd::stopped(StopReason::ItemExhausted, text));
        cx.items
            .wait_for_retry(cx.settings, index, retrying, Duration::ZERO, cx.now);
    }

    /// Fails an item, and stops the task if that is one too many.
    pub(in crate::execution) fn fail(
        &mut self,
        cx: &mut Scope<'_>,
        index: ItemIndex,
        retrying: &RetryingItem,
    ) {
        self.settle_failed(cx, index, retrying);
        let code = retrying.failure.as_ref().map(|failure| failure.code.clone());
        let last = code.map_or_else(say::last_without_code, say::last_code);
        self.judge_failed(cx.items, cx.settings, last);
    }

    pub(super) fn settle_failed(&mut self, cx: &mut Scope<'_>, index: ItemIndex, retrying: &RetryingItem) {
        cx.items.close_place(index, retrying, cx.fx);
        let record = FailingItem {
            others_answered: retrying.suspicion.others_answered(self.others),
            ..item_trouble(index, retrying)
        };
        cx.items.drafts.record(SideRecord::Failed(record));
        cx.items.counters.failed += 1;
        cx.items.drafts.on_completed(1);
    }
}
