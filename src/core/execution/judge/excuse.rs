//! Which failed attempts count against their items, and which an outage excuses.

use crate::execution::Execution;
use crate::execution::settings::Settings;
use crate::execution::types::{Effects, Now};
use crate::ids::{ItemIndex, Moment};
use crate::items::verdict::{Failed, Failure, FailureClass};
use crate::items::waiting::{Doing, Trouble};
use crate::settings::FailedAttempts;

/// The code of an item that may not be tried again and whose only attempt an outage swallowed.
const OUTCOME_UNKNOWN: &str = "OUTCOME_UNKNOWN";

impl Execution {
    /// Whether the attempt counts against its item.
    pub(in crate::execution) fn is_charged(&mut self, failed: &Failed, trouble: &mut Trouble) -> bool {
        match failed.class {
            FailureClass::Answered | FailureClass::Exited => true,
            FailureClass::Faulty => self.judge.contacted,
            FailureClass::Unsendable => self.is_item_unsendable(),
            FailureClass::Rejected => self.charge_refusal(failed, trouble),
            FailureClass::Unavailable => self.charge_unavailable(failed, trouble),
            FailureClass::Unreachable | FailureClass::Unstarted => false,
            FailureClass::Unclear => !self.is_excused(failed.departed, trouble),
        }
    }

    fn is_excused(&mut self, departed: Moment, trouble: &mut Trouble) -> bool {
        let outage = self.judge.circuit.outages();
        if !self.judge.circuit.excuses(departed) || self.judge.alone.is_over() {
            return false;
        }
        trouble.outage == outage || self.settings.try_excuse(trouble, outage)
    }

    /// An outage begins: unclear attempts that departed after the last answered call aren't charged.
    pub(super) fn excuse_all(&mut self, now: Now) {
        self.judge.doubtful = 0;
        let (answered, outage) = (self.judge.circuit.answered(), self.judge.circuit.outages());
        let doubted = |trouble: &Trouble| trouble.doubts.iter().any(|departed| *departed > answered);
        for index in self.items.troubles.which(doubted) {
            let Some(mut trouble) = self.items.troubles.take(index) else {
                continue;
            };
            let excused = trouble
                .doubts
                .iter()
                .filter(|departed| **departed > answered)
                .count() as u32;
            if self.settings.try_excuse(&mut trouble, outage) {
                trouble.charged = trouble.charged.saturating_sub(excused);
                trouble.doubts.retain(|departed| *departed <= answered);
                if matches!(trouble.doing, Doing::Held(_)) {
                    trouble.doing = Doing::Waiting(now.moment);
                    trouble.held = None;
                }
                self.items.record(index, &trouble);
            }
            self.items.troubles.put(index, trouble);
        }
    }

    /// All attempts are used, the last one without a verdict: the item waits for a witness.
    pub(in crate::execution) fn hold(
        &mut self,
        index: ItemIndex,
        mut trouble: Trouble,
        now: Now,
        fx: &mut Effects,
    ) {
        let is_only = self.settings.tuning.max_attempts.get() == 1;
        if is_only {
            self.excuse_code(&mut trouble);
        }
        if is_only || self.judge.alone.is_over() {
            if self.settings.tuning.ordered {
                self.judge.alone.on_given_up_in_order();
            }
            return self.exhaust(index, trouble, now, fx);
        }
        self.items.park_if_room(&self.settings, index, &mut trouble);
        trouble.held.get_or_insert((now.moment, 0));
        trouble.doing = Doing::Held(now.moment);
        trouble.due_at = now.wall;
        self.items.record(index, &trouble);
        self.items.troubles.put(index, trouble);
    }

    /// An item that may be tried once only is given up in an outage too, and says that nobody knows what came of it.
    fn excuse_code(&self, trouble: &mut Trouble) {
        let is_outage = trouble
            .doubts
            .last()
            .is_some_and(|departed| self.judge.circuit.excuses(*departed));
        if let Some(failure) = trouble.failure.as_mut().filter(|_| is_outage) {
            let message = format!(
                "only one attempt is allowed, and the handler was down: {}",
                failure.message
            );
            *failure = Failure::new(OUTCOME_UNKNOWN, message);
        }
    }

    pub(in crate::execution) fn give_up_held(&mut self, index: ItemIndex, now: Now, fx: &mut Effects) {
        if let Some(trouble) = self.items.troubles.take(index) {
            self.exhaust(index, trouble, now, fx);
        }
    }

    /// Notes a charged attempt: at once, or once an answer shows that it wasn't an outage.
    pub(in crate::execution) fn count_against_budget(
        &mut self,
        class: FailureClass,
        failure: &Failure,
        now: Now,
    ) {
        if class == FailureClass::Unclear {
            self.judge.doubtful += 1;
        } else if self.is_one_too_many(now.moment) {
            self.recover_from_failures(&failure.code, &failure.message);
        }
    }

    /// Counts a failed attempt; says whether the error budget allows it no more. Once every item has left, those that are left
    /// failed before: their share of what is tried says nothing of the handler.
    pub(in crate::execution) fn is_one_too_many(&mut self, now: Moment) -> bool {
        let is_over = self
            .judge
            .budget
            .on_failed_attempt(self.items.counters.succeeded, now);
        let is_of_share = matches!(
            self.settings.whole.error_budget.failed_attempts,
            Some(FailedAttempts::Most(_))
        );
        is_over && (!is_of_share || self.items.cursor < self.items.fresh_end())
    }
}

impl Settings {
    /// An item that has been in as many outages as it has attempts may be what causes them.
    pub(in crate::execution) fn try_excuse(&self, trouble: &mut Trouble, outage: u32) -> bool {
        let most = self.tuning.max_attempts.get();
        let may = most > 1 && trouble.excused < most;
        if may {
            (trouble.excused, trouble.outage) = (trouble.excused + 1, outage);
        }
        may
    }
}
