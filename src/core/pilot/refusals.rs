//! Rate that a service takes, from its refusals.
//!
//! The calls that it took between two moments at which it took one after a block, over that time, are its rate: exact
//! for a token bucket, a fixed window and a sliding one alike. Departures count, not answers, as refusals come first.

use super::above::Above;
use super::more::{Held, More, raised};
use super::numbers::*;
use super::scout::{Named, Scout};
use super::{Call, Why};

/// Estimates without news after which the rate is halved: a block that doesn't end isn't the tail of the last.
const KEPT_MAX: u8 = 2;

/// Rate found, and the search for it.
#[derive(Clone, Debug)]
pub(super) struct Refusals {
    rate: Option<Found>,
    /// Time of the next departure, and the rate that set it.
    next: f64,
    spaced: f64,
    scout: Option<Scout>,
    named: Named,
    /// True if calls got through before the last wait that was named was over: such waits mean nothing.
    doubts_named: bool,
    since: Since,
    /// Refusals that aren't forgiven yet, while none is asked for.
    level: f64,
    more: More,
    above: Above,
    /// Length of the last block. Unit: seconds.
    block: f64,
    /// Calls with lower numbers were sent before the last change.
    first: u64,
    /// True once a call was accepted, other than a scout: one refusal before that is the same block still.
    has_accepted: bool,
    /// Share of refused calls, over some hundred calls.
    share: f64,
    /// Part of the task's rate that this run has; 1 unless other runs were heard.
    part: f64,
}

/// Rate found. Unit: calls per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) rate: f64,
    /// Last rate that was held until the refusals before it were paid for: a raise is never answered with much less.
    good: f64,
    /// Calls that the service took at the last estimate.
    pub(super) top: f64,
    /// Estimates in a row without news.
    kept: u8,
    /// Rate up to which an estimate is doubled: without end for a first one from few calls, the rate before for one far
    /// below it; 0 for none.
    hunts_to: f64,
}

/// Calls since one last got through after a block.
#[derive(Clone, Copy, Debug)]
struct Since {
    at: f64,
    sent: u64,
    refused: u64,
}

/// Calls over which the refused share is averaged.
const SHARE_CALLS: f64 = 256.0;

impl Refusals {
    pub(super) fn new(now: f64) -> Refusals {
        Refusals {
            rate: None,
            next: 0.0,
            spaced: 0.0,
            scout: None,
            named: Named::default(),
            doubts_named: false,
            since: Since {
                at: now,
                sent: 0,
                refused: 0,
            },
            level: 0.0,
            more: More::new(now),
            above: Above::default(),
            block: 0.0,
            first: 0,
            has_accepted: false,
            share: 0.0,
            part: 1.0,
        }
    }

    pub(super) fn found(&self) -> Option<Found> {
        self.rate
    }

    pub(super) fn in_flight_max(&self) -> Option<u32> {
        self.above.most()
    }

    pub(super) fn share(&self) -> f64 {
        self.share
    }

    pub(super) fn scout(&self) -> Option<&Scout> {
        self.scout.as_ref()
    }

    pub(super) fn is_scouting(&self) -> bool {
        self.scout.is_some()
    }

    pub(super) fn restore(&mut self, rate: Option<(f64, f64)>, above: Option<u32>) {
        self.rate = rate.map(|(rate, top)| Found::new(rate, top));
        self.above.restore(above);
    }

    /// Moves the rate towards `part` of what this run and the others found, given as their sum.
    pub(super) fn balance(&mut self, part: f64, others: Option<f64>) {
        self.part = part;
        let is_held = self.scout.is_none();
        let others = others.filter(|rate| is_held && rate.is_finite() && *rate > 0.0);
        let found = self.rate.as_mut().filter(|found| !found.is_hunting());
        if let Some((found, others)) = found.zip(others) {
            let fair = part * (found.rate + others);
            found.scale(1.0 + BALANCE * (fair / found.rate - 1.0).min(1.0));
        }
    }

    /// Returns the rate at which the next departure is spaced.
    pub(super) fn spaced(&self) -> f64 {
        self.spaced
    }

    /// Returns the time of the next departure at the rate found.
    pub(super) fn next_at(&self) -> Option<f64> {
        self.rate.map(|_| self.next)
    }

    /// Returns the time until which scouting holds everything back at `now`.
    pub(super) fn scout_wait(&self, now: f64) -> Option<(f64, Why)> {
        let scout = self.scout.as_ref()?;
        let why = if scout.is_told {
            Why::WindowUsed
        } else {
            Why::Scouting
        };
        scout.wait(now).map(|until| (until, why))
    }

    /// Ends the scouting if a scout is out for longer than any refusal takes; returns true if it did.
    pub(super) fn take_scout_through(&mut self, now: f64) -> bool {
        let through = self.scout.as_ref().and_then(|scout| scout.through(now));
        if let Some((call, sent)) = through {
            self.on_through(call, sent, now);
        }
        through.is_some()
    }

    pub(super) fn on_departure(&mut self, call: &Call) {
        self.since.sent += 1;
        self.more.on_departure(call);
        if let Some(scout) = &mut self.scout {
            scout.on_departure(call.number, call.sent);
        }
        if let Some(found) = self.rate {
            let gap = 1.0 / found.rate;
            self.next = self.next.max(call.sent - CATCH_UP.min(gap)) + gap;
            self.spaced = found.rate;
        }
    }

    /// Takes a call back that says nothing about the service.
    pub(super) fn on_unsent(&mut self, call: &Call) {
        if call.number < self.first {
            return;
        }
        self.since.sent = self.since.sent.saturating_sub(1);
        self.more.on_unsent(call);
        if let Some(scout) = self.scout.as_mut().filter(|scout| scout.is_out(call.number)) {
            scout.skip(0.0);
        }
    }

    /// Adds a call that wasn't refused; returns true if it was a scout, so that scouting ends.
    pub(super) fn on_accepted(&mut self, call: &Call, now: f64, is_failed: bool) -> bool {
        self.share -= self.share / SHARE_CALLS;
        if self.scout.as_ref().is_some_and(|scout| scout.is_out(call.number)) {
            self.on_through(call.number, call.sent, now);
            return true;
        }
        if is_failed || self.scout.is_some() || call.number < self.first {
            return false;
        }
        self.level = (self.level - 1.0 / FORGIVEN_AFTER).max(0.0);
        self.above.on_accepted(call);
        self.has_accepted = true;
        match self.more.on_accepted(now, self.block) {
            Some(held) => self.raise(held, now),
            None => self.hunt(call),
        }
        false
    }

    fn raise(&mut self, held: Held, now: f64) {
        match (held, &mut self.rate) {
            (Held::Rate, Some(found)) => {
                if !self.more.is_asking() {
                    found.good = found.rate;
                }
                found.rate = raised(found.rate, found.top);
            }
            (Held::InFlight, _) if self.above.most().is_some() => self.above.raise(),
            _ => return,
        }
        self.more.on_raise(now);
    }

    /// Doubles an estimate that is hunted: twice the rate at which an accepted call was spaced.
    fn hunt(&mut self, call: &Call) {
        if let Some(found) = self.rate.as_mut().filter(|found| found.is_hunting()) {
            let proven = call.by_rate.map_or(0.0, |rate| 2.0 * rate);
            found.rate = found.rate.max(proven).min(found.hunts_to);
            if found.rate >= found.hunts_to {
                found.hunts_to = 0.0;
            }
        }
    }

    /// Adds a refused call; `next` is the number of the next call, `told` the wait that the service named in seconds.
    pub(super) fn on_refused(&mut self, call: &Call, now: f64, next: u64, told: Option<f64>) {
        self.share += (1.0 - self.share) / SHARE_CALLS;
        if call.number < self.first {
            return;
        }
        self.since.refused += 1;
        self.more.on_refused(self.part);
        self.named.on_refused(now, told);
        let told = told.filter(|_| !self.doubts_named);
        let took = now - call.sent;
        if let Some(scout) = &mut self.scout {
            if scout.is_out(call.number) {
                scout.on_refused(now, took, told, self.named.believed);
            }
            return;
        }
        self.level += 1.0;
        self.above.on_refused(call);
        if self.level >= self.refusals_until_scout() {
            self.act(call, now, next, told);
        }
    }

    fn refusals_until_scout(&self) -> f64 {
        let is_hunting = self.rate.is_some_and(|found| found.is_hunting());
        if self.more.is_asking() || is_hunting || !self.has_accepted {
            1.0
        } else {
            REFUSALS_UNTIL_SCOUT
        }
    }

    /// Answers refusals: with fewer calls in flight if that explains them, else by scouting.
    fn act(&mut self, call: &Call, now: f64, next: u64, told: Option<f64>) {
        self.level = 0.0;
        if self.above.explains(call) {
            self.first = next;
            self.more.on_estimate(now);
            return;
        }
        let taken = self.since.sent.saturating_sub(self.since.refused).max(1) as f64;
        let per_call = self
            .rate
            .map_or((now - self.since.at) / taken, |found| 1.0 / found.rate);
        let is_first = self.rate.is_none();
        let wait = per_call.max((self.block / 4.0).min(BLOCK_CALLS * per_call));
        // Most services that name a wait mean it; a bucket takes calls again long before, and half of a short wait is
        // worth more than a refused scout.
        let wait = told.map_or(wait, |told| wait.max(TOLD_CALLS * per_call).min(told / 2.0));
        self.scout = Some(Scout::new(now, wait, now - call.sent, is_first));
    }

    /// Estimates the rate, as the scout that was sent at `sent` got through.
    fn on_through(&mut self, call: u64, sent: f64, now: f64) {
        let Some(scout) = self.scout.take() else { return };
        // The scout opens the next period; it belongs to none that ends.
        let taken = self.since.sent.saturating_sub(self.since.refused + 1);
        let span = (sent - self.since.at).max(1e-3);
        let mean = taken as f64 / span;
        let is_guess = self.rate.is_none() && self.named.is_silent();
        self.rate = match self.rate {
            Some(found) => Some(found.estimate(mean, taken, &self.more, sent)),
            // A quota that was used up before the first call says nothing of the rate.
            None => (taken > 0).then(|| Found::first(mean, taken)),
        };
        self.doubts_named = self.named.is_false(sent).unwrap_or(self.doubts_named);
        // A block before the first estimate is a quota that was used up before; it says nothing of those to come.
        if self.rate.is_some() {
            self.block = (sent - scout.began).max(self.block / 2.0);
        }
        self.since = Since {
            at: sent,
            sent: 1,
            refused: 0,
        };
        (self.level, self.first, self.named) = (0.0, call, Named::default());
        self.has_accepted = false;
        self.spaced = self.rate.map_or(RATE_BOUNDS.1, |found| found.rate);
        self.next = sent + 1.0 / self.spaced;
        self.more.on_estimate(now);
        if is_guess {
            // A first block is looked through in ever larger steps, so its end is found late and the estimate is low.
            self.more.forgive();
        }
        self.above.on_rate();
    }

    /// Leaves out a span in which nothing was learned.
    pub(super) fn skip(&mut self, span: f64) {
        self.since.at += span;
        self.more.skip(span);
        if let Some(scout) = &mut self.scout {
            scout.skip(span);
        }
    }
}

impl Found {
    fn new(rate: f64, top: f64) -> Found {
        let (rate, top) = (rate.clamp(RATE_BOUNDS.0, RATE_BOUNDS.1), top.max(RATE_BOUNDS.0));
        Found {
            rate,
            good: rate,
            top,
            kept: 0,
            hunts_to: 0.0,
        }
    }

    fn scale(&mut self, factor: f64) {
        let scaled = |rate: f64| (rate * factor).clamp(RATE_BOUNDS.0, RATE_BOUNDS.1);
        (self.rate, self.good, self.top) = (scaled(self.rate), scaled(self.good), scaled(self.top));
    }

    fn is_hunting(&self) -> bool {
        self.hunts_to > 0.0
    }

    fn first(taken_per_second: f64, taken: u64) -> Found {
        Found {
            hunts_to: if taken < NEWS { RATE_BOUNDS.1 } else { 0.0 },
            ..Found::new(HOLD * taken_per_second, taken_per_second)
        }
    }

    /// Returns what follows from `mean` calls per second that got through since the last estimate, `taken` in all.
    fn estimate(self, mean: f64, taken: u64, more: &More, now: f64) -> Found {
        if self.is_hunting() {
            return Found::new(self.rate / 2.0, self.rate / 2.0);
        }
        if self.rate > self.good {
            let top = if more.is_asking() {
                mean.max(more.taken(now))
            } else {
                mean
            };
            let rate = (HOLD * top).max(GOOD_FADE * self.good).min(HOLD * self.rate);
            let good = GOOD_FADE * self.good;
            return Found {
                good,
                ..Found::new(rate, top)
            };
        }
        if taken < NEWS {
            let is_kept = self.kept < KEPT_MAX;
            let rate = if is_kept { self.rate } else { self.rate / 2.0 };
            let kept = if is_kept { self.kept + 1 } else { 0 };
            return Found {
                kept,
                ..Found::new(rate, self.top)
            };
        }
        Found {
            hunts_to: if mean < HUNTED * self.rate {
                HOLD * self.rate
            } else {
                0.0
            },
            ..Found::new((HOLD * mean).min(HOLD * self.rate), mean)
        }
    }
}
