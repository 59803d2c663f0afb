//! A handler that some nodes reach and others don't.

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::capacity::Capacity;
use windrow_core::ids::TaskId;
use windrow_core::settings::{Auto, Rate, RateLimit};
use windrow_core::task::lifecycle::Status;

use crate::cluster::Cluster;

const NODES: [&str; 3] = ["a", "b", "c"];
const TOTAL: u64 = 9_000;

/// Three nodes, each with a shard of a task that takes five minutes.
async fn three(prefix: &str) -> (Cluster, TaskId) {
    let mut cluster = Cluster::new(prefix, false);
    cluster.slow = Duration::from_millis(20);
    for name in NODES {
        cluster.boot(name).await;
    }
    let shards = Auto::Fixed(NonZeroU32::new(3).expect("not zero"));
    let rate = RateLimit::Limited(Rate::per_second(30).expect("not zero"));
    let task = cluster.sharded(TOTAL, shards, |tuning| tuning.rate = rate).await;
    for name in NODES {
        cluster.until_owned(name, 1).await;
    }
    (cluster, task)
}

fn calls_since(cluster: &Cluster, name: &str, begun: Instant) -> usize {
    let full = cluster.name(name);
    let all = cluster.departures.lock().expect("ok");
    all.iter()
        .filter(|one| one.at >= begun && one.node == full)
        .count()
}

async fn every_item_succeeds(cluster: &Cluster, task: TaskId) {
    let view = cluster.until(task, Status::Finished).await;
    assert_eq!((view.counters.succeeded, view.counters.failed), (TOTAL, 0));
}

#[tokio::test(start_paused = true)]
async fn what_one_node_alone_can_not_call_goes_to_one_that_can() {
    let (cluster, task) = three("one-sided").await;
    let begun = Instant::now();
    cluster.lead_astray(&["c"]);
    cluster.until_owned("c", 0).await;
    assert!(
        begun.elapsed() >= Duration::from_secs(30),
        "an outage for all would look the same at first"
    );
    let calls = calls_since(&cluster, "c", begun);
    assert!((5..=15).contains(&calls), "{calls} calls before and as probes");
    every_item_succeeds(&cluster, task).await;
}

#[tokio::test(start_paused = true)]
async fn what_nobody_reaches_stays_where_it_is() {
    let (cluster, task) = three("all-sided").await;
    cluster.lead_astray(&NODES);
    tokio::time::sleep(Duration::from_secs(300)).await;
    for name in NODES {
        assert_eq!(cluster.owned(name), 1, "{name}");
    }
    cluster.lead_astray(&[]);
    every_item_succeeds(&cluster, task).await;
}

#[tokio::test(start_paused = true)]
async fn where_nobody_takes_it_its_node_goes_on_probing() {
    let (cluster, task) = three("no-taker").await;
    // They have no room for more than what they run.
    let own = Rate::per_second(10).expect("not zero");
    for name in ["a", "b"] {
        cluster.node(name).handle.set_capacity(Capacity::Limited(own));
    }
    let begun = Instant::now();
    cluster.lead_astray(&["c"]);
    cluster.until_owned("c", 0).await;
    cluster.until_owned("c", 1).await;
    assert!(begun.elapsed() < Duration::from_secs(120));
    cluster.lead_astray(&[]);
    cluster.until_works("c").await;
    every_item_succeeds(&cluster, task).await;
}
