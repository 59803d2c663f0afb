//! The Redis of leases goes away, and then a node dies: nothing promises a takeover that waits for Redis, and the node
//! that is left stays ready.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cluster::{Cluster, until};
use crate::program::Person;
use crate::servers::Redis;
use crate::support::{Node, PATIENCE};

/// The texts of a cluster's reasons of this kind.
fn texts<'a>(cluster: &'a Value, kind: &str) -> Vec<&'a str> {
    let reasons = cluster["reasons"].as_array().expect("a list");
    let of_kind = reasons.iter().filter(|one| one["reason"] == kind);
    of_kind.map(|one| one["text"].as_str().expect("a text")).collect()
}

/// Waits until the cluster has such a reason; the first one's text.
async fn told(node: &Node, kind: &str, part: &str) -> String {
    let found = until(node, "/v1/cluster", kind, |cluster| {
        texts(cluster, kind).iter().any(|text| text.contains(part))
    })
    .await;
    assert_eq!(found["status"], "degraded", "{found:#}");
    texts(&found, kind)[0].to_owned()
}

/// Waits until a node's log has this.
async fn says(node: &Node, text: &str) {
    let begun = Instant::now();
    while !node.said().contains(text) {
        assert!(
            begun.elapsed() < PATIENCE,
            "{text:?} never was in\n{}",
            node.said()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Two nodes with a task on one of them, which dies after Redis did: the one that is left, and what it says.
async fn widowed(more: &str) -> (Cluster, Redis, String, Node) {
    let (cluster, mut redis) = (Cluster::new().await, Redis::start());
    let settings = format!(
        "[cluster]\nlease_ttl = \"4s\"\nlease_renew = \"500ms\"\nredis_url = \"{}\"\n{more}",
        redis.url()
    );
    let (task, [(owner, dies), (_, stays)]) = cluster.pair_with(&settings, json!({"rate": "20/s"})).await;
    let all_is_well = |cluster: &Value| cluster["status"] == "ok";
    until(&stays, "/v1/cluster", "well", all_is_well).await;
    redis.kill();
    let text = told(&stays, "redis_lost", "Redis is down").await;
    assert!(text.contains(&owner), "both say so: {text}");
    let ready = stays.admin.get("/readyz").await.expect(200);
    assert_eq!(ready["degraded"][0]["reason"], "redis", "{ready:#}");
    let numbers = stays.admin.get("/metrics").await.text();
    assert!(numbers.contains("windrow_redis_up 0"), "the alert asks for it");
    says(&dies, "lease not renewed; it will expire").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let said = dies.said();
    assert_eq!(
        said.matches("lease not renewed").count(),
        1,
        "once an outage: {said}"
    );
    dies.signal(Signal::KILL);
    dies.ended().await;
    (cluster, redis, task, stays)
}

#[tokio::test]
async fn without_redis_no_takeover_is_promised_that_waits_for_it() {
    let (_cluster, mut redis, task, node) = widowed("").await;
    let person = Person::admin(&node);
    let nothing = "take over no tasks of a dead node until Redis is back";
    assert!(
        told(&node, "redis_lost", nothing)
            .await
            .contains("takeover_without_redis is off")
    );
    told(&node, "node_silent", "once Redis is back").await;
    let status = person.windrow("cluster").await;
    assert!(
        status.stdout.contains("degraded") && status.stdout.contains(nothing),
        "{}",
        status.stdout
    );
    let path = format!("/v1/tasks/{task}/explain");
    until(&node, &path, "waiting for Redis", |explained| {
        let why = explained["why"].as_str().unwrap_or_default();
        assert!(
            !why.contains("automatically") && !why.contains("another node takes"),
            "{why}"
        );
        why.contains("until Redis is back") || why.contains("once Redis answers")
    })
    .await;
    let lost = node.said();
    assert!(
        lost.contains("Redis is lost: running tasks continue, but this node takes over no tasks"),
        "{lost}"
    );
    redis.restart();
    node.until(&task, "running here", |view| view["live"]["state"] == "live")
        .await;
    until(&node, "/v1/cluster", "without the reason", |cluster| {
        texts(cluster, "redis_lost").is_empty()
    })
    .await;
    redis.kill();
    says(&node, "lease not renewed; it will expire").await;
    redis.restart();
    says(&node, "lease renewed again").await;
}

#[tokio::test]
async fn where_it_is_wanted_the_takeover_without_redis_is_told() {
    let (_cluster, _redis, task, node) = widowed("takeover_without_redis = true\n").await;
    told(&node, "redis_lost", "4s later than usual").await;
    node.until(&task, "running here", |view| view["live"]["state"] == "live")
        .await;
}
