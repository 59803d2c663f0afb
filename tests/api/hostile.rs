//! What a hostile or clumsy client does, and that it gets a problem instead of what it wanted.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::Method;
use serde_json::json;

use crate::business::{Act, Business};
use crate::support::{Client, Node, Recipe};

async fn node_with_business() -> (Node, Business) {
    let node = Node::start().await;
    let business = Business::willing().await;
    node.business("push", &business.url(), json!({})).await;
    (node, business)
}

#[tokio::test]
async fn a_method_that_a_path_does_not_take_is_405_and_says_which_it_takes() {
    let node = Node::start().await;
    for (method, path) in [
        ("PUT", "/v1/tasks"),
        ("OPTIONS", "/v1/tasks"),
        ("FOO", "/v1/tasks"),
        ("GET", "/v1/tokens/1"),
    ] {
        for client in [&node.admin, &Client::new(&node.url, None)] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let answer = client.send(method.clone(), path, &[], Bytes::new()).await;
            assert!(
                answer.header("allow").is_some_and(|allow| !allow.is_empty()),
                "{method} {path}: {answer:?}"
            );
            answer.problem(405, "method-not-allowed");
        }
    }
}

#[tokio::test]
async fn no_change_skips_more_items_than_there_are() {
    let (node, _business) = node_with_business().await;
    let task = node.task("push", 100, json!({})).await;
    let path = format!("/v1/tasks/{task}");
    for skip in [101, 1 << 62, i64::MAX as u64 + 1, u64::MAX] {
        let problem = node
            .admin
            .patch(&path, json!({"skip_first": skip}))
            .await
            .problem(409, "conflict");
        assert_eq!(problem["errors"][0]["pointer"], "/skip_first", "{problem:#}");
    }
    node.admin
        .patch(&path, json!({"total": 50, "skip_first": 51}))
        .await
        .problem(409, "conflict");
    let view = node.admin.get(&path).await.expect(200);
    assert_eq!(
        (&view["skip_first"], &view["counts"]["pending"]),
        (&json!(0), &json!(100))
    );
    let changed = node
        .admin
        .patch(&path, json!({"total": 50, "skip_first": 50}))
        .await
        .expect(200);
    assert_eq!(
        (&changed["counts"]["excluded"], &changed["counts"]["pending"]),
        (&json!(50), &json!(0))
    );
}

#[tokio::test]
async fn who_waits_for_a_change_does_not_hold_up_the_end_of_the_node() {
    let (node, _business) = node_with_business().await;
    let task = node.task("push", 5, json!({})).await;
    let tag = node
        .admin
        .get(&format!("/v1/tasks/{task}"))
        .await
        .header("etag")
        .unwrap()
        .replace('"', "%22");
    let path = format!("/v1/tasks/{task}?wait=60s&unless={tag}");
    let client = node.admin.clone();
    let waits = tokio::spawn(async move { client.get(&path).await });
    // That the request arrived can be seen nowhere; if it did not, the test only proves less.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let begun = Instant::now();
    assert_eq!(node.stop().await, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    assert_eq!(waits.await.unwrap().expect(200)["id"], json!(task));
}

#[tokio::test]
async fn a_stream_ends_soon_after_its_token_was_revoked() {
    let node = Node::start().await;
    let made = node
        .admin
        .post("/v1/tokens", json!({"name": "ann", "role": "viewer"}))
        .await
        .expect(201);
    let client = Client::new(&node.url, made["token"].as_str());
    let listens = tokio::spawn(async move { client.get("/v1/events?topics=cluster,tasks").await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let gone = node.admin.delete(&format!("/v1/tokens/{}", made["id"])).await;
    assert_eq!(gone.status, 204, "{}", gone.text());
    let begun = Instant::now();
    let heard = listens.await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let text = heard.text();
    assert!(
        heard.status == 401 || text.contains("event: bye") && text.contains("the token is no longer valid"),
        "{text}"
    );
}

#[tokio::test]
async fn a_start_token_is_told_of_no_other_task_of_its_business() {
    let node = Node::start().await;
    let business = Business::start(|call| match call.kind() {
        "task.prepare" => Act::status(202),
        _ => Act::ok(),
    })
    .await;
    node.business("push", &business.url(), json!({"hooks": {"prepare": {}}}))
        .await;
    let other = node.task("push", 5, json!({})).await;
    let own = node.task("push", 5, json!({"start": true})).await;
    let call = loop {
        if let Some(call) = business.of_kind("task.prepare").pop() {
            break call;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let token = Client::new(&node.url, call.body["start_token"].as_str());
    let all = node.client("business", Some("push")).await;
    let line = json!({"entries": [{"level": "warn", "message": "of another task"}]});
    all.post(&format!("/v1/tasks/{other}/logs"), line)
        .await
        .expect(202);
    let seen = all.get("/v1/logs").await.expect(200);
    assert_eq!(
        seen["items"][0]["task"],
        json!(other),
        "the business sees it: {seen:#}"
    );
    assert_eq!(token.get("/v1/logs").await.expect(200)["items"], json!([]));
    token.get("/v1/tasks").await.problem(403, "forbidden");
    token.get(&format!("/v1/tasks/{own}")).await.expect(200);
    token
        .post(&format!("/v1/tasks/{own}/clone"), json!({}))
        .await
        .problem(403, "forbidden");
    token
        .post(&format!("/v1/tasks/{other}/stop"), json!({}))
        .await
        .problem(404, "not-found");
    token.get("/v1/businesses/push").await.problem(403, "forbidden");
    // What its business sent is the business's.
    let kind = [("content-type", "text/csv")];
    let rows = || Bytes::from_static(b"user\nann\n");
    let sent = all
        .send(Method::POST, "/v1/uploads", &kind, rows())
        .await
        .expect(201);
    let upload = format!("/v1/uploads/{}", sent["id"].as_str().unwrap());
    token
        .send(Method::POST, "/v1/uploads", &kind, rows())
        .await
        .problem(403, "forbidden");
    token.get(&upload).await.problem(403, "forbidden");
    token.delete(&upload).await.problem(403, "forbidden");
    let source = json!({"source": {"type": "file", "upload": sent["id"]}});
    token
        .patch(&format!("/v1/tasks/{own}"), source)
        .await
        .problem(422, "validation-failed");
    all.get(&upload).await.expect(200);
}

#[tokio::test]
async fn secrets_of_a_lost_key_are_a_conflict_that_says_so() {
    let recipe = Recipe::new();
    let node = recipe.start().await;
    node.business(
        "push",
        "http://127.0.0.1:9/",
        json!({"secret_headers": {"authorization": "x"}}),
    )
    .await;
    assert_eq!(node.stop().await, Some(0));
    std::fs::remove_file(recipe.path("data/key")).unwrap();
    let node = recipe.start().await;
    let answer = node
        .admin
        .post("/v1/businesses/push/rotate-secret", json!({}))
        .await;
    let problem = answer.problem(409, "conflict");
    assert!(
        problem["detail"].as_str().unwrap().contains("auth.key_file"),
        "{problem:#}"
    );
}
