//! How the cost of an item grows with what one may choose, and that what is stored does not: `cargo bench --bench growth`.
//!
//! A no-op handler in this process, everything on, SQLite, a lane for each core. Cost is the processor time of the whole
//! process, its store included. Each line is `what<TAB>how many<TAB>value<TAB>unit`, for `scripts/plot.py`. The last parts count
//! checkpoints, and run 10^10 items in one task.

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

use std::time::{Duration, Instant};

use engine::{Engine, Job, Work};

fn main() {
    let engine = Engine::start();
    engine.run(Job::new(Work::Nothing, smoke::sized(10_000_000, 1_000)));
    let items = smoke::sized(50_000_000, 2_000);
    let plain = || Job::new(Work::Nothing, items);
    for batch in [1, 4, 16, 64, 256, 1_024] {
        let job = Job {
            batch,
            concurrency: 4 * 1_024,
            items: items * u64::from(batch.min(16)),
            ..plain()
        };
        cost(&engine, "batch", batch, vec![job]);
    }
    for concurrency in [1, 10, 100, 1_000, 10_000, 100_000] {
        let job = Job {
            concurrency,
            items: items / if concurrency < 100 { 10 } else { 1 },
            ..plain()
        };
        cost(&engine, "concurrency", concurrency, vec![job]);
    }
    for window in [64, 512, 4_096, 32_768, 262_144, 1_048_576] {
        let job = Job {
            concurrency: 64,
            window: Some(window),
            ..plain()
        };
        cost(&engine, "window", window, vec![job]);
    }
    for tasks in [1, 10, 100, 1_000] {
        let jobs = (0..tasks).map(|_| Job {
            items: items / u64::from(tasks),
            ..plain()
        });
        cost(&engine, "tasks", tasks, jobs.collect());
    }
    for shards in [1, 4, 16, 64, 256] {
        let job = Job {
            shards,
            concurrency: 4_096,
            ..plain()
        };
        cost(&engine, "shards", shards, vec![job]);
    }
    checkpoints();
    totals();
}

fn cost(engine: &Engine, what: &str, how_many: u32, jobs: Vec<Job>) {
    let items: u64 = jobs.iter().map(|job| job.items).sum();
    let before = cpu_nanos();
    engine.run_all(&jobs);
    let each = (cpu_nanos() - before) / items as f64;
    println!("{what}\t{how_many}\t{each:.2}\tCPU ns an item");
}

/// What progress costs: rows written for each shard and second of a run, and its speed beside that of a run that saves as
/// rarely as it may, of the same items.
fn checkpoints() {
    let engine = Engine::start();
    let billion = 1_000_000_000;
    for (tasks, shards, total) in smoke::sized(
        [(1, 1, 10 * billion), (1, 64, 10 * billion), (40, 250, billion)],
        [(1, 1, 2_000), (1, 2, 2_000), (2, 2, 2_000)],
    ) {
        let all = tasks * shards;
        let items = total / u64::from(tasks);
        let run = |seconds| {
            let job = || Job {
                shards,
                checkpoint_interval: Duration::from_secs(seconds),
                batch: 64,
                concurrency: 16 * 1_024,
                ..Job::new(Work::Nothing, items)
            };
            let begun = Instant::now();
            let tasks = engine.run_all(&(0..tasks).map(|_| job()).collect::<Vec<_>>());
            let rows: u64 = tasks.iter().map(|task| engine.checkpoints(*task)).sum();
            (begun.elapsed().as_secs_f64(), rows as f64)
        };
        let ((took, rows), (alone, _)) = (run(1), run(3_600));
        let each = rows / f64::from(all) / took;
        println!("checkpoints\t{all}\t{each:.3}\trows a shard and second");
        println!(
            "checkpoints\t{all}\t{:.3}\tof the speed of a run that saves rarely",
            alone / took
        );
    }
}

/// The same task with ever more items, each in a store of its own.
fn totals() {
    for total in smoke::sized(
        [1_000, 1_000_000, 1_000_000_000, 10_000_000_000],
        [100, 1_000, 10_000, 20_000],
    ) {
        let engine = Engine::start();
        let begun = Instant::now();
        let task = engine.run(Job {
            batch: 64,
            concurrency: 1_024,
            ..Job::new(Work::Nothing, total)
        });
        let took = begun.elapsed().as_secs_f64();
        println!("items\t{total}\t{took:.3}\ts");
        println!("items\t{total}\t{}\tKiB resident", resident_kib());
        println!("items\t{total}\t{}\tbytes stored", engine.stored());
        println!("items\t{total}\t{}\tcheckpoints", engine.checkpoints(task));
    }
}

/// Unit: nanoseconds.
fn cpu_nanos() -> f64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.tv_sec as f64 * 1e9 + spent.tv_nsec as f64
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
