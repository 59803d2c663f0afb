//! Requests that no client of good will sends: each is a problem, and none is the node's fault.

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};

use crate::support::Node;

async fn node() -> Node {
    let node = Node::start().await;
    let push = json!({"name": "push", "url": "http://127.0.0.1:9/"});
    node.admin
        .post("/v1/businesses?check=skip", push)
        .await
        .expect(201);
    node
}

fn task(more: Value) -> Value {
    let mut body = json!({"business": "push", "source": {"type": "range", "total": 10}});
    crate::support::merge(&mut body, more);
    body
}

#[tokio::test]
async fn what_is_no_text_or_out_of_bounds_is_refused_where_it_stands() {
    let node = node().await;
    for path in [
        "/v1/tasks/%ff",
        "/v1/tasks/%00",
        "/v1/nodes/%C3",
        "/problems/%ff",
        "/v1/whoami?a=%ff",
    ] {
        node.admin.get(path).await.problem(400, "invalid-request");
    }
    let long = format!("/v1/tasks?q={}", "a".repeat(129));
    for path in [
        &*long,
        "/v1/tasks?limit=1&limit=2",
        "/v1/audit?business=0.5",
        "/actors?depth=17",
    ] {
        node.admin.get(path).await.problem(400, "invalid-request");
    }
}

#[tokio::test]
async fn a_text_that_is_too_long_is_refused_before_it_is_looked_at_and_never_echoed() {
    let node = node().await;
    let long = "E".repeat(60_000);
    let schedule = json!({"business": "push", "name": "s", "cron": "0 3 * * *", "zone": long,
        "task": {"source": {"type": "range", "total": 1}}});
    let mut named = schedule.clone();
    named[&long] = json!(1);
    for (path, body, place) in [
        ("/v1/schedules", schedule, "/zone"),
        ("/v1/schedules", named, "/zone"),
        ("/v1/tasks", task(json!({"business": long})), "/business"),
        ("/v1/tasks", task(json!({"limits": [long]})), "/limits/0"),
        ("/v1/tokens", json!({"name": long, "role": "viewer"}), "/name"),
    ] {
        let problem = node
            .admin
            .post(path, body)
            .await
            .problem(422, "validation-failed");
        let errors = problem["errors"].as_array().expect("faults");
        assert!(
            errors.iter().any(|error| error["pointer"] == place),
            "{path}: {place}"
        );
        assert!(problem.to_string().len() <= 16 << 10, "{path}: {place}");
    }
    for path in [
        format!("/v1/tasks?nonsense={long}"),
        format!("/v1/{long}"),
        format!("/v1/businesses/{long}"),
    ] {
        let answer = node.admin.get(&path).await;
        assert!(answer.json().to_string().len() <= 16 << 10);
    }
}

#[tokio::test]
async fn a_name_is_one_that_nobody_can_mistake() {
    let node = node().await;
    for name in ["p\u{430}ypal", "a\u{202e}b", "a\u{200b}b", "\u{ff1d}a"] {
        for (path, body) in [
            ("/v1/tasks", task(json!({"name": name}))),
            ("/v1/tasks", task(json!({"labels": {"team": name}}))),
            ("/v1/tokens", json!({"name": name, "role": "viewer"})),
            (
                "/v1/businesses?check=skip",
                json!({"name": "b", "url": "http://127.0.0.1:9/", "display_name": name}),
            ),
            ("/v1/limits", json!({"name": name, "rate": "1/s"})),
        ] {
            node.admin
                .post(path, body)
                .await
                .problem(422, "validation-failed");
        }
    }
    for name in ["bootstrap", " Bootstrap ", "windrow"] {
        let token = json!({"name": name, "role": "admin"});
        node.admin
            .post("/v1/tokens", token)
            .await
            .problem(422, "validation-failed");
    }
}

#[tokio::test]
async fn a_business_that_is_misspelt_is_guessed() {
    let node = node().await;
    let advice = async |more: Value| {
        let problem = node
            .admin
            .post("/v1/tasks", task(more))
            .await
            .problem(422, "validation-failed");
        problem["errors"][0]["try"].clone()
    };
    assert_eq!(advice(json!({"business": "psuh"})).await, "did you mean push?");
    assert_eq!(advice(json!({"business": "zzz"})).await, Value::Null);
}

#[tokio::test]
async fn an_array_is_no_object_and_nothing_is_no_body() {
    let node = node().await;
    let id = node.admin.post("/v1/tasks", task(json!({}))).await.expect(201)["id"].clone();
    let path = format!("/v1/tasks/{}", id.as_str().unwrap());
    node.admin
        .post(&format!("{path}/start"), json!([null, null]))
        .await
        .problem(400, "invalid-request");
    for member in [
        json!({"retry": [5]}),
        json!({"canary": [1, "stop"]}),
        json!({"source": ["range", 3]}),
    ] {
        node.admin
            .post("/v1/tasks", task(member))
            .await
            .problem(400, "invalid-request");
    }
    node.admin
        .send(Method::PATCH, &path, &[], Bytes::new())
        .await
        .problem(400, "invalid-request");
    let wish = json!({"hooks": {"validate": []}});
    node.admin
        .patch("/v1/businesses/push", wish)
        .await
        .problem(400, "invalid-request");
}

#[tokio::test]
async fn json_that_could_not_be_read_again_is_refused() {
    let node = node().await;
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let source = r#""source":{"type":"range","total":10}"#;
    let bodies = [
        format!(r#"{{"business":"push",{source},"params":{deep}}}"#),
        format!(r#"{{"business":"push","source":{{"type":"inline","items":[{deep}]}}}}"#),
    ];
    let kind = [("content-type", "application/json")];
    for body in bodies {
        node.admin
            .send(Method::POST, "/v1/tasks", &kind, Bytes::from(body))
            .await
            .problem(422, "validation-failed");
    }
    let span = json!({"timeout": "18446744073709551615s 999ms 1ms"});
    node.admin
        .post("/v1/tasks", task(span))
        .await
        .problem(400, "invalid-request");
    node.admin
        .post("/v1/tasks", task(json!({"reason": "a\0b"})))
        .await
        .problem(400, "invalid-request");
}

#[tokio::test]
async fn a_method_that_a_path_does_not_have_is_told_which_it_has() {
    let node = node().await;
    for method in [Method::PUT, Method::OPTIONS, Method::TRACE] {
        let answer = node.admin.send(method, "/v1/tasks", &[], Bytes::new()).await;
        assert_eq!(answer.header("allow"), Some("GET, HEAD, POST"));
        answer.problem(405, "method-not-allowed");
    }
}
