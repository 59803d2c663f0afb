//! The whole engine beside the bare loops of the field and beside the smallest engine of its own shape, interleaved in one
//! run: `cargo bench --bench executor`.
//!
//! A no-op handler in this process behind the same boxed dynamic call for all. `bare` is a windowed loop of 1,000
//! tasks that claim indexes from a bitmap ring behind one mutex, one or 64 at a time; it has no pace, no retry, no
//! counters, no checkpoint. `shape` is a core whose step carries a batch of facts, and lanes (`executor/blueprint.rs`).
//! `windrow` is a node with its actors, lanes, core and store, checkpoints on; its time includes the start of the task and
//! the checkpoint that ends it. Arguments: `[items] [rounds] [row]`; a row's name, or its beginning, runs such rows only and
//! says what the store holds after them.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(unreachable_pub, reason = "a benchmark exports nothing")]
#![allow(clippy::unwrap_used, reason = "a benchmark ends where something is wrong")]

#[path = "executor/bare.rs"]
mod bare;
#[path = "executor/blueprint.rs"]
mod blueprint;
#[path = "executor/engine.rs"]
mod engine;
#[path = "shared/smoke.rs"]
mod smoke;

use std::time::Instant;

use engine::{Engine, Job, Work};
use windrow_node::Runtimes;

/// Items in flight at most.
const CONCURRENCY: u32 = 1_024;
/// How many times as many items a row of batches has: they take less each.
const BATCHED: u64 = 10;

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Million items a second.
fn rate(items: u64, run: impl FnOnce()) -> f64 {
    let started = Instant::now();
    run();
    items as f64 / started.elapsed().as_secs_f64() / 1e6
}

/// What is measured, in the order of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    Bare { chunk: u64 },
    Shape { batch: u32, lanes: usize },
    Windrow { batch: u32, lanes: usize },
}

const ROWS: [Row; 10] = [
    Row::Bare { chunk: 1 },
    Row::Bare { chunk: 64 },
    Row::Shape { batch: 1, lanes: 1 },
    Row::Windrow { batch: 1, lanes: 1 },
    Row::Shape { batch: 1, lanes: 2 },
    Row::Windrow { batch: 1, lanes: 2 },
    Row::Shape { batch: 64, lanes: 1 },
    Row::Windrow { batch: 64, lanes: 1 },
    Row::Shape { batch: 64, lanes: 2 },
    Row::Windrow { batch: 64, lanes: 2 },
];

impl Row {
    fn name(self) -> String {
        match self {
            Row::Bare { chunk } => format!("bare, claims {chunk}, 2 threads"),
            Row::Shape { batch, lanes } => format!("shape, batch {batch}, {lanes} lanes"),
            Row::Windrow { batch, lanes } => format!("windrow, batch {batch}, {lanes} lanes"),
        }
    }

    fn print(self, rates: &[f64]) {
        let least = rates.iter().copied().fold(f64::MAX, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        let middle = median(rates);
        println!("{:<28} {least:8.2} / {middle:8.2} / {most:8.2}", self.name());
    }

    fn measure(self, items: u64, engines: &[Engine; 2]) -> f64 {
        match self {
            Row::Bare { chunk } => {
                let items = items / 10;
                rate(items, || bare::run(items, chunk, 2))
            }
            Row::Shape { batch, lanes } => {
                let items = many(items, batch);
                rate(items, || blueprint::run(items, batch, CONCURRENCY, lanes))
            }
            Row::Windrow { batch, lanes } => {
                let items = many(items, batch);
                let job = Job {
                    batch,
                    concurrency: CONCURRENCY,
                    ..Job::new(Work::Nothing, items)
                };
                rate(items, || {
                    engines[lanes - 1].run(job);
                })
            }
        }
    }
}

fn many(items: u64, batch: u32) -> u64 {
    if batch > 1 { items * BATCHED } else { items }
}

fn main() {
    let (numbers, words): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .filter(|text| !text.starts_with('-'))
        .partition(|text| text.parse::<u64>().is_ok());
    let mut numbers = numbers.iter().filter_map(|text| text.parse().ok());
    let items = numbers
        .next()
        .unwrap_or_else(|| smoke::sized(100_000_000, 20_000));
    let rounds = numbers.next().unwrap_or_else(|| smoke::sized(5, 1)) as usize;
    let engines = [1, 2].map(|lanes| Engine::over(Runtimes::with_lanes(lanes).unwrap()));
    if let Some(wanted) = words.first() {
        return some(wanted, items, rounds, &engines);
    }
    let mut rates = ROWS.map(|_| Vec::new());
    for round in 0..=rounds {
        let measured = ROWS.map(|row| row.measure(items, &engines));
        // The first round warms up.
        if round > 0 {
            rates
                .iter_mut()
                .zip(measured)
                .for_each(|(all, rate)| all.push(rate));
        }
    }
    println!("{items} items a row, {rounds} rounds, million items/s: min / median / max");
    ROWS.iter().zip(&rates).for_each(|(row, rates)| row.print(rates));
    ratios(&rates);
    memory(&engines[1]);
}

/// Only rows of this name.
fn some(wanted: &str, items: u64, rounds: usize, engines: &[Engine; 2]) {
    for row in ROWS.iter().filter(|row| row.name().starts_with(wanted)) {
        let rates: Vec<f64> = (0..rounds).map(|_| row.measure(items, engines)).collect();
        row.print(&rates);
    }
    println!("stored: {} bytes", engines[1].stored());
}

/// Taken within a round, because the machine is shared.
fn ratios(rates: &[Vec<f64>]) {
    let of = |row: Row| &rates[ROWS.iter().position(|other| *other == row).unwrap()];
    let ratio = |one: Row, other: Row| {
        let each: Vec<f64> = of(one)
            .iter()
            .zip(of(other))
            .map(|(one, other)| one / other)
            .collect();
        median(&each)
    };
    for (batch, lanes) in [(1, 1), (1, 2), (64, 1), (64, 2)] {
        let (windrow, shape) = (Row::Windrow { batch, lanes }, Row::Shape { batch, lanes });
        println!(
            "windrow ÷ shape, batch {batch}, {lanes} lanes = {:.2} (aim ≥ 0.8)",
            ratio(windrow, shape)
        );
    }
    let [one, two] = [1, 2].map(|lanes| Row::Windrow { batch: 1, lanes });
    println!("windrow, 2 lanes ÷ 1 = {:.2} (aim ≥ 1.7)", ratio(two, one));
    println!(
        "windrow ÷ bare that claims one = {:.2} (aim ≥ 2)",
        ratio(two, Row::Bare { chunk: 1 })
    );
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
