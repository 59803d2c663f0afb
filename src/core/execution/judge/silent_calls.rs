//! Calls that say nothing of the handler, or too little: those that several items shared, those that were never made, and probes of
//! a task without any success.

use super::Execution;
use crate::execution::types::{Effects, Now};
use crate::items::verdict::{AnsweredCalls, FailedCall, FailureClass};

/// Probes that reached the handler before a task without any success stops, or its attempts are believed where people have
/// decided that it is the items (`judge_after` is zero).
const REACHED_PROBES_MIN: u32 = 3;

impl Execution {
    /// A call of several items failed as a whole: what it says is told by calls for half of them.
    pub(super) fn on_shared_failure(
        &mut self,
        call: &FailedCall,
        class: FailureClass,
        now: Now,
        fx: &mut Effects,
    ) {
        self.judge.unclear_contact |= class == FailureClass::Unclear;
        self.batches
            .on_shared_failure(call.items, call.departed, now.moment);
        if class == FailureClass::Answered {
            let (calls, departed) = (1, call.departed);
            return self.on_answered(AnsweredCalls { calls, departed }, now, fx);
        }
        match self.judge.circuit.is_open() {
            true => self.tell_circuit(call, class, now),
            false => self.judge.circuit.on_returned(1),
        }
    }

    /// Nothing left: that is no evidence of the handler. Of the first items it is evidence of the request.
    pub(super) fn on_unsendable(&mut self, call: &FailedCall) {
        if !self.judge.takes_requests() && self.items.is_fresh_left() {
            self.on_refusal(call);
            self.judge.refusals.want_fresh();
        }
    }

    /// Tells whether an item of which no call can be made fails at once: calls of this kind were made of others, or no other can
    /// leave before it and show that none can be. A later attempt would find the same data.
    pub(super) fn is_item_unsendable(&self) -> bool {
        self.judge.takes_requests() || !self.items.is_fresh_left() || self.settings.tuning.ordered
    }

    /// Bears a handler that never let anything succeed for `judge_after`: the calls that were out when the circuit opened
    /// come back together, and say no more than one.
    pub(super) fn count_reached_probe(&mut self, call: &FailedCall, now: Now, fx: &mut Effects) {
        let Some(outage) = self
            .judge
            .circuit
            .outage()
            .filter(|_| !self.items.has_succeeded())
        else {
            return;
        };
        self.judge.reached_probes += 1;
        let judge_after = self.judge_after();
        if self.judge.reached_probes < REACHED_PROBES_MIN || now.wall.since(outage.since) < judge_after {
            return;
        }
        if judge_after.is_zero() {
            self.believe_attempts(now, fx);
        } else {
            self.stop_without_success(&call.failure);
        }
    }
}
