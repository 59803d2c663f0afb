//! Results of a task of three shards on three nodes, read through a node that doesn't run what is read, while owners
//! are killed and frozen: what was given once is never withdrawn, never changed, each once, in order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::business::Act;
use crate::cluster::Cluster;
use crate::support::{Node, PATIENCE};

const NAMES: [&str; 3] = ["n1", "n2", "n3"];
const TTL: &str = "[cluster]\nlease_ttl = \"4s\"\nlease_renew = \"1s\"\n";
/// What is read at least before the next owner is lost.
const FIRST_ROWS: usize = 60;

/// How many items there are; `WINDROW_RESULT_ROWS=200000` takes so many.
#[expect(
    clippy::disallowed_methods,
    reason = "a larger size comes from the environment"
)]
fn total() -> u64 {
    std::env::var("WINDROW_RESULT_ROWS").map_or(4_500, |text| text.parse().expect("a number"))
}

/// Somebody who reads results as they come, and goes on behind the last index.
struct Reader {
    path: String,
    rows: Vec<String>,
}

impl Reader {
    fn last(&self) -> Option<u64> {
        self.rows.last().map(|row| index_of(row))
    }

    /// Reads what has come since.
    async fn go_on(&mut self, node: &Node) {
        let path = match self.last() {
            Some(last) => format!("{}?after={last}", self.path),
            None => self.path.clone(),
        };
        self.rows.extend(rows(node, &path).await);
    }
}

fn index_of(row: &str) -> u64 {
    let row: Value = serde_json::from_str(row).expect("JSON");
    row["index"]
        .as_u64()
        .unwrap_or_else(|| panic!("no index in {row}"))
}

async fn rows(node: &Node, path: &str) -> Vec<String> {
    let answer = node.admin.get(path).await;
    assert_eq!(answer.status, 200, "{}\n{}", answer.text(), node.said());
    let text = String::from_utf8(answer.body.to_vec()).expect("text");
    text.lines().map(str::to_owned).collect()
}

/// The nodes that own shards, by shard; empty where one has none now.
async fn owners(asked: &Node, task: &str) -> Vec<String> {
    let view = asked.admin.get(&format!("/v1/tasks/{task}")).await.expect(200);
    let shards = view["shard_list"].as_array().expect("shards").iter();
    shards
        .map(|shard| shard["node"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Another node than these.
fn other<'a>(nodes: &'a [Option<Node>; 3], than: &[&str]) -> &'a Node {
    let mut others = NAMES.iter().zip(nodes).filter(|(name, _)| !than.contains(name));
    others
        .find_map(|(_, node)| node.as_ref())
        .expect("one is never ended")
}

/// Reads through another node than this one until enough has come and the first shard belongs to another one as well.
async fn read_until(
    nodes: &[Option<Node>; 3],
    lost: &str,
    reader: &mut Reader,
    (task, rows): (&str, usize),
) -> String {
    let (begun, node) = (Instant::now(), other(nodes, &[lost]));
    loop {
        reader.go_on(node).await;
        let owners = owners(node, task).await;
        if reader.rows.len() >= rows && !owners[0].is_empty() && owners[0] != lost {
            return owners[0].clone();
        }
        let read = reader.rows.len();
        assert!(
            begun.elapsed() < PATIENCE,
            "{read} rows of {rows}, {owners:?} without {lost}\n{}",
            node.said()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn results_that_were_read_stay_through_take_overs_and_each_comes_once_in_order() {
    let (cluster, total) = (Cluster::new().await, total());
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    cluster
        .business
        .becomes(move |seen| match seen.items().as_slice() {
            [(index, _)] => {
                let call = counted.fetch_add(1, Ordering::Relaxed);
                let answer = json!({"result": "ok", "output": {"of": index, "call": call}});
                Act::json(200, answer).after(Duration::from_millis(5))
            }
            _ => Act::status(500),
        });
    let mut nodes: [Option<Node>; 3] = [None, None, None];
    for (name, node) in NAMES.iter().zip(&mut nodes) {
        *node = Some(cluster.node(name, TTL).await);
    }
    let first = other(&nodes, &[]);
    first.business("push", &cluster.business.url(), json!({})).await;
    let settings = json!({"start": true, "results": "keep", "rate": "90/s", "shards": 3});
    let task = first.task("push", total, settings).await;
    let path = format!("/v1/tasks/{task}/results");
    let mut reader = Reader {
        path: path.clone(),
        rows: Vec::new(),
    };

    // One owner of the shard that is read dies, the next one stands still and comes back.
    let killed = read_until(&nodes, "", &mut reader, (&task, FIRST_ROWS)).await;
    let at = NAMES
        .iter()
        .position(|name| *name == killed)
        .expect("one of ours");
    let gone = nodes[at].take().expect("it lives");
    gone.signal(Signal::KILL);
    gone.ended().await;
    let wanted = reader.rows.len() + FIRST_ROWS;
    let frozen = read_until(&nodes, &killed, &mut reader, (&task, wanted)).await;
    nodes[at] = Some(cluster.node(NAMES[at], TTL).await);
    let stopped = NAMES
        .iter()
        .position(|name| *name == frozen)
        .expect("one of ours");
    let signal = |signal| nodes[stopped].as_ref().expect("it lives").signal(signal);
    signal(Signal::STOP);
    let wanted = reader.rows.len() + FIRST_ROWS;
    let owner = read_until(&nodes, &frozen, &mut reader, (&task, wanted)).await;
    assert!(
        (reader.rows.len() as u64) < total / 3,
        "the first shard was done before"
    );
    signal(Signal::CONT);

    let there = other(&nodes, &[&owner, &frozen]);
    let quick = json!({"rate": format!("{}/s", (total / 5).min(1_200))});
    there
        .admin
        .patch(&format!("/v1/tasks/{task}"), quick)
        .await
        .expect(200);
    let (begun, patience) = (Instant::now(), PATIENCE + Duration::from_millis(total));
    while (reader.rows.len() as u64) < total {
        reader.go_on(there).await;
        assert!(begun.elapsed() < patience, "{} rows", reader.rows.len());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let view = there.status(&task, "finished").await;
    assert_eq!(view["counts"]["succeeded"], json!(total));
    for node in nodes.iter().flatten() {
        let all = rows(node, &path).await;
        assert!(
            all == reader.rows,
            "what was read has changed, or did not come once in order"
        );
    }
    each_has_an_answer_of_its_own(&reader.rows, total);
    println!(
        "{} calls for {total} items, killed {killed}, frozen {frozen}",
        calls.load(Ordering::Relaxed)
    );
}

fn each_has_an_answer_of_its_own(rows: &[String], total: u64) {
    let mut used = BTreeSet::new();
    for (index, row) in rows.iter().enumerate() {
        let row: Value = serde_json::from_str(row).expect("JSON");
        let output = &row["output"];
        assert_eq!((&row["index"], &output["of"]), (&json!(index), &json!(index)));
        let call = output["call"].as_u64().expect("a call");
        assert!(used.insert(call), "one answer for two items: {row}");
    }
    assert_eq!(rows.len() as u64, total);
}
