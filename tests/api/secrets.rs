//! A secret is put everywhere where one can go, and looked for everywhere else.

use hyper::Method;
use serde_json::json;

use crate::business::{Act, Business};
use crate::support::{Client, Recipe, files};

const CANARY: &str = "c4n4ry-5ecr3t-7b1e";

#[tokio::test]
async fn a_secret_is_found_nowhere_but_where_it_is_sent() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(2, _)] => Act::status(500),
        [(3, _)] => Act::json(422, json!({"message": "no"})),
        _ => Act::ok(),
    })
    .await;
    let recipe = Recipe::new().config("[log]\nfilter = \"trace\"");
    let node = recipe.start().await;
    let secret_headers = json!({"authorization": format!("Bearer {CANARY}"), "x-api-key": CANARY});
    let made = node
        .business("push", &business.url(), json!({"secret_headers": secret_headers}))
        .await;
    let signing = made["secret"].as_str().unwrap().to_owned();
    let token = node.client("operator", None).await.token.unwrap();
    let task = node
        .task("push", 5, json!({"start": true, "retry": {"max_attempts": 2}}))
        .await;
    node.status(&task, "finished").await;
    assert!(
        business
            .seen()
            .iter()
            .all(|seen| seen.header("x-api-key") == CANARY),
        "it is sent"
    );
    // Wrong in every way that might show what was sent.
    let bodies = [
        json!({"name": "other", "url": "ftp://x", "secret_headers": {"authorization": CANARY}}),
        json!({"name": "other", "url": format!("http://user:{CANARY}@127.0.0.1/")}),
        json!({"name": "other", "url": business.url(), "secret_headers": {"host": CANARY}}),
        json!({"name": "other", "url": business.url(), "secret_headers": {"x": format!("{CANARY}\r\n")}}),
        json!({"name": "other", "url": "http://127.0.0.1:1/", "secret_headers": {"x-api-key": CANARY}}),
    ];
    let mut shown = vec![node.said()];
    for body in bodies {
        let answer = node.admin.post("/v1/businesses", body).await;
        assert!((400..500).contains(&answer.status), "{}", answer.text());
        shown.push(answer.text());
    }
    shown.push(Client::new(&node.url, Some(CANARY)).get("/v1/tasks").await.text());
    let rotated = node
        .admin
        .post("/v1/businesses/push/rotate-secret", json!({}))
        .await
        .expect(200);
    let rotated = rotated["secret"].as_str().unwrap().to_owned();
    for path in [
        "/v1/businesses",
        "/v1/businesses/push",
        "/v1/businesses/push/revisions",
        "/v1/tokens",
        "/v1/audit",
        "/v1/logs",
        "/metrics",
        "/actors",
        "/openapi.json",
        "/v1/nodes",
    ] {
        let answer = node.admin.send(Method::GET, path, &[], bytes::Bytes::new()).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        shown.push(answer.text());
    }
    for part in [
        "",
        "/failures",
        "/failures/groups",
        "/items/2",
        "/logs",
        "/report",
        "/revisions",
        "/runs",
    ] {
        shown.push(node.admin.get(&format!("/v1/tasks/{task}{part}")).await.text());
    }
    shown.push(node.said());
    let data = node.data();
    assert_eq!(node.stop().await, Some(0));
    let secrets = [
        CANARY,
        signing.trim_start_matches("whsec_"),
        rotated.trim_start_matches("whsec_"),
        &token,
    ];
    for secret in secrets {
        for text in &shown {
            assert!(!text.contains(secret), "{secret} is shown in\n{text}");
        }
        for file in files(&data) {
            let bytes = std::fs::read(&file).unwrap();
            let found = bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} lies in {}", file.display());
        }
    }
}

#[tokio::test]
async fn a_start_token_that_was_delivered_is_nowhere_in_the_database() {
    let business = Business::willing().await;
    let recipe = Recipe::new();
    let node = recipe.start().await;
    node.business("push", &business.url(), json!({"hooks": {"prepare": {}}}))
        .await;
    let task = node.task("push", 5, json!({"start": true})).await;
    node.status(&task, "finished").await;
    let token = business.of_kind("task.prepare")[0].body["start_token"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(node.stop().await, Some(0));
    for file in files(&recipe.path("data")) {
        let bytes = std::fs::read(&file).unwrap();
        let found = bytes
            .windows(token.len())
            .any(|window| window == token.as_bytes());
        assert!(!found, "it lies in {}", file.display());
    }
}

#[tokio::test]
async fn a_lost_key_is_heard_of_at_the_start() {
    let business = Business::start(|_| Act::ok()).await;
    let recipe = Recipe::new();
    let node = recipe.start().await;
    node.business("push", &business.url(), json!({})).await;
    assert_eq!(node.stop().await, Some(0));
    std::fs::remove_file(recipe.path("data/key")).expect("made at the first start");
    let node = recipe.start().await;
    assert!(
        node.said().contains("sealed with another key") && node.said().contains("push"),
        "{}",
        node.said()
    );
    let refused = node
        .admin
        .post("/v1/businesses/push/rotate-secret", json!({}))
        .await;
    assert!(
        refused.problem(409, "conflict")["detail"]
            .as_str()
            .is_some_and(|text| text.contains("key"))
    );
    // It is the node's fault and not the handler's: another node may have the key, so the task waits and isn't stopped.
    let task = node.task("push", 3, json!({"start": true})).await;
    let says_why = |view: &serde_json::Value| {
        let text = view["status_text"].as_str();
        text.is_some_and(|text| text.contains("sealed with another key"))
    };
    let view = node
        .until(&task, "waiting for a node with the key", says_why)
        .await;
    assert_eq!(
        (&view["status"], &view["status_reason"]),
        (&json!("recovering"), &json!("key_missing")),
        "{view:#}"
    );
    assert_eq!(node.stop().await, Some(0));
}
