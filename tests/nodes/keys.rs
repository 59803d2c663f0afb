//! Nodes of one store with different keys: a task whose secrets a node can't open is another's to run.

use serde_json::{Value, json};

use crate::cluster::{Cluster, until};
use crate::program::Person;

#[tokio::test]
async fn a_task_moves_to_the_node_that_has_its_key_and_who_lacks_it_is_named() {
    let cluster = Cluster::new().await;
    let n1 = cluster.node("n1", "").await;
    n1.business("push", &cluster.business.url(), json!({})).await;
    std::fs::write(cluster.path("key"), format!("B{}=\n", "A".repeat(42))).unwrap();
    let n2 = cluster.node("n2", "").await;
    n1.admin.post("/v1/nodes/n1/drain", json!({})).await.expect(202);
    let drained = |node: &Value| node["state"] == "drained";
    until(&n1, "/v1/nodes/n1", "drained", drained).await;
    let task = n2.task("push", 20, json!({"rate": "100/s", "start": true})).await;
    let path = format!("/v1/tasks/{task}");
    let lacks = |view: &Value| view["status_reason"] == "key_missing";
    let view = until(&n2, &path, "without its key", lacks).await;
    assert_eq!(view["status"], "recovering", "{view:#}");
    let told = Person::admin(&n2)
        .windrow(&format!("task explain {task}"))
        .await
        .expect(0)
        .stdout;
    assert!(
        told.contains("node n2 can't open the secrets of push") && told.contains("auth.key_file"),
        "{told}"
    );
    n1.admin.post("/v1/nodes/n1/undrain", json!({})).await.expect(202);
    let view = until(&n1, &path, "finished", |view| view["status"] == "finished").await;
    assert_eq!(
        (&view["counts"]["succeeded"], &view["stop_reason"]),
        (&json!(20), &Value::Null),
        "{view:#}"
    );
    let task = n1
        .task("push", 1_000_000, json!({"rate": "10/s", "start": true}))
        .await;
    let runs = |view: &Value| view["live"]["nodes"] == json!(["n1"]);
    until(&n1, &format!("/v1/tasks/{task}"), "running on n1", runs).await;
    let refused = Person::admin(&n2)
        .windrow(&format!("task move {task} --to n2"))
        .await;
    refused.refused(4, &["sealed with another key (", "restore the node's key"]);
    let warned = Person::admin(&n1)
        .windrow(&format!("task move {task} --to n2 --dry-run"))
        .await
        .expect(0)
        .stderr;
    assert!(
        warned.contains("warning: n2 is unreachable") && warned.contains("auth.key_file"),
        "{warned}"
    );
}
