//! Calls that say nothing of the handler, or too little: those that several items shared, those that were never made, and probes of
//! a task without any success.

use crate::execution::items::Items;
use crate::execution::judge::Judge;
use crate::execution::settings::Settings;
use crate::execution::types::{Effects, Now};
use crate::items::verdict::{AnsweredCalls, FailedCall, FailureClass};

/// Probes that reached the handler before a task without any success stops, or its attempts are believed where people have
/// decided that it is the items (`judge_after` is zero).
const REACHED_PROBES_MIN: u32 = 3;

impl Judge {
    /// A call of several items failed as a whole: what it says is told by calls for half of them.
    pub(in crate::execution) fn on_shared_failure(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        call: &FailedCall,
        class: FailureClass,
        now: Now,
        fx: &mut Effects,
    ) {
        self.unclear_contact |= class == FailureClass::Unclear;
        self.call_size
            .on_shared_failure(call.items, call.departed, now.moment);
        if class == FailureClass::Answered {
            let (calls, departed) = (1, call.departed);
            return self.on_answered(items, settings, AnsweredCalls { calls, departed }, now, fx);
        }
        match self.circuit.is_open() {
            true => self.tell_circuit(items, settings, call, class, now),
            false => self.circuit.on_returned(1),
        }
    }

    /// Nothing left: that is no evidence of the handler. Of the first items it is evidence of the request.
    pub(in crate::execution) fn on_unsendable(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        call: &FailedCall,
    ) {
        if !self.takes_requests() && items.is_fresh_left() {
            self.on_refusal(items, settings, call);
            self.refusals.want_fresh();
        }
    }

    /// Tells whether an item of which no call can be made fails at once: calls of this kind were made of others, or no other can
    /// leave before it and show that none can be. A later attempt would find the same data.
    pub(in crate::execution) fn is_item_unsendable(&self, items: &Items, settings: &Settings) -> bool {
        self.takes_requests() || !items.is_fresh_left() || settings.tuning.ordered
    }

    /// Bears a handler that never let anything succeed for `judge_after`: the calls that were out when the circuit opened
    /// come back together, and say no more than one.
    pub(in crate::execution) fn count_reached_probe(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        call: &FailedCall,
        now: Now,
        fx: &mut Effects,
    ) {
        let Some(outage) = self.circuit.outage().filter(|_| !items.has_succeeded()) else {
            return;
        };
        self.reached_probes += 1;
        let judge_after = self.judge_after(settings);
        if self.reached_probes < REACHED_PROBES_MIN || now.wall.since(outage.since) < judge_after {
            return;
        }
        if judge_after.is_zero() {
            self.believe_attempts(items, settings, now, fx);
        } else {
            self.stop_without_success(&call.failure);
        }
    }
}
