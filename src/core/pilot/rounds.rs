//! Rounds: a number of calls sent at one setting, and their mean time.

use super::Call;
use super::numbers::{FAILED_WEIGHT, GROUP_MAX, GROUP_PART, ROUND_ENDED, ROUND_SPAN, SAMPLE_MAX};

/// Round in which calls are still sent, or out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    number: u32,
    size: u32,
    /// Time before which it doesn't close.
    until: f64,
    is_closed: bool,
    sent: u32,
    /// Departures at which the limit in flight was reached.
    reached: u32,
    in_flight: f64,
    ended: u32,
    failed: u32,
    /// Sum of the times of ended calls. Unit: seconds.
    took: f64,
    squares: f64,
    /// Sum of the departures of the calls that are out, relative to `began`. Unit: seconds.
    out_since: f64,
    began: f64,
    /// Longest time that counts. Unit: seconds.
    longest: f64,
    group: Group,
    /// Time within which departures are a group. Unit: seconds.
    group_span: f64,
}

/// Calls sent at nearly the same time, which reach the limit together. Where all calls take the same time, their answers
/// come at once, and calls are sent again in portions, of which only the last is at the limit.
#[derive(Clone, Copy, Debug)]
struct Group {
    began: f64,
    sent: u32,
    is_reached: bool,
}

/// Result of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Logarithm of the mean time of a call. Unit: octaves of a second.
    pub(super) latency: f64,
    /// Distance by which few calls with a heavy tail are likely to lie below the true mean. Unit: octaves.
    pub(super) skew: f64,
    /// Logarithm of the mean calls in flight. Unit: octaves.
    pub(super) in_flight: f64,
    pub(super) is_reached: bool,
    pub(super) calls: u32,
    pub(super) failed: u32,
}

impl Round {
    /// Creates a round of `size` calls; `mean` is the mean time of a call as far as it is known.
    pub(super) fn new(number: u32, size: u32, mean: Option<f64>, now: f64) -> Round {
        Round {
            number,
            size,
            until: now + ROUND_SPAN,
            is_closed: false,
            sent: 0,
            reached: 0,
            in_flight: 0.0,
            ended: 0,
            failed: 0,
            took: 0.0,
            squares: 0.0,
            out_since: 0.0,
            began: now,
            longest: mean.map_or(f64::INFINITY, |mean| mean * SAMPLE_MAX),
            group: Group {
                began: f64::NEG_INFINITY,
                sent: 0,
                is_reached: false,
            },
            group_span: mean.map_or(GROUP_MAX, |mean| (mean * GROUP_PART).min(GROUP_MAX)),
        }
    }

    /// Adds a departure and returns the round's number, or 0 once it is closed.
    pub(super) fn on_departure(&mut self, now: f64, in_flight: u32, is_reached: bool) -> u32 {
        self.is_closed |= self.sent >= self.size && now >= self.until;
        if self.is_closed {
            return 0;
        }
        self.sent += 1;
        self.in_flight += f64::from(in_flight);
        self.out_since += now - self.began;
        self.reach(now, is_reached);
        self.number
    }

    /// Counts a departure with those of its group.
    fn reach(&mut self, now: f64, is_reached: bool) {
        let group = &mut self.group;
        if now - group.began > self.group_span {
            *group = Group {
                began: now,
                sent: 0,
                is_reached,
            };
        }
        group.sent += 1;
        if group.is_reached {
            self.reached += 1;
        } else if is_reached {
            self.reached += group.sent;
            group.is_reached = true;
        }
    }

    /// Adds the end of a call; returns false if it isn't one of the round.
    pub(super) fn on_end(&mut self, call: &Call, now: f64, is_failed: bool) -> bool {
        if call.round != self.number {
            return false;
        }
        let took = (now - call.sent).max(1e-6).min(self.longest);
        self.ended += 1;
        self.failed += u32::from(is_failed);
        let took = if is_failed { took * FAILED_WEIGHT } else { took };
        self.took += took;
        self.squares += took * took;
        self.out_since -= call.sent - self.began;
        true
    }

    /// Drops a refused call, which is no sample of latency.
    pub(super) fn on_refused(&mut self, call: &Call) {
        if call.round == self.number {
            self.sent -= 1;
            self.reached -= u32::from(call.at_limit);
            self.in_flight -= f64::from(call.together);
            self.out_since -= call.sent - self.began;
        }
    }

    /// Returns the result once enough calls have ended.
    pub(super) fn seen(&self, now: f64) -> Option<Seen> {
        let is_over = self.is_closed || self.sent >= self.size && now >= self.until;
        if !is_over || self.ended == 0 || f64::from(self.ended) < f64::from(self.sent) * ROUND_ENDED {
            return None;
        }
        let out = f64::from(self.sent - self.ended);
        let ages = (out * (now - self.began) - self.out_since).clamp(0.0, out * self.longest.min(1e9));
        let (calls, ended) = (f64::from(self.sent), f64::from(self.ended));
        let mean = (self.took / ended).max(1e-6);
        let variance = (self.squares / ended / (mean * mean) - 1.0).max(0.0);
        Some(Seen {
            skew: variance / ended * std::f64::consts::LOG2_E,
            latency: ((self.took + ages) / calls).max(1e-6).log2(),
            in_flight: (self.in_flight / calls).max(1.0).log2(),
            is_reached: self.reached * 2 >= self.sent,
            calls: self.sent,
            failed: self.failed,
        })
    }
}
