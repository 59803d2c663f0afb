//! A business that is an API which knows nothing of Windrow: registered with templates, validated, called for each item, and
//! its secrets kept.

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::{Node, files};

const SECRET: &str = "geheim-4711-canary";

fn body(origin: &str) -> Value {
    json!({
        "name": "ship",
        "request": {
            "call": format!("PUT {origin}/v1/{{id}}"), "headers": {"x-api-key": "{secret.api}"},
            "json": "{\"n\": {index}, \"by\": {param.by}}", "statuses": {"skip": "404"},
        },
        "request_secrets": {"api": SECRET},
    })
}

#[tokio::test]
async fn a_request_is_made_for_each_item_and_its_secret_is_told_nobody() {
    let api = Business::start(|seen| match seen.header("x-api-key") {
        // What fails before the first success may be tried again.
        SECRET if seen.body["n"] == 1 => Act::status(204),
        SECRET => Act::json(418, json!({"sent": seen.header("x-api-key")})),
        _ => Act::status(401),
    })
    .await;
    let node = Node::start().await;
    let url = api.url();
    let origin = url.rsplit_once('/').unwrap().0;
    let made = node.admin.post("/v1/businesses", body(origin)).await.expect(201);
    assert_eq!(
        (&made["request_secrets"], &made["url"]),
        (&json!({"api": "***"}), &Value::Null)
    );
    assert_eq!(made["request"]["statuses"], json!({"skip": "404"}));
    let source = json!({"type": "inline", "items": [{"id": "a/b"}, {"id": 7}, {"no": 1}]});
    let task = json!({"business": "ship", "source": source, "params": {"by": "me"}, "start": true});
    let task = node.admin.post("/v1/tasks", task).await.expect(201);
    let task = task["id"].as_str().unwrap().to_owned();
    node.status(&task, "finished").await;
    let failures = node.admin.get(&format!("/v1/tasks/{task}/failures")).await;
    let text = failures.text();
    assert!(
        text.contains("HTTP_418") && text.contains("••••") && text.contains("TEMPLATE_VALUE"),
        "{text}"
    );
    let sent = |n: u64| api.seen().iter().filter(|seen| seen.body["n"] == n).count();
    assert!(
        sent(0) > 0 && sent(1) == 1 && sent(2) == 0,
        "one item can't be sent"
    );
    for path in [
        "/v1/businesses/ship",
        "/v1/businesses/ship/revisions",
        "/v1/audit",
        "/v1/logs",
    ] {
        assert!(!node.admin.get(path).await.text().contains(SECRET), "{path}");
    }
    assert!(!text.contains(SECRET) && !node.said().contains(SECRET));
    for file in files(&node.data()) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(
            !bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()),
            "{}",
            file.display()
        );
    }
}

#[tokio::test]
async fn a_wrong_template_is_refused_where_it_is() {
    let node = Node::start().await;
    let refused = async |member: &str, value: Value| {
        let mut wrong = body("http://127.0.0.1:9");
        *wrong.pointer_mut(member).expect("a member") = value;
        let problem = node
            .admin
            .post("/v1/businesses", wrong)
            .await
            .problem(422, "validation-failed");
        problem["errors"][0]["pointer"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        refused("/request/call", json!("PUT http://{id}/")).await,
        "/request/call"
    );
    assert_eq!(
        refused("/request/json", json!("{\"n\": {index}")).await,
        "/request/json"
    );
    assert_eq!(
        refused("/request/headers", json!({"host": "x"})).await,
        "/request/headers/host"
    );
    assert_eq!(refused("/request/headers", json!({})).await, "/request_secrets");
    assert_eq!(refused("/request_secrets", json!({})).await, "/request_secrets");
    let mut both = body("http://127.0.0.1:9");
    both["url"] = json!("http://127.0.0.1:9/");
    node.admin
        .post("/v1/businesses", both)
        .await
        .problem(422, "validation-failed");
    let mut batched = body("http://127.0.0.1:9");
    batched["defaults"] = json!({"batch": 4});
    let problem = node
        .admin
        .post("/v1/businesses", batched)
        .await
        .problem(422, "validation-failed");
    assert_eq!(problem["errors"][0]["pointer"], "/defaults/batch");
    node.admin
        .post("/v1/businesses", body("http://127.0.0.1:9"))
        .await
        .expect(201);
    let change = json!({"request": {"statuses": {"ok": "409"}}});
    let changed = node.admin.patch("/v1/businesses/ship", change).await.expect(200);
    assert_eq!(
        changed["request"]["statuses"],
        json!({"ok": "409", "skip": "404"})
    );
    assert_eq!(changed["request_secrets"], json!({"api": "***"}));
}

#[tokio::test]
async fn what_nobody_verifies_has_no_signing_secret_until_a_url_is_called() {
    let node = Node::start().await;
    let made = node
        .admin
        .post("/v1/businesses?check=skip", body("http://127.0.0.1:9"))
        .await
        .expect(201);
    assert_eq!(made.get("secret"), None, "{made:#}");
    let rotate = "/v1/businesses/ship/rotate-secret";
    let refused = node.admin.post(rotate, json!({})).await.problem(409, "conflict");
    assert!(
        refused["detail"].as_str().unwrap().contains("no signing secret"),
        "{refused:#}"
    );
    let hooked = json!({"hooks": {"finished": {"url": "http://127.0.0.1:9/hook"}}});
    let dry = node
        .admin
        .patch("/v1/businesses/ship?dry_run=true", hooked.clone())
        .await
        .expect(200);
    assert!(!dry.to_string().contains("whsec_"), "{dry:#}");
    let changed = node.admin.patch("/v1/businesses/ship", hooked).await.expect(200);
    assert!(
        changed["secret"].as_str().unwrap().starts_with("whsec_"),
        "its hooks are signed: {changed:#}"
    );
    let again = json!({"display_name": "Ship"});
    let again = node.admin.patch("/v1/businesses/ship", again).await.expect(200);
    assert_eq!(again.get("secret"), None, "shown once: {again:#}");
    assert!(node.admin.post(rotate, json!({})).await.expect(200)["secret"].is_string());
}

#[tokio::test]
async fn a_task_of_a_request_has_a_batch_of_one_and_is_refused_another_when_it_is_made() {
    let node = Node::start().await;
    node.admin
        .post("/v1/businesses", body("http://127.0.0.1:9"))
        .await
        .expect(201);
    let task = |more: Value| {
        let items = json!({"type": "inline", "items": [{"id": "s-1"}]});
        let mut task = json!({"business": "ship", "source": items});
        crate::support::merge(&mut task, more);
        node.admin.post("/v1/tasks", task)
    };
    let refused = task(json!({"batch": 8})).await.problem(422, "validation-failed");
    assert_eq!(refused["errors"][0]["pointer"], "/batch", "{refused:#}");
    let made = task(json!({"batch": 1})).await.expect(201);
    let path = format!("/v1/tasks/{}", made["id"].as_str().unwrap());
    let refused = node
        .admin
        .patch(&path, json!({"batch": 2}))
        .await
        .problem(422, "validation-failed");
    assert_eq!(refused["errors"][0]["pointer"], "/batch");
}

#[tokio::test]
async fn a_task_whose_items_lack_a_column_of_the_request_is_refused_when_it_is_made() {
    let node = Node::start().await;
    node.admin
        .post("/v1/businesses", body("http://127.0.0.1:9"))
        .await
        .expect(201);
    let kind = [("content-type", "text/csv")];
    let rows = Bytes::from_static(b"no\n1\n");
    let sent = node
        .admin
        .send(Method::POST, "/v1/uploads", &kind, rows)
        .await
        .expect(201);
    let no_column = "no column \"id\"";
    for (source, why) in [
        (json!({"type": "range", "total": 3}), "no data"),
        (json!({"type": "inline", "items": [{"no": 1}]}), no_column),
        (json!({"type": "file", "upload": sent["id"]}), no_column),
    ] {
        let task = json!({"business": "ship", "source": source});
        let refused = node
            .admin
            .post("/v1/tasks", task)
            .await
            .problem(422, "validation-failed");
        let fault = &refused["errors"][0];
        assert_eq!(fault["pointer"], "/source", "{refused:#}");
        let detail = fault["detail"].as_str().unwrap();
        assert!(detail.contains(why), "{refused:#}");
    }
}
