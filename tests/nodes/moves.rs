//! What is told of the speed of a task that changes its node: time on another node is no gap, and what nobody does any
//! more is one.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::business::{Act, Business, Seen};
use crate::cluster::{Cluster, until};
use crate::program::Person;
use crate::support::Node;

const TTL: &str = "[cluster]\nlease_ttl = \"4s\"\nlease_renew = \"1s\"\n";
const RATE: f64 = 50.0;

/// What is said of the last minute.
async fn explained(node: &Node, task: &str) -> Value {
    let path = format!("/v1/tasks/{task}/explain");
    let told = node.admin.get(&path).await.expect(200);
    let target = told["target_rate"].as_f64().expect("a rate");
    assert!(
        (RATE * 0.9..RATE * 1.05).contains(&target),
        "the rate was never another one: {told:#}"
    );
    told
}

/// For how much of the missing rate it is said that it didn't run.
fn not_running(told: &Value) -> Option<f64> {
    let causes = told["causes"].as_array().expect("causes");
    let found = causes.iter().find(|cause| cause["slug"] == "not_running")?;
    found["rate"].as_f64()
}

async fn moved(node: &Node, task: &str, to: &str) {
    let command = format!("task move {task} --to {to} --wait");
    Person::admin(node).windrow(&command).await.expect(0);
}

#[tokio::test]
async fn only_time_in_which_nothing_ran_anywhere_is_told_as_a_gap() {
    let cluster = Cluster::new().await;
    let (n1, n2, n3) = (
        cluster.node("n1", TTL).await,
        cluster.node("n2", TTL).await,
        cluster.node("n3", TTL).await,
    );
    n1.business("push", &cluster.business.url(), json!({})).await;
    n1.task("push", 10, json!({"rate": "1/s"})).await;
    let standing = n2.admin.get("/v1/cluster").await.expect(200);
    assert_eq!(
        standing["shards"]["released"],
        json!(0),
        "nobody has started it: {standing:#}"
    );
    let task = n1
        .task("push", 1_000_000, json!({"rate": "50/s", "start": true}))
        .await;
    let view = n1
        .until(&task, "running somewhere", |view| view["live"]["state"] == "live")
        .await;
    if view["live"]["nodes"] != json!(["n1"]) {
        moved(&n1, &task, "n1").await;
    }
    for to in ["n2", "n1"] {
        tokio::time::sleep(Duration::from_secs(5)).await;
        moved(&n1, &task, to).await;
    }
    tokio::time::sleep(Duration::from_secs(4)).await;
    // The one that runs it, one that ran it, and one that never did.
    for node in [&n1, &n2, &n3] {
        let told = explained(node, &task).await;
        assert_eq!(not_running(&told), None, "{told:#}");
        assert!(
            told["span_seconds"].as_f64() > Some(11.0),
            "all stays are told of: {told:#}"
        );
    }

    let person = Person::admin(&n2);
    let mut watch = person.start(&["task", "watch", &task, "--every", "1h"]);
    watch.says("▶ running").await;
    n1.signal(Signal::KILL);
    watch.tells("n1 runs it but can't be reached").await;
    watch.tells(&format!("all of {task} is running again, on ")).await;
    let path = format!("/v1/tasks/{task}");
    let again = |view: &Value| view["live"]["state"] == "live" && view["live"]["nodes"] != json!(["n1"]);
    until(&n2, &path, "taken over", again).await;
    for node in [&n2, &n3] {
        let gap = |told: &Value| not_running(told) > Some(5.0);
        let told = until(node, &format!("{path}/explain"), "the gap of the takeover", gap).await;
        let why = told["why"].as_str().unwrap();
        assert!(why.contains("nothing ran for"), "{told:#}");
        assert!(
            why.contains("took over shard ") && why.contains(" from n1"),
            "{told:#}"
        );
    }
    let checked = Person::admin(&n2).windrow("doctor --no-handlers").await.stdout;
    assert!(
        checked.contains("n1 has not reported for too long; other nodes have taken over its work"),
        "{checked}"
    );
}

#[tokio::test]
async fn the_part_of_a_node_that_just_died_is_missed_as_unknown_and_the_node_is_named() {
    let cluster = Cluster::new().await;
    let settings = "[cluster]\nlease_ttl = \"30s\"\nlease_renew = \"5s\"\n";
    let (n1, n2, n3) = (
        cluster.node("n1", settings).await,
        cluster.node("n2", settings).await,
        cluster.node("n3", settings).await,
    );
    n1.business("push", &cluster.business.url(), json!({})).await;
    let task = n1
        .task(
            "push",
            1_000_000,
            json!({"rate": "60/s", "shards": 3, "start": true}),
        )
        .await;
    let path = format!("/v1/tasks/{task}");
    let owners = |view: &Value| -> Vec<String> {
        let shards = view["shard_list"].as_array().unwrap().iter();
        shards
            .filter_map(|shard| shard["node"].as_str().map(str::to_owned))
            .collect()
    };
    let view = until(&n1, &path, "running whole", |view| owners(view).len() == 3).await;
    for (shard, owner) in owners(&view).iter().enumerate() {
        let to = format!("n{}", shard + 1);
        if *owner != to {
            moved(&n1, &format!("{task} --shard {shard}"), &to).await;
        }
    }
    tokio::time::sleep(Duration::from_secs(6)).await;
    let person = Person::admin(&n1);
    let mut watch = person.start(&["task", "watch", &task, "--every", "1h"]);
    watch.says("▶ running").await;
    n3.signal(Signal::KILL);
    watch.tells("1 of 3 shards unreachable: n3 (").await;
    watch.tells("another node takes it over").await;
    watch.says("(stale: n3 unreachable)").await;
    let shown = person
        .windrow(&format!("task show {task}"))
        .await
        .expect(0)
        .stdout;
    for said in ["running on n3, unreachable", "unknown without n3"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    let listed = person.windrow("task list").await.expect(0).stderr;
    assert!(
        listed.contains(&format!("{task}: rate unknown because n3 can't be reached")),
        "{listed}"
    );
    for node in [&n1, &n2] {
        let known = |told: &Value| told["causes"][0]["slug"] == "unknown";
        let told = until(node, &format!("{path}/explain"), "told of", known).await;
        let target = told["target_rate"].as_f64().unwrap();
        assert!(
            (57.0..62.0).contains(&target),
            "the rate was never another one: {told:#}"
        );
        let unknown = told["causes"][0]["rate"].as_f64().unwrap();
        assert!((19.0..21.0).contains(&unknown), "a third: {told:#}");
        let why = told["why"].as_str().unwrap();
        assert!(why.starts_with("1 of 3 shards unreachable: n3 ("), "{told:#}");
        assert!(
            why.ends_with("if that node is gone, another node takes it over"),
            "{told:#}"
        );
    }
}

#[tokio::test]
async fn a_running_task_goes_on_with_its_business_as_it_is_now_and_repeats_nothing() {
    let cluster = Cluster::new().await;
    let (task, [(name, _runs), (_, other)]) = cluster.pair(json!({})).await;
    let path = format!("/v1/tasks/{task}");
    until(&other, &path, "under way", |view| {
        view["counts"]["succeeded"].as_u64() > Some(20)
    })
    .await;
    let there = Business::start(|_| Act::ok()).await;
    let edited = other
        .admin
        .patch("/v1/businesses/push", json!({"url": there.url()}))
        .await;
    edited.expect(200);
    until(&other, &path, "called there", |_| there.seen().len() > 20).await;
    let view = until(&other, &path, "live", |view| view["live"]["state"] == "live").await;
    assert_eq!(view["live"]["nodes"], json!([name]), "{view:#}");
    // A rotated secret signs the calls of every node, beside the one before.
    let rotated = other
        .admin
        .post("/v1/businesses/push/rotate-secret", json!({}))
        .await;
    rotated.expect(200);
    let is_signed_twice = |seen: &Seen| seen.header("webhook-signature").split(' ').count() == 2;
    until(&other, &path, "signed with both", |_| {
        there.seen().iter().any(is_signed_twice)
    })
    .await;
    other
        .admin
        .post(&format!("{path}/stop"), json!({}))
        .await
        .expect(202);
    until(&other, &path, "stopped", |view| view["status"] == "stopped").await;
    let seen = [cluster.business.items(), there.items()].concat();
    let seen: Vec<u64> = seen.into_iter().map(|(index, _)| index).collect();
    let once: BTreeSet<&u64> = seen.iter().collect();
    assert_eq!(once.len(), seen.len(), "nothing twice");
    assert_eq!(once.last(), Some(&&(seen.len() as u64 - 1)), "nothing left out");
}
