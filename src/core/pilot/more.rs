//! Asking for more: raises in small steps, once the last refusals are paid for.

use super::Call;
use super::numbers::*;

/// Knob that held back half of the calls since the last raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Rate,
    InFlight,
}

/// Account of what refusals cost, and the calls since the last raises.
#[derive(Clone, Copy, Debug)]
pub(super) struct More {
    /// Accepted calls until more may be asked for.
    owed: f64,
    is_asking: bool,
    /// Time of the last estimate.
    estimated: f64,
    step: Step,
    before: Step,
}

/// Calls since a raise.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    began: f64,
    sent: u32,
    refused: u32,
    accepted: u32,
    by_rate: u32,
    at_limit: u32,
}

impl More {
    pub(super) fn new(now: f64) -> More {
        let step = Step {
            began: now,
            ..Step::default()
        };
        More {
            owed: 0.0,
            is_asking: false,
            estimated: now,
            step,
            before: step,
        }
    }

    /// True since a raise until the next estimate.
    pub(super) fn is_asking(&self) -> bool {
        self.is_asking
    }

    pub(super) fn on_departure(&mut self, call: &Call) {
        self.step.sent += 1;
        self.step.by_rate += u32::from(call.by_rate.is_some());
        self.step.at_limit += u32::from(call.at_limit);
    }

    pub(super) fn on_unsent(&mut self, call: &Call) {
        let step = &mut self.step;
        step.sent = step.sent.saturating_sub(1);
        step.by_rate = step.by_rate.saturating_sub(u32::from(call.by_rate.is_some()));
        step.at_limit = step.at_limit.saturating_sub(u32::from(call.at_limit));
    }

    /// Adds a refused call of a run that has `part` of the task's rate. Where one of several runs asks for more, the
    /// others are refused too: at the price of a lone run, up to 3.4 % were refused in place of 2.4 %; in proportion
    /// to the part, a bucket that changes gave 0.86 in place of 0.95.
    pub(super) fn on_refused(&mut self, part: f64) {
        let cost = REFUSAL_COSTS / part.sqrt();
        let most = REFUSALS_COST_MAX / part.sqrt();
        self.owed = (self.owed + cost).min(most);
        self.step.refused += 1;
    }

    /// Adds an accepted call; returns what to raise, if it is time. `block` is the length of the last block.
    pub(super) fn on_accepted(&mut self, now: f64, block: f64) -> Option<Held> {
        self.owed -= 1.0;
        self.step.accepted += 1;
        let is_due = self.owed <= 0.0
            && now >= self.estimated + RAISE_AFTER
            && now >= self.step.began + RAISE_EVERY.max((block / 2.0).min(WAIT.1))
            && self.step.accepted >= RAISE_CALLS;
        if !is_due {
            return None;
        }
        if self.step.by_rate * 2 >= self.step.sent {
            Some(Held::Rate)
        } else {
            (self.step.at_limit * 2 >= self.step.sent).then_some(Held::InFlight)
        }
    }

    /// Starts a step at `now`, because something was raised.
    pub(super) fn on_raise(&mut self, now: f64) {
        self.is_asking = true;
        self.owed = 0.0;
        self.next_step(now);
    }

    fn next_step(&mut self, now: f64) {
        self.before = self.step;
        self.step = Step {
            began: now,
            ..Step::default()
        };
    }

    /// Ends the asking with an estimate.
    pub(super) fn on_estimate(&mut self, now: f64) {
        *self = More {
            owed: self.owed,
            ..More::new(now)
        };
    }

    /// Lets more be asked for, whatever refusals cost so far.
    pub(super) fn forgive(&mut self) {
        self.owed = 0.0;
    }

    /// Returns the calls per second that got through in the last two steps until `now`.
    pub(super) fn taken(&self, now: f64) -> f64 {
        let count = |step: &Step| f64::from(step.sent.saturating_sub(step.refused));
        (count(&self.before) + count(&self.step)) / (now - self.before.began).max(1e-3)
    }

    pub(super) fn skip(&mut self, span: f64) {
        self.estimated += span;
        self.step.began += span;
        self.before.began += span;
    }
}

/// Returns the rate after a raise; `top` is the last estimate.
pub(super) fn raised(rate: f64, top: f64) -> f64 {
    let step = (STEP / rate.sqrt()).clamp(STEP_BOUNDS.0, STEP_BOUNDS.1);
    let (beyond, faster, most) = STEP_BEYOND;
    // Beyond the last estimate the service has changed: each step is larger than the one before.
    let times = ((rate / top).ln() / beyond.ln()).floor().clamp(0.0, 8.0);
    let step = (step * faster.powf(times)).min(most.max(step));
    (rate * (1.0 + step)).min(RATE_BOUNDS.1)
}
