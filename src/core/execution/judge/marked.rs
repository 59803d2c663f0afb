//! Waiting items that a person has failed by their code (`task::failed_codes`).
//!
//! This is a rule over all waiting items, not a one-time message: it holds for a run that starts from a state saved
//! before the decision as well as for the current one. Items that are with the handler are not touched.

use crate::execution::judge::Judge;
use crate::execution::types::{Effects, Now, Phase};
use crate::execution::{Execution, Scope};
use crate::items::waiting::{Doing, RetryingItem};
use crate::task::failed_codes::FailedCodes;

#[derive(Debug, Default)]
pub(super) struct Marked {
    decided: FailedCodes,
    /// Set if waiting items may match a decision.
    is_due: bool,
}

impl Execution {
    /// Fails the items that a person has decided on. The error budget doesn't apply: it guards against failures that
    /// nobody has looked at.
    #[inline]
    pub(in crate::execution) fn fail_marked(&mut self, now: Now, fx: &mut Effects) {
        if std::mem::take(&mut self.judge.marked.is_due) && !matches!(self.phase, Phase::Ended(_)) {
            self.judge.fail_waiting(&mut scope!(self, now, fx));
        }
    }
}

impl Judge {
    /// Sets all decisions made so far.
    pub(in crate::execution) fn mark_failed(&mut self, decided: FailedCodes) {
        self.marked.decided = decided;
        self.look_for_marked();
    }

    /// Notes that items may wait that didn't before.
    #[inline]
    pub(in crate::execution) fn look_for_marked(&mut self) {
        let marked = &mut self.marked;
        marked.is_due = !marked.decided.is_empty();
    }

    pub(in crate::execution) fn fail_waiting(&mut self, cx: &mut Scope<'_>) {
        for index in cx.items.retrying_items.which(|retrying| self.is_marked(retrying)) {
            if let Some(retrying) = cx.items.retrying_items.take(index) {
                self.settle_failed(cx, index, &retrying);
                cx.items.solo.on_answered(index);
            }
        }
    }

    pub(in crate::execution) fn is_marked(&self, retrying: &RetryingItem) -> bool {
        let waits = retrying.doing != Doing::InFlight;
        let failure = retrying.failure.as_ref().filter(|_| waits);
        failure.is_some_and(|failure| self.marked.decided.covers(&failure.code, retrying.at))
    }
}
