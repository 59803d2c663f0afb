//! Limits on how long a run tolerates a handler that is down, or that never answers well.

use std::time::Duration;

use super::Judge;
use crate::execution::Scope;
use crate::execution::types::RunEnd;
use crate::items::verdict::{Failure, FailureClass, Outage};
use crate::task::lifecycle::StopReason;

impl Judge {
    pub(in crate::execution) fn stop_without_success(&mut self, last: &Failure) {
        let text = format!(
            "the handler was reached again and again, and no item ever succeeded; the last one said {}: {}",
            last.code, last.message
        );
        self.stop(RunEnd::stopped(StopReason::NoItemSucceeds, text));
    }

    /// Ends a run whose handler was never reached in time, or is down for longer than the task waits.
    pub(in crate::execution) fn judge_patience(&mut self, cx: &Scope<'_>) {
        // The time of the last items has its own bound.
        let Some(error) = self.errors.last().filter(|_| !self.alone.is_tail()) else {
            return;
        };
        let said = format!("{}: {}", error.code, error.example);
        let refused = matches!(
            error.class,
            FailureClass::Rejected
                | FailureClass::Unstarted
                | FailureClass::Faulty
                | FailureClass::Unsendable
        );
        let is_of_item = error.class == FailureClass::Unsendable && self.is_item_unsendable(cx);
        if self.first_contact().is_some_and(|until| cx.now.moment >= until)
            && !self.unclear_contact
            && !is_of_item
        {
            let reason = if refused {
                StopReason::HandlerRejected
            } else {
                StopReason::HandlerUnreachable
            };
            return self.stop(RunEnd::stopped(reason, said));
        }
        let patience = cx.settings.whole.outage_patience;
        let is_over =
            |outage: Outage| cx.now.wall.since(outage.since) >= patience && cx.settings.shared.all_down;
        if self.circuit.outage().is_some_and(is_over) {
            let span = humane(patience);
            let text =
                format!("the handler was down for {span}; {said}; nothing is lost, start the task to go on");
            self.stop(RunEnd::stopped(StopReason::HandlerUnreachable, text));
        }
    }
}

fn humane(span: Duration) -> String {
    let seconds = span.as_secs();
    match (seconds % 3600, seconds % 60) {
        (0, _) => format!("{} h", seconds / 3600),
        (_, 0) => format!("{} min", seconds / 60),
        (_, _) => format!("{seconds} s"),
    }
}
