//! The four hooks: what a business hears, and what its answers do.

use serde_json::json;

use crate::business::{Act, Business};
use crate::support::{Client, Node};

#[tokio::test]
async fn a_business_may_refuse_a_task_and_its_words_are_shown() {
    let business = Business::start(|seen| match seen.kind() {
        "task.validate" => Act::json(422, json!({"message": "no campaign on Sundays"})),
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({"hooks": {"validate": {}}}))
        .await;
    let body = json!({"business": "push", "source": {"type": "range", "total": 5}});
    let problem = node
        .admin
        .post("/v1/tasks", body.clone())
        .await
        .problem(422, "business-rejected");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("no campaign on Sundays"),
        "{problem:#}"
    );
    let listed = node.admin.get("/v1/tasks").await.expect(200);
    assert_eq!(
        listed["items"].as_array().map(Vec::len),
        Some(0),
        "nothing was made"
    );
    business.becomes(|_| Act::json(200, json!({"total": 3})));
    let made = node.admin.post("/v1/tasks", body).await.expect(201);
    assert_eq!(made["total"], 3, "the business said how many: {made:#}");
}

#[tokio::test]
async fn a_task_waits_until_the_business_is_ready_and_only_the_present_start_counts() {
    let business = Business::start(|seen| match seen.kind() {
        "task.prepare" => Act::status(202),
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    node.business(
        "push",
        &business.url(),
        json!({"hooks": {"prepare": {"timeout": "5m"}}}),
    )
    .await;
    let task = node.task("push", 10, json!({"start": true})).await;
    let waiting = node.status(&task, "awaiting_business").await;
    assert!(
        waiting["next"]["at"].is_string(),
        "what happens, and when: {waiting:#}"
    );
    let token = |nth: usize| {
        let business = business.clone();
        async move {
            loop {
                if let Some(seen) = business.of_kind("task.prepare").get(nth) {
                    return seen.body["start_token"].as_str().expect("a token").to_owned();
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
    };
    let old = token(0).await;
    node.admin
        .post(&format!("/v1/tasks/{task}/stop"), json!({}))
        .await
        .expect(202);
    node.status(&task, "stopped").await;
    node.admin
        .post(&format!("/v1/tasks/{task}/start"), json!({}))
        .await
        .expect(202);
    let new = token(1).await;
    assert_ne!(old, new);
    let ready = format!("/v1/tasks/{task}/ready");
    let late = Client::new(&node.url, Some(&old)).post(&ready, json!({})).await;
    assert!(matches!(late.status, 401 | 409), "{}", late.text());
    let answer = Client::new(&node.url, Some(&new))
        .post(&ready, json!({"total": 25}))
        .await;
    assert_eq!(answer.status, 202, "{}", answer.text());
    let done = node.status(&task, "finished").await;
    assert_eq!(
        (&done["total"], &done["counts"]["succeeded"]),
        (&json!(25), &json!(25)),
        "{done:#}"
    );
}

#[tokio::test]
async fn a_ready_business_starts_at_once_and_hears_of_the_end_once_delivered() {
    let business = Business::start(|seen| match (seen.kind(), seen.header("webhook-id")) {
        ("task.prepare", _) => Act::json(200, json!({})),
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    let hooks = json!({"hooks": {"prepare": {}, "stopped": {}, "finished": {}}});
    node.business("push", &business.url(), hooks).await;
    let task = node.task("push", 10, json!({"start": true})).await;
    node.status(&task, "finished").await;
    let heard = |kind: &'static str| {
        let business = business.clone();
        async move {
            loop {
                if let Some(seen) = business.of_kind(kind).first() {
                    return seen.clone();
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
    };
    let finished = heard("task.finished").await;
    assert_eq!(finished.task(), task);
    assert_eq!(finished.body["result"], "succeeded", "{}", finished.body);
    assert!(
        !finished.header("webhook-signature").is_empty(),
        "hooks are signed"
    );
    assert!(business.of_kind("task.stopped").is_empty());
}

#[tokio::test]
async fn a_hook_that_fails_is_delivered_again_with_the_same_id() {
    let failures = std::sync::atomic::AtomicU32::new(0);
    let business = Business::start(move |seen| match seen.kind() {
        "task.finished" if failures.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 2 => {
            Act::status(503)
        }
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({"hooks": {"finished": {}}}))
        .await;
    let task = node.task("push", 3, json!({"start": true})).await;
    node.status(&task, "finished").await;
    let calls = loop {
        let calls = business.of_kind("task.finished");
        if calls.len() == 3 {
            break calls;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    let ids: Vec<&str> = calls.iter().map(|seen| seen.header("webhook-id")).collect();
    assert!(ids.iter().all(|id| *id == ids[0] && !id.is_empty()), "{ids:?}");
}
