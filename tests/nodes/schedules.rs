//! Schedules on three real nodes that are killed while they fire, and whose clocks are moved: every time that a schedule
//! names made one task, or is listed with why it made none.
//!
//! `WINDROW_SCHEDULE_SECONDS=600` plays it for so long; `WINDROW_SEED` plays one again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::business::Seen;
use crate::cluster::{Cluster, until};
use crate::support::Node;

/// How long it is played where nobody says. Unit: seconds.
const SECONDS: u64 = 25;
/// The period of the schedules. Unit: milliseconds.
const EVERY_MS: i64 = 2_000;
/// A session that is silent for so long is fenced.
const TTL: &str = "[cluster]\nlease_ttl = \"4s\"\nlease_renew = \"1s\"\n";
/// Items of a task.
const ITEMS: u64 = 3;

/// A number that follows from the seed (SplitMix64).
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

pub(crate) fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// A node whose wall clock is as wrong as its file says. Unit of the file: milliseconds.
async fn node(cluster: &Cluster, name: &str) -> Node {
    cluster
        .node_with(
            name,
            TTL,
            &[("WINDROW_CLOCK_OFFSET_FILE", cluster.path(name).to_str().unwrap())],
        )
        .await
}

pub(crate) fn step(cluster: &Cluster, name: &str, ms: i64) {
    // Never half written.
    let aside = cluster.path(&format!("{name}.new"));
    std::fs::write(&aside, ms.to_string()).unwrap();
    std::fs::rename(aside, cluster.path(name)).unwrap();
}

async fn schedule(node: &Node, name: &str, overlap: &str) -> String {
    let task = json!({"source": {"type": "range", "total": ITEMS}, "rate": "100/s"});
    let body = json!({"business": "push", "name": name, "every": "2s", "overlap": overlap, "missed": "latest", "task": task});
    let made = node.admin.post("/v1/schedules", body).await.expect(201);
    made["id"].as_str().unwrap().to_owned()
}

/// All pages of a list.
async fn pages(node: &Node, path: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let more = cursor
            .map(|cursor| format!("&cursor={cursor}"))
            .unwrap_or_default();
        let page = node
            .admin
            .get(&format!("{path}limit=500{more}"))
            .await
            .expect(200);
        all.extend(page["items"].as_array().unwrap().iter().cloned());
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return all;
        }
    }
}

fn millis(time: &Value) -> i64 {
    let text = time.as_str().unwrap();
    let at = humantime::parse_rfc3339(text).unwrap();
    at.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64
}

/// What became of every time from the first row to the last; each must have exactly one row.
fn outcomes(fires: &[Value]) -> BTreeMap<i64, String> {
    let mut times = BTreeMap::new();
    for fire in fires {
        let (first, count) = (millis(&fire["time"]), fire["count"].as_i64().unwrap());
        for nth in 0..count {
            let outcome = fire["outcome"].as_str().unwrap().to_owned();
            let before = times.insert(first + nth * EVERY_MS, outcome);
            assert!(before.is_none(), "two rows for one time: {fire:#}");
        }
        if count > 1 {
            assert_eq!(millis(&fire["last"]), first + (count - 1) * EVERY_MS, "{fire:#}");
        }
    }
    times
}

/// Every time has a row, and the rows and the tasks name one another.
fn judge(fires: &[Value], tasks: &[Value], schedule: &str) {
    let times = outcomes(fires);
    let (first, last) = (*times.keys().next().unwrap(), *times.keys().last().unwrap());
    let expected: Vec<i64> = (0..=(last - first) / EVERY_MS)
        .map(|nth| first + nth * EVERY_MS)
        .collect();
    assert_eq!(
        times.keys().copied().collect::<Vec<_>>(),
        expected,
        "no time is left out"
    );
    let made: BTreeSet<(String, i64)> = fires
        .iter()
        .filter(|fire| fire["outcome"] == "made")
        .map(|fire| (fire["task"].as_str().unwrap().to_owned(), millis(&fire["time"])))
        .collect();
    let own: Vec<(String, i64)> = tasks
        .iter()
        .filter(|task| task["schedule"] == schedule)
        .map(|task| {
            (
                task["id"].as_str().unwrap().to_owned(),
                millis(&task["fire_time"]),
            )
        })
        .collect();
    assert_eq!(own.len(), made.len(), "a task for each fire, and no more");
    assert_eq!(own.into_iter().collect::<BTreeSet<_>>(), made);
}

/// Calls for a later task of a schedule that skips begin when the earlier one's are over.
fn assert_apart(cluster: &Cluster, tasks: &[Value], schedule: &str) {
    let own: BTreeSet<&str> = tasks
        .iter()
        .filter(|task| task["schedule"] == schedule)
        .map(|task| task["id"].as_str().unwrap())
        .collect();
    let calls = cluster.business.seen();
    let is_own = |call: &&Seen| !call.items().is_empty() && own.contains(call.task());
    let calls: Vec<&Seen> = calls.iter().filter(is_own).collect();
    let mut seen: Vec<&str> = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        if seen.last() != Some(&call.task()) {
            assert!(
                !seen.contains(&call.task()),
                "{} went on after {:?} had begun: {:#?}",
                call.task(),
                seen.last(),
                told(&calls[at.saturating_sub(12)..(at + 4).min(calls.len())])
            );
            seen.push(call.task());
        }
    }
    assert!(!seen.is_empty());
}

/// Calls as a person compares them.
fn told(calls: &[&Seen]) -> Vec<String> {
    let begun = calls[0].at;
    let one = |call: &&Seen| {
        let headers = ["windrow-run", "windrow-epoch", "windrow-gate-time", "user-agent"];
        let headers = headers.map(|name| format!("{name} {}", call.header(name)));
        let (after, items) = (call.at - begun, call.items());
        format!(
            "{} {items:?} after {after:?}, {}",
            call.task(),
            headers.join(", ")
        )
    };
    calls.iter().map(one).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_fire_of_three_nodes_that_are_killed_and_misdated_happened_once_or_is_listed() {
    let seed = number("WINDROW_SEED", 0x5eed_0016);
    let seconds = number("WINDROW_SCHEDULE_SECONDS", SECONDS);
    println!("WINDROW_SEED={seed} WINDROW_SCHEDULE_SECONDS={seconds}");
    let mut chance = Chance::new(seed);
    let cluster = Cluster::new().await;
    let names = ["n1", "n2", "n3"];
    names.iter().for_each(|name| step(&cluster, name, 0));
    let mut nodes = BTreeMap::new();
    for name in names {
        nodes.insert(name, node(&cluster, name).await);
    }
    nodes["n1"]
        .business("push", &cluster.business.url(), json!({}))
        .await;
    let all = schedule(&nodes["n1"], "all", "allow").await;
    let apart = schedule(&nodes["n2"], "apart", "skip").await;
    let begun = Instant::now();
    let (mut kills, mut steps) = (0, 0);
    while begun.elapsed() < Duration::from_secs(seconds) {
        tokio::time::sleep(Duration::from_millis(500 + chance.below(2_500))).await;
        let name = names[chance.below(3) as usize];
        if chance.below(2) == 0 {
            nodes.remove(name).unwrap().signal(Signal::KILL);
            tokio::time::sleep(Duration::from_millis(chance.below(1_500))).await;
            nodes.insert(name, node(&cluster, name).await);
            kills += 1;
        } else {
            // A minute ahead or behind, on the way to the right time.
            step(&cluster, name, chance.below(120_000).cast_signed() - 60_000);
            steps += 1;
        }
    }
    names.iter().for_each(|name| step(&cluster, name, 0));
    let asked = &nodes["n3"];
    for id in [&all, &apart] {
        let path = format!("/v1/schedules/{id}");
        asked
            .admin
            .post(&format!("{path}/pause"), json!({}))
            .await
            .expect(200);
        let settled = |view: &Value| view["pending"] == 0 && view["queued"] == 0;
        until(asked, &path, "settled", settled).await;
    }
    let open = "created,queued,awaiting_business,running,recovering,stopping,finalizing";
    let is_none = |page: &Value| page["items"].as_array().is_some_and(Vec::is_empty);
    until(
        asked,
        &format!("/v1/tasks?status={open}&limit=1"),
        "ended",
        is_none,
    )
    .await;
    let tasks = pages(asked, "/v1/tasks?business=push&").await;
    for id in [&all, &apart] {
        let fires = pages(asked, &format!("/v1/schedules/{id}/fires?")).await;
        judge(&fires, &tasks, id);
        let mut by: BTreeMap<String, u64> = BTreeMap::new();
        outcomes(&fires)
            .into_values()
            .for_each(|outcome| *by.entry(outcome).or_default() += 1);
        println!("{id}: {by:?} after {kills} kills and {steps} steps of clocks");
        // Of those that may not overlap one waits for the other, however long a busy machine takes for it.
        let least = if *id == all { seconds / 2 / 4 } else { 1 };
        assert!(by.get("made").copied().unwrap_or(0) >= least, "it fires: {by:?}");
        assert!(!by.contains_key("failed"), "{by:?}");
    }
    let skipped = pages(asked, &format!("/v1/schedules/{all}/fires?outcome=skipped&")).await;
    assert!(skipped.is_empty(), "what may overlap skips nothing: {skipped:#?}");
    assert_apart(&cluster, &tasks, &apart);
    // Every item of every task was called.
    let called: BTreeSet<(String, u64)> = cluster
        .business
        .seen()
        .iter()
        .flat_map(|seen| {
            let task = seen.task().to_owned();
            seen.items()
                .into_iter()
                .map(move |(index, _)| (task.clone(), index))
        })
        .collect();
    for task in &tasks {
        let id = task["id"].as_str().unwrap();
        for index in 0..ITEMS {
            assert!(
                called.contains(&(id.to_owned(), index)),
                "{id} {index} was never called: {task:#}"
            );
        }
    }
}
