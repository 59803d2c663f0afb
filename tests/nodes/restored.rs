//! `windrow db restored` on a database server that other tools took back to an earlier state: refused while a node works on
//! it, and afterwards no number and no key is given twice.

use std::collections::BTreeSet;

use hyper::Method;
use serde_json::json;

use crate::cluster::Cluster;
use crate::program::Person;

/// A node that is silent for so long may be taken for dead.
const SOON_SILENT: &str = "[cluster]\nlease_ttl = \"2s\"\nlease_renew = \"500ms\"\n";

/// The keys of the items of a task that the business was called for.
fn keys(cluster: &Cluster, task: &str) -> BTreeSet<String> {
    let seen = cluster.business.seen();
    let calls = seen
        .iter()
        .filter(|call| call.task() == task && !call.items().is_empty());
    calls
        .map(|call| call.header("idempotency-key").to_owned())
        .collect()
}

/// A backup and its restore, as an operator's own tools make them: copies of the whole database.
fn copy(cluster: &Cluster, from: &str, to: &str) {
    let sql = |sql: String| cluster.postgres.sql("postgres", &sql);
    sql(format!("DROP DATABASE IF EXISTS {to} WITH (FORCE)"));
    sql(format!("CREATE DATABASE {to} TEMPLATE {from}"));
}

#[tokio::test]
async fn after_a_restore_of_a_server_no_number_or_key_is_given_twice() {
    let cluster = Cluster::new().await;
    let node = cluster.node("n1", SOON_SILENT).await;
    node.business("push", &cluster.business.url(), json!({})).await;
    let fast = json!({"start": true, "rate": "100/s"});
    let first = node.task("push", 3, fast.clone()).await;
    node.status(&first, "finished").await;
    let open = json!({"business": "push", "open": true, "start": true, "rate": "100/s"});
    let open = node.admin.post("/v1/tasks", open).await.expect(201);
    let open = open["id"].as_str().unwrap().to_owned();
    let schedule = json!({"business": "push", "name": "board", "every": "1h",
        "task": {"source": {"type": "range", "total": 1}}});
    node.admin.post("/v1/schedules", schedule).await.expect(201);

    let person = Person::new();
    let config = cluster.path("config.toml");
    std::fs::copy(node.path("config.toml"), &config).unwrap();
    let restored = format!("db restored --config {}", config.display());
    person
        .windrow(&restored)
        .await
        .refused(4, &["the node n1 uses this database", "stop all nodes"]);
    assert_eq!(node.stop().await, Some(0));
    copy(&cluster, "windrow", "saved");

    // What the backup doesn't know: a task, and an item of the open one.
    let node = cluster.node("n1", SOON_SILENT).await;
    let lost = node.task("push", 5, fast.clone()).await;
    node.status(&lost, "finished").await;
    let appended = json!({"items": [{"n": 1}]});
    let items = format!("/v1/tasks/{open}/items");
    node.admin
        .json(
            Method::POST,
            &items,
            &[("idempotency-key", "one")],
            appended.clone(),
        )
        .await
        .expect(201);
    assert_eq!(node.stop().await, Some(0));
    let known = keys(&cluster, &lost);
    assert_eq!(known.len(), 5);
    copy(&cluster, "saved", "windrow");

    let done = person
        .windrow(&format!("{restored} --pause-schedules"))
        .await
        .expect(0);
    let sealed = format!("appended since the backup: {open}");
    for part in [&*sealed, "paused schedules: 1"] {
        assert!(done.stderr.contains(part), "{part:?} is not in\n{}", done.stderr);
    }
    let told = done.stderr.split("new tasks begin at ").nth(1);
    let first_new = told.and_then(|rest| rest.split(':').next()).unwrap();
    let number = |task: &str| task.trim_start_matches('t').parse::<u64>().unwrap();
    assert!(number(first_new) > number(&lost) + 900_000, "{first_new}");

    let node = cluster.node("n1", SOON_SILENT).await;
    let new = node.task("push", 5, fast).await;
    assert_eq!(new, first_new);
    node.status(&new, "finished").await;
    let fresh = keys(&cluster, &new);
    assert_eq!((fresh.len(), fresh.intersection(&known).count()), (5, 0));
    assert_eq!(node.admin.get(&format!("/v1/tasks/{lost}")).await.status, 404);
    node.admin
        .json(Method::POST, &items, &[("idempotency-key", "two")], appended)
        .await
        .problem(409, "task-sealed");
    let schedule = node.admin.get("/v1/schedules/s1").await.expect(200);
    assert_eq!(schedule["paused"], true, "{schedule:#}");
}
