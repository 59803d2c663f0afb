//! The whole engine beside the bare loops of the field, interleaved in one run: `cargo bench --bench executor`.
//!
//! A no-op handler in this process behind the same boxed dynamic call for all. `bare` is a windowed loop of 1,000
//! tasks that claim indexes from a bitmap ring behind one mutex, one or 64 at a time; it has no pace, no retry, no
//! counters, no checkpoint. `windrow` is a node with its actors, lanes, core and store, checkpoints on.
//! Arguments: `[items] [rounds]`.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(unreachable_pub, reason = "a benchmark exports nothing")]
#![allow(clippy::unwrap_used, reason = "a benchmark ends where something is wrong")]

#[path = "executor/bare.rs"]
mod bare;
#[path = "executor/engine.rs"]
mod engine;
#[path = "shared/smoke.rs"]
mod smoke;

use std::time::Instant;

use engine::{Engine, Job, Work};

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Million items a second.
fn rate(items: u64, run: impl FnOnce()) -> f64 {
    let started = Instant::now();
    run();
    items as f64 / started.elapsed().as_secs_f64() / 1e6
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse::<u64>().ok());
    let items = arguments
        .next()
        .unwrap_or_else(|| smoke::sized(10_000_000, 20_000));
    let rounds = arguments.next().unwrap_or_else(|| smoke::sized(5, 1)) as usize;
    let engine = Engine::start();
    let mut rows: Vec<(&str, Vec<f64>)> = [
        "bare claim 1",
        "  on one thread",
        "bare claim 64",
        "windrow",
        "windrow batch 64",
    ]
    .map(|name| (name, Vec::new()))
    .into();
    for round in 0..=rounds {
        let measured = [
            rate(items, || bare::run(items, 1, 2)),
            rate(items, || bare::run(items, 1, 1)),
            rate(items, || bare::run(items, 64, 2)),
            rate(items, || {
                engine.run(Job::new(Work::Nothing, items));
            }),
            rate(10 * items, || {
                engine.run(Job {
                    batch: 64,
                    concurrency: 1_024,
                    ..Job::new(Work::Nothing, 10 * items)
                });
            }),
        ];
        // The first round warms up.
        if round > 0 {
            rows.iter_mut()
                .zip(measured)
                .for_each(|((_, values), value)| values.push(value));
        }
    }
    println!("{items} items, {rounds} rounds, million items/s: min / median / max");
    let mut medians = Vec::new();
    for (name, values) in &mut rows {
        let middle = median(values);
        println!(
            "{name:>18}  {:7.2} / {middle:7.2} / {:7.2}",
            values[0],
            values[values.len() - 1]
        );
        medians.push(middle);
    }
    println!(
        "windrow ÷ bare claim 1, both on two threads = {:.2} (aim ≥ 2)",
        medians[3] / medians[0]
    );
    println!(
        "windrow on two threads ÷ bare claim 1 on one, where it is quickest = {:.2}",
        medians[3] / medians[1]
    );
    println!(
        "windrow batch 64 ÷ bare claim 64 = {:.2} (aim ≥ 0.8)",
        medians[4] / medians[2]
    );
    sleeping(&engine);
    memory(&engine);
}

/// 100,000 items that sleep at once: where a single future queue collapses under tokio's cooperative budget.
fn sleeping(engine: &Engine) {
    for (concurrency, items) in smoke::sized([(10_000, 1_000_000), (100_000, 3_000_000)], [(100, 1_000); 2]) {
        let started = Instant::now();
        engine.run(Job {
            concurrency,
            ..Job::new(Work::Sleep, items)
        });
        let per_second = items as f64 / started.elapsed().as_secs_f64();
        let theory = f64::from(concurrency) / 0.0245;
        println!(
            "{concurrency} items sleep 0–49 ms at once: {:.2} M/s, {:.2} of concurrency ÷ mean sleep",
            per_second / 1e6,
            per_second / theory
        );
    }
}

/// Memory must not grow with the number of items.
fn memory(engine: &Engine) {
    let (few, many) = smoke::sized((100_000, 100_000_000), (1_000, 10_000));
    engine.run(Job::new(Work::Nothing, few));
    let small = resident_kib();
    engine.run(Job::new(Work::Nothing, many));
    let large = resident_kib();
    println!(
        "RSS after {few} items {small} KiB, after {many} {large} KiB: × {:.3} (aim ≤ 1.1)",
        large as f64 / small as f64
    );
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
