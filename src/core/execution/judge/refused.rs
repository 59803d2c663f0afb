//! Refusals (404, 401, a reply that can't be understood): evidence about the item, or about all calls.
//!
//! The item is at fault if others that were sent later were answered: its refusals count, including earlier ones, and
//! say nothing about the handler. All calls are affected if so many refusals come in a row that chance doesn't
//! explain them: then the task stops, and no item is charged. Failures of an earlier run prove little while a fresh
//! item is left to call.

use windrow_words::{Message, execution as say};

use super::Judge;
use super::attempts::CHANCE;
use crate::execution::Scope;
use crate::execution::items::Items;
use std::borrow::Cow;

use crate::execution::types::RunEnd;
use crate::ids::{ItemIndex, Moment};
use crate::items::verdict::{Failed, FailedCall, FailureClass};
use crate::items::waiting::{Doing, RetryingItem};
use crate::task::lifecycle::StopReason;

/// Refusals in a row that stop a task in which none came before.
const ROW_MIN: usize = 3;
/// Refusals in a row beyond which neither the share of refused items nor a person's decision that the items are at
/// fault is an excuse.
const ROW_MAX: usize = 100;
/// Responses of 400 and the like before the first verdict that stop the task too: the first items may be bad ones.
const FAULTS_MAX: usize = 10;

/// Refusals in a row, and the items that they were for.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    calls: usize,
    strict: usize,
    /// Different items of the row, at most `FAULTS_MAX`.
    items: Vec<ItemIndex>,
    /// Number of calls that were refused while others were answered.
    among: u64,
    /// Code of the latest of them.
    among_code: Option<Cow<'static, str>>,
    /// Set if the last calls were for items that failed in an earlier run, or for which no call could be made: a
    /// fresh item should be sent to find out.
    wants_fresh: bool,
}

impl Refusals {
    /// True if the last calls were refused.
    #[inline]
    pub(super) fn is_row(&self) -> bool {
        self.calls > 0 || self.wants_fresh
    }

    /// Asks for a fresh item to be sent, to find out.
    pub(super) fn want_fresh(&mut self) {
        self.wants_fresh = true;
    }

    /// Ends the row after a call was answered: it was chance.
    pub(super) fn on_answered(&mut self) {
        self.among += self.strict as u64;
        (self.calls, self.strict, self.wants_fresh) = (0, 0, false);
        self.items.clear();
    }

    fn add(&mut self, call: &FailedCall) {
        self.calls += 1;
        self.strict += usize::from(matches!(
            call.class,
            FailureClass::Rejected | FailureClass::Unstarted
        ));
        if self.items.len() < FAULTS_MAX && !self.items.contains(&call.index) {
            self.items.push(call.index);
        }
    }

    fn is_over(&self, calls: usize, most: usize, can_leave: usize) -> bool {
        calls >= most && self.items.len() >= most.min(FAULTS_MAX).min(can_leave)
    }

    /// Returns the length of a row that chance doesn't explain, given `answered` other calls.
    fn row_at_most(&self, answered: u64) -> usize {
        if answered == 0 {
            return ROW_MIN;
        }
        let share = self.among as f64 / (self.among + answered) as f64;
        row_beyond(CHANCE, share).clamp(ROW_MIN, ROW_MAX)
    }
}

/// Returns the length of a row of calls, each failing with probability `share`, that is less likely than `chance`; at
/// most 1,000.
pub(super) fn row_beyond(chance: f64, share: f64) -> usize {
    let chances = std::iter::successors(Some(share), |so_far| Some(so_far * share));
    chances.take_while(|so_far| *so_far > chance).take(999).count() + 1
}

/// Refusal of one item.
#[derive(Clone, Copy)]
struct Refusal<'a> {
    code: &'a str,
    /// Time at which the first refused call of this run was sent; the beginning of time if an earlier run had the
    /// same answer.
    first: Moment,
    /// True if that first refusal counted.
    is_known: bool,
}

impl<'a> Refusal<'a> {
    /// Creates the refusal of a call sent at `departed`, for an item with this history.
    fn of(retrying: Option<&RetryingItem>, code: &'a str, departed: Moment) -> Refusal<'a> {
        let before = retrying.filter(|t| t.is_restored());
        let is_alike = |t: &&RetryingItem| t.failure.as_ref().is_some_and(|before| before.code == code);
        let begun = before.filter(is_alike).map_or(departed, |_| Moment(0));
        let first = retrying.and_then(|t| t.suspicion.refused_first).unwrap_or(begun);
        let is_known = first == Moment(0) && before.is_some_and(|t| t.charged > 0);
        Refusal {
            code,
            first,
            is_known,
        }
    }
}

impl Judge {
    /// True if the refusal is about the item itself: since its first refusal, first calls of others that were sent
    /// later were answered, or it was its own in an earlier run. For the rest, once nothing fresh is left, also if a
    /// person has decided that the items are at fault, or if chance explains them. Before that the cause may be the
    /// handler or an expired token, whatever was decided.
    fn is_own_refusal(&self, cx: &Scope<'_>, refusal: Refusal<'_>) -> bool {
        let is_rest = cx.items.has_succeeded() && !cx.items.is_fresh_left();
        let is_of_rest =
            is_rest && (cx.settings.is_decided() || self.is_rest_refused_by_chance(cx, refusal.code));
        is_of_rest || refusal.is_known || refusal.first < self.others.departed
    }

    /// True if others were refused alike while the handler answered, and the items left are too few for a row that
    /// chance doesn't explain.
    fn is_rest_refused_by_chance(&self, cx: &Scope<'_>, code: &str) -> bool {
        let refusals = &self.refusals;
        let is_known = refusals.among_code.as_deref() == Some(code);
        is_known && cx.items.can_leave(cx.settings) < refusals.row_at_most(self.others.answered) as u64
    }

    /// True if the call was refused because of its item alone.
    pub(super) fn is_own_refusal_of(&self, cx: &Scope<'_>, call: &FailedCall) -> bool {
        let known = cx.items.retrying_items.get(call.index);
        let refusal = Refusal::of(known, &call.failure.code, call.departed);
        call.items == 1 && self.is_own_refusal(cx, refusal)
    }

    /// True if fresh items should be sent before those that failed.
    pub(in crate::execution) fn wants_fresh(&self) -> bool {
        self.refusals.wants_fresh || self.exits.wants_fresh()
    }

    /// Handles a refusal that says nothing about the handler: a round of probes continues with other items.
    pub(super) fn on_own_refusal(&mut self, call: &FailedCall) {
        let refusals = &mut self.refusals;
        refusals.among += 1;
        if refusals.among_code.as_ref() != Some(&call.failure.code) {
            refusals.among_code = Some(call.failure.code.clone());
        }
        self.circuit.on_returned(1);
    }

    /// Returns true if a refusal counts against its item. Then earlier ones that couldn't be attributed count too.
    pub(super) fn charge_refusal(
        &self,
        cx: &Scope<'_>,
        failed: &Failed,
        retrying: &mut RetryingItem,
    ) -> bool {
        let refusal = Refusal::of(Some(retrying), &failed.failure.code, failed.departed);
        retrying.suspicion.refused_first = Some(refusal.first);
        let is_own = self.is_own_refusal(cx, refusal);
        if is_own {
            retrying.charge_refusals();
        } else {
            retrying.suspicion.refused += 1;
        }
        is_own
    }

    /// Charges, at the end of a run, the refusals that others have explained since, so that the next run knows of
    /// them.
    pub(in crate::execution) fn charge_explained_refusals(&mut self, items: &mut Items) {
        let answered = self.others.departed;
        let is_explained = |t: &RetryingItem| {
            let waits = t.doing != Doing::InFlight && t.suspicion.refused > 0;
            waits && t.suspicion.refused_first.is_some_and(|first| first < answered)
        };
        for index in items.retrying_items.which(is_explained) {
            if let Some(mut retrying) = items.retrying_items.take(index) {
                retrying.charge_refusals();
                items.record(index, &retrying);
                items.retrying_items.put(index, retrying);
            }
        }
    }

    /// Handles a refused call when others may be refused alike.
    pub(super) fn on_refusal(&mut self, cx: &Scope<'_>, call: &FailedCall) {
        let known = cx.items.retrying_items.get(call.index);
        let is_known = known.is_some_and(RetryingItem::is_restored) && call.class != FailureClass::Unstarted;
        if is_known && cx.items.is_fresh_left() && !cx.settings.tuning.ordered {
            return self.refusals.want_fresh();
        }
        let can_leave = cx.items.can_leave(cx.settings);
        let can_leave = usize::try_from(can_leave).unwrap_or(usize::MAX).max(1);
        let row = match call.class {
            FailureClass::Unstarted => ROW_MIN,
            _ if cx.settings.is_decided() && cx.items.has_succeeded() => ROW_MAX,
            _ => self.refusals.row_at_most(self.others.answered),
        };
        let takes_requests = self.takes_requests();
        let refusals = &mut self.refusals;
        refusals.add(call);
        let is_row = refusals.is_over(refusals.strict, row, can_leave);
        if is_row || !takes_requests && refusals.is_over(refusals.calls, FAULTS_MAX, can_leave) {
            let text = refusals_text(cx, call).to_string();
            self.stop(RunEnd::stopped(StopReason::HandlerRejected, text));
        }
    }
}

fn refusals_text(cx: &Scope<'_>, last: &FailedCall) -> Message {
    let may_be_items =
        last.class == FailureClass::Rejected && cx.items.has_succeeded() && !cx.settings.is_decided();
    let said = say::said(last.failure.code.clone(), last.failure.message.clone());
    match last.class {
        FailureClass::Unsendable => say::no_request(said),
        _ if may_be_items => say::maybe_items(said),
        _ => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_longer_the_more_are_refused_among_others() {
        let row = |among, answered| {
            let refusals = Refusals {
                among,
                ..Refusals::default()
            };
            refusals.row_at_most(answered)
        };
        assert_eq!((row(0, 0), row(0, 1_000), row(1, 9_999)), (3, 3, 3));
        assert_eq!((row(10, 990), row(60, 940), row(200, 800)), (5, 8, 13));
        assert_eq!((row(600, 400), row(999, 1)), (41, 100));
    }
}
