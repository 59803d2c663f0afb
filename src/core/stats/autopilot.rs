//! State of the autopilot (`pilot`) for people, as numbers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

crate::slugs! {
    /// Reason for which the autopilot holds a call back, in the order of their weight.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Why {
        /// The limit in flight is still being raised for the first time.
        Starting = "starting",
        /// More calls in flight make calls slower.
        Slower = "slower",
        /// The service refuses calls above the rate found.
        RefusedAboveRate = "refused_above_rate",
        /// The service refuses calls above a number in flight.
        RefusedInFlight = "refused_in_flight",
        /// One call at a time until the service takes calls again.
        Scouting = "scouting",
        /// The service said that its window is used up.
        WindowUsed = "window_used",
    }
}

/// Limits in force, and the measurements behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Time until that hold ends, if it does so without an answer.
    #[serde(default)]
    pub held_for: Option<Duration>,
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

impl Picture {
    /// Merges the state of another run of the same task: limits add up, and of the rest the worse counts.
    #[must_use]
    pub fn join(self, other: Picture) -> Picture {
        let slower = if self.slower < other.slower { other } else { self };
        Picture {
            in_flight: self.in_flight.saturating_add(other.in_flight),
            refused_above: sum(self.refused_above, other.refused_above, u32::saturating_add),
            rate: sum(self.rate, other.rate, |one, other| one + other),
            refused_share: self.refused_share.max(other.refused_share),
            latency: slower.latency,
            slope: sum(self.slope, other.slope, f64::max),
            slower: slower.slower,
            scouting: sum(self.scouting, other.scouting, |one, other| {
                if one.next < other.next { other } else { one }
            }),
            why: self.why.max(other.why),
            held_for: self.held_for.max(other.held_for),
        }
    }

    /// Returns the reason that holds calls back, now or else most of the time.
    pub fn bound(&self) -> Option<Why> {
        let usual = || match self {
            Picture {
                scouting: Some(_), ..
            } => Some(Why::Scouting),
            Picture {
                refused_above: Some(above),
                ..
            } if *above <= self.in_flight => Some(Why::RefusedInFlight),
            Picture { rate: Some(_), .. } => Some(Why::RefusedAboveRate),
            Picture {
                slope: Some(slope), ..
            } if *slope > 0.0 => Some(Why::Slower),
            _ => None,
        };
        self.why.or_else(usual)
    }
}

fn sum<T>(one: Option<T>, other: Option<T>, with: impl Fn(T, T) -> T) -> Option<T> {
    one.into_iter().chain(other).reduce(with)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_runs_add_up_and_the_worse_counts_of_the_rest() {
        let one = Picture {
            in_flight: 8,
            rate: Some(5.0),
            refused_share: 0.01,
            latency: Some((0.2, 0.1)),
            slope: Some(0.5),
            slower: 2.0,
            why: Some(Why::Slower),
            ..Picture::default()
        };
        let other = Picture {
            in_flight: 4,
            rate: Some(2.0),
            refused_share: 0.02,
            latency: Some((0.1, 0.1)),
            slope: None,
            slower: 1.0,
            why: Some(Why::RefusedAboveRate),
            held_for: Some(Duration::from_secs(1)),
            ..one
        };
        let both = one.join(other);
        assert_eq!(
            (both.in_flight, both.rate, both.refused_share),
            (12, Some(7.0), 0.02)
        );
        assert_eq!(
            (both.latency, both.slope, both.slower),
            (one.latency, Some(0.5), 2.0)
        );
        assert_eq!(
            (both.why, both.held_for),
            (Some(Why::RefusedAboveRate), Some(Duration::from_secs(1)))
        );
        assert_eq!(other.join(one), both);
    }

    #[test]
    fn a_limit_that_was_found_is_the_bound_while_nothing_is_held() {
        let calm = Picture {
            in_flight: 20,
            refused_above: Some(20),
            rate: Some(5.0),
            slope: Some(0.2),
            ..Picture::default()
        };
        let unrefused = Picture {
            refused_above: None,
            rate: None,
            ..calm
        };
        assert_eq!(calm.bound(), Some(Why::RefusedInFlight));
        assert_eq!(
            Picture {
                refused_above: None,
                ..calm
            }
            .bound(),
            Some(Why::RefusedAboveRate)
        );
        assert_eq!(unrefused.bound(), Some(Why::Slower));
        assert_eq!(
            Picture {
                slope: None,
                ..unrefused
            }
            .bound(),
            None
        );
    }
}
