//! Limit in flight, from what its own changes do to the time of a call.

use super::latency::Latency;
use super::numbers::*;
use super::rounds::{Round, Seen};
use super::slope::{Slope, between};
use super::{Call, Settings};

/// Contrast below which a large change of latency isn't our own doing, and that change. Unit: octaves.
const FOREIGN: (f64, f64) = (0.5, 1.2);
/// Slowdown after which a cut is judged, the cut, and the slope below which it was in vain. Unit: octaves.
const SLOWED: f64 = 1.4;
const CUT: f64 = 0.4;
const IN_VAIN: f64 = 0.3;

/// Limit in flight with the experiments that move it.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    limit: f64,
    /// Limit that is kept although fewer calls are used: a given rate may need it at once.
    least: f64,
    is_high: bool,
    is_starting: bool,
    coin: u64,
    rounds: u32,
    round: Option<Round>,
    before: Option<Seen>,
    slope: Slope,
    long: Slope,
    latency: Latency,
    raises: u32,
    judged: u32,
    /// First round in which calls were far slower than the base.
    slowed: Option<Seen>,
    /// Limit before failing rounds, of which half is given back after a good one.
    before_failing: Option<f64>,
}

impl Flight {
    pub(super) fn new(settings: Settings) -> Flight {
        Flight {
            limit: f64::from(settings.start.clamp(1, settings.most.max(1))),
            least: f64::from(settings.start.max(START_IN_FLIGHT)),
            is_high: false,
            is_starting: true,
            coin: settings.seed,
            rounds: 0,
            round: None,
            before: None,
            slope: Slope::new(SLOPE_MEMORY),
            long: Slope::new(LONG_MEMORY),
            latency: Latency::default(),
            raises: 0,
            judged: 0,
            slowed: None,
            before_failing: None,
        }
    }

    /// Returns the calls in flight that are allowed now, at most `ceiling`.
    pub(super) fn in_flight_max(&self, ceiling: u32) -> u32 {
        let setting = if self.is_high {
            (self.limit * SWING).max(self.limit + 1.0)
        } else {
            self.limit
        };
        (setting.round() as u32).clamp(1, ceiling.max(1))
    }

    pub(super) fn is_starting(&self) -> bool {
        self.is_starting
    }

    /// Returns the rounds that were judged, other than failing ones.
    pub(super) fn judged(&self) -> u32 {
        self.judged
    }

    pub(super) fn limit(&self) -> f64 {
        self.limit
    }

    pub(super) fn latency(&self) -> Latency {
        self.latency
    }

    /// Returns the slope that the limit follows, if one is known.
    pub(super) fn slope(&self) -> Option<f64> {
        (self.slope.weight() > 0.0).then(|| self.slope.get())
    }

    pub(super) fn restore(&mut self, limit: f64, base: Option<f64>) {
        self.limit = limit;
        self.latency.restore(base);
    }

    /// Follows the limit of the run that leads.
    pub(super) fn follow(&mut self, limit: f64, base: Option<f64>) {
        if limit.is_finite() {
            self.restore(limit.max(1.0), base.filter(|base| base.is_finite()));
        }
    }

    /// Begins to lead or to follow: what was measured in the other role doesn't compare.
    pub(super) fn change_role(&mut self) {
        self.forget_round();
        self.is_high = false;
        self.is_starting &= self.latency.base().is_none();
    }

    /// Goes on in small steps once other runs hold their parts of the limit.
    pub(super) fn settle(&mut self) {
        self.forget_round();
        self.is_starting = false;
    }

    /// Adds a departure; returns the number of its round, or 0. A round begins only once no more calls are out than
    /// its setting allows, so that calls of the setting before don't judge it.
    pub(super) fn on_departure(&mut self, now: f64, in_flight: u32, most: u32, others: u32) -> u32 {
        if self.round.is_none() && in_flight <= most {
            self.rounds = self.rounds.wrapping_add(1).max(1);
            let least = if self.is_starting {
                ROUND_CALLS_STARTING
            } else {
                ROUND_CALLS
            };
            let mean = self.latency.smooth().map(f64::exp2);
            self.round = Some(Round::new(self.rounds, least.max(most + others), mean, now));
        }
        self.round.as_mut().map_or(0, |round| {
            round.on_departure(now, in_flight + others, in_flight >= most)
        })
    }

    pub(super) fn on_end(&mut self, call: &Call, now: f64, is_failed: bool, ceiling: u32, others: u32) {
        if let Some(round) = &mut self.round
            && round.on_end(call, now, is_failed)
        {
            self.judge(now, ceiling, others);
        }
    }

    pub(super) fn on_refused(&mut self, call: &Call) {
        if let Some(round) = &mut self.round {
            round.on_refused(call);
        }
    }

    /// Drops the round and the one before it: they don't compare with what follows.
    pub(super) fn forget_round(&mut self) {
        (self.round, self.before) = (None, None);
    }

    /// Goes on with half of the limit, raised as at the start.
    pub(super) fn restart(&mut self) {
        self.forget_round();
        self.limit = (self.limit / 2.0).max(1.0);
        (self.is_starting, self.is_high) = (true, false);
    }

    fn judge(&mut self, now: f64, ceiling: u32, others: u32) {
        let Some(seen) = self.round.as_ref().and_then(|round| round.seen(now)) else {
            return;
        };
        self.round = None;
        if seen.calls >= FAILING_CALLS && f64::from(seen.failed) > f64::from(seen.calls) * FAILING_SHARE {
            return self.fall_back(&seen);
        }
        if let Some(limit) = self.before_failing.take() {
            self.limit = self.limit.max(limit / 2.0);
        }
        self.latency.add(seen.latency, seen.skew, seen.calls);
        self.judged = self.judged.wrapping_add(1);
        if !seen.is_reached {
            let used = seen.in_flight.exp2();
            self.limit = self.limit.min((2.0 * used).max(self.least));
            self.before = None;
            return;
        }
        let last = self.learn(&seen);
        self.judge_cut(&seen);
        if self.is_starting {
            self.start(last);
        } else {
            self.cruise();
        }
        self.bound(ceiling, others);
    }

    /// A service that fails gets half of the calls that are used.
    fn fall_back(&mut self, seen: &Seen) {
        self.before_failing = Some(self.before_failing.unwrap_or(0.0).max(self.limit));
        self.limit = (seen.in_flight.exp2().min(self.limit) / 2.0).max(1.0);
        (self.before, self.is_high) = (None, false);
    }

    /// Compares a round with the one before; returns their slope.
    fn learn(&mut self, seen: &Seen) -> Option<f64> {
        let before = self.before.replace(*seen)?;
        let (latency, contrast) = (seen.latency - before.latency, seen.in_flight - before.in_flight);
        self.latency.add_noise(latency.abs());
        let slope = between(latency, contrast);
        if contrast.abs() < FOREIGN.0 && latency.abs() > FOREIGN.1 {
            self.long.clear();
            let is_slowed = latency > 0.0 && self.latency.above_base(seen.latency) > SLOWED;
            self.slowed = self.slowed.or_else(|| is_slowed.then_some(*seen));
        } else if let Some(slope) = slope {
            self.slope.add(slope, contrast);
            self.long.add(slope, contrast);
        }
        slope
    }

    /// Takes a cut back if calls became far slower at once and fewer in flight don't make them faster: longer rows, say.
    /// Only then does the base rise. Wherever less was enough, runs that share a service drove each other up: without
    /// the condition "at once", four of them made calls 12 times slower in place of 3.5.
    fn judge_cut(&mut self, seen: &Seen) {
        let is_slow = self.latency.above_base(seen.latency) > SLOWED / 2.0;
        self.slowed = self.slowed.filter(|_| is_slow);
        let Some(slowed) = self.slowed else { return };
        let cut = slowed.in_flight - seen.in_flight;
        if cut < CUT {
            // The first of these rounds has calls of before among its own.
            if seen.latency > slowed.latency {
                self.slowed = Some(*seen);
            }
            return;
        }
        // A cut that helped is judged again from here.
        self.slowed = Some(*seen);
        if (slowed.latency - seen.latency) / cut < IN_VAIN {
            self.slowed = None;
            self.latency.rebase(seen.latency);
            self.long.clear();
            self.limit = self.limit.max(slowed.in_flight.exp2());
            self.before = None;
        }
    }

    fn start(&mut self, last: Option<f64>) {
        if last.is_none_or(|slope| slope < START_SLOPE) && self.latency.slower() < START_SLOWER {
            self.limit *= 2.0;
        } else {
            self.limit /= 1.5;
            self.is_starting = false;
        }
    }

    fn cruise(&mut self) {
        let pull = self.pull();
        self.raises = if pull > 0.0 { self.raises + 1 } else { 0 };
        let pull = if self.raises > RAISES_UNTIL_DOUBLE {
            2.0 * pull
        } else {
            pull
        };
        self.limit *= 1.0 + pull.clamp(PULL_MIN, PULL_MAX);
        // A coin that prefers change. Strict turns would put runs that share a service into step, and each would see
        // a part of the slope: two sharers made calls 17 times slower, with the coin 1.9 times.
        self.coin = mix(self.coin);
        self.is_high ^= !self.coin.is_multiple_of(4);
    }

    /// Returns the wanted change of the limit, as a part of it. Slower calls count as far as we make them slower, so
    /// that the larger of two sharers yields more, and a service that is slow by itself is none of our doing.
    fn pull(&self) -> f64 {
        let noise = self.latency.noise();
        let chance = CHANCE * (noise / self.slope.weight().max(0.1).sqrt()).min(1.5);
        let slope = self.slope.get();
        let ours = slope.min(self.long.get()).max(0.0);
        let bloat = BLOAT * ours * self.latency.excess().min(SLOWER_MAX);
        GAIN * (WORTH - slope + chance - bloat)
    }

    /// Keeps the limit within `ceiling`; a step below it while calls are slower, or the experiment would be clipped.
    fn bound(&mut self, ceiling: u32, others: u32) {
        let ceiling = f64::from(ceiling);
        let most = if self.latency.excess() > 0.0 {
            ceiling / SWING
        } else {
            ceiling
        };
        self.limit = self.limit.min(most).max(1.0 + f64::from(others));
    }
}

/// Returns the number that follows in a pseudo-random sequence (splitmix64).
fn mix(seed: u64) -> u64 {
    let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
