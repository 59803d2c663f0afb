//! Autopilot of a run: finds how many calls a service takes in flight and per second.
//!
//! Two knobs, two questions. *In flight*: what does our own change of the calls in flight do to the time of a call
//! (`rounds`, `slope`)? *Per second*: how many calls did the service take between two moments at which it took one
//! after it had refused some (`refusals`)? Neither needs a base that was measured once.
//!
//! It only lowers: rates, limits and capacity that people set hold beside it. Nothing here reads a clock or draws a
//! random number; the same reports and the same seed give the same decisions. The invariants, fuzzed in `tests::fuzz`:
//!
//! - 1 ≤ calls in flight allowed ≤ `most`; a rate that was found is finite and above zero.
//! - [`Allowance::Full`] only while a call is out, [`Allowance::Until`] only in the future: an answer or time alone
//!   always leads on.
//! - A refused call is never a sample of latency, and a call that was sent before a change never judges it.
//! - A wait that the service names holds calls back only while nothing sent later got through.

mod above;
mod flight;
pub mod headers;
mod knowledge;
mod latency;
mod more;
mod neighbours;
mod numbers;
mod picture;
mod refusals;
mod rounds;
mod scout;
mod share;
mod slope;
#[cfg(test)]
mod tests;
mod window;

use std::time::Duration;

use crate::ids::Moment;
pub use crate::stats::autopilot::{Picture, Scouting, Why};
use flight::Flight;
pub use knowledge::{KEPT_FOR, Knowledge};
pub use neighbours::{Neighbours, News};
pub use numbers::START_IN_FLIGHT;
use refusals::Refusals;
pub use share::Heard;
use share::Share;
use window::Window;

/// Answer to the question whether a call may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// One call may be sent; ask again after [`Pilot::on_departure`].
    Go,
    /// No call before one comes back. Only answered while one is out.
    Full(Why),
    /// No call before this moment, which lies in the future, or before a report, whichever comes first.
    Until(Moment, Why),
}

/// Knobs that the autopilot turns; the other is left to what people set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// True if the autopilot finds the calls in flight.
    pub in_flight: bool,
    /// True if the autopilot finds the calls per second.
    pub rate: bool,
}

/// Settings of an autopilot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Maximum calls in flight, whatever is found; 0 counts as 1.
    pub most: u32,
    /// Calls in flight at the start: [`START_IN_FLIGHT`], or more where a given rate must hold from the first second.
    pub start: u32,
    /// Knobs that the autopilot turns; a fixed number stays what people set.
    pub knobs: Knobs,
    /// Seed of its experiments, such as a hash of task and shard. Runs that share a service need different ones.
    pub seed: u64,
}

/// Call that was sent. The caller keeps it, and hands it back with the call's end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// Number of the call among those of its autopilot.
    number: u64,
    sent: f64,
    /// Calls out at its departure, including it, and with those that were sent together with it.
    in_flight: u32,
    together: u32,
    /// True if the limit in flight was reached with it.
    at_limit: bool,
    /// Rate that held it back, if one did.
    by_rate: Option<f64>,
    /// Number of the round that it is a sample of; 0 for none.
    round: u32,
}

impl Call {
    /// Returns the number of the call among those of its autopilot, from 1 on.
    pub fn ticket(&self) -> u64 {
        self.number
    }
}

/// State of the autopilot of one run.
#[derive(Clone, Debug)]
pub struct Pilot {
    settings: Settings,
    flight: Flight,
    refusals: Refusals,
    window: Window,
    share: Share,
    /// Number of the next call.
    next: u64,
    /// Calls with lower numbers are no evidence: they were sent while the circuit wasn't closed.
    first: u64,
    is_circuit_shut: bool,
    hold: Hold,
}

/// Holding back between two departures.
#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    /// Last reason since the last departure, and the end of its wait if it has one.
    why: Option<Why>,
    until: f64,
    /// Time of the last departure or report: what follows it without a call out is idle.
    active: f64,
}

impl Pilot {
    /// Creates an autopilot that knows nothing.
    pub fn new(settings: Settings, now: Moment) -> Pilot {
        let at = seconds(now);
        Pilot {
            settings,
            flight: Flight::new(settings),
            refusals: Refusals::new(at),
            window: Window::default(),
            share: Share::ALONE,
            next: 1,
            first: 0,
            is_circuit_shut: false,
            hold: Hold {
                active: at,
                ..Hold::default()
            },
        }
    }

    /// Decides whether a call may be sent at `now`, with `in_flight` calls out.
    pub fn allow(&mut self, now: Moment, in_flight: u32) -> Allowance {
        let at = seconds(now);
        if in_flight == 0 {
            self.forget_idle_time(at);
        }
        let answer = self.decide(at, in_flight);
        match answer {
            None => Allowance::Go,
            Some(Wait { why, until: None }) => {
                self.hold.why = Some(why);
                Allowance::Full(why)
            }
            Some(Wait {
                why,
                until: Some(until),
            }) => {
                self.hold.why = Some(why);
                self.hold.until = until;
                Allowance::Until(moment(until).max(Moment(now.0.saturating_add(1))), why)
            }
        }
    }

    fn decide(&mut self, at: f64, in_flight: u32) -> Option<Wait> {
        if self.settings.knobs.rate && !self.is_circuit_shut {
            if self.refusals.take_scout_through(at) {
                self.flight.forget_round();
            }
            if let Some((until, why)) = self.refusals.scout_wait(at) {
                return Some(Wait {
                    why,
                    until: Some(until),
                });
            }
        }
        if in_flight > 0 && in_flight >= self.in_flight_max() {
            return Some(Wait {
                why: self.why_full(),
                until: None,
            });
        }
        if self.refusals.is_scouting() {
            return None;
        }
        if let Some(until) = self.window.used_until(at, self.next, self.share.part) {
            return Some(Wait {
                why: Why::WindowUsed,
                until: Some(until),
            });
        }
        let until = self.refusals.next_at().filter(|next| at < *next)?;
        Some(Wait {
            why: Why::RefusedAboveRate,
            until: Some(until),
        })
    }

    /// Accounts for a call that is sent at `now`; `in_flight` includes it.
    pub fn on_departure(&mut self, now: Moment, in_flight: u32) -> Call {
        self.on_departure_among(now, in_flight, in_flight)
    }

    /// Accounts for a call that is sent at `now` together with others, after which `together` are out: those are the
    /// calls that slow it down.
    pub fn on_departure_among(&mut self, now: Moment, in_flight: u32, together: u32) -> Call {
        let at = seconds(now);
        let most = self.in_flight_max();
        let at_limit = together >= most;
        let is_by_rate = self.hold.why.take() == Some(Why::RefusedAboveRate);
        let is_sample = self.is_experimenting()
            && !self.share.is_settling(at)
            && !self.is_circuit_shut
            && !self.refusals.is_scouting();
        let call = Call {
            number: self.next,
            sent: at,
            in_flight: in_flight.saturating_add(self.share.others),
            together: together.saturating_add(self.share.others),
            at_limit,
            by_rate: is_by_rate.then(|| self.refusals.spaced()),
            round: if is_sample {
                self.flight.on_departure(at, together, most, self.share.others)
            } else {
                0
            },
        };
        self.next += 1;
        self.hold.active = at;
        self.refusals.on_departure(&call);
        call
    }

    /// Accounts for a call that the service answered, whatever the answer says about its item.
    pub fn on_accepted(&mut self, call: Call, now: Moment) {
        self.end(call, now, false);
    }

    /// Accounts for a call without a clear answer: a time-out, a broken connection, a 5xx.
    pub fn on_failed(&mut self, call: Call, now: Moment) {
        self.end(call, now, true);
    }

    fn end(&mut self, call: Call, now: Moment, is_failed: bool) {
        let at = seconds(now);
        self.hold.active = at;
        if self.is_no_evidence(&call) {
            return;
        }
        if self.settings.knobs.rate && self.refusals.on_accepted(&call, at, is_failed) {
            self.flight.forget_round();
        }
        let most = self.ceiling();
        self.flight.on_end(&call, at, is_failed, most, self.share.others);
    }

    /// Accounts for a call that the service refused as too many; `retry_after` is the wait that it named.
    pub fn on_refused(&mut self, call: Call, now: Moment, retry_after: Option<Duration>) {
        let at = seconds(now);
        self.hold.active = at;
        if self.is_no_evidence(&call) {
            return;
        }
        self.flight.on_refused(&call);
        if self.settings.knobs.rate {
            let wait = retry_after.map(|wait| wait.as_secs_f64().min(numbers::TOLD_MAX));
            let wait = wait.filter(|wait| *wait > 0.0);
            self.refusals.on_refused(&call, at, self.next, wait);
        }
    }

    /// Accounts for headers that came with a call: `left` more calls until `reset`, at most an hour.
    pub fn on_window(&mut self, call: Call, now: Moment, left: u64, reset: Moment) {
        self.window.set(call.number, left, seconds(now), seconds(reset));
    }

    /// The circuit opened: nothing is learned until it closes.
    pub fn on_circuit_open(&mut self, now: Moment) {
        if !self.is_circuit_shut {
            self.is_circuit_shut = true;
            self.hold.active = seconds(now);
            self.flight.forget_round();
        }
    }

    /// The circuit closed after `down`: it goes on with half of the calls in flight; the rate stays.
    pub fn on_circuit_closed(&mut self, now: Moment, down: Duration) {
        self.is_circuit_shut = false;
        self.first = self.next;
        self.hold.active = seconds(now);
        self.flight.restart();
        self.refusals.skip(down.as_secs_f64());
    }

    /// Takes a call back that was never sent, or whose end says nothing about the service.
    pub fn on_unsent(&mut self, call: Call) {
        self.flight.on_refused(&call);
        self.refusals.on_unsent(&call);
    }

    /// Every call that was out is lost: none of them is evidence.
    pub fn on_lost(&mut self, now: Moment) {
        self.first = self.next;
        self.hold.active = seconds(now);
        self.flight.forget_round();
        self.refusals.skip(0.0);
    }

    /// Changes the maximum calls in flight.
    pub fn set_most(&mut self, most: u32) {
        self.settings.most = most;
    }

    /// Returns the calls that may be sent at once after [`Allowance::Go`], with `in_flight` calls out: one where calls
    /// are spaced or counted, else all that fit.
    pub fn at_once(&self, in_flight: u32) -> u32 {
        let is_spaced =
            self.refusals.is_scouting() || self.refusals.next_at().is_some() || self.window.is_told();
        match is_spaced {
            true => 1,
            false => self.in_flight_max().saturating_sub(in_flight).max(1),
        }
    }

    fn is_no_evidence(&self, call: &Call) -> bool {
        self.is_circuit_shut || call.number < self.first
    }

    /// Time in which nothing was out and nothing was held back says nothing about the service: there were no items,
    /// or a person was asked.
    fn forget_idle_time(&mut self, at: f64) {
        let idle = at - self.hold.active.max(self.hold.until.min(at));
        if idle > numbers::RAISE_EVERY && !self.is_circuit_shut {
            self.refusals.skip(idle);
            self.flight.forget_round();
            self.hold.active = at;
        }
    }

    /// Returns the calls in flight that are allowed now, at least 1.
    pub fn in_flight_max(&self) -> u32 {
        let (most, ceiling) = (self.settings.most.max(1), self.ceiling());
        let own = if !self.settings.knobs.in_flight {
            self.share.rest(ceiling)
        } else if self.share.is_following {
            self.share.of(self.flight.limit().min(f64::from(ceiling)))
        } else {
            self.share.rest(self.flight.in_flight_max(ceiling))
        };
        own.min(most)
    }

    fn is_experimenting(&self) -> bool {
        self.settings.knobs.in_flight && !self.share.is_following
    }

    /// Returns the highest limit in flight of the task, of which the others hold a part.
    fn ceiling(&self) -> u32 {
        let most = self.settings.most.max(1).saturating_add(self.share.others);
        self.refusals
            .in_flight_max()
            .map_or(most, |above| above.min(most))
    }

    fn why_full(&self) -> Why {
        match self.refusals.in_flight_max() {
            Some(above) if above <= self.in_flight_max() + self.share.others => Why::RefusedInFlight,
            _ if self.flight.is_starting() => Why::Starting,
            _ => Why::Slower,
        }
    }
}

/// Wait that the autopilot imposes; without an end until a call comes back.
struct Wait {
    why: Why,
    until: Option<f64>,
}

fn seconds(at: Moment) -> f64 {
    at.0 as f64 / 1e9
}

/// Returns the moment of a number of seconds, rounded up so that a wait is over when it comes.
fn moment(seconds: f64) -> Moment {
    Moment((seconds * 1e9).ceil() as u64)
}
