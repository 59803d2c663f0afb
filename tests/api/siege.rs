//! What one client can take of a node: a share, and never what others, or a look at its health, need.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};

use crate::support::{Client, Node, PATIENCE, Recipe};

/// A request whose end never comes, on a connection of its own.
struct Begun(TcpStream);

impl Begun {
    fn send(client: &Client, line: &str, headers: &[&str], body: &[u8]) -> Begun {
        let mut stream = connect(client);
        let token = client
            .token
            .as_deref()
            .map(|token| format!("authorization: Bearer {token}"));
        let host = client.url.trim_start_matches("http://");
        let mut head = format!("{line} HTTP/1.1\r\nhost: {host}\r\n");
        for header in headers.iter().map(|header| (*header).to_owned()).chain(token) {
            head.push_str(&header);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(body))
            .expect("sent");
        Begun(stream)
    }

    /// The first bytes of the answer.
    fn answer(&mut self) -> String {
        let mut bytes = vec![0; 4096];
        let count = self.0.read(&mut bytes).expect("an answer");
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }
}

fn connect(client: &Client) -> TcpStream {
    let stream = TcpStream::connect(client.url.trim_start_matches("http://")).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    stream
}

/// A number of `/metrics`.
async fn metric(node: &Node, name: &str) -> f64 {
    let page = node.admin.get("/metrics").await.text();
    let line = page
        .lines()
        .find(|line| line.split_whitespace().next() == Some(name));
    line.and_then(|line| line.split_whitespace().last()?.parse().ok())
        .unwrap_or_else(|| panic!("{name}: {page}"))
}

async fn until_metric(node: &Node, name: &str, wanted: f64) {
    let begun = Instant::now();
    while metric(node, name).await < wanted {
        assert!(begun.elapsed() < PATIENCE, "{name} never was {wanted}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn create(items: &str) -> Bytes {
    Bytes::from(format!(
        r#"{{"business":"push","source":{{"type":"inline","items":[{items}]}}}}"#
    ))
}

async fn with_business(node: &Node) {
    node.business("push", "http://127.0.0.1:9/", json!({})).await;
}

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

#[tokio::test]
async fn bodies_of_one_caller_leave_room_for_those_of_others() {
    let node = Node::start().await;
    with_business(&node).await;
    let (push, other) = (
        node.client("business", Some("push")).await,
        node.client("operator", None).await,
    );
    let headers = ["content-type: application/json", "content-length: 16000000"];
    let promised = Begun::send(&push, "POST /v1/tasks", &headers, b"{");
    until_metric(&node, "windrow_http_body_bytes", 16e6).await;
    let large = create(&vec!["1"; 500_000].join(","));
    let refused = push.send(Method::POST, "/v1/tasks", &JSON, large.clone()).await;
    assert_eq!(
        (refused.header("retry-after"), refused.header("connection")),
        (Some("1"), Some("close"))
    );
    refused.problem(429, "too-many-requests");
    other
        .send(Method::POST, "/v1/tasks", &JSON, large.clone())
        .await
        .expect(201);
    drop(promised);
    let begun = Instant::now();
    while push
        .send(Method::POST, "/v1/tasks", &JSON, large.clone())
        .await
        .status
        != 201
    {
        assert!(
            begun.elapsed() < PATIENCE,
            "what was promised and never came is given back"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_list_that_is_too_long_is_refused_as_the_text_that_it_is() {
    let node = Node::start().await;
    with_business(&node).await;
    let many = create(&vec!["{}"; 5_500_000].join(","));
    let problem = node
        .admin
        .send(Method::POST, "/v1/tasks", &JSON, many)
        .await
        .problem(413, "payload-too-large");
    assert!(
        problem["detail"].as_str().unwrap().contains("4194304"),
        "{problem:#}"
    );
    let most = create(&vec!["{}"; 1_300_000].join(","));
    let made = node
        .admin
        .send(Method::POST, "/v1/tasks", &JSON, most)
        .await
        .expect(201);
    assert_eq!(made["counts"]["pending"], 1_300_000);
    let labels: Value = (0..2_000)
        .map(|n| (n.to_string(), json!("")))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let body = json!({"business": "push", "source": {"type": "range", "total": 1}, "labels": labels});
    let problem = node
        .admin
        .post("/v1/tasks", body)
        .await
        .problem(400, "invalid-request");
    assert_eq!(problem["errors"][0]["pointer"], "/labels", "{problem:#}");
    let reason = json!({"reason": "x".repeat(2 << 20)});
    let task = node.task("push", 1, json!({})).await;
    let stop = node.admin.post(&format!("/v1/tasks/{task}/stop"), reason).await;
    stop.problem(413, "payload-too-large");
}

#[tokio::test]
async fn uploads_that_wait_for_their_senders_hold_no_thread_and_leave_places_for_others() {
    let node = Recipe::new().config("[http]\nmax_uploads = 64").start().await;
    with_business(&node).await;
    let (push, other) = (
        node.client("business", Some("push")).await,
        node.client("operator", None).await,
    );
    let threads = metric(&node, "process_threads").await;
    let headers = ["content-type: application/x-ndjson", "content-length: 9000000"];
    // More than the pass takes in one go.
    let rows = b"1234567\n".repeat(80_000);
    let slow: Vec<Begun> = (0..16)
        .map(|_| Begun::send(&push, "POST /v1/uploads", &headers, &rows))
        .collect();
    until_metric(&node, "windrow_http_uploads", 16.0).await;
    let grown = metric(&node, "process_threads").await - threads;
    assert!(
        grown <= 6.0,
        "{grown} threads more for {} uploads that wait",
        slow.len()
    );
    let send = async |client: &Client| {
        let kind = [("content-type", "application/x-ndjson")];
        client
            .send(Method::POST, "/v1/uploads", &kind, Bytes::from_static(b"1\n"))
            .await
    };
    let refused = send(&push).await;
    assert_eq!(refused.header("retry-after"), Some("1"));
    refused.problem(429, "too-many-requests");
    send(&other).await.expect(201);
    drop(slow);
    let begun = Instant::now();
    while send(&push).await.status != 201 {
        assert!(
            begun.elapsed() < PATIENCE,
            "the places of those that broke off are given back"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_business_is_told_what_it_stores_and_warned_before_its_quota_is_full() {
    let node = Recipe::new()
        .config("[http]\nupload_quota = \"100 B\"")
        .start()
        .await;
    with_business(&node).await;
    let push = node.client("business", Some("push")).await;
    let send = async |client: &Client, rows: usize| {
        let body = Bytes::from(b"12345678\n\n".repeat(rows));
        client
            .send(
                Method::POST,
                "/v1/uploads",
                &[("content-type", "application/x-ndjson")],
                body,
            )
            .await
    };
    let first = send(&push, 5).await.expect(201);
    assert_eq!(first["quota"], json!({"bytes": 100, "stored": 50}), "{first:#}");
    let second = send(&push, 3).await.expect(201);
    assert!(
        second["quota"]["warning"]
            .as_str()
            .is_some_and(|text| text.starts_with("80 %")),
        "{second:#}"
    );
    send(&push, 3).await.problem(409, "upload-quota");
    // Another token of the same business has no other quota.
    let made = json!({"name": "second", "role": "business", "business": "push"});
    let made = node.admin.post("/v1/tokens", made).await.expect(201);
    send(&Client::new(&node.url, made["token"].as_str()), 3)
        .await
        .problem(409, "upload-quota");
    assert_eq!(
        metric(&node, "windrow_upload_stored_bytes{business=\"push\"}").await,
        80.0
    );
    assert_eq!(metric(&node, "windrow_upload_quota_bytes").await, 100.0);
    let free = send(&node.admin, 100).await.expect(201);
    assert_eq!(free["quota"], Value::Null, "who is no business has none");
    let gone = push
        .delete(&format!("/v1/uploads/{}", first["id"].as_str().unwrap()))
        .await;
    assert_eq!(gone.status, 204);
    send(&push, 3).await.expect(201);
}

#[tokio::test]
async fn streams_of_one_token_are_not_all_streams() {
    let node = Node::start().await;
    let (one, other) = (
        node.client("viewer", None).await,
        node.client("operator", None).await,
    );
    let listen = |client: &Client| Begun::send(client, "GET /v1/events?topics=tasks", &[], b"");
    let mut held: Vec<Begun> = (0..64).map(|_| listen(&one)).collect();
    for stream in &mut held {
        assert!(stream.answer().starts_with("HTTP/1.1 200 "));
    }
    let refused = listen(&one).answer();
    assert!(
        refused.starts_with("HTTP/1.1 429 ") && refused.contains("retry-after: 1"),
        "{refused}"
    );
    assert!(listen(&other).answer().starts_with("HTTP/1.1 200 "));
    drop(held);
    let begun = Instant::now();
    while !listen(&one).answer().starts_with("HTTP/1.1 200 ") {
        assert!(begun.elapsed() < PATIENCE, "who hung up has their share again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn whoever_holds_all_connections_of_an_address_leaves_health_to_be_asked_for() {
    let node = Recipe::new()
        .config("[http]\nmax_connections_per_peer = 4")
        .start()
        .await;
    let held: Vec<TcpStream> = (0..4).map(|_| connect(&node.admin)).collect();
    let begun = Instant::now();
    // Connections are taken in the order in which they came.
    let problem = node.admin.get("/v1/whoami").await.problem(503, "overloaded");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("http.max_connections"),
        "{problem:#}"
    );
    for path in ["/healthz", "/readyz", "/version"] {
        node.admin.get(path).await.expect(200);
    }
    drop(held);
    while node.admin.get("/v1/whoami").await.status != 200 {
        assert!(begun.elapsed() < PATIENCE, "there is room again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
