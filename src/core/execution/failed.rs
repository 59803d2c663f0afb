//! Failed attempts: whether they count, and whether the item is retried, held, parked or failed.

use crate::execution::items::Items;
use crate::execution::settings::Settings;
use std::time::Duration;

use super::Execution;
use super::types::{Effects, Now};
use crate::ids::{Attempt, ItemIndex};
use crate::invariants::Invariant;
use crate::items::run::IndexRun;
use crate::items::verdict::{AttemptNote, Failed, FailingItem, FailureClass, SideRecord};
use crate::items::waiting::{Doing, Place, RetryingItem};

impl Execution {
    pub(super) fn on_failed(&mut self, failed: Failed, now: Now, fx: &mut Effects) {
        if let Some(known) = self.items.take_flight(failed.index, failed.attempt, fx) {
            let is_new = known.as_ref().is_none_or(RetryingItem::is_only_turned_away);
            let mut retrying = known.unwrap_or_else(|| RetryingItem::fresh(now.wall));
            if is_new {
                retrying.suspicion.first = Some(failed.departed);
            }
            self.on_failed_retrying(failed, retrying, now, fx);
        }
    }

    /// Handles a failed attempt of an item that was taken out of flight.
    pub(super) fn on_failed_retrying(
        &mut self,
        mut failed: Failed,
        mut retrying: RetryingItem,
        now: Now,
        fx: &mut Effects,
    ) {
        let index = failed.index;
        retrying.suspicion.others.get_or_insert(self.judge.others);
        failed.class = self.judge.class_now(failed.class);
        self.items.land(1, fx);
        self.items.solo.on_answered(index);
        self.meters.on_failed(&failed.failure.code, failed.advice);
        if self.items.skips.has(index) {
            return self.items.skip_known(index, &retrying, fx);
        }
        if self.settings.is_shared_failure(failed.class, failed.call_items) {
            self.items.note_attempt(&failed, &mut retrying, None, now);
            return self.items.call_in_halves(&self.settings, failed, retrying, now);
        }
        self.judge.on_failed(&mut scope!(self, now, fx), failed, retrying);
    }
}

impl Items {
    /// Takes the item of a returned call out of flight; the inner option is `None` if nothing was known of the item.
    /// The outer one is `None`, and an invariant broken, if no such call was out.
    pub(in crate::execution) fn take_flight(
        &mut self,
        index: ItemIndex,
        attempt: Attempt,
        fx: &mut Effects,
    ) -> Option<Option<RetryingItem>> {
        let was_in_flight = match self.retrying_items.get(index) {
            Some(t) => t.doing == Doing::InFlight && t.attempts + 1 == attempt.get(),
            None => attempt == Attempt::FIRST && index < self.high && !self.window.is_settled(index),
        };
        if !was_in_flight {
            fx.violations.push(Invariant::ReportWasInFlight);
            return None;
        }
        Some(self.retrying_items.take(index))
    }

    /// Records an attempt and whether it counts; `charged` is `None` if others shared its call.
    pub(in crate::execution) fn note_attempt(
        &self,
        failed: &Failed,
        retrying: &mut RetryingItem,
        charged: Option<bool>,
        now: Now,
    ) {
        let is_charged = charged == Some(true);
        // A call that never reached the handler is not an attempt that the handler could count.
        let is_unsent = failed.class == FailureClass::Unsendable && !is_charged;
        if failed.class != FailureClass::Unreachable && !is_unsent {
            retrying.attempts = failed.attempt.get();
        }
        if is_charged {
            (retrying.charged, retrying.uncharged) = (retrying.charged.saturating_add(1), 0);
        } else if charged.is_some() {
            retrying.uncharged = retrying.uncharged.saturating_add(1);
        }
        retrying.last = charged.map(|_| failed.class);
        retrying.note(AttemptNote {
            attempt: failed.attempt.get(),
            at_ms: now.wall.0,
            duration_ms: u64::try_from(failed.took.as_millis()).unwrap_or(u64::MAX),
            code: failed.failure.code.clone(),
            run: self.run.0,
        });
        retrying.at = now.wall;
    }

    /// Lets an item wait for its retry. Short waits stay in the window; long ones are parked while there is room.
    pub(in crate::execution) fn wait_for_retry(
        &mut self,
        settings: &Settings,
        index: ItemIndex,
        mut retrying: RetryingItem,
        wait: Duration,
        now: Now,
    ) {
        if wait > settings.tuning.park_after {
            self.park_if_room(settings, index, &mut retrying);
        }
        retrying.doing = Doing::Waiting(now.moment.plus(wait));
        retrying.due_at = now.wall.plus(wait);
        self.record(index, &retrying);
        self.retrying_items.put(index, retrying);
    }

    pub(in crate::execution) fn park_if_room(
        &mut self,
        settings: &Settings,
        index: ItemIndex,
        retrying: &mut RetryingItem,
    ) {
        let parks =
            !settings.tuning.ordered && retrying.place == Place::Window && self.has_room_to_park(settings);
        if parks && self.window.settle(IndexRun::one(index)).is_ok() {
            retrying.place = Place::Outside;
            self.drafts.on_completed(1);
        }
    }

    pub(in crate::execution) fn has_room_to_park(&self, settings: &Settings) -> bool {
        self.retrying_items.outside() < u64::from(settings.tuning.parked_max)
    }

    /// Records the row that a checkpoint keeps of a retrying item.
    pub(in crate::execution) fn record(&mut self, index: ItemIndex, retrying: &RetryingItem) {
        let row = item_trouble(index, retrying);
        let record = match retrying.place {
            Place::Window => SideRecord::Retrying(row),
            Place::Outside => SideRecord::Parked {
                retrying: row,
                due_at: retrying.due_at,
            },
        };
        self.drafts.record(record);
    }
}

pub(super) fn item_trouble(index: ItemIndex, retrying: &RetryingItem) -> FailingItem {
    let (failure, history) = (retrying.failure.clone(), retrying.history.clone());
    let (attempts, charged) = (retrying.attempts, retrying.charged);
    FailingItem {
        index,
        attempts,
        charged,
        is_unconfirmed: retrying.suspicion.is_unconfirmed,
        others_answered: 0,
        failure,
        at: retrying.at,
        history,
    }
}
