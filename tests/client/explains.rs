//! `windrow task explain`.

use std::time::Duration;

use serde_json::json;

use crate::business::{Act, Business};
use crate::program::Person;
use crate::support::{Node, Recipe};

/// A node with a task that its small window holds back, and enough seconds of it to say so.
async fn held_back() -> (Business, Node) {
    let business = Business::start(|_| Act::ok().after(Duration::from_millis(100))).await;
    let node = Recipe::new().start().await;
    node.business("push", &business.url(), json!({})).await;
    let settings =
        json!({"name": "slow", "rate": "100/s", "window": 4, "error_budget": "none", "start": true});
    node.task("push", 1_000_000, settings).await;
    let begun = std::time::Instant::now();
    loop {
        let answer = node.admin.get("/v1/tasks/t1/explain?seconds=5").await.expect(200);
        if answer["advice"][0]["change"]["window"].is_u64() {
            return (business, node);
        }
        assert!(
            begun.elapsed() < crate::support::PATIENCE,
            "never advised: {answer:#}"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn people_read_the_nodes_text_and_scripts_its_body() {
    let (_business, node) = held_back().await;
    let person = Person::admin(&node);
    let text = person
        .windrow("task explain push/slow --seconds 5")
        .await
        .expect(0)
        .stdout;
    assert!(text.starts_with("target 100.0/s   actual "), "{text}");
    for part in [
        "\n  window full ",
        "\nwhy: ",
        "\ntry: windrow task set t1 --window ",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let body = person
        .windrow("task explain t1 --seconds 5 -o json")
        .await
        .expect(0);
    assert_eq!(body.json()["causes"][0]["slug"], "window_full", "{}", body.stdout);
    let causes = person
        .windrow("task explain t1 --seconds 5 -o csv")
        .await
        .expect(0)
        .stdout;
    assert!(
        causes.starts_with("cause,rate,share,text\nwindow_full,"),
        "{causes}"
    );
    person
        .windrow("task explain t1 --seconds 1")
        .await
        .refused(7, &["seconds"]);
    person.windrow("task explain t9").await.refused(3, &["t9"]);
    assert_eq!(person.windrow("task explain t1 --reason x").await.code, Some(2));
}

#[tokio::test]
async fn the_advice_is_applied_after_a_yes_only() {
    let (_business, node) = held_back().await;
    let person = Person::admin(&node);
    let unasked = person
        .windrow("task explain t1 --seconds 5 --apply")
        .await
        .expect(2);
    assert!(
        unasked.stderr.contains("Change t1: window 4 → "),
        "{}",
        unasked.stderr
    );
    let plan = person
        .windrow("task explain t1 --seconds 5 --apply --dry-run")
        .await
        .expect(0);
    assert!(plan.stderr.contains("dry run"), "{}", plan.stderr);
    assert_eq!(node.admin.get("/v1/tasks/t1").await.expect(200)["window"], 4);
    let done = person
        .windrow("task explain t1 --seconds 5 --apply --yes")
        .await
        .expect(0);
    assert!(
        done.stdout.contains("\nchanged t1: window 4 → "),
        "{}",
        done.stdout
    );
    node.until("t1", "changed", |task| task["window"].as_u64() > Some(4))
        .await;
    let revisions = node.admin.get("/v1/tasks/t1/revisions").await.expect(200);
    assert_eq!(revisions["items"][0]["reason"], "explain", "{revisions:#}");
}

#[tokio::test]
async fn where_no_change_helps_nothing_is_applied() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 5, json!({})).await;
    let person = Person::admin(&node);
    let done = person.windrow("task explain t1 --apply --yes").await.expect(0);
    assert!(done.stderr.contains("nothing to apply"), "{}", done.stderr);
}
