//! Talk of runs that share a task: one leads and experiments, the others hold their parts.
//!
//! Autopilots at one service each see only a part of what they do to it, so that each grows: calls of two become 2.3 times
//! slower, calls of three 2.9 times, in place of 1.3. So one run leads. It counts the calls that the others allow as its
//! own, judges the sum, and publishes a limit in flight for the task, of which the others hold their parts. It publishes
//! seldom and measures nothing until they hold it: news is seconds old, and rounds in which the others changed cost a
//! thrashing service a tenth of its goodput.
//!
//! The rate needs no leader. Each run finds its own, and all move slowly towards their parts of the sum.

use super::numbers::*;
use super::{Knowledge, Moment, Pilot, seconds};

/// Bounds of what is heard: the news of others never stops a run.
const PART_MIN: f64 = 1e-3;
const OTHERS_MAX: u32 = 1 << 24;

/// News of the other runs of a task. A run that hears nothing any more is left out, and so is its part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heard {
    /// Part of the task that this run has; those of all runs that are heard add up to 1 with it.
    pub part: f64,
    /// Sum of [`Pilot::in_flight_max`] of the others; 0 if none is heard.
    pub in_flight: u32,
    /// Sum of the rates that the others found, if each has found one.
    pub rate: Option<f64>,
    /// Knowledge of the run that leads, such as the one of the first shard; `None` if this run leads.
    pub leader: Option<Knowledge>,
}

/// Place of a run among those of its task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) part: f64,
    /// Calls in flight that the other runs allow.
    pub(super) others: u32,
    pub(super) is_following: bool,
    /// Limit in flight of the task that this run published last as the leader.
    published: Option<Published>,
}

#[derive(Clone, Copy, Debug)]
struct Published {
    limit: f64,
    /// Time of the publication.
    at: f64,
    /// Time from which the others hold their parts of it.
    holds: f64,
    /// Rounds that were judged until then.
    rounds: u32,
}

impl Share {
    pub(super) const ALONE: Share = Share {
        part: 1.0,
        others: 0,
        is_following: false,
        published: None,
    };

    /// Returns true until the others hold what was published.
    pub(super) fn is_settling(&self, now: f64) -> bool {
        self.published.is_some_and(|published| now < published.holds)
    }

    pub(super) fn published(&self) -> Option<f64> {
        self.published.map(|published| published.limit)
    }

    /// Returns this run's part of a limit in flight of the task.
    pub(super) fn of(&self, limit: f64) -> u32 {
        ((limit * self.part).round() as u32).max(1)
    }

    /// Returns what the others leave of a limit in flight of the task.
    pub(super) fn rest(&self, limit: u32) -> u32 {
        limit.saturating_sub(self.others).max(1)
    }
}

impl Pilot {
    /// Takes in news of the other runs of the task, about once a second. Runs that talk publish
    /// [`knowledge`](Pilot::knowledge) and [`in_flight_max`](Pilot::in_flight_max).
    pub fn on_heard(&mut self, heard: &Heard, now: Moment) {
        let before = self.share;
        let is_part = heard.part > 0.0 && heard.part < 1.0;
        self.share.part = if is_part { heard.part.max(PART_MIN) } else { 1.0 };
        self.share.others = heard.in_flight.min(OTHERS_MAX);
        self.share.is_following = heard.leader.is_some();
        if before.is_following != self.share.is_following {
            self.flight.change_role();
        } else if before.others != self.share.others && !self.flight.is_starting() {
            self.flight.forget_round();
        }
        match &heard.leader {
            Some(known) => self.flight.follow(known.in_flight, known.base),
            None if heard.in_flight > 0 => self.lead(seconds(now)),
            None => {}
        }
        if heard.leader.is_some() || heard.in_flight == 0 {
            self.share.published = None;
        }
        self.refusals.balance(self.share.part, heard.rate);
    }

    /// Publishes the limit in flight if it is time; the others hold the first one already.
    fn lead(&mut self, now: f64) {
        let limit = self.flight.limit();
        let Some(last) = self.share.published else {
            return self.publish(limit, now, 0.0);
        };
        let is_off = (limit / last.limit).log2().abs() > PUBLISHED_OFF;
        if is_off && self.is_publication_due(&last, now) {
            self.publish(limit, now, SETTLES_AFTER + self.call_time());
            self.flight.settle();
        }
    }

    fn publish(&mut self, limit: f64, now: f64, settles_after: f64) {
        self.share.published = Some(Published {
            limit,
            at: now,
            holds: now + settles_after,
            rounds: self.flight.judged(),
        });
    }

    /// Experiments decide first, as each change costs the pair of rounds that it interrupts; a run that makes none, or
    /// has no room for them, publishes by time.
    fn is_publication_due(&self, last: &Published, now: f64) -> bool {
        let waited = now - last.at;
        let rounds = self.flight.judged().wrapping_sub(last.rounds);
        let is_judged = rounds >= PUBLISH_ROUNDS && !self.flight.is_starting();
        let is_at_most = self.in_flight_max() >= self.settings.most;
        let longest = PUBLISH_BY_TIME * (PUBLISH_EVERY + PUBLISH_CALLS * self.call_time());
        waited >= PUBLISH_EVERY && (is_judged || is_at_most) || waited >= longest
    }

    fn call_time(&self) -> f64 {
        self.flight.latency().smooth().map_or(0.0, f64::exp2)
    }
}
