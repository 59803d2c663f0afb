//! Tasks of several shards over HTTP, in one real node: one task in everything that is shown of it.

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::{Node, merge};

fn shards(task: &Value) -> &Vec<Value> {
    task["shard_list"].as_array().expect("a list")
}

#[tokio::test]
async fn a_task_of_four_shards_runs_as_one_and_proves_itself() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(7 | 311, _)] => Act::json(
            200,
            json!({"result": "fail", "code": "NO_USER", "message": "gone"}),
        ),
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node
        .task("push", 402, json!({"rate": "200/s", "shards": 4, "start": true}))
        .await;
    let path = format!("/v1/tasks/{task}");
    let shown = node.admin.get(&path).await.expect(200);
    assert_eq!(
        (&shown["shards"], shards(&shown).len()),
        (&json!(4), 4),
        "{shown:#}"
    );
    let ranges: Vec<(u64, u64)> = shards(&shown)
        .iter()
        .map(|shard| {
            (
                shard["first"].as_u64().expect("a number"),
                shard["end"].as_u64().expect("a number"),
            )
        })
        .collect();
    assert_eq!(ranges, [(0, 101), (101, 202), (202, 302), (302, 402)]);
    let ended = node.status(&task, "finished").await;
    assert_eq!(ended["result"], "with_failures");
    assert_eq!(
        (&ended["counts"]["succeeded"], &ended["counts"]["failed"]),
        (&json!(400), &json!(2))
    );
    assert!(
        shards(&ended)
            .iter()
            .all(|shard| shard["state"] == "done" && shard["rate_share"] == 0.0)
    );
    let report = node.admin.get(&format!("{path}/report")).await.expect(200);
    assert_eq!(report["shards"].as_array().map(Vec::len), Some(4), "{report:#}");
    assert!(!report.to_string().contains("\"holds\":false"), "{report:#}");
    let runs = node.admin.get(&format!("{path}/runs")).await.expect(200);
    assert_eq!(runs["items"].as_array().map(Vec::len), Some(4), "{runs:#}");
    let failure = node.admin.get(&format!("{path}/items/311")).await.expect(200);
    assert_eq!(failure["state"], "failed", "{failure:#}");
}

#[tokio::test]
async fn shards_that_can_not_share_the_settings_are_refused_with_what_would_do() {
    let node = Node::start().await;
    node.business("push", "http://127.0.0.1:9/items", json!({})).await;
    let body = |more: Value| {
        let mut body =
            json!({"business": "push", "source": {"type": "range", "total": 100}, "rate": "100/s"});
        merge(&mut body, more);
        body
    };
    let refused = node
        .admin
        .post("/v1/tasks", body(json!({"shards": 4, "burst": "5 items"})))
        .await
        .expect(422);
    assert!(refused.to_string().contains("shared by 4 shards"), "{refused:#}");
    let refused = node
        .admin
        .post("/v1/tasks", body(json!({"shards": 2, "ordered": true})))
        .await
        .expect(422);
    assert!(
        refused.to_string().contains("an ordered task has one shard"),
        "{refused:#}"
    );
    node.admin
        .post("/v1/tasks", body(json!({"shards": 257})))
        .await
        .expect(422);
    let made = node
        .admin
        .post("/v1/tasks", body(json!({"shards": "auto"})))
        .await
        .expect(201);
    assert_eq!((&made["shards"], shards(&made).len()), (&json!("auto"), 1));
}
