//! Level of latency, for its distance from the best.

use super::numbers::{SLOWER_FREE, SLOWER_NOISE};

/// Share of the distance by which the smoothed latency follows, and the bounds of a distance. Unit: octaves.
const SMOOTH: f64 = 0.25;
const SMOOTH_BOUNDS: (f64, f64) = (-4.0, 1.0);
/// Multiple of the skew that is added to a base. Without it the worst of 20 seeds of a heavy tail falls from 0.89 to
/// 0.75 of the best.
const BASE_SKEWS: f64 = 3.0;
/// Calls before which there is no base.
const BASE_CALLS: f64 = 32.0;
/// Memory of the noise, in rounds.
const NOISE_ROUNDS: f64 = 16.0;

/// Smoothed latency. Unit of everything: octaves of a second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latency {
    smooth: Option<f64>,
    /// Smoothed skew of its rounds.
    skew: f64,
    /// Lowest smoothed latency, with its skew added: the mean of eight calls with a heavy tail is far too low,
    /// and nothing would ever correct it.
    base: Option<f64>,
    /// Slowdown of the last round against the base.
    slower: f64,
    calls: f64,
    /// Mean change from round to round, and the changes in it.
    noise: f64,
    changes: f64,
}

impl Latency {
    pub(super) fn smooth(&self) -> Option<f64> {
        self.smooth
    }

    pub(super) fn base(&self) -> Option<f64> {
        self.base
    }

    pub(super) fn slower(&self) -> f64 {
        self.slower
    }

    pub(super) fn noise(&self) -> f64 {
        self.noise
    }

    pub(super) fn restore(&mut self, base: Option<f64>) {
        self.base = base;
    }

    /// Adds the mean latency of a round with its skew.
    pub(super) fn add(&mut self, latency: f64, skew: f64, calls: u32) {
        self.calls += f64::from(calls);
        let share = SMOOTH.max(f64::from(calls) / self.calls);
        let smooth = match self.smooth {
            Some(smooth) => smooth + share * (latency - smooth).clamp(SMOOTH_BOUNDS.0, SMOOTH_BOUNDS.1),
            None => latency,
        };
        self.smooth = Some(smooth);
        self.skew += share * (skew - self.skew);
        let best = smooth + BASE_SKEWS * self.skew;
        if self.calls >= BASE_CALLS {
            self.base = Some(self.base.map_or(best, |base| base.min(best)));
        }
        self.slower = self
            .base
            .map_or(0.0, |base| (latency.min(smooth) - base).max(0.0));
    }

    pub(super) fn add_noise(&mut self, change: f64) {
        self.changes = (self.changes + 1.0).min(NOISE_ROUNDS);
        self.noise += (change - self.noise) / self.changes;
    }

    /// Returns the slowdown beyond what noise explains.
    pub(super) fn excess(&self) -> f64 {
        let free = SLOWER_FREE.max(SLOWER_NOISE * self.noise);
        (self.slower - free).max(0.0)
    }

    /// Returns the distance of a latency from the base; zero while there is none.
    pub(super) fn above_base(&self, latency: f64) -> f64 {
        self.base.map_or(0.0, |base| latency - base)
    }

    /// Takes a latency for the best.
    pub(super) fn rebase(&mut self, latency: f64) {
        (self.smooth, self.base, self.slower) = (Some(latency), Some(latency), 0.0);
    }
}
