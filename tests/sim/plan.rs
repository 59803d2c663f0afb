//! What a seed means: the task, how its items behave, and what goes wrong.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use windrow_core::settings::{
    Auto, Backoff, Burst, ErrorBudget, FailedAttempts, FailedLimit, OnExhausted, Rate, RateLimit,
};
use windrow_core::task::{Canary, CanaryThen, Tuning};

use crate::rng::Rng;

/// Chances are per thousand: of an attempt, or of an exchange, as named.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) start: u64,
    pub(crate) total: u64,
    pub(crate) lanes: usize,
    pub(crate) has_data: bool,
    pub(crate) tuning: Tuning,
    pub(crate) latency_max_us: u64,
    pub(crate) fails: u64,
    pub(crate) gives_up: u64,
    pub(crate) hangs: u64,
    pub(crate) refuses_429: u64,
    pub(crate) skips: u64,
    pub(crate) returns: u64,
    pub(crate) commands: u64,
    /// Items that fail each time.
    pub(crate) hopeless: u64,
    /// Ends the node each time it is sent.
    pub(crate) killer: Option<u64>,
    /// Runs after a crash are told that the shard crashes again and again.
    pub(crate) solo_after_crash: bool,
    /// How many faults (crashes, lost lanes, stops, tunings …) there may be.
    pub(crate) faults: u32,
    pub(crate) fault_every: Duration,
    pub(crate) store_delay_max_us: u64,
    /// The first items, which are settled before any other leaves.
    pub(crate) canary: Option<Canary>,
}

pub(crate) fn n(number: u64) -> NonZeroU32 {
    NonZeroU32::new(u32::try_from(number).expect("small")).expect("not zero")
}

/// Settings as `config.toml` has them, without a rate.
pub(crate) fn defaults() -> Tuning {
    Tuning {
        rate: RateLimit::Unlimited,
        burst: Burst::Span(Duration::from_millis(100)),
        concurrency: Auto::Fixed(n(8)),
        max_concurrency: n(1000),
        window: Auto::Auto,
        batch: n(1),
        batch_linger: Duration::from_millis(5),
        outage_patience: Duration::from_secs(24 * 3600),
        judge_after: Auto::Fixed(Duration::from_secs(300)),
        timeout: Duration::from_secs(30),
        max_attempts: n(5),
        backoff: Backoff {
            first: Duration::from_millis(100),
            max: Duration::from_secs(4),
            factor: 2,
            jitter_percent: 20,
        },
        on_exhausted: OnExhausted::Fail,
        error_budget: ErrorBudget {
            failed_attempts: None,
            failed: None,
        },
        error_window: Duration::from_secs(10),
        checkpoint_interval: Duration::from_millis(200),
        unsaved_max: Auto::Auto,
        straggler_after: Duration::from_secs(1),
        park_after: Duration::from_secs(2),
        parked_max: 10_000,
        ordered: false,
        ..Tuning::default()
    }
}

pub(crate) fn tuning(rng: &mut Rng, ordered: bool) -> Tuning {
    let batch = if ordered { 1 } else { rng.pick(&[1, 1, 1, 4, 16]) };
    let more = rng.pick(&[0, 3, 30, 100]);
    let concurrency = rng.between(batch, batch + more);
    let rate = match rng.between(0, 5) {
        0..=2 => RateLimit::Unlimited,
        3 => RateLimit::Limited(Rate::per_second(rng.between(5, 60)).expect("valid")),
        4 => RateLimit::Limited(Rate::per_second(rng.between(60, 5000)).expect("valid")),
        _ => {
            let period = Duration::from_millis(rng.between(500, 3000));
            RateLimit::Limited(Rate::new(rng.between(1, 30), period).expect("valid"))
        }
    };
    let window = match rng.between(0, 3) {
        0 => Auto::Auto,
        1 => Auto::Fixed(n(batch.max(rng.between(1, 8)))),
        _ => Auto::Fixed(n(batch.max(rng.between(8, 200)))),
    };
    let max_attempts = n(rng.between(1, 6));
    Tuning {
        rate,
        concurrency: if rng.chance(100) {
            Auto::Auto
        } else {
            Auto::Fixed(n(concurrency))
        },
        window,
        batch: n(batch),
        max_attempts,
        on_exhausted: if rng.chance(150) {
            OnExhausted::Stop
        } else {
            OnExhausted::Fail
        },
        error_budget: ErrorBudget {
            failed_attempts: if rng.chance(100) {
                Rate::per_second(rng.between(1, 5)).map(FailedAttempts::Rate)
            } else {
                None
            },
            failed: if rng.chance(100) {
                Some(FailedLimit::Count(rng.between(0, 3)))
            } else {
                None
            },
        },
        error_window: Duration::from_secs(2),
        checkpoint_interval: Duration::from_millis(rng.between(5, 400)),
        unsaved_max: if rng.chance(500) {
            Auto::Fixed(n(rng.between(1, 60)))
        } else {
            Auto::Auto
        },
        straggler_after: Duration::from_millis(rng.between(20, 1500)),
        park_after: Duration::from_millis(rng.between(50, 2000)),
        parked_max: rng.pick(&[0, 1, 5, 10_000]),
        ordered,
        ..defaults()
    }
}

impl Plan {
    pub(crate) fn of(seed: u64) -> Plan {
        let mut rng = Rng(seed);
        let ordered = rng.chance(120);
        let total = if rng.chance(100) {
            rng.between(0, 3)
        } else {
            rng.between(1, 400)
        };
        let start = rng.pick(&[0, 0, 1, 63, 1000]);
        let sometimes = |rng: &mut Rng, most: u64| if rng.chance(500) { 0 } else { rng.between(1, most) };
        let then = rng.pick(&[CanaryThen::Stop, CanaryThen::Continue]);
        let items = NonZeroU64::new(rng.between(1, 80)).expect("not zero");
        let canary = rng.chance(200).then_some(Canary { items, then });
        let kills = total > 0 && rng.chance(80);
        let solo_after_crash = !kills && rng.chance(200);
        let mut tuning = tuning(&mut rng, ordered);
        if solo_after_crash || kills {
            // A person who resumes an exhausted item for ever looks like a crash loop of that item.
            tuning.on_exhausted = OnExhausted::Fail;
        }
        Plan {
            seed,
            start,
            total,
            lanes: rng.pick(&[1, 1, 2, 4]),
            has_data: rng.chance(300),
            tuning,
            latency_max_us: rng.pick(&[1, 200, 5_000, 80_000]),
            fails: sometimes(&mut rng, 300),
            gives_up: sometimes(&mut rng, 50),
            hangs: sometimes(&mut rng, 30),
            refuses_429: sometimes(&mut rng, 20),
            skips: sometimes(&mut rng, 100),
            returns: sometimes(&mut rng, 100),
            commands: sometimes(&mut rng, 8),
            hopeless: sometimes(&mut rng, 30),
            killer: kills.then(|| start + rng.between(0, total - 1)),
            solo_after_crash,
            faults: if rng.chance(250) {
                0
            } else {
                rng.between(1, 12) as u32
            },
            fault_every: Duration::from_millis(rng.pick(&[3, 30, 300, 3000])),
            store_delay_max_us: rng.pick(&[1, 2_000, 100_000]),
            canary,
        }
    }
}
