//! Autopilot of a run: joins the controller (`pilot`) to grants and reports.
//!
//! Each call of a steered run has a ticket (`tickets`), which comes back with its end. A call that is no evidence about
//! the service, because it wasn't sent or because its item alone is refused, leaves no trace.

use std::time::Duration;

use super::Execution;
use super::settings::Settings;
use super::tickets::CallEnd;
use super::types::{Now, Start};
use crate::ids::{ItemIndex, Moment, ShardId, WallMs};
use crate::items::retry::mix;
use crate::items::waiting::RetryingItems;
use crate::meter::class::End;
use crate::pilot::{
    Allowance, Call, Heard, Knobs, Knowledge, News, Picture, Pilot, START_IN_FLIGHT, headers,
};
use crate::settings::Auto;
use crate::task::Tuning;

/// Time until a window's reset where its headers don't name one.
const RESET_DEFAULT: Duration = Duration::from_secs(1);

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

    /// Applies settings: begins to steer, goes on, or ends. Returns true if the calls that are out no longer belong to
    /// it.
    pub(super) fn set(&mut self, settings: &Settings, now: Now) -> bool {
        let knobs = knobs(&settings.tuning, self.is_service);
        if !(knobs.rate || knobs.in_flight) {
            self.known = self.found(now);
            return self.steering.take().is_some();
        }
        let most = settings.calls_in_flight_max();
        if let Some(steering) = self.steering.as_mut().filter(|steering| steering.knobs == knobs) {
            steering.pilot.set_most(most);
            return false;
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
        self.steering = Some(Steering {
            pilot,
            knobs,
            until: None,
            shut_since: None,
        });
        true
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

    /// Returns the calls that may be sent now, with `out` calls out.
    #[inline]
    pub(super) fn room(&mut self, out: u32, now: Moment) -> u32 {
        let Some(steering) = &mut self.steering else {
            return u32::MAX;
        };
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

    /// Accounts for a call that is sent as the `in_flight`-th, together with others.
    pub(super) fn on_sent(&mut self, in_flight: u32, together: u32, now: Moment) -> Option<Call> {
        let steering = self.steering.as_mut()?;
        Some(steering.pilot.on_departure_among(now, in_flight, together))
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

    /// Accounts for a call that ended; `items` tells which items are refused by themselves.
    pub(super) fn on_end(&mut self, call: Call, end: &CallEnd, items: &RetryingItems) {
        if let Some(steering) = &mut self.steering {
            steering.on_end(call, end, items);
        }
    }

    /// Forgets the calls that are out, because they were lost.
    pub(super) fn on_lost(&mut self, now: Moment) {
        if let Some(steering) = &mut self.steering {
            steering.pilot.on_lost(now);
        }
    }

    /// Returns what other runs of the task are told, if it steers.
    fn news(&self) -> Option<News> {
        let pilot = &self.steering.as_ref()?.pilot;
        Some(News {
            allows: pilot.in_flight_max(),
            knowledge: pilot.knowledge(),
        })
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
        match end.end {
            End::Succeeded | End::RequestFault | End::Rejected => self.pilot.on_accepted(call, end.at),
            End::Unavailable | End::Unreachable | End::ServerError | End::TimedOut | End::Lost => {
                self.pilot.on_failed(call, end.at);
            }
            End::TooMany if end.item.is_some_and(|item| is_own(items, item)) => self.pilot.on_unsent(call),
            End::TooMany => self.pilot.on_refused(call, end.at, end.after),
            End::NeverSent => self.pilot.on_unsent(call),
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
        if self.autopilot.set(&self.settings, now) {
            self.tickets.leave_autopilot();
        }
        self.follow_autopilot();
    }

    /// Bounds the calls in flight by what the autopilot allows, for those who count them.
    pub(super) fn follow_autopilot(&mut self) {
        self.settings.limits.steered = self.autopilot.in_flight_max();
    }

    /// Applies news of the task's other runs.
    pub(super) fn on_neighbours(&mut self, heard: &Heard, now: Now) {
        if let Some(steering) = &mut self.autopilot.steering {
            steering.pilot.on_heard(heard, now.moment);
            self.follow_autopilot();
        }
    }

    /// Returns what its autopilot tells the task's other runs, if it steers.
    pub fn news(&self) -> Option<News> {
        self.autopilot.news()
    }

    /// Returns the limits that the autopilot has found, to begin the next run with.
    pub fn found(&self, now: Now) -> Option<Found> {
        self.autopilot.found(now)
    }
}
