//! Open tasks: items are appended over the façade while they run.

use hyper::Method;
use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::{Node, merge, sum};

async fn open(node: &Node, more: Value) -> String {
    let mut body = json!({"business": "push", "open": true, "rate": "1000/s", "start": true});
    merge(&mut body, more);
    let made = node.admin.post("/v1/tasks", body).await.expect(201);
    assert_eq!(
        (&made["total"], &made["intake"]),
        (&json!(0), &json!("open")),
        "{made:#}"
    );
    assert_eq!(made["source"]["type"], "appended");
    made["id"].as_str().expect("an id").to_owned()
}

async fn place() -> (Node, Business) {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    (node, business)
}

#[tokio::test]
async fn an_open_task_runs_what_is_appended_and_finishes_once_it_is_sealed() {
    let (node, business) = place().await;
    let task = open(&node, json!({})).await;
    let items = format!("/v1/tasks/{task}/items");
    let told = node
        .admin
        .post(&items, json!({"items": [{"to": "ann"}, {"to": "bob"}]}))
        .await
        .expect(201);
    assert_eq!(
        told,
        json!({"first_index": 0, "items": 2, "repeated": false, "total": 2})
    );
    let view = node
        .until(&task, "settled", |view| view["counts"]["succeeded"] == 2)
        .await;
    assert_eq!(view["status"], "running", "more may come");
    let told = node.admin.post(&items, json!({"items": [3]})).await.expect(201);
    assert_eq!((&told["first_index"], &told["total"]), (&json!(2), &json!(3)));
    let sealed = node
        .admin
        .post(&format!("/v1/tasks/{task}/seal"), json!({"reason": "done"}))
        .await;
    assert_eq!(sealed.expect(202)["intake"], "sealed");
    let view = node.status(&task, "finished").await;
    assert_eq!(
        (&view["result"], sum(&view)),
        (&json!("succeeded"), 3),
        "{view:#}"
    );
    let seen = business.seen().into_iter();
    // Items of one append are with the business at the same time.
    let mut data: Vec<String> = seen.map(|seen| seen.body["item"]["data"].to_string()).collect();
    data.sort_unstable();
    assert_eq!(data, ["3", r#"{"to":"ann"}"#, r#"{"to":"bob"}"#]);
    let late = node
        .admin
        .post(&items, json!({"items": [4]}))
        .await
        .problem(409, "task-sealed");
    assert!(
        late["detail"].as_str().unwrap().contains("takes no more items"),
        "{late:#}"
    );
    node.admin
        .post(&format!("/v1/tasks/{task}/seal"), json!({}))
        .await
        .expect(200);
    let audit = node
        .admin
        .get(&format!("/v1/tasks/{task}/revisions"))
        .await
        .expect(200);
    assert!(audit.to_string().contains("task.seal"), "{audit:#}");
}

#[tokio::test]
async fn a_block_of_one_key_is_appended_once() {
    let (node, _business) = place().await;
    let task = open(&node, json!({})).await;
    let items = format!("/v1/tasks/{task}/items");
    let send = async |key: &str, body: Value| {
        let headers = [("idempotency-key", key)];
        node.admin.json(Method::POST, &items, &headers, body).await
    };
    send("a", json!({"items": [1, 2]})).await.expect(201);
    send("b", json!({"items": [3]})).await.expect(201);
    let again = send("a", json!({"items": [1, 2]})).await.expect(200);
    assert_eq!(
        again,
        json!({"first_index": 0, "items": 2, "repeated": true, "total": 3})
    );
    send("a", json!({"items": [1]}))
        .await
        .problem(422, "idempotency-key-reused");
    let operator = node.client("operator", None).await;
    let headers = [("idempotency-key", "a")];
    let theirs = operator
        .json(Method::POST, &items, &headers, json!({"items": [1]}))
        .await;
    assert_eq!(theirs.expect(201)["first_index"], 3, "a key belongs to a caller");
    let tried = node
        .admin
        .post(&format!("{items}?dry_run=true"), json!({"items": [9]}))
        .await;
    assert_eq!(tried.expect(200)["would"]["first_index"], 4);
    assert_eq!(
        node.admin.get(&format!("/v1/tasks/{task}")).await.expect(200)["total"],
        4
    );
}

#[tokio::test]
async fn what_an_open_task_can_t_have_is_told() {
    let (node, _business) = place().await;
    let create = async |more: Value| {
        let mut body = json!({"business": "push", "open": true});
        merge(&mut body, more);
        node.admin.post("/v1/tasks", body).await
    };
    let both = create(json!({"source": {"type": "range", "total": 3}}))
        .await
        .problem(400, "invalid-request");
    assert_eq!(both["errors"][0]["pointer"], "/source");
    let none = create(json!({"open": false}))
        .await
        .problem(400, "invalid-request");
    assert_eq!(none["errors"][0]["pointer"], "/source");
    for (more, pointer) in [
        (json!({"shards": 4}), "/shards"),
        (json!({"skip_first": 1}), "/skip_first"),
    ] {
        let told = create(more).await.problem(422, "validation-failed");
        assert_eq!(told["errors"][0]["pointer"], pointer, "{told:#}");
    }
    let fixed = node.task("push", 3, json!({})).await;
    let told = node
        .admin
        .post(&format!("/v1/tasks/{fixed}/items"), json!({"items": [1]}))
        .await;
    assert!(
        told.problem(409, "conflict")["try"][0]
            .as_str()
            .unwrap()
            .contains("--open")
    );
    node.admin
        .post(&format!("/v1/tasks/{fixed}/seal"), json!({}))
        .await
        .problem(409, "conflict");
    let task = open(&node, json!({})).await;
    let items = format!("/v1/tasks/{task}/items");
    node.admin
        .post(&items, json!({"items": []}))
        .await
        .problem(422, "validation-failed");
    node.admin
        .post(&items, json!({"items": {"a": 1}}))
        .await
        .problem(400, "invalid-request");
    let many: Vec<u32> = (0..10_001).collect();
    node.admin
        .post(&items, json!({ "items": many }))
        .await
        .problem(413, "payload-too-large");
    let changed = node
        .admin
        .patch(&format!("/v1/tasks/{task}"), json!({"skip_first": 1}))
        .await;
    assert_eq!(changed.status, 409, "{}", changed.text());
}

#[tokio::test]
async fn failures_of_an_open_task_are_done_again_and_a_clone_begins_empty() {
    let (node, business) = place().await;
    business.becomes(|seen| match seen.body["item"]["data"]["bad"].as_bool() {
        Some(true) => Act::json(200, json!({"result": "fail", "code": "BAD"})),
        _ => Act::ok(),
    });
    let task = open(&node, json!({})).await;
    let items = json!({"items": [{"no": 0}, {"no": 1, "bad": true}, {"no": 2}]});
    node.admin
        .post(&format!("/v1/tasks/{task}/items"), items)
        .await
        .expect(201);
    node.until(&task, "settled", |view| {
        sum(view) == 3 && view["counts"]["pending"] == 0 && view["counts"]["in_flight"] == 0
    })
    .await;
    node.admin
        .post(&format!("/v1/tasks/{task}/seal"), json!({}))
        .await
        .expect(202);
    node.status(&task, "finished").await;
    let item = node
        .admin
        .get(&format!("/v1/tasks/{task}/items/1"))
        .await
        .expect(200);
    assert_eq!(item["data"], json!({"no": 1, "bad": true}), "{item:#}");
    business.becomes(|_| Act::ok());
    let redrive = node
        .admin
        .post(&format!("/v1/tasks/{task}/redrives"), json!({"start": true}))
        .await;
    let redrive = redrive.expect(201)["id"].as_str().expect("an id").to_owned();
    let view = node.status(&redrive, "finished").await;
    assert_eq!(
        (&view["total"], &view["result"], &view["intake"]),
        (&json!(1), &json!("succeeded"), &Value::Null)
    );
    let last = business.seen().pop().expect("a call");
    assert_eq!(last.body["item"]["data"]["no"], 1);
    let clone = node
        .admin
        .post(&format!("/v1/tasks/{task}/clone"), json!({}))
        .await
        .expect(201);
    assert_eq!((&clone["total"], &clone["intake"]), (&json!(0), &json!("open")));
}

#[tokio::test]
async fn a_stopped_open_task_takes_items_and_goes_on_with_them() {
    let (node, business) = place().await;
    let task = open(&node, json!({"start": false})).await;
    let items = format!("/v1/tasks/{task}/items");
    node.admin.post(&items, json!({"items": [1]})).await.expect(201);
    node.admin
        .post(&format!("/v1/tasks/{task}/start"), json!({}))
        .await
        .expect(202);
    node.until(&task, "settled", |view| view["counts"]["succeeded"] == 1)
        .await;
    node.admin
        .post(&format!("/v1/tasks/{task}/stop"), json!({}))
        .await
        .expect(202);
    node.status(&task, "stopped").await;
    node.admin.post(&items, json!({"items": [2]})).await.expect(201);
    assert_eq!(business.items().len(), 1);
    node.admin
        .post(&format!("/v1/tasks/{task}/start"), json!({}))
        .await
        .expect(202);
    node.until(&task, "settled", |view| view["counts"]["succeeded"] == 2)
        .await;
    node.admin
        .post(&format!("/v1/tasks/{task}/stop"), json!({}))
        .await
        .expect(202);
    node.status(&task, "stopped").await;
    node.admin
        .post(&format!("/v1/tasks/{task}/seal"), json!({}))
        .await
        .expect(202);
    assert_eq!(node.status(&task, "finished").await["result"], "succeeded");
}
