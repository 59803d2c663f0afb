//! Returned calls, in the order in which they came back, and what each shows about the handler.

use std::time::Duration;

use super::Judge;
use super::circuit::{Alternatives, Turn, Unanswered};
use super::refused::row_beyond;
use crate::execution::Scope;
use crate::execution::items::Items;
use crate::execution::settings::Settings;
use crate::execution::types::Reports;
use crate::items::verdict::{AnsweredCalls, FailedCall, FailureClass};
use crate::items::waiting::{Doing, Place, RetryingItem};
use crate::settings::Auto;

/// Minimum number of probes that reached the handler before a task without any success stops, or before its attempts
/// count because a person has decided that the items are at fault (`judge_after` is zero).
const REACHED_PROBES_MIN: u32 = 3;

/// Probability that a row of calls that reached nobody is mere chance.
const ROW_CHANCE: f64 = 1e-6;

impl Judge {
    /// Processes the calls that came back.
    #[inline]
    pub(in crate::execution) fn on_calls(&mut self, cx: &mut Scope<'_>, reports: &mut Reports) {
        let last = std::mem::take(&mut reports.answered);
        for mut call in reports.calls.drain(..) {
            self.on_programs_answered(call.before);
            self.on_answered(cx, call.before);
            self.count_exit(cx.items, &call);
            call.class = self.class_now(call.class);
            self.on_failed_call(cx, &call);
        }
        self.on_programs_answered(last);
        self.on_answered(cx, last);
    }

    #[inline]
    fn on_answered(&mut self, cx: &mut Scope<'_>, answered: AnsweredCalls) {
        if answered.calls == 0 {
            return;
        }
        self.others.on_answered(answered);
        self.call_size.on_answered(cx.settings.tuning.batch.get());
        let is_stirred = self.is_stirred() || self.circuit.is_stirred();
        if is_stirred || cx.items.retrying_items.held_first().is_some() {
            self.on_verdicts(cx, answered);
        }
    }

    /// Handles answers of the handler: they show whether earlier failures were an outage.
    fn on_verdicts(&mut self, cx: &mut Scope<'_>, answered: AnsweredCalls) {
        self.pauses.on_answered(answered.calls, answered.departed);
        self.turned_away_with = None;
        self.contacted = true;
        self.refusals.on_answered();
        self.alone.on_answered(cx.now.moment);
        let most = cx.settings.calls_at_most();
        let turn = self
            .circuit
            .on_answered(answered.calls, answered.departed, most, cx.now.moment);
        if turn == Turn::Answered {
            self.on_handler_back(cx);
        }
        self.count_doubtful(cx);
        // An item that was held after this call was sent waits for a later one.
        while let Some((_, index)) = cx
            .items
            .retrying_items
            .held_first()
            .filter(|(since, _)| *since <= answered.departed)
        {
            self.end_held(cx, index);
        }
    }

    /// Counts the attempts with an unknown effect, because they weren't part of an outage.
    fn count_doubtful(&mut self, cx: &Scope<'_>) {
        let doubtful = std::mem::take(&mut self.doubtful);
        let is_over = (0..doubtful).fold(false, |over, _| self.count_failed_attempt(cx) || over);
        if let Some(last) = self.errors.last().filter(|_| is_over).cloned() {
            self.recover_from_failures(cx.settings, &last.code, &last.example);
        }
    }

    fn on_failed_call(&mut self, cx: &mut Scope<'_>, call: &FailedCall) {
        self.errors.note(call, cx.now.wall);
        let class = match call.class {
            FailureClass::Faulty if self.takes_requests() => FailureClass::Answered,
            FailureClass::Unsendable => return self.on_unsendable(cx, call),
            FailureClass::Rejected if self.is_own_refusal_of(cx, call) => return self.on_own_refusal(call),
            class => class,
        };
        let is_silent = matches!(class, FailureClass::Unclear | FailureClass::Unavailable);
        // A refusal of one of the first calls is evidence about the request, however many items it has.
        let may_share = is_silent || self.takes_requests();
        if may_share && cx.settings.is_shared_failure(call.class, call.items) {
            return self.on_shared_failure(cx, call, class);
        }
        match class {
            // The exit code of a program was mapped to another class.
            FailureClass::Answered | FailureClass::Exited => return self.on_answered(cx, one(call)),
            FailureClass::Faulty | FailureClass::Rejected | FailureClass::Unstarted => {
                self.on_refusal(cx, call)
            }
            FailureClass::Unclear => {
                self.unclear_contact = true;
                self.count_reached_probe(cx, call);
            }
            FailureClass::Unreachable | FailureClass::Unavailable | FailureClass::Unsendable => {}
        }
        if is_silent && self.is_known_to_fail(cx, call) || self.alone.is_over() && self.alone.is_tail() {
            // The round of probes continues with other items.
            self.circuit.on_returned(1);
        } else {
            self.tell_circuit(cx, call, class);
        }
    }

    /// True if the call says nothing about the handler: no other item is left and this one failed beside others, or
    /// its time is over.
    fn is_known_to_fail(&self, cx: &Scope<'_>, call: &FailedCall) -> bool {
        let is_suspect = |retrying: &RetryingItem| self.is_suspect(cx.items, cx.settings, retrying);
        let retrying = cx.items.retrying_items.get(call.index);
        self.alone.is_over() || self.alone.is_on() && retrying.is_some_and(is_suspect)
    }

    /// Handles a call of several items that failed as a whole: calls for half of them will show the cause.
    fn on_shared_failure(&mut self, cx: &mut Scope<'_>, call: &FailedCall, class: FailureClass) {
        self.unclear_contact |= class == FailureClass::Unclear;
        self.call_size
            .on_shared_failure(call.items, call.departed, cx.now.moment);
        if class == FailureClass::Answered {
            return self.on_answered(cx, one(call));
        }
        match self.circuit.is_open() {
            true => self.tell_circuit(cx, call, class),
            false => self.circuit.on_returned(1),
        }
    }

    /// Handles a call that could not be sent: no evidence about the handler. For the first items, it is evidence
    /// about the request.
    fn on_unsendable(&mut self, cx: &Scope<'_>, call: &FailedCall) {
        if !self.takes_requests() && cx.items.is_fresh_left() {
            self.on_refusal(cx, call);
            self.refusals.want_fresh();
        }
    }

    /// True if an item for which no call can be made fails at once: such calls were made for others, or no other item
    /// can be sent before it to show that none can be made. A later attempt would find the same data.
    pub(super) fn is_item_unsendable(&self, cx: &Scope<'_>) -> bool {
        self.takes_requests() || !cx.items.is_fresh_left() || cx.settings.tuning.ordered
    }

    /// Tolerates a handler without any success for `judge_after`: the calls that were out when the circuit opened
    /// come back together, and prove no more than one.
    fn count_reached_probe(&mut self, cx: &mut Scope<'_>, call: &FailedCall) {
        let outage = self.circuit.outage().filter(|_| !cx.items.has_succeeded());
        let Some(outage) = outage else {
            return;
        };
        self.reached_probes += 1;
        let judge_after = self.judge_after(cx.settings);
        if self.reached_probes < REACHED_PROBES_MIN || cx.now.wall.since(outage.since) < judge_after {
            return;
        }
        if judge_after.is_zero() {
            self.believe_attempts(cx);
        } else {
            self.stop_without_success(&call.failure);
        }
    }

    /// Reports a call without a verdict to the circuit.
    fn tell_circuit(&mut self, cx: &mut Scope<'_>, call: &FailedCall, class: FailureClass) {
        let retrying_items = &cx.items.retrying_items;
        let known = retrying_items
            .get(call.index)
            .filter(|t| !t.is_only_turned_away());
        let answered = self.others.departed;
        let is_new = known.is_none_or(|t| t.suspicion.first.is_some_and(|departed| departed > answered));
        let (item, departed, after) = (call.index, call.departed, call.after);
        let call = Unanswered {
            class,
            item,
            is_new,
            departed,
            after,
        };
        let alternatives = Alternatives {
            can_leave: cx.items.can_leave(cx.settings),
            is_fresh_left: cx.items.is_fresh_left(),
            in_order: cx.settings.tuning.ordered,
            most: cx.settings.calls_at_most(),
            row: row_beyond(ROW_CHANCE, self.others.share_of_firsts()),
        };
        let turn = self
            .circuit
            .on_unanswered(call, alternatives, cx.now.moment, cx.now.wall);
        if turn == Turn::Opened {
            self.call_size.on_down();
            self.excuse_all(cx);
        }
    }

    /// Handles the first answer after an outage: items that wait because of it are due, and a block of items that
    /// fails beside one that doesn't is parked to make room.
    fn on_handler_back(&mut self, cx: &mut Scope<'_>) {
        let settings = cx.settings;
        let ahead = self.ahead.take();
        let went_ahead = ahead.is_some_and(|index| cx.items.retrying_items.get(index).is_none());
        let waits =
            |t: &RetryingItem| matches!(t.doing, Doing::Waiting(_)) && (t.uncharged > 0 || went_ahead);
        for index in cx.items.retrying_items.which(waits) {
            let Some(mut retrying) = cx.items.retrying_items.take(index) else {
                continue;
            };
            let may_park = retrying.place == Place::Window && !settings.tuning.ordered;
            if went_ahead && may_park && cx.items.has_room_to_park(settings) {
                let wait = settings.tuning.park_after + Duration::from_secs(1);
                cx.items.wait_for_retry(settings, index, retrying, wait, cx.now);
            } else {
                retrying.doing = Doing::Waiting(cx.now.moment);
                cx.items.retrying_items.put(index, retrying);
            }
        }
    }
}

fn one(call: &FailedCall) -> AnsweredCalls {
    let (calls, departed) = (1, call.departed);
    AnsweredCalls { calls, departed }
}

impl Items {
    /// Returns an upper bound on the different items that could be sent.
    pub(in crate::execution) fn can_leave(&self, settings: &Settings) -> u64 {
        if settings.tuning.ordered { 1 } else { self.left() }
    }

    /// True if an item of this shard ended well, in this run or before.
    pub(in crate::execution) fn has_succeeded(&self) -> bool {
        self.counters.succeeded + self.skips.of_handler(self.counters.skipped) > 0
    }

    /// True if an item that was never called could be sent.
    pub(in crate::execution) fn is_fresh_left(&self) -> bool {
        self.cursor < self.fresh_end() && self.cursor < self.window.limit()
    }
}

impl Settings {
    /// Returns the maximum calls in flight.
    pub(in crate::execution) fn calls_at_most(&self) -> u32 {
        self.calls_in_flight_max().min(self.limits.steered).max(1)
    }

    /// Returns the maximum calls in flight by the settings alone.
    pub(in crate::execution) fn calls_in_flight_max(&self) -> u32 {
        self.limits.concurrency.div_ceil(self.tuning.batch.get()).max(1)
    }

    /// Returns the maximum items in flight, as the autopilot allows it now.
    pub(in crate::execution) fn items_in_flight_max(&self) -> u32 {
        let steered = self.limits.steered.saturating_mul(self.tuning.batch.get());
        self.limits.concurrency.min(steered)
    }

    /// True if a person has decided that the items are at fault.
    pub(in crate::execution) fn is_decided(&self) -> bool {
        self.whole.judge_after == Auto::Fixed(Duration::ZERO)
    }
}
