//! Failed attempts: whether they count, and whether the item is tried again, held, parked or given up.

use crate::execution::items::Items;
use crate::execution::judge::Judge;
use crate::execution::settings::Settings;
use std::time::Duration;

use super::Execution;
use super::types::{Effects, Now, RunEnd};
use crate::ids::{Attempt, ItemIndex};
use crate::invariants::Invariant;
use crate::items::retry::{self, Verdict};
use crate::items::run::IndexRun;
use crate::items::verdict::{AttemptNote, Failed, FailureClass, ItemTrouble, SideRecord, Wish};
use crate::items::waiting::{Doing, Place, Trouble};
use crate::settings::OnExhausted;
use crate::task::lifecycle::StopReason;

/// The shortest wait after an attempt that doesn't count, however short the back-off is: else two items could take turns for
/// ever, and nobody would see that all others fare alike.
const UNCHARGED_WAIT_MIN: Duration = Duration::from_secs(1);

impl Execution {
    pub(super) fn on_failed(&mut self, failed: Failed, now: Now, fx: &mut Effects) {
        if let Some(known) = self.items.take_flight(failed.index, failed.attempt, fx) {
            let is_new = known.as_ref().is_none_or(Trouble::is_only_turned_away);
            let mut trouble = known.unwrap_or_else(|| fresh_trouble(now));
            if is_new {
                trouble.failed_first = Some(failed.departed);
            }
            self.on_failed_trouble(failed, trouble, now, fx);
        }
    }

    /// An attempt of this item, which was taken, failed.
    pub(super) fn on_failed_trouble(
        &mut self,
        mut failed: Failed,
        mut trouble: Trouble,
        now: Now,
        fx: &mut Effects,
    ) {
        let index = failed.index;
        trouble
            .answered_before
            .get_or_insert(self.judge.turned_away.answered());
        failed.class = self.judge.class_now(failed.class);
        self.items.land(1, fx);
        self.items.solo.on_answered(index);
        self.meters.on_failed(&failed.failure.code, failed.wish);
        if self.items.skips.has(index) {
            return self.items.skip_known(index, &trouble, fx);
        }
        if self.settings.is_shared_failure(failed.class, failed.call_items) {
            self.items.note_attempt(&failed, &mut trouble, None, now);
            return self.items.call_in_halves(&self.settings, failed, trouble, now);
        }
        let is_charged = self
            .judge
            .is_charged(&mut self.items, &self.settings, &failed, &mut trouble);
        self.judge.on_failed(failed.class, &trouble, now.moment);
        self.items
            .note_attempt(&failed, &mut trouble, Some(is_charged), now);
        let class = failed.class;
        let wish = failed.wish;
        if is_charged {
            self.judge
                .count_against_budget(&mut self.items, &self.settings, class, &failed.failure, now);
        }
        trouble.failure = Some(failed.failure);
        if self.judge.is_tail_over() && (!is_charged || class == FailureClass::Unclear) {
            return self
                .judge
                .end_open(&mut self.items, &self.settings, index, trouble, now, fx);
        }
        if is_charged {
            self.judge.on_charged(
                &mut self.items,
                &self.settings,
                index,
                trouble,
                (class, wish),
                now,
                fx,
            );
        } else {
            self.judge
                .on_uncharged(&mut self.items, &self.settings, index, trouble, wish, now);
        }
    }
}

impl Judge {
    /// The attempt counts: another one while there are some, else it is over, unless nobody knows what the last one did.
    pub(in crate::execution) fn on_charged(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        index: ItemIndex,
        trouble: Trouble,
        (class, wish): (FailureClass, Wish),
        now: Now,
        fx: &mut Effects,
    ) {
        let charged = Attempt::new(trouble.charged);
        let spread = retry::spread(items.shard.task, index, Attempt::new(trouble.attempts.max(1)));
        let most = settings.tuning.max_attempts.get();
        match retry::decide(wish, charged, most, &settings.tuning.backoff, spread) {
            Verdict::RetryAfter(wait) => items.wait_for_retry(settings, index, trouble, wait, now),
            Verdict::GivenUp => self.abandon(items, settings, index, &trouble, fx),
            Verdict::Exhausted if class == FailureClass::Unclear => {
                self.hold(items, settings, index, trouble, now, fx)
            }
            Verdict::Exhausted => self.exhaust(items, settings, index, trouble, now, fx),
        }
    }

    /// The item goes back; others come first, so that it is seen whether they fare alike.
    pub(in crate::execution) fn on_uncharged(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        index: ItemIndex,
        trouble: Trouble,
        wish: Wish,
        now: Now,
    ) {
        let turn = Attempt::new(trouble.uncharged);
        let spread = retry::spread(items.shard.task, index, turn);
        let steady = retry::wait(&settings.tuning.backoff, turn, spread).max(UNCHARGED_WAIT_MIN);
        let wait = match wish {
            Wish::Retry { after: Some(chosen) } => chosen.min(retry::RETRY_AFTER_MAX).max(steady),
            Wish::Retry { after: None } => steady,
            // It fails as soon as it counts.
            Wish::Abandon => UNCHARGED_WAIT_MIN,
        };
        items.wait_for_retry(
            settings,
            index,
            trouble,
            self.at_most_alone(items, settings, wait),
            now,
        );
    }

    /// All attempts are used, and it is certain that they count.
    pub(in crate::execution) fn exhaust(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        index: ItemIndex,
        trouble: Trouble,
        now: Now,
        fx: &mut Effects,
    ) {
        if settings.tuning.on_exhausted == OnExhausted::Abandon {
            return self.abandon(items, settings, index, &trouble, fx);
        }
        let text = format!("item {} used all {} attempts", index.0, trouble.charged);
        self.stop(RunEnd::stopped(StopReason::ItemExhausted, text));
        items.wait_for_retry(settings, index, trouble, Duration::ZERO, now);
    }

    pub(in crate::execution) fn abandon(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        index: ItemIndex,
        trouble: &Trouble,
        fx: &mut Effects,
    ) {
        self.settle_abandoned(items, index, trouble, fx);
        let code = trouble
            .failure
            .as_ref()
            .map_or("nothing", |failure| failure.code.as_ref());
        self.judge_abandoned(items, settings, &format!("the last one said {code}"));
    }

    pub(in crate::execution) fn settle_abandoned(
        &mut self,
        items: &mut Items,
        index: ItemIndex,
        trouble: &Trouble,
        fx: &mut Effects,
    ) {
        items.close_place(index, trouble, fx);
        let answered = self.turned_away.answered();
        let others_answered = answered.saturating_sub(trouble.answered_before.unwrap_or(answered));
        items.drafts.record(SideRecord::Abandoned(ItemTrouble {
            others_answered,
            ..item_trouble(index, trouble)
        }));
        items.counters.abandoned += 1;
        items.drafts.on_completed(1);
    }
}

impl Items {
    /// Takes the item of a call that came back; the inner one is none where nothing was known of it. The outer one is none,
    /// and an invariant broken, when no such call was out.
    pub(in crate::execution) fn take_flight(
        &mut self,
        index: ItemIndex,
        attempt: Attempt,
        fx: &mut Effects,
    ) -> Option<Option<Trouble>> {
        let was_in_flight = match self.troubles.get(index) {
            Some(t) => t.doing == Doing::InFlight && t.attempts + 1 == attempt.get(),
            None => attempt == Attempt::FIRST && index < self.high && !self.window.is_settled(index),
        };
        if !was_in_flight {
            fx.violations.push(Invariant::ReportWasInFlight);
            return None;
        }
        Some(self.troubles.take(index))
    }

    /// Notes an attempt and whether it counts; none where others shared its call.
    pub(in crate::execution) fn note_attempt(
        &self,
        failed: &Failed,
        trouble: &mut Trouble,
        charged: Option<bool>,
        now: Now,
    ) {
        let is_charged = charged == Some(true);
        // What never reached the handler is no attempt that it could count.
        let is_unsent = failed.class == FailureClass::Unsendable && !is_charged;
        if failed.class != FailureClass::Unreachable && !is_unsent {
            trouble.attempts = failed.attempt.get();
        }
        if is_charged {
            (trouble.charged, trouble.uncharged) = (trouble.charged.saturating_add(1), 0);
        } else if charged.is_some() {
            trouble.uncharged = trouble.uncharged.saturating_add(1);
        }
        trouble.last = charged.map(|_| failed.class);
        if is_charged && failed.class == FailureClass::Unclear {
            trouble.doubts.push(failed.departed);
        }
        trouble.note(AttemptNote {
            attempt: failed.attempt.get(),
            at_ms: now.wall.0,
            duration_ms: u64::try_from(failed.took.as_millis()).unwrap_or(u64::MAX),
            code: failed.failure.code.clone(),
            run: self.run.0,
        });
        trouble.at = now.wall;
    }

    /// Short waits stay in the window, long ones park, as long as there is room.
    pub(in crate::execution) fn wait_for_retry(
        &mut self,
        settings: &Settings,
        index: ItemIndex,
        mut trouble: Trouble,
        wait: Duration,
        now: Now,
    ) {
        if wait > settings.tuning.park_after {
            self.park_if_room(settings, index, &mut trouble);
        }
        trouble.doing = Doing::Waiting(now.moment.plus(wait));
        trouble.due_at = now.wall.plus(wait);
        self.record(index, &trouble);
        self.troubles.put(index, trouble);
    }

    pub(in crate::execution) fn park_if_room(
        &mut self,
        settings: &Settings,
        index: ItemIndex,
        trouble: &mut Trouble,
    ) {
        let parks =
            !settings.tuning.ordered && trouble.place == Place::Window && self.has_room_to_park(settings);
        if parks && self.window.settle(IndexRun::one(index)).is_ok() {
            trouble.place = Place::Outside;
            self.drafts.on_completed(1);
        }
    }

    pub(in crate::execution) fn has_room_to_park(&self, settings: &Settings) -> bool {
        self.troubles.outside() < u64::from(settings.tuning.parked_max)
    }

    /// The row that a checkpoint keeps of a retrying item.
    pub(in crate::execution) fn record(&mut self, index: ItemIndex, trouble: &Trouble) {
        let row = item_trouble(index, trouble);
        let record = match trouble.place {
            Place::Window => SideRecord::Retrying(row),
            Place::Outside => SideRecord::Parked {
                trouble: row,
                due_at: trouble.due_at,
            },
        };
        self.drafts.record(record);
    }
}

pub(super) fn fresh_trouble(now: Now) -> Trouble {
    Trouble {
        at: now.wall,
        due_at: now.wall,
        ..Trouble::default()
    }
}

pub(super) fn item_trouble(index: ItemIndex, trouble: &Trouble) -> ItemTrouble {
    let (failure, history) = (trouble.failure.clone(), trouble.history.clone());
    let (attempts, charged) = (trouble.attempts, trouble.charged);
    ItemTrouble {
        index,
        attempts,
        charged,
        is_unconfirmed: trouble.is_unconfirmed,
        others_answered: 0,
        failure,
        at: trouble.at,
        history,
    }
}
