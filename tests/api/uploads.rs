//! Uploads and the tasks that have them.

use std::io::Write as _;

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};

use crate::business::{Act, Business};
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

fn gzipped(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

#[tokio::test]
async fn a_compressed_upload_is_a_source_and_one_that_can_not_be_unpacked_is_told() {
    let business = Business::willing().await;
    let node = crate::support::Recipe::new()
        .config("[http]\nupload_limit = \"1 MiB\"")
        .start()
        .await;
    node.business("push", &business.url(), json!({})).await;
    let send = async |body: Vec<u8>| {
        let headers = [("content-type", "text/csv")];
        node.admin
            .send(Method::POST, "/v1/uploads", &headers, body.into())
            .await
    };
    let packed = gzipped("user\nann\nbob\ncat\n");
    let made = send(packed.clone()).await.expect(201);
    assert_eq!(
        (&made["compression"], &made["rows"]),
        (&json!("gzip"), &json!(3)),
        "{made:#}"
    );
    let id = made["id"].as_str().expect("an id");
    let made = node
        .admin
        .post("/v1/tasks", create(id, json!({"start": true})))
        .await
        .expect(201);
    node.status(made["id"].as_str().expect("an id"), "finished").await;
    let seen: Vec<Value> = business
        .seen()
        .iter()
        .map(|seen| seen.body["item"]["data"]["user"].clone())
        .collect();
    assert!(seen.contains(&json!("cat")) && seen.len() == 3, "{seen:?}");

    let cut = send(packed[..packed.len() - 5].to_vec())
        .await
        .problem(422, "not-unpacked");
    assert_eq!(cut["reason"], "truncated", "{cut:#}");
    let mut damaged = packed;
    let checksum = damaged.len() - 6;
    damaged[checksum] ^= 0xff;
    let damaged = send(damaged).await.problem(422, "not-unpacked");
    assert_eq!(damaged["reason"], "damaged", "{damaged:#}");
    let bomb = gzipped(&"user\n".repeat(1 << 20));
    assert!(bomb.len() < 1 << 16, "what is sent is short");
    send(bomb).await.problem(413, "payload-too-large");
    for gone in 2..=4 {
        node.admin
            .get(&format!("/v1/uploads/u{gone}"))
            .await
            .problem(404, "not-found");
    }
}

#[tokio::test]
async fn a_compressed_file_at_a_url_is_copied_and_told_if_it_can_not_be_unpacked() {
    let packed = gzipped("user\nann\nbob\n");
    let cut = packed[..packed.len() - 5].to_vec();
    let (business, node) = (Business::willing().await, Node::start().await);
    let whole = Business::start(move |_| Act::bytes(packed.clone())).await;
    let broken = Business::start(move |_| Act::bytes(cut.clone())).await;
    node.business("push", &business.url(), json!({})).await;
    let of = |files: &Business| {
        let source = json!({"type": "url", "url": format!("http://{}/u.csv.gz", files.address)});
        let admin = node.admin.clone();
        async move {
            admin
                .post("/v1/tasks", json!({"business": "push", "source": source}))
                .await
        }
    };
    let made = of(&whole).await.expect(201);
    assert_eq!(
        (&made["total"], &made["source"]["type"]),
        (&json!(2), &json!("csv")),
        "{made:#}"
    );
    let refused = of(&broken).await.problem(422, "not-unpacked");
    assert_eq!(refused["reason"], "truncated");
}

#[tokio::test]
async fn texts_that_a_nul_ends_are_uploaded_as_such() {
    let node = Node::start().await;
    let send = async |path: &str, kind: &str| {
        let body = Bytes::from_static(b"a\nb\0c\0");
        node.admin
            .send(Method::POST, path, &[("content-type", kind)], body)
            .await
    };
    let made = send("/v1/uploads?null=true", "text/plain").await.expect(201);
    assert_eq!(
        (&made["kind"], &made["rows"]),
        (&json!("nul"), &json!(2)),
        "{made:#}"
    );
    assert_eq!(made["sample"][0], json!({"line": "a\nb"}), "{made:#}");
    send("/v1/uploads", "text/plain").await.expect(422);
    send("/v1/uploads?null=true", "text/csv").await.expect(400);
}

#[tokio::test]
async fn a_task_of_no_items_is_made_and_finishes_as_soon_as_it_starts_unless_that_is_an_error() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let only_header = async || {
        let body = Bytes::from_static(b"user\n");
        let headers = [("content-type", "text/csv")];
        let made = node
            .admin
            .send(Method::POST, "/v1/uploads", &headers, body)
            .await
            .expect(201);
        assert_eq!(
            (&made["rows"], &made["columns"], &made["sample"]),
            (&json!(0), &json!(["user"]), &json!([]))
        );
        json!({"type": "file", "upload": made["id"]})
    };
    let sources = [
        json!({"type": "range", "total": 0}),
        json!({"type": "inline", "items": []}),
        only_header().await,
    ];
    for source in sources {
        let body = json!({"business": "push", "source": source, "start": true});
        let mut wary = body.clone();
        wary["if_empty"] = json!("error");
        let problem = node
            .admin
            .post("/v1/tasks", wary)
            .await
            .problem(422, "validation-failed");
        assert_eq!(problem["errors"][0]["pointer"], "/source", "{problem:#}");
        let made = node.admin.post("/v1/tasks", body).await.expect(201);
        assert_eq!(made["total"], 0, "{made:#}");
        let task = made["id"].as_str().expect("an id").to_owned();
        let view = node.status(&task, "finished").await;
        assert_eq!(view["result"], "succeeded", "{view:#}");
        let clone = node
            .admin
            .post(&format!("/v1/tasks/{task}/clone"), json!({"start": true}))
            .await
            .expect(201);
        node.status(clone["id"].as_str().expect("an id"), "finished")
            .await;
    }
    assert!(business.items().is_empty(), "nobody is called for nothing");
    let full = json!({"business": "push", "source": {"type": "range", "total": 1}, "if_empty": "error"});
    node.admin.post("/v1/tasks", full).await.expect(201);
}
