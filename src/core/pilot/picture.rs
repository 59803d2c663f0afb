//! State of the autopilot for people.

use std::time::Duration;

use super::{Moment, Pilot, seconds};
use crate::stats::autopilot::{Picture, Scouting};

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
            held_for: (self.hold.why.is_some() && self.hold.until > now)
                .then(|| Duration::from_secs_f64(self.hold.until - now)),
        }
    }
}
