//! What is asked of tasks beside their life: repeated requests, changes, clones, deletion, waiting looks.

use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::json;

use crate::business::{Act, Business};
use crate::support::{Node, sum};

#[tokio::test]
async fn a_repeated_request_gets_its_first_answer_and_another_body_is_refused() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let body = json!({"business": "push", "source": {"type": "range", "total": 5}, "start": true});
    let key = [("idempotency-key", "k-1")];
    let post = |body| node.admin.json(Method::POST, "/v1/tasks", &key, body);
    let first = post(body.clone()).await;
    let again = post(body.clone()).await;
    assert_eq!((first.status, again.status), (201, 201), "{}", again.text());
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(first.header("idempotency-replayed"), None);
    for name in ["location", "etag", "content-type"] {
        assert_eq!(first.header(name), again.header(name));
    }
    assert_eq!(
        first.text(),
        again.text(),
        "word by word, whatever became of the task since"
    );
    post(json!({"business": "push", "source": {"type": "range", "total": 6}}))
        .await
        .problem(422, "idempotency-key-reused");
    let other = node.client("operator", None).await;
    let theirs = other.json(Method::POST, "/v1/tasks", &key, body).await;
    assert_ne!(
        theirs.expect(201)["id"],
        first.json()["id"],
        "another caller's keys are their own"
    );
    let bad = json!({"business": "nobody", "source": {"type": "range", "total": 5}});
    let late = [("idempotency-key", "k-2")];
    node.admin
        .json(Method::POST, "/v1/tasks", &late, bad)
        .await
        .problem(422, "validation-failed");
    let good = json!({"business": "push", "source": {"type": "range", "total": 5}});
    node.admin
        .json(Method::POST, "/v1/tasks", &late, good)
        .await
        .expect(201);
}

#[tokio::test]
async fn a_change_names_what_is_fixed_and_notices_what_changed_meanwhile() {
    let business = Business::start(|_| Act::ok().after(Duration::from_secs(9))).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node.task("push", 1_000, json!({"name": "a"})).await;
    let path = format!("/v1/tasks/{task}");
    let seen = node.admin.get(&path).await;
    let tag = seen.header("etag").expect("a tag").to_owned();
    let with = [("if-match", tag.as_str())];
    let changed = json!({"name": "b", "total": 900, "skip_first": 10, "labels": {"team": "growth"}});
    let shown = node
        .admin
        .json(Method::PATCH, &path, &with, changed)
        .await
        .expect(200);
    assert_eq!(
        (&shown["name"], &shown["total"]),
        (&json!("b"), &json!(900)),
        "{shown:#}"
    );
    assert_eq!((sum(&shown), &shown["counts"]["excluded"]), (900, &json!(10)));
    node.admin
        .json(Method::PATCH, &path, &with, json!({"name": "c"}))
        .await
        .problem(412, "etag-mismatch");
    node.admin
        .post(&format!("{path}/start"), json!({}))
        .await
        .expect(202);
    node.status(&task, "running").await;
    let fixed = json!({"rate": "7/s", "total": 10, "params": {}, "skip_first": 0});
    let problem = node.admin.patch(&path, fixed).await.problem(409, "conflict");
    let named: Vec<&str> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(named, ["/skip_first", "/params", "/total"], "{problem:#}");
    assert_ne!(
        node.admin.get(&path).await.expect(200)["rate"],
        "7/s",
        "nothing of it was changed"
    );
    let shown = node
        .admin
        .patch(&path, json!({"rate": "7/s", "name": null}))
        .await
        .expect(200);
    assert_eq!((&shown["rate"], &shown["name"]), (&json!("7/s"), &json!(null)));
    let wrong = json!({"rate": "7/s", "window": 10, "concurrency": 20, "deadline": "2001-01-01T00:00:00Z"});
    assert_eq!(node.admin.patch(&path, wrong).await.status, 422);
}

#[tokio::test]
async fn a_clone_is_done_anew_and_an_ended_task_can_be_deleted() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let settings = json!({"start": true, "params": {"a": 1}, "labels": {"team": "x"}, "name": "one"});
    let task = node.task("push", 3, settings).await;
    node.status(&task, "finished").await;
    let path = format!("/v1/tasks/{task}");
    node.admin
        .post(&format!("{path}/clone"), json!({"name": "one"}))
        .await
        .problem(409, "name-taken");
    let clone = json!({"name": "two", "rate": "50/s", "start": true});
    let made = node.admin.post(&format!("{path}/clone"), clone).await.expect(201);
    assert_eq!(
        (&made["params"], &made["rate"]),
        (&json!({"a": 1}), &json!("50/s")),
        "{made:#}"
    );
    let id = made["id"].as_str().unwrap().to_owned();
    node.admin.delete(&format!("/v1/tasks/{id}")).await;
    node.status(&id, "finished").await;
    assert_eq!(business.items().len(), 6, "new keys: each item again");
    let found = node
        .admin
        .get("/v1/tasks?label=team:x&status=finished&q=TW")
        .await
        .expect(200);
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1), "{found:#}");
    let runs = node.admin.get(&format!("{path}/runs")).await.expect(200);
    assert_eq!(
        (&runs["items"][0]["run"], &runs["items"][0]["end_reason"]),
        (&json!(1), &json!("done"))
    );
    assert_eq!(
        node.admin.get(&format!("{path}/runs/0/1")).await.expect(200),
        runs["items"][0]
    );
    let gone = node.admin.delete(&path).await;
    assert_eq!(gone.status, 204, "{}", gone.text());
    node.admin.get(&path).await.problem(404, "not-found");
    let audit = node
        .admin
        .get(&format!("/v1/audit?task={task}"))
        .await
        .expect(200);
    assert_eq!(audit["items"][0]["action"], "task.delete", "{audit:#}");
}

#[tokio::test]
async fn a_waiting_look_comes_back_when_something_changed() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node.task("push", 3, json!({})).await;
    let path = format!("/v1/tasks/{task}");
    let tag = node
        .admin
        .get(&path)
        .await
        .header("etag")
        .expect("a tag")
        .trim_matches('"')
        .to_owned();
    let waiting = format!("{path}?wait=30s&unless={tag}");
    let begun = Instant::now();
    let start = format!("{path}/start");
    let (looked, started) = tokio::join!(node.admin.get(&waiting), node.admin.post(&start, json!({})));
    assert_eq!((started.status, looked.status), (202, 200));
    assert_ne!(looked.json()["status"], "created", "{}", looked.text());
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "it did not wait for the end of its patience"
    );
}
