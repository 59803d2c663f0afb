//! Uploads and the tasks that have them.

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};

use crate::business::Business;
use crate::support::Node;

async fn upload(node: &Node) -> String {
    let body = Bytes::from_static(b"user\nann\nbob\ncat\n");
    let made = node
        .admin
        .send(Method::POST, "/v1/uploads", &[("content-type", "text/csv")], body)
        .await;
    let made = made.expect(201);
    assert_eq!(made["rows"], 3, "{made:#}");
    made["id"].as_str().expect("an id").to_owned()
}

fn create(upload: &str, more: Value) -> Value {
    let mut body = json!({"business": "push", "source": {"type": "file", "upload": upload}});
    crate::support::merge(&mut body, more);
    body
}

#[tokio::test]
async fn an_upload_is_kept_for_its_tasks_and_free_after_the_last_of_them() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let id = upload(&node).await;
    let path = format!("/v1/uploads/{id}");
    let made = node
        .admin
        .post("/v1/tasks", create(&id, json!({"start": true})))
        .await
        .expect(201);
    let first = made["id"].as_str().expect("an id").to_owned();
    node.status(&first, "finished").await;
    let data: Vec<Value> = business
        .seen()
        .iter()
        .map(|seen| seen.body["item"]["data"].clone())
        .collect();
    assert!(data.contains(&json!({"user": "bob"})), "{data:?}");
    let second = node
        .admin
        .post(&format!("/v1/tasks/{first}/clone"), json!({}))
        .await
        .expect(201);
    let second = second["id"].as_str().expect("an id").to_owned();

    node.admin.delete(&path).await.problem(409, "conflict");
    assert_eq!(
        node.admin.delete(&format!("/v1/tasks/{first}")).await.status / 100,
        2
    );
    assert!(
        node.admin.get(&path).await.expect(200)["used_at"].is_string(),
        "the clone has it still"
    );
    node.admin
        .post(&format!("/v1/tasks/{second}/start"), json!({}))
        .await
        .expect(202);
    node.status(&second, "finished").await;
    assert_eq!(
        business.items().len(),
        6,
        "the clone reads it after the first task is gone"
    );
    assert_eq!(
        node.admin.delete(&format!("/v1/tasks/{second}")).await.status / 100,
        2
    );
    assert!(
        node.admin.get(&path).await.expect(200)["used_at"].is_null(),
        "nobody has it"
    );
    assert_eq!(node.admin.delete(&path).await.status, 204);
    node.admin.get(&path).await.problem(404, "not-found");
}

#[tokio::test]
async fn a_task_that_gets_other_items_gives_its_upload_up() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let (one, other) = (upload(&node).await, upload(&node).await);
    let made = node
        .admin
        .post("/v1/tasks", create(&one, json!({})))
        .await
        .expect(201);
    let task = format!("/v1/tasks/{}", made["id"].as_str().expect("an id"));
    let source = json!({"source": {"type": "file", "upload": other}});
    node.admin.patch(&task, source).await.expect(200);
    let used =
        async |id: &str| node.admin.get(&format!("/v1/uploads/{id}")).await.expect(200)["used_at"].clone();
    assert!(used(&one).await.is_null() && used(&other).await.is_string());
}
