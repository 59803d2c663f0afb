//! How exactly the engine keeps its rate: `cargo bench --bench pace`. Ten seconds at each rate; the evidence is the
//! gate time of every item, as a handler sees it.
//!
//! `over` is the most by which any interval exceeded rate × its length, in items; the lease_duration is `over ≤ burst`.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(
    unreachable_pub,
    dead_code,
    reason = "a benchmark exports nothing, and doesn't use all that is shared"
)]
#![allow(clippy::unwrap_used, reason = "a benchmark ends where something is wrong")]

#[path = "executor/engine.rs"]
mod engine;
#[path = "shared/smoke.rs"]
mod smoke;

use engine::{Engine, Job, Work};
use windrow_core::pace::burst_items;
use windrow_core::settings::{Burst, Rate, RateLimit};

fn main() {
    let engine = Engine::start();
    let (rates, seconds) = smoke::sized(
        (&[10, 100, 1_000, 10_000, 100_000, 1_000_000][..], 10),
        (&[1_000][..], 1),
    );
    for &per_second in rates {
        let rate = Rate::per_second(per_second).unwrap();
        let items = per_second * seconds;
        engine.run(Job {
            rate: RateLimit::Limited(rate),
            ..Job::new(Work::Record, items)
        });
        let times = engine.gate_times();
        assert_eq!(times.len() as u64, items);
        let span = (times[times.len() - 1] - times[0]) as f64 / 1e9;
        // The first item opens the interval, it does not belong to it.
        let achieved = (items - 1) as f64 / span;
        let burst = burst_items(Burst::Span(std::time::Duration::from_millis(100)), rate, 1);
        println!(
            "{per_second:>7}/s: achieved {achieved:.1}/s = {:.4} of the target, over {:.2} of {burst} items",
            achieved / per_second as f64,
            over(&times, per_second as f64)
        );
    }
}

/// The largest excess over all intervals, in one pass: (k + 1 − rate·t_k) − min over j ≤ k of (j − rate·t_j).
fn over(times: &[u64], per_second: f64) -> f64 {
    let start = times[0];
    let (mut least, mut most) = (f64::MAX, f64::MIN);
    for (k, time) in times.iter().enumerate() {
        let earned = (time - start) as f64 / 1e9 * per_second;
        least = least.min(k as f64 - earned);
        most = most.max((k + 1) as f64 - earned - least);
    }
    most
}
