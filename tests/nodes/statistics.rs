//! What was done in each day, on three nodes that are killed around a midnight that each of them sees at another moment:
//! the days of every shard sum up to its counters at every moment.
//!
//! `WINDROW_STATISTICS_KILLS=50` kills so often; `WINDROW_SEED` plays one again.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::{Value, json};
use windrow_store::sql::inspect::Inspection;
use windrow_store::sql::{ServerAddress, ServerKind};

use crate::business::{Act, Business};
use crate::cluster::Cluster;
use crate::schedules::{Chance, number, step};
use crate::support::Node;

const KILLS: u64 = 6;
/// From one kill to the next, about. Unit: milliseconds.
const PERIOD_MS: u64 = 2_000;
const DAY_MS: i64 = 24 * 3600 * 1000;
const NAMES: [&str; 3] = ["n1", "n2", "n3"];
const TTL: &str = "[cluster]\nlease_ttl = \"4s\"\nlease_renew = \"1s\"\n";

async fn node(cluster: &Cluster, name: &str) -> Node {
    let file = cluster.path(name);
    let environment = [("WINDROW_CLOCK_OFFSET_FILE", file.to_str().unwrap())];
    cluster.node_with(name, TTL, &environment).await
}

/// What breaks the rules of the database, at one moment of it.
async fn broken(cluster: &Cluster) -> Vec<(&'static str, Vec<String>)> {
    let url = cluster.postgres.url("windrow");
    let password = Some(cluster.postgres.password().to_owned());
    let address = ServerAddress::new(ServerKind::Postgres, url, password, 1);
    let inspection = Inspection::connect(&address).await.unwrap();
    let found = inspection.check().await.unwrap();
    inspection.close().await.unwrap();
    let rules = found.iter().map(|finding| finding.rule);
    assert!(
        rules.clone().any(|rule| rule.contains("days")),
        "it is looked at: {:?}",
        rules.collect::<Vec<_>>()
    );
    let broken = found.into_iter().filter(|finding| !finding.faults.is_empty());
    broken.map(|finding| (finding.rule, finding.faults)).collect()
}

/// The sums of all days, and how many days there are.
async fn done(node: &Node) -> ([u64; 3], usize) {
    let page = node
        .admin
        .get("/v1/statistics?since=2026-01-01T00:00:00Z&until=2030-01-01T00:00:00Z")
        .await
        .expect(200);
    let days = page["items"].as_array().unwrap();
    let sum = |term: &str| days.iter().map(|day| day["items"][term].as_u64().unwrap()).sum();
    (["succeeded", "skipped", "failed"].map(sum), days.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn days_of_nodes_that_are_killed_sum_up_to_the_counters() {
    let (seed, kills) = (
        number("WINDROW_SEED", 0x5eed_0017),
        number("WINDROW_STATISTICS_KILLS", KILLS),
    );
    println!("WINDROW_SEED={seed} WINDROW_STATISTICS_KILLS={kills}");
    let mut chance = Chance::new(seed);
    let cluster = Cluster::new().await;
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(index, _)] if index % 12 == 1 => Act::json(200, json!({"result": "skip"})),
        [(index, _)] if index % 12 == 2 => {
            Act::json(200, json!({"result": "fail", "code": "GONE", "message": "x"}))
        }
        _ => Act::ok().after(Duration::from_millis(5)),
    })
    .await;
    // Midnight comes when half of the kills are over.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let half = (kills * PERIOD_MS / 2).cast_signed();
    let offset = DAY_MS - now % DAY_MS - half;
    NAMES.iter().for_each(|name| step(&cluster, name, offset));
    let mut nodes = BTreeMap::new();
    for name in NAMES {
        nodes.insert(name, node(&cluster, name).await);
    }
    nodes["n1"].business("push", &business.url(), json!({})).await;
    let more = json!({"rate": "300/s", "shards": 3, "error_budget": "none", "checkpoint_interval": "50ms", "start": true});
    let task = nodes["n2"].task("push", 1_000_000, more).await;
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(PERIOD_MS / 2 + chance.below(PERIOD_MS / 2))).await;
        let name = NAMES[chance.below(3) as usize];
        nodes.remove(name).unwrap().signal(Signal::KILL);
        assert_eq!(broken(&cluster).await, []);
        // Each life has a clock of its own, some seconds beside the others.
        step(&cluster, name, offset + chance.below(4_000).cast_signed() - 2_000);
        nodes.insert(name, node(&cluster, name).await);
        assert_eq!(broken(&cluster).await, []);
    }
    let path = format!("/v1/tasks/{task}");
    nodes["n1"]
        .admin
        .post(&format!("{path}/finish"), json!({}))
        .await
        .expect(202);
    let view: Value = nodes["n1"].status(&task, "finished").await;
    assert_eq!(broken(&cluster).await, []);
    let counts = ["succeeded", "skipped", "failed"].map(|term| view["counts"][term].as_u64().unwrap());
    let (sums, days) = done(&nodes["n3"]).await;
    println!("{counts:?} in {days} days after {kills} kills");
    // A slow machine begins after midnight.
    assert!(
        sums == counts && (1..=2).contains(&days),
        "{sums:?} in {days} days"
    );
    assert!(counts.iter().all(|items| *items > 0), "{counts:?}");
    assert_eq!(nodes["n2"].admin.delete(&path).await.status, 204);
    assert_eq!(
        done(&nodes["n3"]).await,
        (counts, days),
        "its days outlive the task"
    );
}
