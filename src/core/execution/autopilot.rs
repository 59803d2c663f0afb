//! Autopilot of a run: joins the controller (`pilot`) to grants and reports.
//!
//! Each call of a steered run has a ticket, which comes back with its end ([`CallEnd`]). A call that is no evidence
//! about the service, because it wasn't sent or because its item alone is refused, leaves no trace.

use std::collections::HashMap;
use std::time::Duration;

use super::Execution;
use super::settings::Settings;
use super::types::{Effects, Now, Start};
use crate::ids::{ItemIndex, Moment, ShardId, WallMs};
use crate::items::retry::mix;
use crate::items::waiting::RetryingItems;
use crate::pilot::{Allowance, Call, Knobs, Knowledge, Picture, Pilot, START_IN_FLIGHT, headers};
use crate::settings::Auto;
use crate::task::Tuning;

/// Time until a window's reset where its headers don't name one.
const RESET_DEFAULT: Duration = Duration::from_secs(1);

/// End of a steered call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallEnd {
    /// Ticket that the call was given.
    pub ticket: u64,
    /// Time at which it ended.
    pub at: Moment,
    /// Answer of the service.
    pub ended: Ended,
    /// Windows that headers of the answer describe.
    pub windows: Vec<headers::Told>,
}

/// Answer of a service to a call, as far as its limits are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The service took the call, whatever it says about the items.
    Accepted,
    /// No clear answer: a time-out, a broken connection, a 5xx.
    Failed,
    /// Refused as too many.
    Refused {
        /// Item of a call for one item, which may be what is refused.
        item: Option<ItemIndex>,
        /// Wait that the service named.
        after: Option<Duration>,
    },
    /// Never sent, or the end says nothing about the service.
    Unsent,
}

/// Limits that earlier runs have found, with their time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Limits at that time.
    pub knowledge: Knowledge,
    /// Time at which they were found.
    pub at: WallMs,
}

/// Controller of a run, if settings leave it something to find.
#[derive(Debug)]
pub(super) struct Autopilot {
    steering: Option<Steering>,
    seed: u64,
    /// True if the handler calls a service that more calls may slow down.
    is_service: bool,
    /// Limits to begin with.
    known: Option<Found>,
}

#[derive(Debug)]
struct Steering {
    pilot: Pilot,
    knobs: Knobs,
    out: HashMap<u64, Call>,
    /// Ticket of the first call granted in this step.
    granted: Option<u64>,
    /// Time until which the controller lets nothing be sent.
    until: Option<Moment>,
    /// Time since which the circuit isn't closed.
    shut_since: Option<Moment>,
}

/// Returns the knobs that settings leave to the autopilot. A fixed concurrency stays as it was set. With a given rate,
/// only a handler that calls a service is steered, and never above what the rate needs.
fn knobs(tuning: &Tuning, is_service: bool) -> Knobs {
    let is_paced = tuning.rate.is_auto() || tuning.rate.most().is_some() && is_service;
    Knobs {
        in_flight: is_paced && tuning.concurrency == Auto::Auto && !tuning.ordered,
        rate: tuning.rate.is_auto(),
    }
}

impl Autopilot {
    pub(super) fn new(start: &Start) -> Autopilot {
        Autopilot {
            steering: None,
            seed: seed(start.shard),
            is_service: start.is_service,
            known: start.restored.found,
        }
    }

    /// Applies settings: begins to steer, goes on, or ends.
    pub(super) fn set(&mut self, settings: &Settings, now: Now) {
        let knobs = knobs(&settings.tuning, self.is_service);
        if !(knobs.rate || knobs.in_flight) {
            self.known = self.found(now);
            self.steering = None;
            return;
        }
        let most = settings.calls_in_flight_max();
        if let Some(steering) = self.steering.as_mut().filter(|steering| steering.knobs == knobs) {
            return steering.pilot.set_most(most);
        }
        let start = match knobs.rate {
            true => START_IN_FLIGHT,
            false => most,
        };
        let seed = self.seed;
        let settings = crate::pilot::Settings {
            most,
            start,
            knobs,
            seed,
        };
        self.known = self.found(now);
        let pilot = match &self.known {
            Some(found) => {
                let age = now.wall.since(found.at);
                Pilot::restore(settings, &found.knowledge, age, now.moment)
            }
            None => Pilot::new(settings, now.moment),
        };
        let out = self
            .steering
            .take()
            .map_or_else(HashMap::new, |before| before.out);
        self.steering = Some(Steering {
            pilot,
            knobs,
            out,
            granted: None,
            until: None,
            shut_since: None,
        });
    }

    /// True if the autopilot finds the rate, so that refusals lower it instead of pausing the run.
    #[inline]
    pub(super) fn finds_rate(&self) -> bool {
        self.steering.as_ref().is_some_and(|steering| steering.knobs.rate)
    }

    /// True if calls have tickets.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.steering.is_some()
    }

    /// Returns the calls that may be sent now.
    #[inline]
    pub(super) fn room(&mut self, now: Moment) -> u32 {
        let Some(steering) = &mut self.steering else {
            return u32::MAX;
        };
        let out = steering.out.len() as u32;
        steering.until = None;
        match steering.pilot.allow(now, out) {
            Allowance::Go => steering.pilot.at_once(out),
            Allowance::Full(_) => 0,
            Allowance::Until(until, _) => {
                steering.until = Some(until);
                0
            }
        }
    }

    /// Returns the time at which the autopilot lets the next call be sent, if it waits for one.
    pub(super) fn until(&self) -> Option<Moment> {
        self.steering.as_ref().and_then(|steering| steering.until)
    }

    /// Gives tickets to calls that are granted.
    pub(super) fn on_sent(&mut self, calls: u32, now: Moment) {
        let Some(steering) = &mut self.steering else {
            return;
        };
        let together = steering.out.len() as u32 + calls;
        for in_flight in steering.out.len() as u32 + 1..=together {
            let call = steering.pilot.on_departure_among(now, in_flight, together);
            steering.granted.get_or_insert(call.ticket());
            steering.out.insert(call.ticket(), call);
        }
    }

    /// Returns the ticket of the first call granted in this step; those that follow have the next numbers.
    pub(super) fn take_granted(&mut self) -> Option<u64> {
        self.steering.as_mut()?.granted.take()
    }

    /// Follows the circuit: while it isn't closed, nothing is learned.
    pub(super) fn on_circuit(&mut self, is_closed: bool, now: Moment) {
        let Some(steering) = &mut self.steering else {
            return;
        };
        match (is_closed, steering.shut_since) {
            (false, None) => {
                steering.pilot.on_circuit_open(now);
                steering.shut_since = Some(now);
            }
            (true, Some(since)) => {
                steering.pilot.on_circuit_closed(now, now.since(since));
                steering.shut_since = None;
            }
            _ => {}
        }
    }

    /// Accounts for calls that ended; `items` tells which items are refused by themselves.
    pub(super) fn on_ends(&mut self, ends: &mut Vec<CallEnd>, items: &RetryingItems) {
        let Some(steering) = &mut self.steering else {
            return ends.clear();
        };
        for end in ends.drain(..) {
            if let Some(call) = steering.out.remove(&end.ticket) {
                steering.on_end(call, &end, items);
            }
        }
    }

    /// Forgets the calls that are out, because they were lost.
    pub(super) fn on_lost(&mut self, now: Moment) {
        if let Some(steering) = &mut self.steering {
            steering.out.clear();
            steering.pilot.on_lost(now);
        }
    }

    /// Returns the limits found until now.
    pub(super) fn found(&self, now: Now) -> Option<Found> {
        let of = |steering: &Steering| Found {
            knowledge: steering.pilot.knowledge(),
            at: now.wall,
        };
        self.steering.as_ref().map(of).or(self.known)
    }

    pub(super) fn picture(&self, now: Moment) -> Option<Picture> {
        self.steering.as_ref().map(|steering| steering.pilot.picture(now))
    }

    /// Returns the calls in flight that are allowed now.
    #[inline]
    pub(super) fn in_flight_max(&self) -> u32 {
        self.steering
            .as_ref()
            .map_or(u32::MAX, |steering| steering.pilot.in_flight_max())
    }
}

impl Steering {
    fn on_end(&mut self, call: Call, end: &CallEnd, items: &RetryingItems) {
        if let Some((left, reset)) = tightest(&end.windows) {
            self.pilot.on_window(call, end.at, left, end.at.plus(reset));
        }
        match end.ended {
            Ended::Accepted => self.pilot.on_accepted(call, end.at),
            Ended::Failed => self.pilot.on_failed(call, end.at),
            Ended::Refused { item, .. } if item.is_some_and(|item| is_own(items, item)) => {
                self.pilot.on_unsent(call);
            }
            Ended::Refused { after, .. } => self.pilot.on_refused(call, end.at, after),
            Ended::Unsent => self.pilot.on_unsent(call),
        }
    }
}

/// Returns the calls left in the window with the fewest, and the time until its reset.
fn tightest(windows: &[headers::Told]) -> Option<(u64, Duration)> {
    let of_calls = windows.iter().filter(|told| told.unit == headers::Unit::Calls);
    let windows = of_calls.map(|told| (told.left, told.reset.unwrap_or(RESET_DEFAULT)));
    windows.min_by_key(|(left, reset)| (*left, std::cmp::Reverse(*reset)))
}

/// True if a refusal is about its item alone: it was refused again while nearly all others were taken.
fn is_own(items: &RetryingItems, item: ItemIndex) -> bool {
    items
        .get(item)
        .is_none_or(|retrying| retrying.suspicion.turns.own > 1)
}

fn seed(shard: ShardId) -> u64 {
    mix(shard.task.0.unsigned_abs().rotate_left(32) ^ u64::from(shard.no) ^ 0x5eed)
}

impl Execution {
    /// Passes the settings in force on to the autopilot.
    pub(super) fn steer(&mut self, now: Now) {
        self.autopilot.set(&self.settings, now);
        self.follow_autopilot();
    }

    /// Bounds the calls in flight by what the autopilot allows, for those who count them.
    pub(super) fn follow_autopilot(&mut self) {
        self.settings.limits.steered = self.autopilot.in_flight_max();
    }

    /// Accounts for the calls that ended, once their items are booked.
    pub(super) fn on_ends(&mut self, ends: &mut Vec<CallEnd>, now: Now) {
        if ends.is_empty() {
            return;
        }
        self.autopilot
            .on_circuit(self.judge.circuit.is_closed(), now.moment);
        self.autopilot.on_ends(ends, &self.items.retrying_items);
        self.follow_autopilot();
    }

    /// Returns the limits that the autopilot has found, to begin the next run with.
    pub fn found(&self, now: Now) -> Option<Found> {
        self.autopilot.found(now)
    }

    /// Hands the ticket of the first call granted to the lane.
    pub(super) fn hand_out(&mut self, fx: &mut Effects) {
        fx.ticket = self.autopilot.take_granted();
        fx.paced |= self.autopilot.is_on();
    }
}
