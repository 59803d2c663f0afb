//! Which failed attempts count against their items, and which an outage excuses.

use crate::execution::items::Items;
use crate::execution::judge::Judge;
use crate::execution::settings::Settings;
use crate::execution::types::{Effects, Now};
use crate::ids::{ItemIndex, Moment};
use crate::items::verdict::{Failed, Failure, FailureClass};
use crate::items::waiting::{Doing, Trouble};
use crate::settings::FailedAttempts;

/// The code of an item that may not be tried again and whose only attempt an outage swallowed.
const OUTCOME_UNKNOWN: &str = "OUTCOME_UNKNOWN";

impl Judge {
    /// Whether the attempt counts against its item.
    pub(in crate::execution) fn is_charged(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        failed: &Failed,
        trouble: &mut Trouble,
    ) -> bool {
        match failed.class {
            FailureClass::Answered | FailureClass::Exited => true,
            FailureClass::Faulty => self.contacted,
            FailureClass::Unsendable => self.is_item_unsendable(items, settings),
            FailureClass::Rejected => self.charge_refusal(items, settings, failed, trouble),
            FailureClass::Unavailable => self.charge_unavailable(items, settings, failed, trouble),
            FailureClass::Unreachable | FailureClass::Unstarted => false,
            FailureClass::Unclear => !self.is_excused(settings, failed.departed, trouble),
        }
    }

    pub(in crate::execution) fn is_excused(
        &mut self,
        settings: &Settings,
        departed: Moment,
        trouble: &mut Trouble,
    ) -> bool {
        let outage = self.circuit.outages();
        if !self.circuit.excuses(departed) || self.alone.is_over() {
            return false;
        }
        trouble.outage == outage || settings.try_excuse(trouble, outage)
    }

    /// An outage begins: unclear attempts that departed after the last answered call aren't charged.
    pub(in crate::execution) fn excuse_all(&mut self, items: &mut Items, settings: &Settings, now: Now) {
        self.doubtful = 0;
        let (answered, outage) = (self.circuit.answered(), self.circuit.outages());
        let doubted = |trouble: &Trouble| trouble.doubts.iter().any(|departed| *departed > answered);
        for index in items.troubles.which(doubted) {
            let Some(mut trouble) = items.troubles.take(index) else {
                continue;
            };
            let excused = trouble
                .doubts
                .iter()
                .filter(|departed| **departed > answered)
                .count() as u32;
            if settings.try_excuse(&mut trouble, outage) {
                trouble.charged = trouble.charged.saturating_sub(excused);
                trouble.doubts.retain(|departed| *departed <= answered);
                if matches!(trouble.doing, Doing::Held(_)) {
                    trouble.doing = Doing::Waiting(now.moment);
                    trouble.held = None;
                }
                items.record(index, &trouble);
            }
            items.troubles.put(index, trouble);
        }
    }

    /// All attempts are used, the last one without a verdict: the item waits for a witness.
    pub(in crate::execution) fn hold(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        index: ItemIndex,
        mut trouble: Trouble,
        now: Now,
        fx: &mut Effects,
    ) {
        let is_only = settings.tuning.max_attempts.get() == 1;
        if is_only {
            self.excuse_code(&mut trouble);
        }
        if is_only || self.alone.is_over() {
            if settings.tuning.ordered {
                self.alone.on_given_up_in_order();
            }
            return self.exhaust(items, settings, index, trouble, now, fx);
        }
        items.park_if_room(settings, index, &mut trouble);
        trouble.held.get_or_insert((now.moment, 0));
        trouble.doing = Doing::Held(now.moment);
        trouble.due_at = now.wall;
        items.record(index, &trouble);
        items.troubles.put(index, trouble);
    }

    /// An item that may be tried once only is given up in an outage too, and says that nobody knows what came of it.
    pub(in crate::execution) fn excuse_code(&self, trouble: &mut Trouble) {
        let is_outage = trouble
            .doubts
            .last()
            .is_some_and(|departed| self.circuit.excuses(*departed));
        if let Some(failure) = trouble.failure.as_mut().filter(|_| is_outage) {
            let message = format!(
                "only one attempt is allowed, and the handler was down: {}",
                failure.message
            );
            *failure = Failure::new(OUTCOME_UNKNOWN, message);
        }
    }

    pub(in crate::execution) fn give_up_held(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        index: ItemIndex,
        now: Now,
        fx: &mut Effects,
    ) {
        if let Some(trouble) = items.troubles.take(index) {
            self.exhaust(items, settings, index, trouble, now, fx);
        }
    }

    /// Notes a charged attempt: at once, or once an answer shows that it wasn't an outage.
    pub(in crate::execution) fn count_against_budget(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        class: FailureClass,
        failure: &Failure,
        now: Now,
    ) {
        if class == FailureClass::Unclear {
            self.doubtful += 1;
        } else if self.is_one_too_many(items, settings, now.moment) {
            self.recover_from_failures(settings, &failure.code, &failure.message);
        }
    }

    /// Counts a failed attempt; says whether the error budget allows it no more. Once every item has left, those that are left
    /// failed before: their share of what is tried says nothing of the handler.
    pub(in crate::execution) fn is_one_too_many(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        now: Moment,
    ) -> bool {
        let is_over = self.budget.on_failed_attempt(items.counters.succeeded, now);
        let is_of_share = matches!(
            settings.whole.error_budget.failed_attempts,
            Some(FailedAttempts::Most(_))
        );
        is_over && (!is_of_share || items.cursor < items.fresh_end())
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
