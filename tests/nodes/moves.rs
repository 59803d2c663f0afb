//! What is told of the speed of a task that changes its node: time on another node is no gap, and what nobody does any
//! more is one.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

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

    n1.signal(Signal::KILL);
    let path = format!("/v1/tasks/{task}");
    let again = |view: &Value| view["live"]["state"] == "live" && view["live"]["nodes"] != json!(["n1"]);
    until(&n2, &path, "taken over", again).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    for node in [&n2, &n3] {
        let told = explained(node, &task).await;
        assert!(
            not_running(&told) > Some(5.0),
            "the gap of the takeover: {told:#}"
        );
        let why = told["why"].as_str().unwrap();
        assert!(why.contains("nothing of the task ran for"), "{told:#}");
        assert!(why.contains("over from n1"), "{told:#}");
    }
}
