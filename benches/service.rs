//! The node as its operators feel it: how quick stop and a new rate are, and what 10,000 tasks at once cost.
//!
//! `cargo bench --bench service` runs both parts against a real `windrow serve` and a scripted business in this
//! process; `-- knobs` or `-- tasks` runs one. `WINDROW_BENCH_TASKS` is the number of tasks (10,000).

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    dead_code,
    reason = "a bench: real time; shared test code"
)]

#[path = "../tests/api/business.rs"]
mod business;
#[path = "shared/smoke.rs"]
mod smoke;
#[path = "../tests/api/support.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::business::{Act, Business};
use crate::support::{Client, Node, Recipe};

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let wants = |part: &str| chosen.is_empty() || chosen.iter().any(|word| word == part);
    if wants("knobs") {
        runtime.block_on(knobs());
    }
    if wants("tasks") {
        runtime.block_on(tasks());
    }
}

/// Stop at 1,000/s, ten times; and a rate of 100, 1,000, 50/s.
async fn knobs() {
    let business = Business::start(|_| Act::ok().after(Duration::from_millis(20))).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node
        .task("push", 100_000_000, json!({"rate": "1000/s", "start": true}))
        .await;
    let (mut acks, mut lasts, mut drains) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..smoke::sized(10, 2) {
        node.status(&task, "running").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let asked = Instant::now();
        let answer = node
            .admin
            .post(&format!("/v1/tasks/{task}/stop"), json!({}))
            .await;
        let acknowledged = Instant::now();
        assert_eq!(answer.status, 202, "{}", answer.text());
        node.status(&task, "stopped").await;
        drains.push(acknowledged.elapsed());
        let last = business.seen().iter().map(|seen| seen.at).max().unwrap();
        acks.push(acknowledged.duration_since(asked));
        lasts.push(last.saturating_duration_since(acknowledged));
        node.admin
            .post(&format!("/v1/tasks/{task}/start"), json!({}))
            .await
            .expect(202);
    }
    say("stop: acknowledged after", acks);
    say("stop: last call after the acknowledgement", lasts);
    say("stop: stopped after the acknowledgement", drains);
    for (text, rate) in [("100/s", 100.0), ("1000/s", 1000.0), ("50/s", 50.0)] {
        node.admin
            .patch(&format!("/v1/tasks/{task}"), json!({"rate": text}))
            .await
            .expect(200);
        let changed = Instant::now();
        let whole = smoke::sized(5000, 1500);
        tokio::time::sleep(Duration::from_millis(whole)).await;
        let seen = business.seen();
        let within = |from: u64, to: u64| {
            let (from, to) = (
                changed + Duration::from_millis(from),
                changed + Duration::from_millis(to),
            );
            let calls = seen.iter().filter(|seen| seen.at >= from && seen.at < to).count();
            calls as f64 / to.duration_since(from).as_secs_f64()
        };
        let (first, rest) = (within(0, 1000), within(1000, whole));
        println!(
            "rate {text}: {first:.0}/s in the first second, {rest:.1}/s then ({:.3} of it)",
            rest / rate
        );
    }
    node.stop().await;
}

/// The memory that the node holds. Unit: bytes.
fn resident(node: &Node) -> u64 {
    let id = node.child.id().expect("it lives");
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).expect("Linux");
    let line = text
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("VmRSS");
    let kib: u64 = line
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .expect("a number");
    kib * 1024
}

fn say(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let (middle, most) = (times[times.len() / 2], times[times.len() - 1]);
    println!(
        "{what}: median {:.1} ms, most {:.1} ms",
        millis(middle),
        millis(most)
    );
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Tasks created and started at once, four fifths of which fit.
async fn tasks() {
    let number = std::env::var("WINDROW_BENCH_TASKS")
        .ok()
        .and_then(|text| text.parse().ok());
    let number: u64 = number.unwrap_or_else(|| smoke::sized(10_000, 50));
    let business = Business::start(|_| Act::ok()).await;
    let fits = number * 4 / 5;
    let capacity = format!(
        "[node]\ncapacity_rate = \"{0}/m\"\nunlimited_reserves = \"{0}/m\"",
        fits * 6
    );
    let recipe = Recipe::new().config(&format!("{capacity}\n[task_defaults]\nrate = \"6/m\""));
    let node = recipe.start().await;
    node.business("push", &business.url(), json!({})).await;
    let idle = resident(&node);
    let done = Arc::new(AtomicBool::new(false));
    let prober = tokio::spawn(probe(
        Client::new(&node.url, node.admin.token.as_deref()),
        done.clone(),
    ));
    let begun = Instant::now();
    let makers: Vec<_> = (0..16)
        .map(|maker| {
            let client = Client::new(&node.url, node.admin.token.as_deref());
            tokio::spawn(async move {
                for _ in (maker..number).step_by(16) {
                    let body = json!({"business": "push", "rate": "6/m", "start": true,
                        "source": {"type": "range", "total": 1_000_000}});
                    client.post("/v1/tasks", body).await.expect(201);
                }
            })
        })
        .collect();
    for maker in makers {
        maker.await.unwrap();
    }
    println!(
        "{number} tasks created and started in {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    let begun = Instant::now();
    let (running, explained) = settle(&node, number, begun).await;
    println!(
        "all owned ({running}) or queued with a reason ({explained}) after {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    tokio::time::sleep(smoke::sized(Duration::from_secs(20), Duration::from_secs(1))).await;
    done.store(true, Ordering::Relaxed);
    let mut times = prober.await.unwrap();
    times.sort();
    let at = |share: usize| millis(times[times.len() * share / 1000]);
    println!(
        "API meanwhile, {} requests: p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms",
        times.len(),
        at(500),
        at(990),
        at(999)
    );
    let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
    println!(
        "RSS {:.0} MiB ({:.0} MiB before)",
        mib(resident(&node)),
        mib(idle)
    );
    let (before, looked) = (business.seen().len(), Instant::now());
    tokio::time::sleep(smoke::sized(Duration::from_secs(10), Duration::from_secs(1))).await;
    let span = looked.elapsed().as_secs_f64();
    let rate = (business.seen().len() - before) as f64 / span;
    println!(
        "{rate:.0} items/s of {:.0} that the running tasks may do",
        running as f64 / 10.0
    );
    let ended = Instant::now();
    let code = node.stop().await;
    println!("drained in {:.1} s, exit {code:?}", ended.elapsed().as_secs_f64());
}

/// Waits until every task is owned or says why not.
async fn settle(node: &Node, number: u64, begun: Instant) -> (u64, u64) {
    loop {
        let (mut running, mut explained) = (0, 0);
        for status in ["running", "queued"] {
            let mut cursor = String::new();
            loop {
                let path = format!("/v1/tasks?status={status}&limit=500{cursor}");
                let page = node.admin.get(&path).await.expect(200);
                for task in page["items"].as_array().unwrap() {
                    running += u64::from(task["status"] == "running");
                    explained += u64::from(task["status"] == "queued" && task["status_reason"].is_string());
                }
                match page["next_cursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => break,
                }
            }
        }
        if running + explained >= number {
            return (running, explained);
        }
        assert!(
            begun.elapsed() < Duration::from_secs(600),
            "{running} run, {explained} wait of {number}"
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// What an operator would do meanwhile: look at a task, at the list, and change one.
async fn probe(client: Client, done: Arc<AtomicBool>) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut first: Option<String> = None;
    for nth in 0_u64.. {
        if done.load(Ordering::Relaxed) {
            break;
        }
        let asked = Instant::now();
        let answer = match (nth % 4, &first) {
            (0, Some(task)) => client.get(&format!("/v1/tasks/{task}")).await,
            (1, Some(task)) => {
                client
                    .patch(
                        &format!("/v1/tasks/{task}"),
                        json!({"labels": {"nth": nth.to_string()}}),
                    )
                    .await
            }
            (2, _) => client.get("/v1/nodes").await,
            _ => client.get("/v1/tasks?limit=50").await,
        };
        times.push(asked.elapsed());
        assert!(answer.status < 300, "{}", answer.text());
        if first.is_none()
            && let Some(task) = answer.json()["items"].as_array().and_then(|items| items.first())
        {
            first = task["id"]
                .as_str()
                .filter(|id| id.starts_with('t'))
                .map(str::to_owned);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    times
}
