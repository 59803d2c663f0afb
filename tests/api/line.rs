//! Waiting in line: what doesn't fit says why, and goes as soon as there is room.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::{Node, PATIENCE, Recipe};

fn small() -> Recipe {
    Recipe::new().config("[node]\ncapacity_rate = \"100/s\"\nunlimited_reserves = \"50/s\"")
}

async fn slow(node: &Node) -> Business {
    let business = Business::start(|_| Act::ok().after(Duration::from_millis(50))).await;
    node.business("push", &business.url(), json!({})).await;
    business
}

#[tokio::test]
async fn a_task_over_capacity_waits_and_runs_when_there_is_room() {
    let node = small().start().await;
    let _business = slow(&node).await;
    let first = node
        .task("push", 1_000_000, json!({"rate": "80/s", "start": true}))
        .await;
    node.status(&first, "running").await;
    let second = node
        .task("push", 1_000_000, json!({"rate": "60/s", "start": true}))
        .await;
    let queued = node
        .until(&second, "explained", |view| view["status_reason"] == "capacity")
        .await;
    assert_eq!(queued["status"], "queued");
    assert!(
        queued["status_text"].as_str().unwrap().contains("60/s"),
        "{queued:#}"
    );
    let freed = Instant::now();
    node.admin
        .post(&format!("/v1/tasks/{first}/stop"), json!({"now": true}))
        .await
        .expect(202);
    node.status(&second, "running").await;
    assert!(freed.elapsed() < Duration::from_secs(20), "{:?}", freed.elapsed());
}

#[tokio::test]
async fn a_task_that_never_fits_says_so_and_holds_nobody_up() {
    let node = small().start().await;
    let _business = slow(&node).await;
    let big = node
        .task("push", 10, json!({"rate": "101/s", "start": true, "priority": 9}))
        .await;
    node.until(&big, "explained", |view| view["status_reason"] == "too_big")
        .await;
    let other = node
        .task("push", 10, json!({"rate": "100/s", "start": true}))
        .await;
    node.status(&other, "finished").await;
    node.admin
        .patch(&format!("/v1/tasks/{big}"), json!({"rate": "50/s"}))
        .await
        .expect(200);
    node.status(&big, "finished").await;
}

#[tokio::test]
async fn a_raise_that_does_not_fit_is_refused_with_what_would() {
    let node = small().start().await;
    let _business = slow(&node).await;
    let one = node
        .task("push", 1_000_000, json!({"rate": "70/s", "start": true}))
        .await;
    let two = node
        .task("push", 1_000_000, json!({"rate": "20/s", "start": true}))
        .await;
    node.status(&one, "running").await;
    node.status(&two, "running").await;
    let path = format!("/v1/tasks/{two}");
    let problem = node
        .admin
        .patch(&path, json!({"rate": "31/s"}))
        .await
        .problem(409, "no-capacity");
    assert!(
        problem["max_rate"]
            .as_object()
            .unwrap()
            .values()
            .any(|rate| rate == "30/s"),
        "{problem:#}"
    );
    assert_eq!(
        node.admin.get(&path).await.expect(200)["rate"],
        "20/s",
        "nothing was changed"
    );
    node.admin.patch(&path, json!({"rate": "30/s"})).await.expect(200);
    node.admin
        .patch(&format!("/v1/tasks/{one}"), json!({"rate": "10/s"}))
        .await
        .expect(200);
    node.admin.patch(&path, json!({"rate": "90/s"})).await.expect(200);
}

#[tokio::test]
async fn the_tasks_of_a_business_share_its_limits_at_once() {
    let node = Node::start().await;
    let business = Business::start(|_| Act::ok().after(Duration::from_millis(50))).await;
    let limits = json!({"limits": {"rate": "50/s", "concurrency": 4}, "defaults": {"rate": "10/s"}});
    node.business("push", &business.url(), limits).await;
    let one = node
        .task("push", 1_000_000, json!({"rate": "40/s", "start": true}))
        .await;
    node.status(&one, "running").await;
    let two = node
        .task("push", 1_000_000, json!({"rate": "30/s", "start": true}))
        .await;
    node.status(&two, "running").await;
    let body = json!({"business": "push", "source": {"type": "range", "total": 5}, "rate": "51/s"});
    node.admin
        .post("/v1/tasks", body)
        .await
        .problem(422, "validation-failed");
    let path = format!("/v1/tasks/{one}/explain?seconds=5");
    let held = |view: &Value| {
        view["causes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|cause| cause["slug"] == "limit")
    };
    let begun = Instant::now();
    let explained = loop {
        let explained = node.admin.get(&path).await.expect(200);
        if held(&explained) && explained["limit"]["users"][0]["runs"] == 2 {
            break explained;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "never held by its limit: {explained:#}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(explained["limit"]["name"], "push", "{explained:#}");
    // A lower limit holds for what runs; what a task asks for beyond it is refused.
    node.admin
        .patch("/v1/businesses/push", json!({"limits": {"rate": "30/s"}}))
        .await
        .expect(200);
    let raise = node
        .admin
        .patch(&format!("/v1/tasks/{two}"), json!({"rate": "31/s"}))
        .await;
    assert_eq!(raise.status / 100, 4, "{}", raise.text());
    node.admin
        .post(&format!("/v1/tasks/{one}/stop"), json!({"now": true}))
        .await
        .expect(202);
    assert_eq!(
        node.admin.get(&format!("/v1/tasks/{two}")).await.expect(200)["status"],
        "running"
    );
}

#[tokio::test]
async fn a_node_that_runs_no_tasks_serves_all_the_same_and_says_why_they_wait() {
    let node = Recipe::new().config("[node]\nrun_tasks = false").start().await;
    let _business = slow(&node).await;
    let task = node.task("push", 10, json!({"start": true})).await;
    let queued: Value = node
        .until(&task, "explained", |view| view["status_reason"].is_string())
        .await;
    assert_eq!(
        (&queued["status"], &queued["status_reason"]),
        (&json!("queued"), &json!("no_node")),
        "{queued:#}"
    );
}

#[tokio::test]
async fn a_task_that_rested_for_too_long_says_so_and_a_start_starts_it() {
    let config = "[node]\nrun_tasks = false\n[cluster]\nrestore_window = \"1s\"";
    let node = Recipe::new().config(config).start().await;
    let _business = slow(&node).await;
    let task = node.task("push", 10, json!({"start": true})).await;
    for verb in ["start", "recover"] {
        let asleep = node
            .until(&task, "dormant", |view| view["status_reason"] == "dormant")
            .await;
        assert_eq!(asleep["status"], "queued", "{asleep:#}");
        let text = asleep["status_text"].as_str().unwrap();
        assert!(
            text.contains("cluster.restore_window") && text.ends_with("start it"),
            "{text}"
        );
        node.admin
            .post(&format!("/v1/tasks/{task}/{verb}"), json!({}))
            .await
            .expect(202);
        node.until(&task, "awake", |view| view["status_reason"] != "dormant")
            .await;
    }
}

#[tokio::test]
async fn a_task_does_not_begin_before_its_time_and_ends_at_its_deadline() {
    let node = Node::start().await;
    let business = slow(&node).await;
    let far = "2999-01-01T00:00:00Z";
    let later = node
        .task("push", 10, json!({"start": true, "start_at": far}))
        .await;
    let waiting = node
        .until(&later, "explained", |view| view["status_reason"] == "start_at")
        .await;
    assert_eq!(waiting["status"], "queued", "{waiting:#}");
    let soon = (time::OffsetDateTime::now_utc() + Duration::from_secs(2))
        .format(&time::format_description::well_known::Rfc3339)
        .unwrap();
    let short = node
        .task("push", 1_000_000, json!({"start": true, "deadline": soon}))
        .await;
    let stopped = node.status(&short, "stopped").await;
    assert_eq!(stopped["stop_reason"], "deadline", "{stopped:#}");
    assert!(!business.items().is_empty());
}
