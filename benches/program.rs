//! The whole program beside what drives the same server or the same worker without an engine: `cargo bench --bench program`.
//!
//! | row | beside it |
//! |---|---|
//! | `windrow run --url`, one item a call and 100 a call | `wrk` with the same headers and body; hyper's connections without a pool |
//! | `windrow run --request` | the same |
//! | `windrow run -- worker`, a worker in C | a loop that writes lines to the same worker and reads its answers |
//!
//! Each is a process of its own, 64 calls at a time, against one server on a thread of its own process; what a row takes
//! includes its process's start and end. Rounds alternate, and ratios are taken within a round, because machines are shared.
//! `wrk` (a Debian package of that name) and `cc` are looked for; without one its rows are left out, and that is said.
//! Arguments: `[rounds] [seconds a row]`.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(clippy::unwrap_used, reason = "a benchmark ends where something is wrong")]
#![allow(unreachable_pub, reason = "a benchmark exports nothing")]

#[path = "program/peers.rs"]
mod peers;
#[path = "program/process.rs"]
mod process;
#[path = "shared/server.rs"]
mod server;
#[path = "shared/smoke.rs"]
mod smoke;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use peers::{Captured, Spent};
use server::BATCH;

/// Calls at a time.
pub const IN_FLIGHT: usize = 64;

/// One comparison: what Windrow is told, and the items of a call.
struct Case {
    name: &'static str,
    path: &'static str,
    batch: u64,
    is_request: bool,
    calls: u64,
}

const CASES: [Case; 3] = [
    Case {
        name: "--url, one item a call",
        path: "/empty",
        batch: 1,
        is_request: false,
        calls: 150_000,
    },
    Case {
        name: "--request, one item a call",
        path: "/empty",
        batch: 1,
        is_request: true,
        calls: 150_000,
    },
    Case {
        name: "--url, 100 items a call, 100 results",
        path: "/results",
        batch: BATCH,
        is_request: false,
        calls: 40_000,
    },
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("serve") => return server::serve(|address| println!("{address}")),
        Some("bare") => return peers::bare(&arguments[1..]),
        Some("pipe") => return peers::pipe(&arguments[1..]),
        _ => {}
    }
    let mut numbers = arguments.iter().filter_map(|text| text.parse::<u64>().ok());
    let rounds = numbers.next().unwrap_or_else(|| smoke::sized(5, 1));
    let directory = tempfile::tempdir().unwrap();
    let server = process::Running::start();
    println!("items/s, and CPU µs a call: median of {rounds} rounds; ratios within a round");
    for case in &CASES {
        http(case, rounds, &server, directory.path());
    }
    worker(rounds, directory.path());
}

/// What the rounds of one row came to.
#[derive(Default)]
struct Row {
    per_second: Vec<f64>,
    cpu_micros: Vec<f64>,
}

impl Row {
    fn add(&mut self, items: u64, calls: u64, spent: Spent) {
        self.per_second.push(items as f64 / spent.wall);
        self.cpu_micros.push(spent.cpu * 1e6 / calls as f64);
    }

    fn print(&self, name: &str) {
        let (speed, cpu) = (median(&self.per_second), median(&self.cpu_micros));
        println!("  {name:<24} {speed:>10.0}/s {cpu:>8.2} µs a call");
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn ratio(one: &[f64], other: &[f64]) -> f64 {
    let each: Vec<f64> = one.iter().zip(other).map(|(one, other)| one / other).collect();
    median(&each)
}

fn http(case: &Case, rounds: u64, server: &process::Running, directory: &Path) {
    println!("{}", case.name);
    let calls = smoke::sized(case.calls, 640);
    let url = format!("http://{}{}", server.address, case.path);
    let windrow = |calls: u64| timed(&mut windrow(case, &url, calls * case.batch, directory));
    // What it sends is what the others repeat.
    windrow(IN_FLIGHT as u64);
    let captured = Captured::of(server, directory);
    let has_wrk = peers::is_there("wrk");
    if !has_wrk {
        println!("  (wrk is not installed: its row is left out)");
    }
    let mut rows: [Row; 3] = Default::default();
    for _ in 0..rounds {
        rows[0].add(calls * case.batch, calls, windrow(calls));
        let bare = timed(&mut captured.bare(&url, calls));
        rows[1].add(calls * case.batch, calls, bare);
        if has_wrk {
            let (calls, spent) = captured.wrk(&url, smoke::sized(2, 1));
            rows[2].add(calls * case.batch, calls, spent);
        }
    }
    let names = ["windrow", "hyper's connections", "wrk"];
    let shown = if has_wrk { 3 } else { 2 };
    names
        .iter()
        .zip(&rows)
        .take(shown)
        .for_each(|(name, row)| row.print(name));
    let [windrow, bare, wrk] = &rows;
    println!(
        "  windrow ÷ hyper's connections = {:.2}, in CPU a call {:.2} (aim ≤ 1.1)",
        ratio(&windrow.per_second, &bare.per_second),
        ratio(&windrow.cpu_micros, &bare.cpu_micros)
    );
    if has_wrk {
        let aim = if case.batch > 1 { 1.0 } else { 0.9 };
        let reached = ratio(&windrow.per_second, &wrk.per_second);
        println!("  windrow ÷ wrk = {reached:.2} (aim ≥ {aim})");
    }
}

fn windrow(case: &Case, url: &str, items: u64, directory: &Path) -> Command {
    let mut command = program(directory, items);
    if case.is_request {
        command.arg("--request").arg(format!("POST {url}?item={{index}}"));
        command.args(["--json", r#"{"index":{index:number},"key":{key}}"#]);
    } else {
        command.args(["--url", url, "--batch", &case.batch.to_string()]);
    }
    let concurrency = IN_FLIGHT as u64 * case.batch;
    command.args(["--concurrency", &concurrency.to_string()]);
    command
}

fn program(directory: &Path, items: u64) -> Command {
    let state = directory.join("state");
    let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
    command.args(["run", "--quiet", "--restart"]);
    command.arg("--state").arg(state);
    command.args(["--name", "bench", "--total", &items.to_string()]);
    command
}

/// Runs a process to its good end.
fn timed(command: &mut Command) -> Spent {
    let (cpu, begun) = (peers::cpu_of_children(), Instant::now());
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let spent = Spent {
        wall: begun.elapsed().as_secs_f64(),
        cpu: peers::cpu_of_children() - cpu,
    };
    assert!(
        output.status.success(),
        "{command:?}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    spent
}

/// A worker in C answers each line with `ok`.
fn worker(rounds: u64, directory: &Path) {
    println!("-- worker, one item a line");
    let Some(worker) = peers::compiled_worker(directory) else {
        println!("  (cc is not installed: left out)");
        return;
    };
    let items = smoke::sized(500_000, 1_000);
    let mut rows: [Row; 2] = Default::default();
    for _ in 0..rounds {
        let mut command = program(directory, items);
        command.args(["--workers", "1", "--concurrency", &IN_FLIGHT.to_string(), "--"]);
        rows[0].add(items, items, timed(command.arg(&worker)));
        let mut bare = Command::new(std::env::current_exe().unwrap());
        bare.arg("pipe").arg(&worker).arg(items.to_string());
        rows[1].add(items, items, timed(&mut bare));
    }
    rows[0].print("windrow");
    rows[1].print("a loop over pipes");
    let reached = ratio(&rows[0].per_second, &rows[1].per_second);
    println!("  windrow ÷ a loop over pipes = {reached:.2} (aim ≥ 0.8)");
}
