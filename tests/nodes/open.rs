//! Open tasks over several nodes: what is acknowledged is processed, whoever dies.
//!
//! The short form is part of the suite; `WINDROW_OPEN_SECONDS=600` makes it as long as one likes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request};
use serde_json::{Value, json};

use crate::cluster::{Cluster, until};
use crate::support::{Client, Node, PATIENCE};

/// Who appends.
const WRITERS: u64 = 8;
/// Items in flight at most.
const CONCURRENCY: u64 = 16;

/// The clients of the nodes that live, as far as writers know.
type Living = Arc<Mutex<Vec<Client>>>;

/// What was acknowledged: the index of each item by its writer and its number there.
type Acknowledged = Arc<Mutex<BTreeMap<(u64, u64), u64>>>;

fn seconds() -> u64 {
    let told = std::env::var("WINDROW_OPEN_SECONDS").ok();
    told.and_then(|text| text.parse().ok()).unwrap_or(12)
}

/// An answer, if there is one in time: nodes die here.
async fn post(client: &Client, path: &str, key: &str, body: &Value) -> Option<(u16, Value)> {
    let token = client.token.clone().unwrap_or_default();
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("{}{path}", client.url))
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    let answered = async {
        let answer = client.pool.request(request).await.ok()?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.ok()?.to_bytes();
        Some((status, serde_json::from_slice(&body).ok()?))
    };
    tokio::time::timeout(Duration::from_secs(5), answered)
        .await
        .ok()?
}

/// Appends blocks until it is told to end; the last one, of which it knows nothing yet, is sent again by its heir.
struct Writer {
    no: u64,
    path: String,
    living: Living,
    acknowledged: Acknowledged,
    /// The first block that isn't acknowledged.
    next: Arc<Mutex<u64>>,
    is_over: tokio::sync::watch::Receiver<bool>,
}

impl Writer {
    async fn write(self) {
        while !*self.is_over.borrow() {
            let block = *self.next.lock().unwrap();
            let numbers: Vec<u64> = (block * 3..block * 3 + 1 + block % 3).collect();
            let items: Vec<Value> = numbers
                .iter()
                .map(|no| json!({"writer": self.no, "no": no}))
                .collect();
            let client = {
                let living = self.living.lock().unwrap();
                living[(self.no + block) as usize % living.len()].clone()
            };
            let key = format!("w{}-{block}", self.no);
            match post(&client, &self.path, &key, &json!({ "items": items })).await {
                Some((200 | 201, answer)) => {
                    let first = answer["first_index"].as_u64().expect("an index");
                    let mut known = self.acknowledged.lock().unwrap();
                    let places = numbers.iter().zip(first..);
                    known.extend(places.map(|(no, index)| ((self.no, *no), index)));
                    *self.next.lock().unwrap() += 1;
                }
                Some((status, answer)) if status < 500 && status != 429 => panic!("{status}: {answer:#}"),
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_eight_writers_append_is_processed_once_whoever_dies() {
    let cluster = Cluster::new().await;
    let mut nodes: Vec<Node> = Vec::new();
    for name in ["n1", "n2", "n3"] {
        nodes.push(cluster.node(name, "").await);
    }
    nodes[0]
        .business("push", &cluster.business.url(), json!({}))
        .await;
    let body = json!({"business": "push", "open": true, "rate": "400/s", "concurrency": CONCURRENCY,
        "checkpoint_interval": "200ms", "unsaved_max": 200, "start": true});
    let made = nodes[0].admin.post("/v1/tasks", body).await.expect(201);
    let task = made["id"].as_str().expect("an id").to_owned();
    let living: Living = Arc::new(Mutex::new(nodes.iter().map(|node| node.admin.clone()).collect()));
    let acknowledged = Acknowledged::default();
    let (over, is_over) = tokio::sync::watch::channel(false);
    let next: Vec<Arc<Mutex<u64>>> = (0..WRITERS).map(|_| Arc::default()).collect();
    let write = |no: u64| {
        let writer = Writer {
            no,
            path: format!("/v1/tasks/{task}/items"),
            living: living.clone(),
            acknowledged: acknowledged.clone(),
            next: next[no as usize].clone(),
            is_over: is_over.clone(),
        };
        tokio::spawn(writer.write())
    };
    let mut writers: Vec<_> = (0..WRITERS).map(write).collect();
    let (begun, mut kills) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(seconds()) {
        tokio::time::sleep(Duration::from_secs(2)).await;
        // A writer dies with a request on its way; who follows sends it again.
        let no = kills % WRITERS;
        let dead = std::mem::replace(&mut writers[no as usize], tokio::spawn(async {}));
        dead.abort();
        assert!(
            dead.await.is_err_and(|ended| ended.is_cancelled()),
            "a writer failed before"
        );
        writers[no as usize] = write(no);
        // The owner dies, as long as somebody knows who it is.
        let view = nodes[0].admin.get(&format!("/v1/tasks/{task}")).await.expect(200);
        let owner = view["shard_list"][0]["node"].as_str().unwrap_or("n1").to_owned();
        let at = owner.trim_start_matches('n').parse::<usize>().unwrap_or(1);
        kills += 1;
        let heir = cluster.node(&format!("n{}", 3 + kills), "").await;
        let place = nodes
            .iter()
            .position(|node| node.said().contains(&format!("\"n{at}\"")));
        drop(std::mem::replace(
            &mut nodes[place.unwrap_or(kills as usize % 3)],
            heir,
        ));
        *living.lock().unwrap() = nodes.iter().map(|node| node.admin.clone()).collect();
    }
    over.send_replace(true);
    for writer in writers {
        writer.await.expect("a writer ends");
    }
    let path = format!("/v1/tasks/{task}");
    nodes[0]
        .admin
        .post(&format!("{path}/seal"), json!({}))
        .await
        .expect(202);
    let refused = nodes[1]
        .admin
        .post(&format!("{path}/items"), json!({"items": [1]}))
        .await;
    refused.problem(409, "task-sealed");
    let view = until(&nodes[0], &path, "finished", |view| view["status"] == "finished").await;
    judge(&view, &acknowledged.lock().unwrap(), &cluster, kills);
}

/// Judged by what the business saw and what the writers were told; of the task only its length is believed.
fn judge(view: &Value, acknowledged: &BTreeMap<(u64, u64), u64>, cluster: &Cluster, kills: u64) {
    let mut calls: BTreeMap<u64, u64> = BTreeMap::new();
    let mut places: BTreeMap<(u64, u64), BTreeSet<u64>> = BTreeMap::new();
    for call in cluster.business.seen() {
        let item = &call.body["item"];
        let Some(index) = item["index"].as_u64() else {
            continue;
        };
        let number = |name: &str| item["data"][name].as_u64().expect("it has its data");
        *calls.entry(index).or_default() += 1;
        places
            .entry((number("writer"), number("no")))
            .or_default()
            .insert(index);
    }
    let total = view["total"].as_u64().expect("a total");
    assert!(
        acknowledged.len() > 100,
        "too little was appended: {}",
        acknowledged.len()
    );
    for (item, index) in acknowledged {
        assert_eq!(
            places.get(item),
            Some(&BTreeSet::from([*index])),
            "{item:?} at {index}"
        );
    }
    assert_eq!(calls.len() as u64, total, "every item was called");
    assert!(places.values().all(|at| at.len() == 1), "an item was added twice");
    let repeats: u64 = calls.values().map(|times| times - 1).sum();
    assert!(
        repeats <= kills * (CONCURRENCY + 200),
        "{repeats} repeats after {kills} deaths"
    );
    println!(
        "{total} items, {} acknowledged, {kills} deaths, {repeats} repeats",
        acknowledged.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_open_task_takes_next_to_nothing_and_wakes_at_once_whoever_is_told() {
    let cluster = Cluster::new().await;
    let (n1, n2) = (cluster.node("n1", "").await, cluster.node("n2", "").await);
    n1.business("push", &cluster.business.url(), json!({})).await;
    let body = json!({"business": "push", "open": true, "rate": "500/s", "start": true});
    let made = n1.admin.post("/v1/tasks", body).await.expect(201);
    let task = made["id"].as_str().expect("an id").to_owned();
    let view = n1
        .until(&task, "running", |view| view["live"]["state"] == "live")
        .await;
    let owner = view["live"]["nodes"][0].as_str().expect("an owner").to_owned();
    let is_idle = |node: &Value| node["reserved_rate"] == "1/s";
    until(&n1, &format!("/v1/nodes/{owner}"), "idle", is_idle).await;
    for (no, node) in [&n1, &n2, &n1, &n2].into_iter().enumerate() {
        let told = Instant::now();
        let items = json!({"items": [{"no": no}]});
        node.admin
            .post(&format!("/v1/tasks/{task}/items"), items)
            .await
            .expect(201);
        while cluster.business.items().len() <= no {
            assert!(
                told.elapsed() < PATIENCE,
                "it never woke:\n{}\n{}",
                n1.said(),
                n2.said()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        println!(
            "item {no} left {} ms after it was appended",
            told.elapsed().as_millis()
        );
    }
    let explained = n2
        .admin
        .get(&format!("/v1/tasks/{task}/explain"))
        .await
        .expect(200);
    assert!(explained.to_string().contains("items"), "{explained:#}");
}
