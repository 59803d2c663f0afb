//! Calls that were turned away (429): too much for the handler, or nothing that it takes for this item?
//!
//! A 429 speaks for everybody: the task pauses, and nobody is charged. But where the handler takes nearly all others and
//! turns one item away again and again, it speaks of that item (a limit of a recipient, say). That item lets others go
//! first, and in the end its attempts count.

use std::time::Duration;

use crate::execution::Execution;
use crate::execution::failed::fresh_trouble;
use crate::execution::types::{Effects, Now};
use crate::items::retry::doubled;
use crate::items::verdict::{AnsweredCalls, Failed, FailedCall, Wish};
use crate::items::waiting::{Doing, Trouble, Turns};

/// So often an item is turned away while others are answered before its attempts count.
const TURNS_MAX: u32 = 5;
/// From so many on the store keeps a row of the item, so that people see what it waits for.
const TURNS_SHOWN: u32 = 3;
/// That many calls for others must be answered for each that is turned away: a handler that turns one of eleven away takes
/// five turns of one item by chance in less than one of 100,000 cases.
const ANSWERED_MIN: u64 = 10;
/// How long others go first, once the pause is over, doubled each time up to the longest.
const OTHERS_FIRST: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(64));

/// Calls of this run, counted.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::execution) struct TurnedAway {
    answered: u64,
    turned_away: u64,
}

impl TurnedAway {
    #[inline]
    pub(in crate::execution) fn on_answered(&mut self, calls: u64) {
        self.answered += calls;
    }

    /// How many were answered.
    pub(in crate::execution) fn answered(&self) -> u64 {
        self.answered
    }

    /// One more turn for an item, if since its last one nearly all others were answered, or `others` says that there are
    /// none that could be.
    fn count(&mut self, turns: &mut Turns, others: bool) -> bool {
        self.turned_away += 1;
        turns.all = turns.all.saturating_add(1);
        let answered = self.answered - turns.answered;
        let turned_away = self.turned_away - turns.turned_away - 1;
        let is_its_own = answered > 0 && answered >= turned_away * ANSWERED_MIN;
        let counts = turns.all == 1 || is_its_own || !others && turns.own > 1;
        if counts {
            turns.own = turns.own.saturating_add(1);
            (turns.answered, turns.turned_away) = (self.answered, self.turned_away);
        }
        counts
    }
}

impl Execution {
    /// The call for this one item was turned away.
    pub(in crate::execution) fn on_turned_away(&mut self, failed: Failed, now: Now, fx: &mut Effects) {
        let index = failed.index;
        let others = self.are_others_left();
        let Some(trouble) = self.take_flight(index, failed.attempt, fx) else {
            return;
        };
        let mut trouble = trouble.unwrap_or_else(|| fresh_trouble(now));
        self.judge.on_turned_away(&failed.failure);
        let counts = self.turned_away.count(&mut trouble.turns, others);
        let after = match failed.wish {
            Wish::Retry { after } => after,
            Wish::Abandon => None,
        };
        if trouble.turns.own > 1 {
            // The handler takes others: this is about the item, and people should hear which one.
            let (class, before) = (failed.class, AnsweredCalls::default());
            let (failure, departed) = (failed.failure.clone(), failed.departed);
            let call = FailedCall {
                before,
                class,
                index,
                departed,
                failure,
                after,
            };
            self.errors.note(&call, now.wall);
        }
        if counts && trouble.turns.own > TURNS_MAX {
            // A round of probes goes on with others.
            self.circuit.on_returned(1);
            return self.on_failed_trouble(failed, trouble, now, fx);
        }
        self.land(1, fx);
        self.take_back(1, u64::from(trouble.attempts > 0));
        self.meters.on_refused(1);
        self.back_off(after, now);
        let wait = doubled(OTHERS_FIRST, trouble.turns.all - 1);
        let until = self.pace.paused(now.moment).unwrap_or(now.moment);
        let in_order = self.tuning.ordered;
        trouble.doing = Doing::Waiting(if in_order { until } else { until.plus(wait) });
        trouble.failure = Some(failed.failure);
        trouble.at = now.wall;
        if trouble.turns.all >= TURNS_SHOWN {
            trouble.due_at = now.wall.plus(until.since(now.moment) + wait);
            self.record(index, &trouble);
        }
        self.troubles.put(index, trouble);
        self.look_for_given_up();
        self.skips.on_waits(index);
    }

    /// Whether any item is left that wasn't turned away while others were answered.
    fn are_others_left(&self) -> bool {
        let total = self.range.end.0 - self.range.start.0;
        let passed_over = self.skips.among(self.cursor, self.end);
        let gone = self.counters.settled() + self.counters.excluded + passed_over;
        let unsettled = total.saturating_sub(gone);
        let is_suspect = |trouble: &Trouble| trouble.turns.own > 1;
        let known = self.troubles.len() as u64;
        known < unsettled || !self.troubles.iter().all(|(_, trouble)| is_suspect(trouble))
    }
}
