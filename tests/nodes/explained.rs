//! Why a task was slow is told by what happened: its database was away, or its node stood still.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cluster::{Cluster, until};
use crate::support::Node;

fn settled_some(view: &Value) -> bool {
    view["counts"]["succeeded"].as_u64() > Some(100)
}

/// Its explanation as soon as it begins with one of these causes.
async fn explained(node: &Node, task: &str, slugs: &[&str]) -> Value {
    let path = format!("/v1/tasks/{task}/explain");
    let is_one = |view: &Value| slugs.iter().any(|slug| view["causes"][0]["slug"] == *slug);
    until(node, &path, "explained by what happened", is_one).await
}

#[tokio::test]
async fn a_time_without_the_database_is_explained_by_it_and_not_by_failures() {
    let mut cluster = Cluster::new().await;
    let (task, [(_, owner), _]) = cluster.pair(json!({})).await;
    until(&owner, &format!("/v1/tasks/{task}"), "moving", settled_some).await;
    cluster.postgres.kill();
    // Longer than a task may run ahead of what is saved, and than its node may believe that it is its own.
    tokio::time::sleep(Duration::from_secs(22)).await;
    cluster.postgres.restart();
    let told = explained(&owner, &task, &["checkpoint", "lease"]).await;
    let text = told["causes"][0]["text"].as_str().unwrap();
    let lasted = text.strip_prefix("the database accepted no writes for ");
    let seconds: f64 = lasted
        .and_then(|rest| rest.split('s').next()?.parse().ok())
        .unwrap_or_else(|| panic!("{told:#}"));
    assert!((18.0..60.0).contains(&seconds), "{told:#}");
    assert!(!told["why"].as_str().unwrap().contains("fail"), "{told:#}");
    let advice = told["advice"][0]["text"].as_str().unwrap();
    assert!(advice.starts_with("check the database"), "{told:#}");
}

#[tokio::test]
async fn a_node_that_was_frozen_is_named_and_what_two_nodes_had_is_due_once() {
    let cluster = Cluster::new().await;
    let (task, [(frozen, owner), (_, other)]) = cluster.pair(json!({})).await;
    let path = format!("/v1/tasks/{task}");
    until(&other, &path, "moving", settled_some).await;
    owner.signal(Signal::STOP);
    let taken = |view: &Value| view["live"]["state"] == "live" && view["live"]["nodes"] != json!([frozen]);
    until(&other, &path, "taken over", taken).await;
    // Both have it from here on: the one runs it, and the other will come round to what was due.
    tokio::time::sleep(Duration::from_secs(5)).await;
    owner.signal(Signal::CONT);
    let told = explained(&other, &task, &["late"]).await;
    let text = told["causes"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with(&format!("{frozen} stood still for ")),
        "{told:#}"
    );
    let target = told["target_rate"].as_f64().unwrap();
    assert!(
        (49.0..51.0).contains(&target),
        "the task's rate and no more: {told:#}"
    );
}
