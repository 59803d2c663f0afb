//! The client's library half: repeats, uploads, downloads and events, against a real node and a scripted one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use windrow_client::{Client, ClientError, EnvironmentProxies, Options, Request, Tap};

use crate::business::{Act, Business};
use crate::support::Node;

fn client(url: &str, token: Option<&str>) -> Client {
    Client::new(Options {
        server: url.to_owned(),
        token: token.map(str::to_owned),
        timeout: Duration::from_secs(60),
        ca_file: None,
        proxies: EnvironmentProxies::default(),
        tap: Tap::none(),
    })
    .expect("a client")
}

fn admin(node: &Node) -> Client {
    client(&node.url, node.admin.token.as_deref())
}

/// What a client that speaks TLS begins with.
const HANDSHAKE: u8 = 0x16;

/// A server that gives these answers, one a connection, and tells what it was asked. An empty answer hangs up.
pub(crate) async fn scripted(
    answers: &'static [&'static str],
) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let mut piece = [0; 4096];
            let mut stream = loop {
                let (stream, _) = listener.accept().await.unwrap();
                // Where it hung up before, the client looks whether TLS is spoken: it isn't.
                if stream.peek(&mut piece[..1]).await.unwrap() == 1 && piece[0] != HANDSHAKE {
                    break stream;
                }
            };
            let mut text = Vec::new();
            while !text.windows(4).any(|end| end == b"\r\n\r\n") {
                let count = stream.read(&mut piece).await.unwrap();
                assert!(count > 0, "the request ended early");
                text.extend_from_slice(&piece[..count]);
            }
            asked.push(String::from_utf8_lossy(&text).into_owned());
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.ok();
        }
        asked
    });
    (url, asked)
}

fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = request.lines().filter_map(|line| line.split_once(": "));
    lines
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

const BUSY: &str = "HTTP/1.1 503 x\r\nretry-after: 0\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const DONE: &str = "HTTP/1.1 201 x\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";

#[tokio::test]
async fn a_post_is_sent_again_with_its_key_until_it_is_answered() {
    let (url, asked) = scripted(&["", BUSY, DONE]).await;
    let answer = client(&url, None)
        .post("/v1/tasks", &json!({}))
        .await
        .expect("an answer");
    assert_eq!(answer.status, 201);
    let asked = asked.await.unwrap();
    let keys: Vec<_> = asked
        .iter()
        .map(|request| header(request, "idempotency-key").unwrap())
        .collect();
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

#[tokio::test]
async fn a_patch_whose_answer_is_lost_is_not_sent_again() {
    let (url, asked) = scripted(&[""]).await;
    let error = client(&url, None)
        .patch("/v1/tasks/t1", &json!({}))
        .await
        .expect_err("no answer");
    assert!(matches!(error, ClientError::Closed { .. }), "{error}");
    assert_eq!(asked.await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_server_that_speaks_tls_and_hangs_up_on_plain_http_is_told_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap();
    let plain = Arc::new(AtomicU64::new(0));
    let counted = plain.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).await.unwrap();
            if piece[..read].first() == Some(&HANDSHAKE) {
                // A fatal alert: no handshake with this client.
                stream.write_all(&[0x15, 3, 3, 0, 2, 2, 40]).await.unwrap();
            } else {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let error = client(&format!("http://{place}"), Some("wrk_x"))
        .get("/v1/tasks")
        .await
        .expect_err("no plain HTTP");
    let wanted = format!("https://{place}");
    assert!(
        matches!(&error, ClientError::Scheme { wanted: told, .. } if *told == wanted),
        "{error}"
    );
    assert_eq!(plain.load(Ordering::Relaxed), 1, "it is not tried again");
}

#[tokio::test]
async fn what_is_no_node_is_told_from_one() {
    const PAGE: &str =
        "HTTP/1.1 404 x\r\ncontent-type: text/html\r\ncontent-length: 3\r\nconnection: close\r\n\r\n<p>";
    const MOVED: &str =
        "HTTP/1.1 302 x\r\nlocation: http://evil/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    for answer in [&[PAGE], &[MOVED]] {
        let (url, _asked) = scripted(answer).await;
        let error = client(&url, Some("wrk_x"))
            .get("/v1/tasks")
            .await
            .expect_err("no node");
        assert!(matches!(error, ClientError::NotWindrow { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_stream_goes_on_where_it_broke_off() {
    const FIRST: &str = "HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
        retry: 10\nid: 4\nevent: status\ndata: {\"a\":1}\n\nid: 5\nevent: log\ndata: half";
    const SECOND: &str = "HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
        id: 5\nevent: log\ndata: whole\n\n";
    let (url, asked) = scripted(&[FIRST, SECOND]).await;
    let client = client(&url, None);
    let mut events = client.events("tasks,task:t1", 4);
    assert_eq!(events.next().await.expect("an event").data, "{\"a\":1}");
    let second = events.next().await.expect("another");
    assert_eq!(
        (second.id.as_str(), second.event.as_str(), second.data.as_str()),
        ("5", "log", "whole")
    );
    let asked = asked.await.unwrap();
    assert!(
        asked[0].starts_with("GET /v1/events?topics=tasks%2Ctask%3At1&hz=4 "),
        "{}",
        asked[0]
    );
    assert_eq!(
        (
            header(&asked[0], "last-event-id"),
            header(&asked[1], "last-event-id")
        ),
        (None, Some("4"))
    );
}

#[tokio::test]
async fn an_upload_arrives_whole_and_tells_how_far_it_is() {
    let node = Node::start().await;
    let rows: String = (0..50_000).map(|row| format!("user-{row},en\n")).collect();
    let text = format!("user_id,locale\n{rows}");
    let size = text.len() as u64;
    let seen = Arc::new(AtomicU64::new(0));
    let meter = seen.clone();
    let request = Request::post("/v1/uploads").header("content-type", "text/csv");
    let input = std::io::Cursor::new(text.into_bytes());
    let answer = admin(&node)
        .upload(request, input, move |bytes| meter.store(bytes, Ordering::Relaxed))
        .await;
    let upload = answer.expect("an upload").json().expect("JSON");
    assert_eq!(
        (&upload["rows"], &upload["bytes"]),
        (&json!(50_000), &json!(size))
    );
    assert_eq!(seen.load(Ordering::Relaxed), size);
    let bad = Request::post("/v1/uploads").header("content-type", "text/html");
    let error = admin(&node)
        .upload(bad, std::io::Cursor::new(b"x"), |_| {})
        .await
        .expect_err("refused");
    assert!(
        matches!(&error, ClientError::Problem(problem) if problem.status == 415),
        "{error}"
    );
}

#[tokio::test]
async fn an_input_that_fails_is_not_the_nodes_fault() {
    struct Broken;
    impl tokio::io::AsyncRead for Broken {
        fn poll_read(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            _: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::task::Poll::Ready(Err(std::io::Error::other("the disk is gone")))
        }
    }
    let node = Node::start().await;
    let request = Request::post("/v1/uploads").header("content-type", "text/csv");
    let error = admin(&node)
        .upload(request, Broken, |_| {})
        .await
        .expect_err("no input");
    assert!(
        matches!(&error, ClientError::Input(why) if why.contains("disk")),
        "{error}"
    );
}

#[tokio::test]
async fn events_and_exports_of_a_real_node_arrive() {
    let business = Business::start(|_| Act::ok()).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 3, json!({})).await;
    let client = admin(&node);
    let mut events = client.events("task:t1", 10);
    let first = events.next().await.expect("an event");
    assert_eq!(first.event, "snapshot");
    client
        .post("/v1/tasks/t1/start", &json!({}))
        .await
        .expect("started");
    loop {
        let event = events.next().await.expect("an event");
        let data: Value = serde_json::from_str(&event.data).unwrap();
        if event.event == "status" && data["data"]["status"] == "finished" {
            break;
        }
    }
    let request = Request::get("/v1/tasks/t1/export/failures").accept("text/csv");
    let mut export = client.download(request).await.expect("an export");
    let mut bytes = Vec::new();
    while let Some(piece) = export.chunk().await.expect("a piece") {
        bytes.extend_from_slice(&piece);
    }
    assert!(
        String::from_utf8(bytes).unwrap().starts_with("index,"),
        "the head of a CSV"
    );
    let error = client
        .download(Request::get("/v1/tasks/t9/export/failures"))
        .await
        .expect_err("no task");
    assert!(
        matches!(&error, ClientError::Problem(problem) if problem.slug() == "not-found"),
        "{error}"
    );
}
