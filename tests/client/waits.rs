//! `windrow task wait`.

use rustix::process::Signal;
use serde_json::json;

use crate::business::{Act, Business};
use crate::program::{Person, settled};
use crate::support::Node;

#[tokio::test]
async fn a_wait_ends_as_the_task_does() {
    let business = Business::start(|seen| match seen.items().contains(&(3, 1)) {
        true => Act::json(200, json!({"result": "fail", "code": "BAD"})),
        false => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 3, json!({"name": "good", "start": true})).await;
    node.task("push", 5, json!({"start": true})).await;
    node.task("push", 5, json!({})).await;
    node.admin
        .post("/v1/tasks/t3/cancel", json!({}))
        .await
        .expect(202);
    let person = Person::admin(&node);
    let good = person.windrow("task wait push/good").await.expect(0);
    let line = "push/good  t1  ✓ finished  100%  succeeded 3  skipped 0  failed 0  in flight 0  pending 0\n";
    assert_eq!(good.stdout, line);
    assert!(
        person
            .windrow("task wait t2")
            .await
            .expect(8)
            .stdout
            .contains("failed 1")
    );
    assert!(
        person
            .windrow("task wait t3")
            .await
            .expect(9)
            .stdout
            .contains("cancelled")
    );
    let all = person.windrow("task wait t1 t2 t3 -o name").await.expect(9);
    assert_eq!(all.stdout.lines().count(), 3, "{}", all.stdout);
    assert_eq!(
        person.windrow("task wait t1 -o json").await.expect(0).json()["status"],
        "finished"
    );
    person.windrow("task wait t9").await.refused(3, &["t9"]);
}

/// A task that takes a day.
async fn long_task() -> (Business, Node) {
    let (business, node) = (Business::willing().await, Node::start().await);
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 1_000_000, json!({"rate": "10/s", "start": true}))
        .await;
    (business, node)
}

#[tokio::test]
async fn a_wait_has_an_end_of_its_own_and_other_goals() {
    let (_business, node) = long_task().await;
    let person = Person::admin(&node);
    assert!(
        person
            .windrow("task wait t1 --for running")
            .await
            .expect(0)
            .stdout
            .contains("running")
    );
    let late = person.windrow("task wait t1 --timeout 300ms").await.expect(10);
    assert!(
        late.stdout.contains("▶ running")
            && late
                .stderr
                .contains("hint: the wait timed out; the task continues"),
        "{late:?}"
    );
    person
        .windrow("task wait t1 --timeout 0s --quiet")
        .await
        .expect(10);
    let stopped = async {
        let waits = person.windrow("task wait t1 --for stopped");
        let stops = node.admin.post("/v1/tasks/t1/stop", json!({}));
        tokio::join!(waits, stops).0.expect(0)
    };
    assert!(stopped.await.stdout.contains("■ stopped"));
    person.windrow("task wait t1").await.expect(9);
}

#[tokio::test]
async fn a_long_wait_says_how_far_the_task_is() {
    let (_business, node) = long_task().await;
    let person = Person::admin(&node);
    let mut waits = person.start(&["task", "wait", "t1", "--timeout", "30s"]);
    waits.tells("waiting for t1  ▶ running  0.0%  ").await;
    waits.signal(Signal::INT);
    let told = waits.ended().await.expect(130);
    assert!(told.stderr.contains(" / 1,000,000  "), "{}", told.stderr);
}

#[tokio::test]
async fn a_wait_for_a_task_that_nobody_started_says_so_once_and_goes_on() {
    let (business, node) = (Business::willing().await, Node::start().await);
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 2, json!({})).await;
    let person = Person::admin(&node);
    let mut waits = person.start(&["task", "wait", "t1", "--timeout", "30s"]);
    waits
        .tells("t1 isn't started; windrow task start t1 starts it")
        .await;
    node.admin.post("/v1/tasks/t1/start", json!({})).await.expect(202);
    let told = waits.ended().await.expect(0);
    assert_eq!(told.stderr.matches("isn't started").count(), 1, "{}", told.stderr);
}

#[tokio::test]
async fn a_wait_survives_the_restart_of_its_node() {
    let business = Business::willing().await;
    let recipe = settled();
    let node = recipe.start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 40, json!({"rate": "4/s", "start": true})).await;
    let person = Person::admin(&node);
    let mut waits = person.start(&["task", "wait", "t1", "--request-timeout", "90s"]);
    node.until("t1", "under way", |task| {
        task["counts"]["succeeded"].as_u64() > Some(2)
    })
    .await;
    node.stop().await;
    waits.tells("the node is unreachable").await;
    let _node = recipe.start().await;
    waits.tells("the node is back").await;
    let done = waits.ended().await.expect(0);
    assert!(done.stdout.contains("succeeded 40"), "{done:?}");
}

#[tokio::test]
async fn who_was_never_there_is_told_at_once() {
    let person = Person::new().env("WINDROW_SERVER", "http://127.0.0.1:1");
    person.windrow("task wait t1").await.refused(6, &["127.0.0.1:1"]);
}

#[tokio::test]
async fn an_interrupted_wait_leaves_the_task_alone() {
    let (_business, node) = long_task().await;
    let person = Person::admin(&node);
    let mut child = person.start(&["task", "wait", "t1", "-v"]);
    child.tells("/v1/tasks/t1").await;
    child.signal(Signal::INT);
    let done = child.ended().await.expect(130);
    assert!(
        done.stderr.contains("only the wait ended; t1 continues"),
        "{}",
        done.stderr
    );
    assert_eq!(node.status("t1", "running").await["status"], "running");
}
