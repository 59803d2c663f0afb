//! Scouts: one call at a time while a service refuses.

use super::numbers::*;

/// Scouting that goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scout {
    /// Beginning of the block.
    pub(super) began: f64,
    /// Time of the next scout.
    pub(super) next: f64,
    wait: f64,
    growth: f64,
    /// Scout that is out: its number and departure.
    out: Option<(u64, f64)>,
    /// Time that the last refusal took. Unit: seconds.
    refusal_took: f64,
    pub(super) is_told: bool,
}

/// Instants that refusals name. One that two refusals name, some time apart, is believed: a service that always says
/// "60 s" names another one each time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Named {
    /// Time of a refusal, and the instant that it named.
    first: Option<(f64, f64)>,
    pub(super) believed: Option<f64>,
}

impl Named {
    /// Returns true if no instant was named.
    pub(super) fn is_silent(&self) -> bool {
        self.first.is_none()
    }

    /// Returns whether a call that got through at `now` proves the instant false; `None` if none was named.
    pub(super) fn is_false(&self, now: f64) -> Option<bool> {
        self.first.map(|(_, instant)| now < instant)
    }

    pub(super) fn on_refused(&mut self, now: f64, wait: Option<f64>) {
        let Some(wait) = wait else { return };
        let named = now + wait;
        let Some((then, before)) = self.first else {
            self.first = Some((now, named));
            return;
        };
        let gap = now - then;
        if gap < BELIEVED_GAP {
            return;
        }
        let is_same = (named - before).abs() < gap / 2.0 + 1.0;
        self.believed = is_same.then_some(named);
        self.first = Some((now, named));
    }
}

impl Scout {
    /// Begins a block; the first of a run knows nothing of the rate, and looks in larger steps.
    pub(super) fn new(now: f64, wait: f64, refusal_took: f64, is_first: bool) -> Scout {
        let least = if is_first { WAIT.0 } else { FIRST_WAIT.0 };
        let wait = wait.clamp(least, FIRST_WAIT.1);
        Scout {
            began: now,
            next: now + wait,
            wait,
            growth: if is_first { WAIT_GROWTH_FIRST } else { WAIT_GROWTH },
            out: None,
            refusal_took,
            is_told: false,
        }
    }

    /// Returns the time until which no scout is sent.
    pub(super) fn wait(&self, now: f64) -> Option<f64> {
        let until = match self.out {
            Some((_, sent)) => sent + self.patience(),
            None => self.next,
        };
        (now < until).then_some(until)
    }

    /// Returns the departure of the scout that is out so long that it got through.
    pub(super) fn through(&self, now: f64) -> Option<(u64, f64)> {
        self.out.filter(|(_, sent)| now >= sent + self.patience())
    }

    fn patience(&self) -> f64 {
        (self.refusal_took * THROUGH_AFTER.0).max(THROUGH_AFTER.1)
    }

    pub(super) fn on_departure(&mut self, call: u64, now: f64) {
        self.out = Some((call, now));
    }

    pub(super) fn is_out(&self, call: u64) -> bool {
        self.out.is_some_and(|(out, _)| out == call)
    }

    /// Waits longer after a refused scout: never longer than the service says, and until a believed instant.
    pub(super) fn on_refused(&mut self, now: f64, took: f64, told: Option<f64>, believed: Option<f64>) {
        let growth = if told.is_some() {
            WAIT_GROWTH_TOLD
        } else {
            self.growth
        };
        self.wait = (self.wait * growth).clamp(WAIT.0, WAIT.1);
        self.refusal_took = took;
        self.out = None;
        self.next = now + told.map_or(self.wait, |told| self.wait.min(told));
        self.is_told = believed.is_some_and(|instant| instant > now);
        if self.is_told {
            self.next = believed.unwrap_or(self.next);
        }
    }

    pub(super) fn skip(&mut self, span: f64) {
        self.began += span;
        self.out = None;
    }
}
