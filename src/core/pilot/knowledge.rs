//! Knowledge of a run that the next one at the same service begins with.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::numbers::*;
use super::{Moment, Pilot, Settings};

/// Time after which nothing that was found is of use.
pub const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);

/// Limits that a run has found: some 100 bytes of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knowledge {
    /// Limit in flight, of which experiments take a fifth more.
    pub in_flight: f64,
    /// Calls per second held, if the service refused some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Calls per second that the service took at the last estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<f64>,
    /// Best time of a call, as a logarithm. Unit: octaves of a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<f64>,
    /// Calls in flight above which the service refuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_above: Option<u32>,
}

impl Pilot {
    /// Returns what was found until now.
    pub fn knowledge(&self) -> Knowledge {
        let found = self.refusals.found();
        Knowledge {
            in_flight: self.share.published().unwrap_or_else(|| self.flight.limit()),
            rate: found.map(|found| found.rate),
            top: found.map(|found| found.top),
            base: self.flight.latency().base(),
            refused_above: self.refusals.in_flight_max(),
        }
    }

    /// Creates an autopilot that begins with knowledge of this age. Calls in flight halve each hour, down to the
    /// start; the rest is forgotten after a day. Values that can't be are dropped.
    pub fn restore(settings: Settings, known: &Knowledge, age: Duration, now: Moment) -> Pilot {
        let mut pilot = Pilot::new(settings, now);
        let age = age.as_secs_f64();
        let least = f64::from(settings.start);
        let limit = (known.in_flight * (-age / KNOWN_HALF_LIFE).exp2()).max(least);
        if !limit.is_finite() || age >= KNOWN_FOR {
            return pilot;
        }
        let is_rate = |rate: &f64| rate.is_finite() && *rate > 1e-6 && *rate < 1e6;
        let base = known.base.filter(|base| base.abs() < 64.0);
        pilot
            .flight
            .restore(limit.clamp(1.0, f64::from(settings.most.max(1))), base);
        let rate = known.rate.filter(is_rate);
        let rate = rate.map(|rate| (rate, known.top.filter(is_rate).unwrap_or(rate)));
        pilot
            .refusals
            .restore(rate, known.refused_above.filter(|above| *above > 0));
        pilot
    }
}
