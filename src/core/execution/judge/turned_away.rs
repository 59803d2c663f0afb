//! Calls that were turned away (429): too much for the handler, or nothing that it takes for this item?
//!
//! Nobody is charged. As long as few calls were answered, or where several in a row or a large share of the recent ones are
//! turned away, a 429 speaks for everybody, and the task pauses. Where the handler takes nearly all others, it speaks of that
//! item (a limit of a recipient, say): the item alone waits, and where that happens again and again its attempts count.

use crate::execution::items::Items;
use std::time::Duration;

use crate::execution::Execution;
use crate::execution::report::RETRY_AFTER_LONGEST;
use crate::execution::types::{Effects, Now};
use crate::ids::{ItemIndex, Moment};
use crate::items::retry::doubled;
use crate::items::verdict::{AnsweredCalls, Failed, FailedCall, RetryAdvice};
use crate::items::waiting::{Doing, Place, Trouble};
use crate::items::waiting::{Others, Turns};

/// So often an item is turned away while others are answered before its attempts count.
const TURNS_MAX: u32 = 5;
/// From so many on the store keeps a row of the item, so that people see what it waits for.
const TURNS_SHOWN: u32 = 3;
/// That many calls for others must be answered for each that is turned away: a handler that turns one of eleven away takes
/// five turns of one item by chance in less than one of 100,000 cases.
const ANSWERED_MIN: u64 = 10;
/// So many in a row, with no call answered that left later, speak for everybody.
const ROW: u32 = 3;
/// Recent calls among which the share of those that were turned away is looked at.
const RECENT_CALLS: u64 = 200;
/// How long others go first, once the pause is over, doubled each time up to the longest.
const OTHERS_FIRST: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(64));

/// Calls of this run that were turned away.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::execution) struct TurnedAway {
    /// Those that weren't about their item alone.
    turned_away: u64,
    row: u32,
    /// Calls answered when the latest call was turned away.
    seen: u64,
    /// Of the recent calls: how many were answered, and how many turned away.
    recent: (u64, u64),
}

/// What one more call says that was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    /// It is a turn of the item's own.
    counts: bool,
    /// Nearly all others are taken: it says nothing of them.
    is_of_item: bool,
}

impl TurnedAway {
    /// One more turn for an item, if since its last one nearly all others were answered, or no others are left
    /// that could be. Its call departed then.
    fn count(&mut self, turns: &mut Turns, are_others_left: bool, others: Others, departed: Moment) -> Turn {
        let is_first = turns.all == 0;
        turns.all = turns.all.saturating_add(1);
        let answered = others.answered - turns.answered;
        let turned_away = self.turned_away - turns.turned_away;
        let is_its_own = !is_first && answered > 0 && answered >= turned_away * ANSWERED_MIN;
        let counts = is_first || is_its_own || !are_others_left && turns.own > 1;
        // An item that has shown what it is says nothing of others, however often it is called.
        let is_of_item = is_its_own || !self.count_for_all(others, departed);
        if counts {
            turns.own = turns.own.saturating_add(1);
            (turns.answered, turns.turned_away) = (others.answered, self.turned_away);
        }
        Turn { counts, is_of_item }
    }

    /// One more call that may be about everybody; says whether the recent ones show that it is.
    fn count_for_all(&mut self, others: Others, departed: Moment) -> bool {
        self.turned_away += 1;
        let answered = others.answered - self.seen;
        self.seen = others.answered;
        if answered > 0 {
            self.row = 0;
        }
        // Calls come back in another order than they left: one that left before an answered one ends no row, and makes none.
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
    /// The call for this one item was turned away.
    pub(in crate::execution) fn on_turned_away(&mut self, failed: Failed, now: Now, fx: &mut Effects) {
        let index = failed.index;
        let others_left = self.items.are_others_left();
        let Some(trouble) = self.items.take_flight(index, failed.attempt, fx) else {
            return;
        };
        let mut trouble = trouble.unwrap_or_else(|| Trouble::fresh(now.wall));
        let turns = &mut trouble.suspicion.turns;
        let turn = self
            .judge
            .turned_away
            .count(turns, others_left, self.judge.others, failed.departed);
        let after = match failed.advice {
            RetryAdvice::Retry { after } => after,
            RetryAdvice::Fail => None,
        };
        if trouble.suspicion.turns.own > 1 {
            self.judge
                .errors
                .note(&turned_away_alone(&failed, after), now.wall);
        }
        if turn.counts && trouble.suspicion.turns.own > TURNS_MAX {
            // A round of probes goes on with others.
            self.judge.circuit.on_returned(1);
            return self.on_failed_trouble(failed, trouble, now, fx);
        }
        self.items.land(1, fx);
        self.take_back(1, u64::from(trouble.attempts > 0));
        self.meters.on_refused(1);
        // Where calls leave in order, whoever comes after the item waits with it.
        let until = if turn.is_of_item && !self.settings.tuning.ordered {
            now.moment
                .plus(after.unwrap_or_default().min(RETRY_AFTER_LONGEST))
        } else {
            self.judge.on_turned_away(&failed.failure);
            self.back_off(after, now);
            self.pace.paused(now.moment).unwrap_or(now.moment)
        };
        trouble.failure = Some(failed.failure);
        trouble.at = now.wall;
        self.wait_after_turn(index, trouble, until, now);
    }

    /// The item waits up to then, and lets others go first. Long waits park, as those after a failed attempt do.
    fn wait_after_turn(&mut self, index: ItemIndex, mut trouble: Trouble, until: Moment, now: Now) {
        let others_first = match self.settings.tuning.ordered {
            true => Duration::ZERO,
            false => doubled(OTHERS_FIRST, trouble.suspicion.turns.all - 1),
        };
        let wait = until.since(now.moment) + others_first;
        if wait > self.settings.tuning.park_after && self.pace.paused(now.moment).is_none() {
            self.items.park_if_room(&self.settings, index, &mut trouble);
        }
        trouble.doing = Doing::Waiting(now.moment.plus(wait));
        if trouble.suspicion.turns.all >= TURNS_SHOWN || trouble.place == Place::Outside {
            trouble.due_at = now.wall.plus(wait);
            self.items.record(index, &trouble);
        }
        self.items.troubles.put(index, trouble);
        self.judge.look_for_marked();
        self.items.skips.on_waits(index);
    }
}

impl Items {
    /// Whether any item is left that wasn't turned away while others were answered.
    pub(in crate::execution) fn are_others_left(&self) -> bool {
        let total = self.range.end.0 - self.range.start.0;
        let passed_over = self.skips.among(self.cursor, self.end);
        let gone = self.counters.settled() + self.counters.excluded + passed_over;
        let unsettled = total.saturating_sub(gone);
        let is_suspect = |trouble: &Trouble| trouble.suspicion.turns.own > 1;
        let known = self.troubles.len() as u64;
        known < unsettled || !self.troubles.iter().all(|(_, trouble)| is_suspect(trouble))
    }
}

/// A call that was turned away while the handler took others: this is about the item, and people should hear which one.
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
