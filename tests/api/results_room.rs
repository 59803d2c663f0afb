//! Results that won't fit where they are kept are told before it is full, wherever one looks.

use serde_json::json;

use crate::business::{Act, Business};
use crate::support::Node;

#[tokio::test]
async fn results_that_will_not_fit_are_told_by_task_explain_and_metrics() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(index, _)] => Act::json(200, json!({"result": "ok", "output": format!("item {index}")})),
        _ => Act::status(500),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    // No disk has room for as many.
    let settings = json!({"start": true, "rate": "1000/s", "results": "keep", "shards": 1});
    let task = node.task("push", 1 << 60, settings).await;
    let settings = json!({"start": true, "rate": "500/s", "results": "keep"});
    let few = node.task("push", 5000, settings).await;
    let warned = node
        .until(&task, "warned of", |view| {
            view["warnings"][0]["code"] == "results_room"
        })
        .await;
    let warning = &warned["warnings"][0];
    assert_eq!(warning["pointer"], "/results", "{warning:#}");
    assert!(
        warning["advice"]
            .as_str()
            .is_some_and(|advice| advice.contains("nothing is lost"))
    );
    let explained = node
        .admin
        .get(&format!("/v1/tasks/{task}/explain"))
        .await
        .expect(200);
    let why = explained["why"].as_str().expect("a sentence");
    assert!(
        why.contains("the results of the remaining items need about"),
        "{why}"
    );
    let page = node.admin.get("/metrics").await.text();
    let number = |name: &str| -> f64 {
        let line = page
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_else(|| panic!("no {name}"));
        line.rsplit_once(' ')
            .expect("a number")
            .1
            .parse()
            .expect("a number")
    };
    let needed = number(&format!("windrow_task_results_needed_bytes{{task=\"{task}\"}}"));
    assert!(needed > number("windrow_results_free_bytes "), "{page}");
    assert!(number(&format!("windrow_task_results_bytes{{task=\"{task}\"}}")) > 0.0);
    let small = node
        .until(&few, "under way", |view| {
            view["counts"]["succeeded"].as_u64() > Some(500)
        })
        .await;
    assert!(small["warnings"].is_null(), "it fits: {small:#}");
}
