//! A task of several shards: changed before it runs, and explained where a part of its rate finds no room.

use serde_json::{Value, json};

use crate::cluster::{Cluster, until};
use crate::program::Person;

#[tokio::test]
async fn a_shard_whose_larger_part_finds_no_room_is_explained_whoever_is_asked() {
    let cluster = Cluster::new().await;
    let (n1, n2) = (cluster.node("n1", "").await, cluster.node("n2", "").await);
    n1.business("push", &cluster.business.url(), json!({})).await;
    for name in ["n1", "n2"] {
        n1.admin
            .patch(&format!("/v1/nodes/{name}"), json!({"capacity_rate": "100/s"}))
            .await
            .expect(200);
    }
    let task = n2.task("push", 1_000_000, json!({"rate": "150/s"})).await;
    let path = format!("/v1/tasks/{task}");
    let person = Person::admin(&n1);
    let told = person
        .windrow(&format!("task set {task} --shards 2"))
        .await
        .expect(0)
        .stdout;
    assert!(told.contains("shards 1 → 2"), "{told}");
    n1.admin
        .post(&format!("{path}/start"), json!({}))
        .await
        .expect(202);
    let nodes = |view: &Value| -> Vec<String> {
        let shards = view["shard_list"].as_array().unwrap();
        shards
            .iter()
            .filter_map(|shard| shard["node"].as_str().map(str::to_owned))
            .collect()
    };
    let view = until(&n1, &path, "on both", |view| nodes(view).len() == 2).await;
    let owners = nodes(&view);
    assert_ne!(owners[0], owners[1], "each has room for one: {view:#}");
    let changed = n2.admin.patch(&path, json!({"priority": 1})).await.expect(200);
    assert_eq!(nodes(&changed), owners, "a change is answered as a look is");
    let told = n2
        .admin
        .patch(&path, json!({"shards": 3}))
        .await
        .problem(409, "conflict");
    assert!(
        told.to_string().contains("each shard keeps its progress"),
        "{told:#}"
    );
    n2.admin.patch(&path, json!({"shards": 2})).await.expect(200);

    // What the second shard leaves falls to the first one, whose node has 100/s.
    n1.admin
        .post(&format!("{path}/finish"), json!({"total": 400_000}))
        .await
        .expect(202);
    let (first, second) = (format!("{task}.0"), format!("{task}.1"));
    for node in [&n1, &n2] {
        let held = |view: &Value| {
            let shards = &view["shards"];
            // The run of the second shard is over, but its node may still be closing it.
            !shards[0]["held_back"].is_null() && shards[1]["node"].is_null()
        };
        let view = until(node, &format!("{path}/explain"), "held back", held).await;
        let shard = &view["shards"][0];
        assert_eq!(
            (&shard["shard"], &shard["node"]),
            (&json!(first), &json!(owners[0])),
            "{view:#}"
        );
        assert_eq!(
            (&shard["held_back"]["rate"], &shard["held_back"]["wanted"]),
            (&json!("75/s"), &json!("150/s"))
        );
        assert!(
            shard["held_back"]["why"].as_str().unwrap().contains("100/s"),
            "{view:#}"
        );
        assert_eq!(
            (&view["shards"][1]["shard"], &view["shards"][1]["node"]),
            (&json!(second), &json!(null))
        );
    }
    let told = person
        .windrow(&format!("task explain {task}"))
        .await
        .expect(0)
        .stdout;
    let line = format!(
        "held back: {first} on {} has 75/s instead of 150/s: it needs 150/s",
        owners[0]
    );
    assert!(
        told.contains(&line) && told.contains(&format!("on: {} ({first})", owners[0])),
        "{told}"
    );
    let missing = |view: &Value| {
        view["causes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["slug"] == "no_room")
    };
    until(&n2, &format!("{path}/explain?seconds=5"), "a cause", missing).await;
    n2.admin
        .patch(
            &format!("/v1/nodes/{}", owners[0]),
            json!({"capacity_rate": "200/s"}),
        )
        .await
        .expect(200);
    let grown = |view: &Value| view["shards"][0]["held_back"].is_null();
    until(&n2, &format!("{path}/explain"), "grown", grown).await;
}
