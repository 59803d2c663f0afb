//! Every number that several surfaces show is one number: computed by the node, at one moment.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::program::Person;
use crate::sse::Told;
use crate::support::{Client, Node};

/// The rate of the task, and what may leave at once.
const RATE: f64 = 60.0;
const BURST: f64 = 5.0;
/// The handler answers everything at once, so often: more settles in some seconds than the rate lets leave.
const ANSWERS_EVERY: Duration = Duration::from_millis(1700);

/// A handler that stalls again and again, and a task of it that runs.
async fn stalling() -> (Business, Node, Person) {
    let begun = Instant::now();
    let business = Business::start(move |_| {
        let into = begun.elapsed().as_millis() % ANSWERS_EVERY.as_millis();
        Act::ok().after(ANSWERS_EVERY - Duration::from_millis(into as u64))
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let more = json!({"rate": "60/s", "burst": "5 items", "concurrency": 1000, "start": true});
    node.task("push", 1_000_000, more).await;
    node.until("t1", "measured", |task| task["actual_rate"].as_f64() > Some(0.0))
        .await;
    let person = Person::admin(&node);
    (business, node, person)
}

async fn task(node: &Node) -> Value {
    node.admin.get("/v1/tasks/t1").await.expect(200)
}

async fn first(node: &Node, topic: &str) -> Told {
    let path = format!("/v1/events?topics={topic}");
    let mut events = node.admin.events(&path, None).await;
    events.next().await.expect("a snapshot")
}

/// The rate as a surface shows it.
async fn shown(node: &Node, person: &Person, surface: &str) -> Value {
    match surface {
        "task list" => person.windrow("task list -o json").await.expect(0).json()["items"][0].clone(),
        "task show" => person.windrow("task show t1 -o json").await.expect(0).json(),
        "the overview" => first(node, "tasks").await.data["data"]["tasks"][0].clone(),
        "the task's page" => first(node, "task:t1").await.data["data"].clone(),
        "task watch" => {
            let mut watch = person.start(&["task", "watch", "t1", "-o", "ndjson"]);
            let line = watch.line().await;
            serde_json::from_str::<Value>(&line).expect("an event")["data"].clone()
        }
        _ => {
            let page = Client::new(&node.url, None).get("/metrics").await.text();
            let line = page
                .lines()
                .find(|line| line.starts_with("windrow_task_actual_rate{"));
            let rate = line.and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
            json!({ "actual_rate": rate })
        }
    }
}

#[tokio::test]
async fn all_surfaces_show_one_rate_and_none_shows_more_than_is_allowed() {
    let (_business, node, person) = stalling().await;
    for surface in [
        "task list",
        "task show",
        "the overview",
        "the task's page",
        "task watch",
        "/metrics",
    ] {
        // A sample is taken each second: what was asked in between is of the same one.
        let (before, told) = loop {
            let before = task(&node).await["actual_rate"].clone();
            let told = shown(&node, &person, surface).await["actual_rate"].clone();
            if task(&node).await["actual_rate"] == before {
                break (before, told);
            }
        };
        assert_eq!(told, before, "{surface}");
    }
    let mut events = node.admin.events("/v1/events?topics=task:t1&hz=4", None).await;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(6) {
        let told = events.next().await.expect("it goes on").data["data"].clone();
        assert!(told["actual_rate"].as_f64() <= Some(RATE + BURST), "{told:#}");
    }
    let series = node.admin.get("/v1/tasks/t1/stats").await.expect(200)["series"].clone();
    let sent: Vec<f64> = serde_json::from_value(series["sent"].clone()).expect("numbers");
    let settled: Vec<f64> = serde_json::from_value(series["rate"].clone()).expect("numbers");
    assert!(sent.iter().all(|sent| *sent <= RATE + BURST), "{series:#}");
    assert!(
        settled.iter().any(|settled| *settled > RATE + BURST),
        "the handler answered in bursts: {series:#}"
    );
}

#[tokio::test]
async fn a_finish_before_the_end_has_one_percentage() {
    let (_business, node, person) = stalling().await;
    node.until("t1", "under way", |task| {
        task["counts"]["succeeded"].as_u64() > Some(0)
    })
    .await;
    node.admin
        .post("/v1/tasks/t1/finish", json!({}))
        .await
        .expect(202);
    let ended = node.status("t1", "finished").await;
    let (progress, counts) = (&ended["progress"], &ended["counts"]);
    assert_eq!(
        (&progress["percent"], &progress["of"]),
        (&json!(100.0), &counts["succeeded"])
    );
    for surface in ["task list", "task show", "the overview", "the task's page"] {
        assert_eq!(
            shown(&node, &person, surface).await["progress"],
            *progress,
            "{surface}"
        );
    }
    let listed = person.windrow("task list").await.expect(0).stdout;
    assert!(listed.contains("100%"), "{listed}");
}

#[tokio::test]
async fn a_task_that_waits_for_items_or_for_its_time_is_no_fault_and_has_not_run() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    let open = json!({"business": "push", "open": true, "rate": "60/s", "start": true});
    node.admin.post("/v1/tasks", open).await.expect(201);
    let waits = |task: &Value| task["live"]["stall"] == "items";
    let view = node.until("t1", "waiting for items", waits).await;
    assert!(
        view["started_at"].is_string() && view["eta_seconds"].is_null(),
        "{view:#}"
    );
    let later = json!({"start_at": "2999-01-01T00:00:00Z", "start": true});
    let queued = node.task("push", 5, later).await;
    assert_eq!(node.status(&queued, "queued").await["started_at"], Value::Null);
    let listed = person.windrow("task list -o wide").await.expect(0).stdout;
    assert!(listed.contains("running (waiting for items)"), "{listed}");
    let shown = person.windrow("task show t1").await.expect(0).stdout;
    assert!(!shown.contains("limited by"), "{shown}");
    let shown = person.windrow("task show t2").await.expect(0).stdout;
    assert!(!shown.contains("\n  started"), "{shown}");
}
