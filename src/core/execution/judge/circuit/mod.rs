//! The circuit of a run: does the handler answer at all?
//!
//! *Closed*: all is as usual. It *opens* when calls come back without a verdict in a way that can't be about single
//! items; then nothing leaves but one probe after 1 s, doubled up to 30 s. The first answered call begins *probing*:
//! rounds of 1, 2, 4 … calls, until as many were answered as may be in flight, or for [`RAMP`]; then it closes. A round
//! that nobody answers opens it again: that is the same outage.
//!
//! It never names an item and never counts against one: what an outage means for items is `execution::judge`'s. Evidence
//! is per call, in the order in which calls came back. Times are of the run's clock; the jitter is a hash, so that the
//! same facts give the same probes.

mod evidence;
pub(super) mod pause;

use std::time::Duration;

use self::evidence::Evidence;
use self::pause::{PROBE_ON_NEWS, probe_wait};
use crate::ids::{ItemIndex, Moment, ShardId, WallMs};
use crate::items::retry::mix;
use crate::items::verdict::{FailureClass, Outage};

/// How long rounds grow before the circuit closes whatever their size.
const RAMP: Duration = Duration::from_secs(5);
/// A round fails when at most one of so many calls was answered: a mixture with many bad items must be able to pass.
const ROUND_ANSWERED_ONE_IN: u32 = 8;

/// One call that came back without a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unanswered {
    pub(super) class: FailureClass,
    pub(super) item: ItemIndex,
    /// Whether that item hadn't failed before the last answered call departed.
    pub(super) is_new: bool,
    pub(super) departed: Moment,
    /// How long the handler asked us to wait.
    pub(super) after: Option<Duration>,
}

/// What could be called instead of an item that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Alternatives {
    /// How many items could leave, its own among them.
    pub(super) can_leave: u64,
    /// Whether one of them was never called.
    pub(super) is_fresh_left: bool,
    pub(super) in_order: bool,
    /// How many calls may be in flight.
    pub(super) most: u32,
    /// Calls in a row that chance doesn't explain, with the share of items whose first call failed.
    pub(super) row: usize,
}

/// What a fact made of the circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing that matters to items.
    Same,
    /// It opened: an outage begins.
    Opened,
    /// A call was answered while it was open: the handler is back.
    Answered,
}

/// Whether calls may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::execution) enum Room {
    Unbounded,
    /// So many calls, at least one.
    Calls(u32),
    Until(Moment),
    /// None before a call comes back.
    Completion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Open { next: Moment, step: u32 },
    Probing(Round),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Round {
    /// When the first call was answered.
    since: Moment,
    began: Moment,
    size: u32,
    sent: u32,
    answered: u32,
    failed: u32,
}

impl Round {
    fn new(since: Moment, size: u32, began: Moment) -> Round {
        let (sent, answered, failed) = (0, 0, 0);
        Round {
            since,
            began,
            size,
            sent,
            answered,
            failed,
        }
    }
}

#[derive(Clone, Debug)]
pub(in crate::execution) struct Circuit {
    state: State,
    outage: Option<Outage>,
    /// Outages so far; the present one's number while there is one.
    outages: u32,
    closed_at: Moment,
    /// When the latest probe left, or the circuit opened.
    probed_at: Moment,
    /// The latest call that came back while it was open, or opened it, reached nobody.
    is_unreached: bool,
    /// Since the last answered call.
    evidence: Evidence,
    salt: u64,
}

impl Circuit {
    /// The circuit of a shard's run; that of another shard probes at other times.
    pub(in crate::execution) fn of(shard: ShardId, outage: Option<Outage>, now: Moment) -> Circuit {
        let salt = mix(shard.task.0.unsigned_abs().rotate_left(32) ^ u64::from(shard.no));
        Circuit::new(outage, salt, now)
    }

    /// A closed circuit, or an open one where the run before left an outage. Runs with different `salt` probe at
    /// different times.
    fn new(outage: Option<Outage>, salt: u64, now: Moment) -> Circuit {
        let mut circuit = Circuit {
            state: State::Closed,
            outage,
            outages: u32::from(outage.is_some()),
            closed_at: now,
            probed_at: now,
            is_unreached: false,
            evidence: Evidence::default(),
            salt,
        };
        if outage.is_some() {
            circuit.state = State::Open { next: now, step: 0 };
        }
        circuit
    }

    /// Whether calls leave as usual.
    #[inline]
    pub(in crate::execution) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Whether nothing but probes leaves.
    pub(in crate::execution) fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// Whether an answered call would change anything.
    #[inline]
    pub(super) fn is_stirred(&self) -> bool {
        !self.is_closed() || !self.evidence.is_empty()
    }

    /// The outage, until the circuit is closed.
    pub(in crate::execution) fn outage(&self) -> Option<Outage> {
        self.outage
    }

    /// The number of the present outage, or of the last one.
    pub(super) fn outages(&self) -> u32 {
        self.outages
    }

    /// Whether a call that departed then says nothing against its items: the circuit wasn't closed, or it opened since.
    pub(super) fn excuses(&self, departed: Moment) -> bool {
        !self.is_closed() || (self.outages > 0 && departed < self.closed_at)
    }

    /// When the next probe is due, while it is open.
    pub(super) fn next_probe(&self) -> Option<Moment> {
        match self.state {
            State::Open { next, .. } => Some(next),
            State::Closed | State::Probing(_) => None,
        }
    }

    /// How many calls may leave now.
    #[inline]
    pub(in crate::execution) fn room(&self, now: Moment) -> Room {
        match &self.state {
            State::Closed => Room::Unbounded,
            State::Open { next, .. } if *next > now => Room::Until(*next),
            State::Open { .. } => Room::Calls(1),
            State::Probing(round) => match round.size.saturating_sub(round.sent) {
                0 => Room::Completion,
                calls => Room::Calls(calls),
            },
        }
    }

    /// Items that may leave of so many, in calls of this size.
    #[inline]
    pub(in crate::execution) fn room_for(&self, items: u32, size: u32, now: Moment) -> u32 {
        match self.room(now) {
            Room::Unbounded => items,
            Room::Calls(calls) => items.min(calls.saturating_mul(size)),
            Room::Until(_) | Room::Completion => 0,
        }
    }

    #[inline]
    pub(in crate::execution) fn on_sent(&mut self, calls: u32, now: Moment) {
        match &mut self.state {
            State::Closed => {}
            State::Probing(round) => round.sent += calls,
            State::Open { next, step } => {
                let wait = probe_wait(*step, self.salt ^ u64::from(self.outages) << 32);
                (*next, *step) = (now.plus(wait), *step + 1);
                self.probed_at = now;
                if let Some(outage) = &mut self.outage {
                    outage.probes = outage.probes.saturating_add(1);
                }
            }
        }
    }

    /// More of the handler is there than before.
    pub(in crate::execution) fn on_news(&mut self) {
        if let State::Open { next, .. } = &mut self.state {
            *next = (*next).min(self.probed_at.plus(PROBE_ON_NEWS));
        }
    }

    /// So many calls came back without having left.
    pub(in crate::execution) fn on_returned(&mut self, calls: u32) {
        if let State::Probing(round) = &mut self.state {
            round.sent = round.sent.saturating_sub(calls);
        }
    }

    /// Every call that was out is lost.
    pub(in crate::execution) fn on_lost(&mut self, now: Moment) {
        if let State::Probing(round) = &mut self.state {
            *round = Round::new(round.since, round.size, now);
        }
    }

    /// So many calls brought a verdict; the latest of them departed then. `most` calls may be in flight.
    pub(super) fn on_answered(&mut self, calls: u32, departed: Moment, most: u32, now: Moment) -> Turn {
        self.evidence = Evidence::default();
        match &mut self.state {
            State::Closed => Turn::Same,
            State::Open { .. } => {
                self.state = State::Probing(Round::new(now, 2, now));
                self.close_if_passed(most, now);
                Turn::Answered
            }
            State::Probing(round) => {
                if departed >= round.began {
                    round.answered = round.answered.saturating_add(calls);
                }
                self.judge_round(most, now);
                Turn::Same
            }
        }
    }

    /// A call came back without a verdict.
    pub(super) fn on_unanswered(
        &mut self,
        call: Unanswered,
        alternatives: Alternatives,
        now: Moment,
        wall: WallMs,
    ) -> Turn {
        match &mut self.state {
            State::Closed => self.on_unanswered_closed(call, alternatives, now, wall),
            State::Open { next, step } => {
                let was_unreached = std::mem::replace(&mut self.is_unreached, call.class.reaches_nobody());
                if was_unreached && !self.is_unreached {
                    // Somebody is there again, and this may be about its item: the next one tells soon.
                    *next = (*next).min(now.plus(probe_wait(0, self.salt)));
                    *step = (*step).min(1);
                }
                if let Some(after) = call.after {
                    *next = (*next).max(now.plus(after));
                }
                Turn::Same
            }
            State::Probing(round) => {
                round.failed += u32::from(call.departed >= round.began);
                self.judge_round(alternatives.most, now);
                Turn::Same
            }
        }
    }

    fn on_unanswered_closed(
        &mut self,
        call: Unanswered,
        alternatives: Alternatives,
        now: Moment,
        wall: WallMs,
    ) -> Turn {
        self.evidence.add(&call, alternatives);
        if !self.evidence.is_enough(alternatives) {
            return Turn::Same;
        }
        self.outage = Some(Outage {
            since: wall,
            probes: 0,
        });
        self.outages += 1;
        self.is_unreached = call.class.reaches_nobody();
        self.open(call.after.unwrap_or_default(), now);
        Turn::Opened
    }

    /// Nobody waits for the handler to come back any longer: calls leave as usual, and count.
    pub(super) fn fail_waiting(&mut self, now: Moment) {
        self.close(now);
    }

    /// Nothing is left to call for.
    pub(in crate::execution) fn end(&mut self) {
        (self.state, self.outage) = (State::Closed, None);
    }

    fn judge_round(&mut self, most: u32, now: Moment) {
        let State::Probing(round) = &mut self.state else {
            return;
        };
        let came_back = round.answered.saturating_add(round.failed);
        if came_back < round.size {
            return;
        }
        if round.answered == 0 || round.answered * ROUND_ANSWERED_ONE_IN < came_back {
            self.open(Duration::ZERO, now);
            return;
        }
        *round = Round::new(round.since, round.size.saturating_mul(2), now);
        self.close_if_passed(most, now);
    }

    /// The next round would be as large as usual, or rounds have grown for long enough.
    fn close_if_passed(&mut self, most: u32, now: Moment) {
        if let State::Probing(round) = &self.state
            && (round.size >= most || now.since(round.since) >= RAMP)
        {
            self.close(now);
        }
    }

    fn open(&mut self, after: Duration, now: Moment) {
        let wait = probe_wait(0, self.salt ^ u64::from(self.outages) << 32);
        self.state = State::Open {
            next: now.plus(wait.max(after)),
            step: 1,
        };
        self.probed_at = now;
        self.evidence = Evidence::default();
    }

    fn close(&mut self, now: Moment) {
        self.state = State::Closed;
        self.outage = None;
        self.closed_at = now;
        self.evidence = Evidence::default();
    }
}

#[cfg(test)]
mod tests;
