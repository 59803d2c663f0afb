//! The window of a task, as the façade shows it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::Node;

/// The letters of the cells, one for each.
fn cells(shard: &Value) -> String {
    let (mut all, mut letter) = (String::new(), ' ');
    let mut count = String::new();
    for c in shard["cells"].as_str().expect("a text").chars().chain(['.']) {
        if c.is_ascii_digit() {
            count.push(c);
            continue;
        }
        let times = count.parse().unwrap_or(0);
        all.extend(std::iter::repeat_n(letter, times));
        (letter, count) = (c, String::new());
    }
    all
}

async fn until(node: &Node, path: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let answer = node.admin.get(path).await.expect(200);
        if fits(&answer["shards"][0]) {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{answer:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_window_shows_what_holds_it_who_waits_and_who_was_given_up() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(0, _)] => Act::ok().after(Duration::from_secs(120)),
        [(2, _)] => Act::json(
            200,
            json!({"result": "fail", "code": "NO_USER", "message": "gone"}),
        ),
        [(4, _)] => Act::status(500),
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let retry = json!({"backoff": "10m..10m x1 jitter 0%"});
    let more = json!({"rate": "200/s", "timeout": "150s", "window": 64, "concurrency": 8, "retry": retry,
        "start": true});
    let task = node.task("push", 1_000, more).await;
    let path = format!("/v1/tasks/{task}/window");
    let all = |shard: &Value| cells(shard).starts_with("FSASKS");
    let answer = until(&node, &path, |shard| all(shard) && shard["high_water"] == 64).await;
    let shard = &answer["shards"][0];
    assert_eq!(
        (&shard["watermark"], &shard["capacity"], &answer["reason"]),
        (&json!(0), &json!(64), &json!(null))
    );
    assert_eq!(
        (cells(shard).len(), &shard["items_per_cell"]),
        (64, &json!(1)),
        "{answer:#}"
    );
    let head = &shard["head"];
    assert_eq!(
        (&head["index"], &head["attempt"], &head["state"]),
        (&json!(0), &json!(1), &json!("in_flight"))
    );
    assert!(head["age_seconds"].as_f64() > Some(0.0), "{head:#}");
    let coarse = node.admin.get(&format!("{path}?cells=4")).await.expect(200);
    let shard = &coarse["shards"][0];
    assert_eq!(
        (&shard["items_per_cell"], cells(shard).len()),
        (&json!(16), 4),
        "{coarse:#}"
    );
    assert!(cells(shard).starts_with('A'), "the worst of sixteen: {coarse:#}");
    for wrong in ["cells=0", "cells=20001", "cells=x", "cell=4"] {
        node.admin
            .get(&format!("{path}?{wrong}"))
            .await
            .problem(400, "invalid-request");
    }
}

#[tokio::test]
async fn a_task_that_does_not_run_shows_where_it_stood_and_why_no_more() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node.task("push", 10, json!({"skip_first": 3})).await;
    let path = format!("/v1/tasks/{task}/window");
    let answer = node.admin.get(&path).await.expect(200);
    let rests = json!({"shard": 0, "watermark": 3, "high_water": 3, "capacity": null, "items_per_cell": 1,
        "cells": "", "head": null, "node": null});
    assert_eq!(
        answer,
        json!({"shards": [rests], "reason": "not_running_here", "unreachable": []})
    );
    node.admin
        .get("/v1/tasks/t999/window")
        .await
        .problem(404, "not-found");
    node.admin
        .post(&format!("/v1/tasks/{task}/start"), json!({}))
        .await
        .expect(202);
    node.status(&task, "finished").await;
    let answer = until(&node, &path, |shard| shard["capacity"].is_null()).await;
    assert_eq!(
        (
            &answer["shards"][0]["watermark"],
            &answer["shards"][0]["high_water"]
        ),
        (&json!(10), &json!(10))
    );
}

#[tokio::test]
async fn a_task_that_stopped_shows_what_was_saved() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(1 | 5, _)] => Act::status(500),
        [(3, _)] => Act::json(
            200,
            json!({"result": "fail", "code": "NO_USER", "message": "gone"}),
        ),
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    // Waits that are too short to be parked, and too long to be over here.
    let retry = json!({"backoff": "10m..10m x1 jitter 0%"});
    let more = json!({"rate": "100/s", "window": 64, "retry": retry, "park_after": "1h", "start": true});
    let task = node.task("push", 20, more).await;
    node.until(&task, "all but two", |view| {
        view["counts"]["succeeded"].as_u64() == Some(17)
    })
    .await;
    node.admin
        .post(&format!("/v1/tasks/{task}/stop"), json!({}))
        .await
        .expect(202);
    node.status(&task, "stopped").await;
    let answer = node
        .admin
        .get(&format!("/v1/tasks/{task}/window"))
        .await
        .expect(200);
    let shard = &answer["shards"][0];
    assert_eq!(answer["reason"], "not_running_here", "{answer:#}");
    assert_eq!(
        (&shard["watermark"], &shard["high_water"], &shard["capacity"]),
        (&json!(1), &json!(20), &json!(null))
    );
    assert_eq!(shard["cells"], "P1S1A1S1P1S14", "{answer:#}");
}
