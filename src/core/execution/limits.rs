//! Limits that follow from the settings, and the speed that one of them follows.

use std::time::Duration;

use crate::ids::Moment;
use crate::pace::Pace;
use crate::settings::Auto;
use crate::stats::histogram::Histogram;
use crate::task::Tuning;

/// Minimum automatic bound on unsaved completions.
const UNSAVED_AUTO_MIN: u64 = 100_000;
/// Minimum automatic concurrency, which also applies before a latency is known. (`config.toml`.)
const CONCURRENCY_AUTO_MIN: u32 = 64;
/// Calls after which a latency is known.
const LATENCY_CALLS_MIN: u64 = 20;

/// Limits that follow from the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum items in flight.
    pub concurrency: u32,
    /// Calls in flight that the autopilot allows now.
    pub(super) steered: u32,
    /// Size of the window, in items.
    pub window: u32,
}

impl Limits {
    /// Returns the limits to start with.
    pub fn of(tuning: &Tuning) -> Limits {
        let concurrency = tuning.concurrency_at_start();
        Limits {
            concurrency,
            steered: u32::MAX,
            window: tuning.window_items(concurrency),
        }
    }

    /// Updates the `auto` concurrency of a given rate: rate × p95 × 1.5 by Little's law, never below 64, at most
    /// `max_concurrency`.
    pub(super) fn on_latency(&mut self, tuning: &Tuning, pace: &Pace, latencies: &Histogram) {
        let known = latencies.count() >= LATENCY_CALLS_MIN && !tuning.rate.is_auto();
        let (Auto::Auto, false, true, Some(rate)) = (tuning.concurrency, tuning.ordered, known, pace.rate())
        else {
            return;
        };
        let Some(p95) = latencies.percentile(95) else {
            return;
        };
        let needed = rate.items_in(p95.saturating_mul(3) / 2);
        let least = u64::from(CONCURRENCY_AUTO_MIN.max(2 * tuning.batch.get()));
        let most = u64::from(tuning.max_concurrency.get()).max(u64::from(tuning.batch.get()));
        self.concurrency = u32::try_from(needed.max(least).min(most)).unwrap_or(u32::MAX);
        self.window = tuning.window_items(self.concurrency);
    }

    /// Returns the maximum number of unsaved completions: `auto` is max(10 × concurrency, 100,000, 5 × settled in a
    /// second).
    pub(super) fn unsaved_max(&self, tuning: &Tuning, speed: &Speed) -> u64 {
        match tuning.unsaved_max {
            Auto::Fixed(number) => u64::from(number.get()),
            Auto::Auto => (10 * u64::from(self.concurrency))
                .max(UNSAVED_AUTO_MIN)
                .max(5 * speed.settled),
        }
    }
}

/// Meter for the items settled in the last second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    since: Moment,
    settled_then: u64,
    /// Items in the last whole second, or in the current one if those are more.
    pub(super) settled: u64,
}

impl Speed {
    /// Starts a meter at zero; `settled` items were settled by earlier runs.
    pub(super) fn new(settled: u64, now: Moment) -> Speed {
        Speed {
            since: now,
            settled_then: settled,
            settled: 0,
        }
    }

    /// Updates the meter with the number settled so far; returns true if a second is over.
    #[inline]
    pub(super) fn on(&mut self, settled: u64, now: Moment) -> bool {
        let count = settled.saturating_sub(self.settled_then);
        let span = now.since(self.since);
        if span < Duration::from_secs(1) {
            self.settled = self.settled.max(count);
            return false;
        }
        let per_second = u128::from(count) * 1_000_000_000 / span.as_nanos();
        *self = Speed {
            since: now,
            settled_then: settled,
            settled: per_second as u64,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_earlier_runs_settled_is_not_speed() {
        let mut speed = Speed::new(1_000_000, Moment(0));
        assert!(!speed.on(1_000_050, Moment(500_000_000)));
        assert_eq!(speed.settled, 50);
        assert!(speed.on(1_000_100, Moment(2_000_000_000)));
        assert_eq!(speed.settled, 50);
    }
}
