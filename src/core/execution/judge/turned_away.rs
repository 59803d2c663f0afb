//! Calls that were turned away (429): the handler is overloaded, or doesn't take this item.
//!
//! No item is charged. While few calls were answered, or if several in a row or a large share of the recent ones are
//! turned away, of more than one item, a 429 is about all calls, and the task pauses. If the handler takes nearly all others, it is about
//! that item (a limit of a recipient, for example): only the item waits, and if that happens again and again its
//! attempts count.

use crate::execution::items::Items;
use std::time::Duration;

use super::pauses::RETRY_AFTER_LONGEST;
use crate::execution::Execution;
use crate::execution::types::{Effects, Now};
use crate::ids::{ItemIndex, Moment};
use crate::items::retry::doubled;
use crate::items::verdict::{AnsweredCalls, Failed, FailedCall, RetryAdvice};
use crate::items::waiting::{Doing, Place, RetryingItem};
use crate::items::waiting::{Others, Turns};

/// Times that an item is turned away while others are answered before its attempts count.
const TURNS_MAX: u32 = 5;
/// Times turned away from which on the store keeps a row of the item, so that people see what it waits for.
const TURNS_SHOWN: u32 = 3;
/// Minimum calls for others answered per call turned away: if the handler turns one of eleven away, an item has five
/// turns by chance in less than one of 100,000 cases.
const ANSWERED_MIN: u64 = 10;
/// Calls turned away in a row, with none answered that was sent later, that are about all calls.
const ROW: u32 = 3;
/// Number of recent calls over which the share of those turned away is computed.
const RECENT_CALLS: u64 = 200;
/// First and longest time for which others go first once the pause is over; doubled each time.
const OTHERS_FIRST: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(64));

/// Calls of this run that were turned away.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::execution) struct TurnedAway {
    /// Number of those that weren't about their item alone.
    turned_away: u64,
    row: u32,
    /// Number of calls answered when the latest call was turned away.
    seen: u64,
    /// Recent calls: how many were answered, and how many turned away.
    recent: (u64, u64),
    /// Item of the latest call that was turned away: one item alone says nothing about others.
    last: Option<ItemIndex>,
}

/// Meaning of one more call that was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    /// Set if it counts as a turn of the item.
    counts: bool,
    /// Set if nearly all others are taken, so that it says nothing about them.
    is_of_item: bool,
}

impl TurnedAway {
    /// Counts a turn of an item whose call was sent at `departed`, if nearly all others were answered since its last
    /// one, or if no others are left that could be.
    fn count(
        &mut self,
        (index, is_only): (ItemIndex, bool),
        turns: &mut Turns,
        are_others_left: bool,
        (others, departed): (Others, Moment),
    ) -> Turn {
        let is_another = self.last.replace(index).is_some_and(|last| last != index);
        let is_first = turns.all == 0;
        turns.all = turns.all.saturating_add(1);
        let answered = others.answered - turns.answered;
        let turned_away = self.turned_away - turns.turned_away;
        let is_its_own = !is_first && answered > 0 && answered >= turned_away * ANSWERED_MIN;
        let counts = is_first || is_its_own || !are_others_left && turns.own > 1;
        // An item that is known to be the cause says nothing about others, however often it is called.
        let is_for_all = self.count_for_all(others, departed) && (is_another || is_only || !are_others_left);
        let is_of_item = is_its_own || !is_for_all;
        if counts {
            turns.own = turns.own.saturating_add(1);
            (turns.answered, turns.turned_away) = (others.answered, self.turned_away);
        }
        Turn { counts, is_of_item }
    }

    /// Counts a call that may be about all calls; returns true if the recent ones show that it is.
    fn count_for_all(&mut self, others: Others, departed: Moment) -> bool {
        self.turned_away += 1;
        let answered = others.answered - self.seen;
        self.seen = others.answered;
        if answered > 0 {
            self.row = 0;
        }
        // Calls come back in a different order than they were sent: one that was sent before an answered one ends no
        // row, and makes none.
        self.row += u32::from(departed > others.departed);
        self.recent = (self.recent.0 + answered, self.recent.1 + 1);
        let calls = self.recent.0 + self.recent.1;
        if calls > RECENT_CALLS {
            let scaled = |calls_of: u64| calls_of * RECENT_CALLS / calls;
            self.recent = (scaled(self.recent.0), scaled(self.recent.1).max(1));
        }
        self.row >= ROW || self.recent.0 < self.recent.1 * ANSWERED_MIN
    }
}

impl Execution {
    /// Handles a call for a single item that was turned away.
    pub(in crate::execution) fn on_turned_away(&mut self, failed: Failed, now: Now, fx: &mut Effects) {
        let index = failed.index;
        let others_left = self.items.are_others_left();
        let Some(retrying) = self.items.take_flight(index, failed.attempt, fx) else {
            return;
        };
        let mut retrying = retrying.unwrap_or_else(|| RetryingItem::fresh(now.wall));
        let is_only = self.items.left() == 0 && self.items.counters.in_flight <= 1;
        let turns = &mut retrying.suspicion.turns;
        let turn = self.judge.turned_away.count(
            (index, is_only),
            turns,
            others_left,
            (self.judge.others, failed.departed),
        );
        let after = match failed.advice {
            RetryAdvice::Retry { after } => after,
            RetryAdvice::Fail => None,
        };
        if retrying.suspicion.turns.own > 1 {
            self.judge
                .errors
                .note(&turned_away_alone(&failed, after), now.wall);
        }
        if turn.counts && retrying.suspicion.turns.own > TURNS_MAX {
            // The round of probes continues with other items.
            self.judge.circuit.on_returned(1);
            return self.on_failed_retrying(failed, retrying, now, fx);
        }
        self.items.land(1, fx);
        self.take_back(1, u64::from(retrying.attempts > 0));
        self.meters.on_refused(1);
        // If calls are sent in order, all items after this one wait with it.
        let until = if turn.is_of_item && !self.settings.tuning.ordered {
            // One refusal may have met anybody, and the autopilot has learned from it.
            let is_believed = retrying.suspicion.turns.own > 1 || !self.autopilot.finds_rate();
            let after = after.filter(|_| is_believed).unwrap_or_default();
            now.moment.plus(after.min(RETRY_AFTER_LONGEST))
        } else {
            self.back_off(after, failed.departed, &failed.failure, now);
            self.pace.paused(now.moment).unwrap_or(now.moment)
        };
        retrying.failure = Some(failed.failure);
        retrying.at = now.wall;
        self.wait_after_turn(index, retrying, until, now);
    }

    /// Lets the item wait until then, and others go first. Long waits are parked, like those after a failed attempt.
    fn wait_after_turn(&mut self, index: ItemIndex, mut retrying: RetryingItem, until: Moment, now: Now) {
        let others_first = match self.settings.tuning.ordered {
            true => Duration::ZERO,
            false => doubled(OTHERS_FIRST, retrying.suspicion.turns.all - 1),
        };
        let wait = until.since(now.moment) + others_first;
        if wait > self.settings.tuning.park_after && self.pace.paused(now.moment).is_none() {
            self.items.park_if_room(&self.settings, index, &mut retrying);
        }
        retrying.doing = Doing::Waiting(now.moment.plus(wait));
        if retrying.suspicion.turns.all >= TURNS_SHOWN || retrying.place == Place::Outside {
            retrying.due_at = now.wall.plus(wait);
            self.items.record(index, &retrying);
        }
        self.items.retrying_items.put(index, retrying);
        self.judge.look_for_marked();
        self.items.skips.on_waits(index);
    }
}

impl Items {
    /// True if any item is left that wasn't turned away while others were answered.
    pub(in crate::execution) fn are_others_left(&self) -> bool {
        let total = self.range.end.0 - self.range.start.0;
        let passed_over = self.skips.among(self.cursor, self.end);
        let gone = self.counters.settled() + self.counters.excluded + passed_over;
        let unsettled = total.saturating_sub(gone);
        let is_suspect = |retrying: &RetryingItem| retrying.suspicion.turns.own > 1;
        let known = self.retrying_items.len() as u64;
        known < unsettled
            || !self
                .retrying_items
                .iter()
                .all(|(_, retrying)| is_suspect(retrying))
    }
}

/// Describes a call that was turned away while the handler took others: people should see which item it is about.
fn turned_away_alone(failed: &Failed, after: Option<Duration>) -> FailedCall {
    FailedCall {
        before: AnsweredCalls::default(),
        class: failed.class,
        index: failed.index,
        items: 1,
        departed: failed.departed,
        failure: failed.failure.clone(),
        after,
    }
}
