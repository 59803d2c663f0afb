//! Many items that wait at once, 0–49 ms each, under windows of several sizes: `cargo bench --bench sleepers`.
//!
//! `bare` is the runtime without an engine: as many tasks as items may be in flight, which claim one index at a time from a
//! bitmap ring behind one mutex and sleep, on one thread and on two. A window as large as the concurrency stands still
//! behind its slowest item; twice that is enough. `bare` and Windrow alternate within each round.

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

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use engine::{Engine, Job, Work, nap_of};
use tokio::sync::Semaphore;
use windrow_core::ids::ItemIndex;

/// Mean of 0, 1, … 49 ms. Unit: seconds.
const MEAN_NAP: f64 = 0.0245;

/// One row: so many at once, a window of so many tenths of that, so many items.
struct Case {
    concurrency: u32,
    tenths: u32,
    items: u64,
}

fn main() {
    let rounds = smoke::sized(3, 1);
    let engine = Engine::start();
    let windows = [10, 13, 15, 20, 30, 50, 100].map(|tenths| Case {
        concurrency: smoke::sized(10_000, 100),
        tenths,
        items: smoke::sized(1_000_000, 1_000),
    });
    let most = Case {
        concurrency: smoke::sized(100_000, 200),
        tenths: 20,
        items: smoke::sized(5_000_000, 2_000),
    };
    println!("items/s, median of {rounds}; theory is concurrency ÷ 24.5 ms");
    println!(
        "{:>11} {:>6} {:>10} {:>10} {:>10} {:>14} {:>16}",
        "concurrency", "window", "bare 1", "bare 2", "windrow", "÷ better bare", "windrow ÷ theory"
    );
    for case in windows.iter().chain([&most]) {
        row(case, rounds, &engine);
    }
}

fn row(case: &Case, rounds: usize, engine: &Engine) {
    let window = u64::from(case.concurrency) * u64::from(case.tenths) / 10;
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        let measured = [
            rate(case.items, || bare(case, window, 1)),
            rate(case.items, || bare(case, window, 2)),
            rate(case.items, || {
                engine.run(Job {
                    concurrency: case.concurrency,
                    window: Some(u32::try_from(window).unwrap()),
                    ..Job::new(Work::Sleep, case.items)
                });
            }),
        ];
        rates
            .iter_mut()
            .zip(measured)
            .for_each(|(all, rate)| all.push(rate));
    }
    let [one, two, windrow] = rates.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    });
    println!(
        "{:>11} {:>6.1} {one:>10.0} {two:>10.0} {windrow:>10.0} {:>14.3} {:>16.3}",
        case.concurrency,
        f64::from(case.tenths) / 10.0,
        windrow / one.max(two),
        windrow * MEAN_NAP / f64::from(case.concurrency)
    );
}

fn rate(items: u64, run: impl FnOnce()) -> f64 {
    let started = Instant::now();
    run();
    items as f64 / started.elapsed().as_secs_f64()
}

/// The window of the bare loop: what is free of it is a semaphore's permits.
struct Ring {
    low: u64,
    next: u64,
    total: u64,
    words: Vec<u64>,
}

impl Ring {
    fn claim(&mut self) -> Option<u64> {
        let index = self.next;
        (index < self.total).then(|| {
            self.next += 1;
            index
        })
    }

    /// By how many items watermark moved.
    fn settle(&mut self, index: u64) -> u64 {
        let (slots, before) = (self.words.len() as u64 - 1, self.low);
        self.words[(index >> 6 & slots) as usize] |= 1 << (index & 63);
        loop {
            let (slot, bit) = ((self.low >> 6 & slots) as usize, self.low & 63);
            let ones = u64::from((self.words[slot] >> bit).trailing_ones()).min(64 - bit);
            if ones == 0 {
                return self.low - before;
            }
            self.words[slot] &= !((u64::MAX >> (64 - ones)) << bit);
            self.low += ones;
        }
    }
}

fn bare(case: &Case, window: u64, threads: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_time()
        .build()
        .unwrap();
    let ring = Ring {
        low: 0,
        next: 0,
        total: case.items,
        words: vec![0; (window / 64 + 2).next_power_of_two() as usize],
    };
    let shared = Arc::new((Mutex::new(ring), Semaphore::new(window as usize)));
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..case.concurrency {
            tasks.spawn(nap_on(shared.clone()));
        }
        while tasks.join_next().await.is_some() {}
    });
    assert_eq!(shared.0.lock().unwrap().low, case.items);
}

async fn nap_on(shared: Arc<(Mutex<Ring>, Semaphore)>) {
    let (ring, free) = &*shared;
    while let Ok(permit) = free.acquire().await {
        permit.forget();
        let Some(index) = ring.lock().unwrap().claim() else {
            return free.close();
        };
        tokio::time::sleep(Duration::from_millis(nap_of(ItemIndex(index)))).await;
        let moved = ring.lock().unwrap().settle(index);
        free.add_permits(moved as usize);
    }
}
