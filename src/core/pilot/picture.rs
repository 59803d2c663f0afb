//! State of the autopilot for people, as numbers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Moment, Pilot, Why, seconds};

/// Limits in force, and the measurements behind them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Calls in flight that are allowed.
    pub in_flight: u32,
    /// Calls in flight above which the service refuses, if it refused some for that.
    pub refused_above: Option<u32>,
    /// Calls per second that are allowed, if the service refused some.
    pub rate: Option<f64>,
    /// Share of calls that were refused, over some hundred calls. From 0 to 1.
    pub refused_share: f64,
    /// Time of a call now and at its best, both smoothed. Unit: seconds.
    pub latency: Option<(f64, f64)>,
    /// Slope of latency over calls in flight: 1 % more of them makes calls so many percent slower. 0 is room, 1 is a
    /// queue, 2 is harm.
    pub slope: Option<f64>,
    /// Factor by which calls are slower than at their best; 1 is not.
    pub slower: f64,
    /// Scouting that goes on.
    pub scouting: Option<Scouting>,
    /// Reason for which the last call was held back; `None` if none was since the last departure.
    pub why: Option<Why>,
}

/// One call at a time until the service takes calls again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scouting {
    /// Time since the refusal that began it.
    pub since: Duration,
    /// Time until the next scout; zero if it is due or out.
    pub next: Duration,
    /// True if the service named that time and is believed.
    pub is_told: bool,
}

impl Pilot {
    /// Returns the state for people.
    pub fn picture(&self, now: Moment) -> Picture {
        let now = seconds(now);
        let latency = self.flight.latency();
        Picture {
            in_flight: self.in_flight_max(),
            refused_above: self.refusals.in_flight_max(),
            rate: self.refusals.found().map(|found| found.rate),
            refused_share: self.refusals.share(),
            latency: latency
                .smooth()
                .zip(latency.base())
                .map(|(now, best)| (now.exp2(), best.exp2())),
            slope: self.flight.slope(),
            slower: latency.slower().exp2(),
            scouting: self.refusals.scout().map(|scout| Scouting {
                since: Duration::from_secs_f64((now - scout.began).max(0.0)),
                next: Duration::from_secs_f64((scout.next - now).max(0.0)),
                is_told: scout.is_told,
            }),
            why: self.hold.why,
        }
    }
}
