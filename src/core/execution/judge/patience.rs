//! How long a handler that is down, or never answers well, is borne.

use crate::execution::items::Items;
use crate::execution::judge::Judge;
use crate::execution::settings::Settings;
use std::time::Duration;

use crate::execution::types::{Now, RunEnd};
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
    pub(in crate::execution) fn judge_patience(&mut self, items: &mut Items, settings: &Settings, now: Now) {
        let Some(error) = self.errors.last() else {
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
        let is_of_item = error.class == FailureClass::Unsendable && self.is_item_unsendable(items, settings);
        if self.first_contact().is_some_and(|until| now.moment >= until)
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
        if self.tail.is_on() {
            // Their time is bounded in another way.
            return;
        }
        let patience = settings.whole.outage_patience;
        let is_over = |outage: Outage| now.wall.since(outage.since) >= patience && settings.shared.all_down;
        if self.circuit.outage().is_some_and(is_over) {
            let span = humane(patience);
            let text =
                format!("the handler was down for {span}; {said}; nothing is lost, start the task to go on");
            self.stop(RunEnd::stopped(StopReason::HandlerUnreachable, text));
        }
    }
}

impl Items {
    /// Whether an item of this shard ever ended well, in this run or before.
    pub(in crate::execution) fn has_succeeded(&self) -> bool {
        self.counters.succeeded + self.skips.of_handler(self.counters.skipped) > 0
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
