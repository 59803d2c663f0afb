//! What results cost, and how fast they are read: `cargo bench --bench results`.
//!
//! The first part runs jobs over SQLite at 10,000/s whose items come to 200 bytes, with results kept and not, taking
//! turns: what of the rate is reached, and what CPU time an item takes. The second part fills a store without a rate and
//! reads it in a process of its own, in index order and as rows of NDJSON, as the API and `--results-out` do.
//! Arguments: `[items to read] [seconds of each paced job]`.

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

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use engine::{Engine, Job, Work};
use windrow_core::ids::{ItemIndex, TaskId};
use windrow_core::settings::{Rate, RateLimit};
use windrow_core::text::csv::Guard;
use windrow_engine::ports::tasks::store::TaskStore;
use windrow_host::state_dir::StateDir;
use windrow_server::http::answer::result_rows::{Columns, Form, Rows};
use windrow_server::service::results::{Keys, Results};
use windrow_store::sql::Store;

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RATE: u64 = 10_000;
/// The word by which this program is told to read.
const READ: &str = "--read-task";

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let Some(at) = words.iter().position(|word| word == READ) {
        return read(Path::new(&words[at + 1]), TaskId(words[at + 2].parse().unwrap()));
    }
    let mut numbers = words.iter().filter_map(|word| word.parse::<u64>().ok());
    let items = numbers.next().unwrap_or_else(|| smoke::sized(10_000_000, 10_000));
    let seconds = numbers.next().unwrap_or_else(|| smoke::sized(20, 1));
    let engine = Engine::start();
    kept_and_not(&engine, seconds * RATE, smoke::sized(3, 1));
    let began = Instant::now();
    let task = engine.run(Job {
        keeps_results: true,
        ..Job::new(Work::Answer, items)
    });
    let rate = items as f64 / began.elapsed().as_secs_f64();
    println!("{items} results kept without a rate: {rate:.0}/s");
    // A process of its own: its memory is that of reading.
    let status = Command::new(std::env::current_exe().unwrap())
        .args([READ, engine.place().to_str().unwrap(), &task.0.to_string()])
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

/// What one job reached. Unit: items per second, microseconds of CPU an item.
fn measured(engine: &Engine, items: u64, keeps_results: bool) -> (f64, f64) {
    let (began, cpu) = (Instant::now(), cpu_seconds());
    engine.run(Job {
        keeps_results,
        rate: RateLimit::Limited(Rate::per_second(RATE).unwrap()),
        ..Job::new(Work::Answer, items)
    });
    let cpu = cpu_seconds() - cpu;
    (
        items as f64 / began.elapsed().as_secs_f64(),
        cpu * 1e6 / items as f64,
    )
}

fn kept_and_not(engine: &Engine, items: u64, rounds: usize) {
    let (mut kept, mut not) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        not.push(measured(engine, items, false));
        kept.push(measured(engine, items, true));
    }
    let middle = |of: &mut Vec<(f64, f64)>| {
        of.sort_by(|one, other| one.0.total_cmp(&other.0));
        of[of.len() / 2]
    };
    let (kept, not) = (middle(&mut kept), middle(&mut not));
    println!(
        "at {RATE}/s, {items} items of 200 bytes, median of {rounds}: kept {:.0}/s, not {:.0}/s, kept ÷ not = {:.3} (aim ≥ 0.9)",
        kept.0,
        not.0,
        kept.0 / not.0
    );
    println!("CPU an item: kept {:.1} µs, not {:.1} µs", kept.1, not.1);
}

#[tokio::main]
async fn read(place: &Path, task: TaskId) {
    let store = Arc::new(Store::open(&StateDir::database_in(place)).await.unwrap());
    let view = store.get(task).await.unwrap().unwrap();
    let rows = Rows {
        form: Form::Ndjson,
        columns: Columns::Whole,
        keys: Keys {
            store: store.store_id().await.unwrap(),
            task,
        },
        with_position: false,
        guard: Guard::On,
        data: None,
    };
    let (began, cpu) = (Instant::now(), cpu_seconds());
    let mut reader = Results::new(store).read(&view, ItemIndex(0)).await.unwrap();
    let (mut count, mut json_bytes, mut row_bytes) = (0_u64, 0, 0);
    loop {
        let page = reader.page().await.unwrap();
        if page.is_empty() {
            break;
        }
        let mut out = Vec::new();
        for output in &page {
            assert_eq!(output.index.0, count, "in index order, without a hole");
            count += 1;
            json_bytes += output.json.len();
            rows.push(output.index, output, None, &mut out);
        }
        row_bytes += out.len();
    }
    assert_eq!(count, view.counters.succeeded);
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let rate = |bytes: usize, seconds: f64| bytes as f64 / 1e6 / seconds;
    println!(
        "{count} results read in {seconds:.1} s: {:.0} MB/s of outputs, {:.0} MB/s of rows (aim ≥ 100)",
        rate(json_bytes, seconds),
        rate(row_bytes, seconds),
    );
    println!(
        "{:.0} MB of rows a second of CPU time; RSS at most {} MiB (aim ≤ 100)",
        rate(row_bytes, cpu),
        peak_kib() / 1024
    );
}

/// CPU time of this process.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let ticks: u64 = rest
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().unwrap())
        .sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
