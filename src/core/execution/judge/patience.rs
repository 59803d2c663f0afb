//! Limits on how long a run tolerates a handler that is down, or that never answers well.

use std::time::Duration;

use windrow_words::execution as say;

use super::Judge;
use crate::execution::Scope;
use crate::execution::types::RunEnd;
use crate::items::verdict::{Failure, FailureClass, Outage};
use crate::task::lifecycle::StopReason;

/// Time for which every call is turned away before that counts as an outage.
const REFUSED_OUTAGE: Duration = Duration::from_secs(300);

impl Judge {
    /// Ends a run whose handler has turned every call away for longer than the task waits.
    pub(in crate::execution) fn judge_refusals(&mut self, cx: &Scope<'_>) {
        let patience = cx.settings.whole.outage_patience;
        let Some(with) = &mut self.turned_away_with else {
            return;
        };
        let lasts = cx.now.wall.since(with.since);
        with.is_outage |= lasts >= REFUSED_OUTAGE.min(patience);
        if lasts >= patience && cx.settings.shared.all_down {
            let text = say::refused_too_long(patience, &with.said).to_string();
            self.stop(RunEnd::stopped(StopReason::HandlerUnreachable, text));
        }
    }

    pub(in crate::execution) fn stop_without_success(&mut self, last: &Failure) {
        let last = say::said(last.code.clone(), last.message.clone());
        let text = say::none_succeeds(last).to_string();
        self.stop(RunEnd::stopped(StopReason::NoItemSucceeds, text));
    }

    /// Ends a run whose handler was never reached in time, or is down for longer than the task waits.
    pub(in crate::execution) fn judge_patience(&mut self, cx: &Scope<'_>) {
        // The time of the last items has its own bound.
        let Some(error) = self.errors.last().filter(|_| !self.alone.is_tail()) else {
            return;
        };
        let said = say::said(error.code.clone(), &error.example);
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
            return self.stop(RunEnd::stopped(reason, said.to_string()));
        }
        let patience = cx.settings.whole.outage_patience;
        let is_over =
            |outage: Outage| cx.now.wall.since(outage.since) >= patience && cx.settings.shared.all_down;
        if self.circuit.outage().is_some_and(is_over) {
            let text = say::down_too_long(patience, said).to_string();
            self.stop(RunEnd::stopped(StopReason::HandlerUnreachable, text));
        }
    }
}
