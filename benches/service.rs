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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
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

/// Tasks made and started at once: so many fit, an eighth more waits for room. Then they run, and then they rest.
async fn tasks() {
    let number = std::env::var("WINDROW_BENCH_TASKS")
        .ok()
        .and_then(|text| text.parse().ok());
    let fit: u64 = number.unwrap_or_else(|| smoke::sized(10_000, 40));
    let number = fit + fit / 8;
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let business = Business::start(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Act::ok()
    })
    .await;
    let forgetful = business.clone();
    let forgetting = tokio::spawn(async move {
        loop {
            forgetful.forget();
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    let capacity = format!("[node]\ncapacity_rate = \"{fit}/s\"\nunlimited_reserves = \"{fit}/s\"");
    let config = format!("{capacity}\n[task_defaults]\nrate = \"1/s\"");
    let node = Recipe::new().config(&config).start().await;
    node.business("push", &business.url(), json!({})).await;
    let empty = resident(&node);

    let probed = Probed::begin(&node);
    let begun = Instant::now();
    let made = for_each(&node, number, |client, _| async move {
        let body = json!({"business": "push", "rate": "1/s", "start": true,
            "source": {"type": "range", "total": 1_000_000}});
        let task = client.post("/v1/tasks", body).await.expect(201);
        task["id"].as_str().expect("an id").to_owned()
    })
    .await;
    let took = begun.elapsed().as_secs_f64();
    println!("{number} tasks created and started in {took:.1} s");
    let begun = Instant::now();
    let (running, explained) = settle(&node, number, begun).await;
    let took = begun.elapsed().as_secs_f64();
    println!("all owned ({running}) or queued with a reason ({explained}) after {took:.1} s");
    probed.end("while tasks are made", None).await;

    let probed = Probed::begin(&node);
    let (calls_before, cpu_before, looked) = (calls.load(Ordering::Relaxed), cpu(&node), Instant::now());
    tokio::time::sleep(smoke::sized(Duration::from_secs(30), Duration::from_secs(1))).await;
    let span = looked.elapsed().as_secs_f64();
    let rate = (calls.load(Ordering::Relaxed) - calls_before) as f64 / span;
    println!(
        "{rate:.0} items/s of {running}/s, with {:.2} of a core",
        (cpu(&node) - cpu_before) / span
    );
    probed.end("while they run", Some(50)).await;
    let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
    println!(
        "RSS, MiB = {:.0} (aim ≤ 1024), {:.0} before",
        mib(resident(&node)),
        mib(empty)
    );

    let begun = Instant::now();
    let made = Arc::new(made);
    for_each(&node, number, |client, at| {
        let made = made.clone();
        async move {
            let path = format!("/v1/tasks/{}/stop", made[at]);
            client.post(&path, json!({})).await.expect(202);
        }
    })
    .await;
    println!("stopped in {:.1} s", begun.elapsed().as_secs_f64());
    tokio::time::sleep(smoke::sized(Duration::from_secs(10), Duration::from_secs(1))).await;
    let (cpu_before, looked) = (cpu(&node), Instant::now());
    tokio::time::sleep(smoke::sized(Duration::from_secs(20), Duration::from_secs(1))).await;
    let share = (cpu(&node) - cpu_before) / looked.elapsed().as_secs_f64();
    println!("of a core while they rest = {share:.3} (aim ≤ 0.05)");
    forgetting.abort();
    let ended = Instant::now();
    let code = node.stop().await;
    println!("drained in {:.1} s, exit {code:?}", ended.elapsed().as_secs_f64());
}

/// Does something `number` times, sixteen at a time.
async fn for_each<T, F>(node: &Node, number: u64, work: impl Fn(Arc<Client>, usize) -> F) -> Vec<T>
where
    F: Future<Output = T>,
{
    let client = || Arc::new(Client::new(&node.url, node.admin.token.as_deref()));
    let clients: Vec<Arc<Client>> = (0..16).map(|_| client()).collect();
    futures_util::stream::iter(0..number as usize)
        .map(|at| work(clients[at % clients.len()].clone(), at))
        .buffered(16)
        .collect()
        .await
}

/// The processor time that the node took. Unit: seconds.
fn cpu(node: &Node) -> f64 {
    let id = node.child.id().expect("it lives");
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("Linux");
    // The name in brackets may hold spaces; utime and stime are the 12th and 13th after it, in hundredths.
    let after = stat.rsplit_once(')').expect("a name").1;
    let ticks = |at: usize| -> f64 { after.split_whitespace().nth(at).unwrap().parse().unwrap() };
    (ticks(11) + ticks(12)) / 100.0
}

/// The API as somebody meets it meanwhile.
struct Probed {
    done: Arc<AtomicBool>,
    times: tokio::task::JoinHandle<Vec<Duration>>,
}

impl Probed {
    fn begin(node: &Node) -> Probed {
        let done = Arc::new(AtomicBool::new(false));
        let client = Client::new(&node.url, node.admin.token.as_deref());
        let times = tokio::spawn(probe(client, done.clone()));
        Probed { done, times }
    }

    async fn end(self, when: &str, aim: Option<u64>) {
        self.done.store(true, Ordering::Relaxed);
        let mut times = self.times.await.unwrap();
        times.sort();
        let at = |share: usize| millis(times[times.len() * share / 1000]);
        let aim = aim.map(|ms| format!(" (aim ≤ {ms})")).unwrap_or_default();
        println!("API p99 {when}, ms = {:.1}{aim}", at(990));
        println!(
            "    {} requests, p50 {:.1} ms, most {:.1} ms",
            times.len(),
            at(500),
            at(999)
        );
    }
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
