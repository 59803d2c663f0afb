//! A dataset in the Redis of readers, copied by three nodes that are killed: no reader of Redis ever sees a mix or an older
//! generation after a newer one; a Redis that was down, or emptied, is filled again.
//!
//! `WINDROW_COPIES=50 WINDROW_READERS=20 WINDROW_GENERATION_ITEMS=5000` plays it at full size.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use redis::AsyncCommands;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::business::Act;
use crate::cluster::Cluster;
use crate::datasets::{NAMES, SETTINGS, clients, first, generation, size};
use crate::servers::Redis;
use crate::support::{Node, PATIENCE};

#[derive(Default)]
struct Seen {
    answers: AtomicU64,
    mixed: AtomicU64,
    newest: AtomicU64,
    over: AtomicBool,
}

async fn connected(url: &str) -> Option<redis::aio::MultiplexedConnection> {
    let client = redis::Client::open(url).expect("a URL");
    client.get_multiplexed_async_connection().await.ok()
}

/// Reads the pointer, then what it names, for ever; over one connection after another.
async fn read(url: String, pointer: String, seen: Arc<Seen>) {
    let mut newest = 0;
    while !seen.over.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let Some(mut redis) = connected(&url).await else {
            continue;
        };
        while let Some(now) = look(&mut redis, &pointer, &seen).await {
            assert!(now >= newest, "publication {now} after {newest}");
            newest = now;
            seen.newest.fetch_max(now, Ordering::Relaxed);
            if seen.over.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// One look; none where Redis is away, or has nothing.
async fn look(redis: &mut redis::aio::MultiplexedConnection, pointer: &str, seen: &Seen) -> Option<u64> {
    let now: HashMap<String, String> = redis.hgetall(pointer).await.ok()?;
    let items: HashMap<u64, String> = redis.hgetall(now.get("items")?).await.ok()?;
    if items.is_empty() {
        // Redis lost it in between: as documented, it has fewer fields than there are results, and is looked at anew.
        return None;
    }
    let (mut sum, mut rounds) = (0, BTreeSet::new());
    for output in items.values() {
        let output: Value = serde_json::from_str(output).expect("an output");
        sum += output["n"].as_u64().expect("a number");
        rounds.insert(output["round"].as_str().expect("a round").to_owned());
    }
    let summary: Value = serde_json::from_str(now.get("summary")?).expect("a summary");
    let is_whole = json!({"rounds": rounds, "rows": items.len(), "sum": sum}) == summary
        && rounds.len() == 1
        && now["results"] == items.len().to_string();
    if !is_whole {
        eprintln!("mixed: {rounds:?}, {} rows under {now:?}", items.len());
    }
    seen.answers.fetch_add(1, Ordering::Relaxed);
    seen.mixed.fetch_add(u64::from(!is_whole), Ordering::Relaxed);
    Some(now["publication"].parse().expect("a number"))
}

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until readers find what is current; says which publication.
async fn caught_up(nodes: &[Option<Node>; 3], seen: &Seen) -> u64 {
    let mut publication = 0;
    eventually("readers find what is current", async || {
        let board = first(nodes).admin.get("/v1/datasets/board").await.expect(200);
        publication = board["publication"].as_u64().expect("a number");
        let is_told = board["sink_state"]["publication"] == board["publication"];
        is_told && seen.newest.load(Ordering::Relaxed) == publication
    })
    .await;
    publication
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_redis_never_see_a_mix_while_nodes_die_and_redis_goes_and_comes() {
    let (cluster, mut redis) = (Cluster::new().await, Redis::start());
    let settings = format!("{SETTINGS}\n[datasets]\nredis_url = \"{}\"\n", redis.url());
    cluster.business.becomes(|seen| match seen.items().as_slice() {
        [(index, _)] => Act::json(
            200,
            json!({"result": "ok", "output": {"n": index, "round": seen.task()}}),
        ),
        _ => Act::status(500),
    });
    let mut nodes: [Option<Node>; 3] = [None, None, None];
    for (name, node) in NAMES.iter().zip(&mut nodes) {
        *node = Some(cluster.node(name, &settings).await);
    }
    first(&nodes)
        .business("push", &cluster.business.url(), json!({}))
        .await;
    let (ways, _way) = watch::channel(clients(&nodes));
    generation((&cluster, &settings), &mut nodes, &ways, 0).await;
    let set = first(&nodes)
        .admin
        .patch("/v1/datasets/board", json!({"sink": "redis", "keep": 100}))
        .await
        .expect(200);
    assert_eq!(set["sink"], "redis", "{set:#}");
    let pointer = set["sink_state"]["pointer"].as_str().expect("a key").to_owned();
    let seen = Arc::<Seen>::default();
    let readers: Vec<_> = (0..size("WINDROW_READERS", 4))
        .map(|_| tokio::spawn(read(redis.url(), pointer.clone(), seen.clone())))
        .collect();
    assert_eq!(caught_up(&nodes, &seen).await, 1);
    let (begun, copies) = (Instant::now(), size("WINDROW_COPIES", 8));
    for no in 1..copies {
        if no == copies / 2 {
            redis.kill();
        }
        generation((&cluster, &settings), &mut nodes, &ways, no).await;
        if no == copies / 2 {
            let board = first(&nodes).admin.get("/v1/datasets/board").await.expect(200);
            assert!(board["sink_state"]["behind_since"].is_string(), "{board:#}");
            redis.restart();
        }
    }
    let newest = caught_up(&nodes, &seen).await;
    redis.cli(&["FLUSHALL"]);
    eventually("an emptied Redis is filled", async || {
        redis.cli(&["HGET", &pointer, "publication"]).trim() == newest.to_string()
    })
    .await;
    let back = json!({"generation": 1});
    first(&nodes)
        .admin
        .post("/v1/datasets/board/rollback", back)
        .await
        .expect(200);
    assert_eq!(caught_up(&nodes, &seen).await, newest + 1);
    assert_eq!(redis.cli(&["HGET", &pointer, "generation"]).trim(), "1");
    seen.over.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.expect("no reader saw the pointer go back");
    }
    let (answers, mixed) = (
        seen.answers.load(Ordering::Relaxed),
        seen.mixed.load(Ordering::Relaxed),
    );
    println!(
        "{copies} generations in {:?}: {answers} answers of Redis, {mixed} mixed",
        begun.elapsed()
    );
    assert_eq!(mixed, 0);
}
