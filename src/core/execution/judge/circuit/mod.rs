//! Circuit of a run: tracks whether the handler answers at all.
//!
//! *Closed*: calls are sent as usual. It *opens* when calls come back without a verdict in a way that single items
//! can't explain; then nothing is sent but one probe after 1 s, doubled up to 30 s. The first answered call makes it
//! half-open (*probing*): rounds of 1, 2, 4 … calls, until as many were answered as may be in flight, or for
//! [`RAMP`]; then it closes. A round without enough answers opens it again, as part of the same outage.
//!
//! The circuit never names an item and never counts against one: `execution::judge` decides what an outage means for
//! items. Evidence is per call, in the order in which calls came back. Times are of the run's clock; the jitter is a
//! hash, so the same facts give the same probes.

mod evidence;
pub(super) mod pause;

use std::time::Duration;

use self::evidence::Evidence;
use self::pause::{PROBE_ON_NEWS, probe_wait};
use crate::ids::{ItemIndex, Moment, ShardId, WallMs};
use crate::items::retry::mix;
use crate::items::verdict::{FailureClass, Outage};

/// Time for which rounds grow before the circuit closes, whatever their size.
const RAMP: Duration = Duration::from_secs(5);
/// A round fails if fewer than one in this many calls was answered: a mix with many bad items must be able to pass.
const ROUND_ANSWERED_ONE_IN: u32 = 8;

/// Call that came back without a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unanswered {
    pub(super) class: FailureClass,
    pub(super) item: ItemIndex,
    /// True if the item hadn't failed before the last answered call was sent.
    pub(super) is_new: bool,
    pub(super) departed: Moment,
    /// Wait that the handler asked for, if any.
    pub(super) after: Option<Duration>,
}

/// Items that could be called instead of one that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Alternatives {
    /// Number of items that could be sent, including the failed one.
    pub(super) can_leave: u64,
    /// True if one of them was never called.
    pub(super) is_fresh_left: bool,
    pub(super) in_order: bool,
    /// Maximum calls in flight.
    pub(super) most: u32,
    /// Calls in a row that chance doesn't explain, given the share of items whose first call failed.
    pub(super) row: usize,
}

/// Effect of a call on the circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// No change that matters to items.
    Same,
    /// The circuit opened: an outage begins.
    Opened,
    /// A call was answered while the circuit was open: the handler is back.
    Answered,
}

/// Room that the circuit leaves for calls now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::execution) enum Room {
    Unbounded,
    /// This many calls, at least one.
    Calls(u32),
    Until(Moment),
    /// No calls before one comes back.
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
    /// Time at which the first call was answered.
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
    /// Number of outages so far, including the current one.
    outages: u32,
    closed_at: Moment,
    /// Time at which the latest probe was sent or the circuit opened.
    probed_at: Moment,
    /// Set if the latest call that came back while the circuit was open, or that opened it, reached nobody.
    is_unreached: bool,
    /// Evidence since the last answered call.
    evidence: Evidence,
    salt: u64,
}

impl Circuit {
    /// Creates the circuit of a shard's run; circuits of other shards probe at other times.
    pub(in crate::execution) fn of(shard: ShardId, outage: Option<Outage>, now: Moment) -> Circuit {
        let salt = mix(shard.task.0.unsigned_abs().rotate_left(32) ^ u64::from(shard.no));
        Circuit::new(outage, salt, now)
    }

    /// Creates a closed circuit, or an open one if the previous run left an outage. Runs with different `salt` probe
    /// at different times.
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

    /// True if calls are sent as usual.
    #[inline]
    pub(in crate::execution) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// True if only probes are sent.
    pub(in crate::execution) fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// True if an answered call would change anything.
    #[inline]
    pub(super) fn is_stirred(&self) -> bool {
        !self.is_closed() || !self.evidence.is_empty()
    }

    /// Returns the outage, until the circuit is closed.
    pub(in crate::execution) fn outage(&self) -> Option<Outage> {
        self.outage
    }

    /// Returns the number of the current outage, or of the last one.
    pub(super) fn outages(&self) -> u32 {
        self.outages
    }

    /// True if a call sent at `departed` proves nothing against its items: the circuit wasn't closed, or has opened
    /// since.
    pub(super) fn excuses(&self, departed: Moment) -> bool {
        !self.is_closed() || (self.outages > 0 && departed < self.closed_at)
    }

    /// Returns the time of the next probe, while the circuit is open.
    pub(super) fn next_probe(&self) -> Option<Moment> {
        match self.state {
            State::Open { next, .. } => Some(next),
            State::Closed | State::Probing(_) => None,
        }
    }

    /// Returns the room for calls now.
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

    /// Returns how many of `items` may be sent now, in calls of `size` items.
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

    /// Advances the next probe, because more of the handler is available than before.
    pub(in crate::execution) fn on_news(&mut self) {
        if let State::Open { next, .. } = &mut self.state {
            *next = (*next).min(self.probed_at.plus(PROBE_ON_NEWS));
        }
    }

    /// Takes calls out of the current round, such as those that came back unsent.
    pub(in crate::execution) fn on_returned(&mut self, calls: u32) {
        if let State::Probing(round) = &mut self.state {
            round.sent = round.sent.saturating_sub(calls);
        }
    }

    /// Restarts the current round, because every call that was out is lost.
    pub(in crate::execution) fn on_lost(&mut self, now: Moment) {
        if let State::Probing(round) = &mut self.state {
            *round = Round::new(round.since, round.size, now);
        }
    }

    /// Handles calls that brought a verdict, the latest of which was sent at `departed`. `most` calls may be in
    /// flight.
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

    /// Handles a call that came back without a verdict.
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
                    // The handler is reachable again, and this call may be about its item: the next probe will tell
                    // soon.
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

    /// Closes the circuit without waiting for the handler any longer: calls are sent as usual, and count.
    pub(super) fn fail_waiting(&mut self, now: Moment) {
        self.close(now);
    }

    /// Closes the circuit, because nothing is left to call.
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

    /// Closes the circuit if the next round would be of the usual size, or if rounds have grown for long enough.
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
