//! `/v1/events` of a real node: what it tells of a task, how it goes on after a cut, and whom it stops telling.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::sse::{Events, Told};
use crate::support::{Client, Node};

async fn fails_some() -> Business {
    Business::start(|seen| match seen.items().as_slice() {
        [(index, _)] if index % 10 == 3 => Act::json(
            200,
            json!({"result": "fail", "code": "NO_USER", "message": "gone"}),
        ),
        _ => Act::ok().after(Duration::from_millis(5)),
    })
    .await
}

fn all_of(told: &[Told], kind: &str) -> Vec<Value> {
    told.iter()
        .filter(|one| one.kind == kind)
        .map(|one| one.data["data"].clone())
        .collect()
}

#[tokio::test]
async fn a_stream_tells_of_a_task_from_its_start_to_its_end() {
    let business = fails_some().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node.task("push", 200, json!({"rate": "100/s"})).await;
    let mut events = node
        .admin
        .events(&format!("/v1/events?topics=task:{task}&hz=10"), None)
        .await;
    let first = events.next().await.expect("a first event");
    assert_eq!(
        (first.kind.as_str(), &first.data["data"]["status"]),
        ("snapshot", &json!("created"))
    );
    node.admin
        .post(&format!("/v1/tasks/{task}/start"), json!({"reason": "go"}))
        .await
        .expect(202);
    let told = events
        .until(|one| one.kind == "status" && one.data["data"]["status"] == "finished")
        .await;
    let statuses = all_of(&told, "status");
    assert!(
        statuses.iter().any(|status| status["status"] == "running"),
        "{statuses:#?}"
    );
    assert_eq!(statuses.last().expect("the end")["result"], "with_failures");
    let stats = all_of(&told, "stats");
    assert!(stats.len() > 3, "numbers move: {}", stats.len());
    for numbers in &stats {
        let sum: u64 = numbers["counts"]
            .as_object()
            .expect("counts")
            .values()
            .filter_map(Value::as_u64)
            .sum();
        assert_eq!(sum, 200, "the terms add up at every moment: {numbers:#}");
    }
    let failures = all_of(&told, "failure");
    let newest = failures.last().expect("failures are told");
    assert_eq!(newest["code"], "NO_USER", "{newest:#}");
    assert!(
        all_of(&told, "audit")
            .iter()
            .any(|entry| entry["action"] == "task.start"),
        "{told:#?}"
    );
    let ids: Vec<u64> = told.iter().map(|one| one.id).collect();
    assert!(first.id < ids[0] && ids.is_sorted(), "ids grow: {ids:?}");
    assert!(told.iter().all(|one| one.data["topic"] == format!("task:{task}")));
}

#[tokio::test]
async fn who_was_cut_off_goes_on_where_they_were_and_misses_nothing() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node
        .task("push", 1_000_000, json!({"rate": "50/s", "start": true}))
        .await;
    let path = format!("/v1/events?topics=task:{task}");
    let mut events = node.admin.events(&path, None).await;
    let told = events.until(|one| one.kind == "stats").await;
    let last = told.last().expect("an event").id;
    drop(events);
    node.admin
        .patch(
            &format!("/v1/tasks/{task}"),
            json!({"rate": "60/s", "reason": "cut"}),
        )
        .await
        .expect(200);
    // A second client sees when it is in the ring.
    let mut other = node.admin.events(&path, None).await;
    other
        .until(|one| one.kind == "stats" && one.data["data"]["rate"] == "60/s")
        .await;
    let mut again = node.admin.events(&path, Some(last)).await;
    let told = again
        .until(|one| one.kind == "audit" && one.data["data"]["reason"] == "cut")
        .await;
    assert!(
        told.iter().all(|one| one.kind != "snapshot" && one.id > last),
        "a replay: {told:#?}"
    );
    let mut strange = node.admin.events(&path, Some(u64::MAX)).await;
    assert_eq!(strange.next().await.expect("an event").kind, "snapshot");
}

/// How long a stream goes on after something that should end it.
async fn ends(mut events: Events) -> (Told, Duration) {
    let begun = Instant::now();
    let told = events.until(|one| one.kind == "bye").await;
    assert!(
        events.next().await.is_none(),
        "the connection ends after the goodbye"
    );
    (told.into_iter().next_back().expect("a goodbye"), begun.elapsed())
}

#[tokio::test]
async fn a_stream_ends_when_its_token_is_revoked_and_when_it_expires() {
    let node = Node::start().await;
    let made = node
        .admin
        .post("/v1/tokens", json!({"name": "v", "role": "viewer"}))
        .await
        .expect(201);
    let viewer = Client::new(&node.url, made["token"].as_str());
    let mut events = viewer.events("/v1/events?topics=cluster", None).await;
    assert_eq!(events.next().await.expect("an event").kind, "snapshot");
    let mut stays = node.admin.events("/v1/events?topics=cluster", None).await;
    stays.next().await.expect("an event");
    let id = made["id"].as_i64().map(|id| id.to_string());
    let id = id
        .or_else(|| made["id"].as_str().map(str::to_owned))
        .expect("an id");
    assert_eq!(
        node.admin.delete(&format!("/v1/tokens/{id}")).await.status / 100,
        2
    );
    let (bye, took) = ends(events).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(
        bye.data["data"]["text"]
            .as_str()
            .expect("a text")
            .contains("token"),
        "{bye:?}"
    );

    let soon = (time::OffsetDateTime::now_utc() + Duration::from_secs(2))
        .format(&time::format_description::well_known::Rfc3339)
        .expect("a time");
    let body = json!({"name": "short", "role": "viewer", "expires_at": soon});
    let made = node.admin.post("/v1/tokens", body).await.expect(201);
    let short = Client::new(&node.url, made["token"].as_str());
    let (_, took) = ends(short.events("/v1/events?topics=cluster", None).await).await;
    assert!(took < Duration::from_secs(2 + 5), "{took:?}");
    let told = tokio::time::timeout(Duration::from_millis(10), stays.until(|one| one.kind == "bye")).await;
    assert!(told.is_err(), "others hear on");
}

#[tokio::test]
async fn a_business_hears_of_its_own_tasks_only() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.business("mail", &business.url(), json!({})).await;
    let (mine, theirs) = (
        node.task("push", 5, json!({})).await,
        node.task("mail", 5, json!({})).await,
    );
    let push = node.client("business", Some("push")).await;
    let mut own = push.events(&format!("/v1/events?topics=task:{mine}"), None).await;
    assert_eq!(
        own.next().await.expect("an event").data["data"]["id"],
        json!(mine)
    );
    for topics in [
        format!("task:{theirs}"),
        format!("task:{mine},task:{theirs}"),
        "task:t9999".to_owned(),
    ] {
        push.get(&format!("/v1/events?topics={topics}"))
            .await
            .problem(404, "not-found");
    }
    for topics in ["cluster", "tasks", "node:n1"] {
        push.get(&format!("/v1/events?topics={topics}"))
            .await
            .problem(403, "forbidden");
    }
    push.get(&format!("/v1/events?topics=task:{mine},tasks"))
        .await
        .problem(403, "forbidden");
}
