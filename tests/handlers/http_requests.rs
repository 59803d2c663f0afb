//! What leaves: headers, bodies, signatures, connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use windrow_core::ids::{Moment, WallMs};
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{CallFailure, HandlerFactory, Reply};
use windrow_engine::ports::ownership::gate::{Gate, SessionTrust};
use windrow_handlers::http::{HttpHandlerFactory, HttpOptions};
use windrow_handlers::sign::Signer;
use windrow_net::Outbound;

use crate::support_server::{Act, Server, answer, call, clock, context, items, open, raw, rows, single};

fn not_sent() -> Reply {
    Reply::Failed(Box::new(CallFailure::NotSent))
}

#[tokio::test]
async fn a_single_callback_is_the_documented_one_byte_for_byte() {
    let server = Server::always(204, "").await;
    let mut call = single();
    call.rows = rows(3816, &[r#"{"n":0}"#, r#"{"user_id":"u_3818","locale":"zh-CN"}"#]);
    assert_eq!(
        open(HttpOptions::new(server.url())).process(call).await,
        Reply::AllOk
    );
    let expected = concat!(
        r#"{"type":"item.process","business":"push-campaign","shard":0,"run":3,"epoch":1795194100123,"#,
        r#""task":{"id":"t1042","name":"black-friday","revision":4,"params":{"template":"bf26"}},"#,
        r#""item":{"index":3817,"attempt":2,"key":"k7f3q2-t1042-3817","data":{"user_id":"u_3818","locale":"zh-CN"}}}"#
    );
    let seen = &server.seen()[0];
    assert_eq!(String::from_utf8_lossy(&seen.body), expected);
    assert_eq!((seen.method.as_str(), seen.uri.path()), ("POST", "/windrow"));
}

#[tokio::test]
async fn a_batched_callback_is_the_documented_one_byte_for_byte() {
    let server = Server::always(204, "").await;
    let handler = open(HttpOptions {
        batch: 16,
        ..HttpOptions::new(server.url())
    });
    let mut batch = call(items(&[(3816, 1, 1), (3817, 1, 2)]));
    batch.rows = rows(3816, &["{\"n\": 0}", "[1]"]);
    assert_eq!(handler.process(batch).await, Reply::AllOk);
    assert_eq!(handler.process(single()).await, Reply::AllOk);
    let head = concat!(
        r#"{"type":"items.process","business":"push-campaign","shard":0,"run":3,"epoch":1795194100123,"#,
        r#""task":{"id":"t1042","name":"black-friday","revision":4,"params":{"template":"bf26"}},"items":["#,
    );
    let seen = server.seen();
    let two = concat!(
        r#"{"index":3816,"attempt":1,"key":"k7f3q2-t1042-3816","data":{"n": 0}},"#,
        r#"{"index":3817,"attempt":2,"key":"k7f3q2-t1042-3817","data":[1]}]}"#
    );
    assert_eq!(String::from_utf8_lossy(&seen[0].body), format!("{head}{two}"));
    let one = r#"{"index":3817,"attempt":2,"key":"k7f3q2-t1042-3817"}]}"#;
    assert_eq!(String::from_utf8_lossy(&seen[1].body), format!("{head}{one}"));
    for seen in &seen {
        assert!(seen.header("webhook-id").expect("an id").starts_with("b-"));
        assert_eq!(
            (seen.header("idempotency-key"), seen.header("windrow-attempt")),
            (None, None)
        );
    }
    assert_ne!(seen[0].header("webhook-id"), seen[1].header("webhook-id"));
}

#[tokio::test]
async fn every_documented_header_is_sent() {
    let server = Server::always(204, "").await;
    let options = HttpOptions {
        headers: vec![("Authorization".into(), "Bearer x".into())],
        node: "node-ü".into(),
        ..HttpOptions::new(server.url())
    };
    let mut call = single();
    call.timeout = Duration::from_millis(2500);
    let gate_us = clock().wall_micros(call.gate_time);
    assert_eq!(open(options).process(call).await, Reply::AllOk);
    let seen = &server.seen()[0];
    let agent = format!("windrow/{} (+node-?)", env!("CARGO_PKG_VERSION"));
    let table = [
        ("content-type", "application/json"),
        ("user-agent", agent.as_str()),
        ("authorization", "Bearer x"),
        ("windrow-protocol", "1"),
        ("windrow-mode", "live"),
        ("windrow-task", "t1042"),
        ("windrow-shard", "0"),
        ("windrow-run", "3"),
        ("windrow-epoch", "1795194100123"),
        ("windrow-attempt", "2"),
        ("idempotency-key", "k7f3q2-t1042-3817"),
        ("webhook-id", "k7f3q2-t1042-3817"),
    ];
    for (name, value) in table {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    let time = |name| {
        let format = &time::format_description::well_known::Rfc3339;
        let text = seen.header(name).expect(name);
        time::OffsetDateTime::parse(text, format)
            .expect(text)
            .unix_timestamp_nanos()
            / 1000
    };
    // Two clocks of this process may differ by what passed between taking their offsets.
    assert!(
        (time("windrow-gate-time") - i128::from(gate_us)).abs() < 100_000,
        "{seen:?}"
    );
    assert!((time("windrow-deadline") - time("windrow-gate-time") - 2_500_000).abs() <= 1000);
    assert_eq!(
        seen.header("windrow-gate-time").map(str::len),
        Some("2026-11-20T17:02:11.500123Z".len())
    );
    let stamp: i64 = seen
        .header("webhook-timestamp")
        .expect("sent")
        .parse()
        .expect("seconds");
    assert!((stamp - clock().wall().0 / 1000).abs() <= 5, "{stamp}");
    assert_eq!(seen.header("traceparent").map(str::len), Some(55));
    assert_eq!(seen.header("webhook-signature"), None);
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn a_callback_is_signed_with_both_secrets_during_rotation() {
    let server = Server::always(204, "").await;
    let secrets = [
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
    ];
    let secrets: Vec<String> = secrets.iter().map(|secret| (*secret).to_owned()).collect();
    let options = HttpOptions {
        secrets: secrets.clone(),
        ..HttpOptions::new(server.url())
    };
    assert_eq!(open(options).process(single()).await, Reply::AllOk);
    let seen = &server.seen()[0];
    let stamp = seen
        .header("webhook-timestamp")
        .expect("sent")
        .parse()
        .expect("seconds");
    let signatures: Vec<&str> = seen
        .header("webhook-signature")
        .expect("signed")
        .split(' ')
        .collect();
    let check = |secret: &String| {
        let signer = Signer::new(&[secret]).expect("a secret");
        signer
            .signature(seen.header("webhook-id").expect("sent"), stamp, &seen.body)
            .expect("signed")
    };
    assert_eq!(signatures, secrets.iter().map(check).collect::<Vec<_>>());
}

#[tokio::test]
async fn calls_share_a_connection() {
    let server = Server::always(200, r#"{"result":"ok"}"#).await;
    let handler = open(HttpOptions::new(server.url()));
    for _ in 0..50 {
        assert_eq!(handler.process(single()).await, Reply::AllOk);
    }
    assert_eq!((server.seen().len(), server.connections()), (50, 1));
    join_all((0..200).map(|_| handler.process(single()))).await;
    let made = server.connections();
    assert!(made <= 200, "{made}");
    join_all((0..50).map(|_| handler.process(single()))).await;
    assert_eq!(server.connections(), made, "the pool keeps what was opened");
}

#[tokio::test]
async fn errors_keep_the_connection_too() {
    let server =
        Server::start(|_| Act::Answer(503, vec![("retry-after", "1".into())], "x".repeat(5000))).await;
    let handler = open(HttpOptions::new(server.url()));
    for _ in 0..10 {
        handler.process(single()).await;
    }
    assert_eq!((server.seen().len(), server.connections()), (10, 1));
}

#[tokio::test]
async fn nothing_is_sent_once_the_gate_is_shut() {
    let server = Server::always(204, "").await;
    let gate = Gate::always_open();
    gate.close();
    let factory = HttpHandlerFactory::new(HttpOptions::new(server.url()), clock());
    let handler = factory.open(context(gate)).expect("opens");
    assert_eq!(handler.process(single()).await, not_sent());
    assert_eq!((server.seen().len(), server.connections()), (0, 0));
}

/// Answers `early` for the first readings, then `late`.
struct StepClock {
    early_left: AtomicU64,
}

impl Clock for StepClock {
    fn now(&self) -> Moment {
        let step = |left: u64| left.checked_sub(1);
        let early = self
            .early_left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, step)
            .is_ok();
        Moment(if early { 10 } else { 1000 })
    }

    fn wall(&self) -> WallMs {
        WallMs(0)
    }

    fn wall_micros(&self, moment: Moment) -> i64 {
        moment.0 as i64
    }

    fn sleep_until(&self, _: Moment) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_gate_that_shuts_while_connecting_lets_no_byte_out() {
    let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
    let address = raw(move |mut stream| {
        let sender = sender.clone();
        async move {
            let mut bytes = Vec::new();
            drop(stream.read_to_end(&mut bytes).await);
            sender.send(bytes).expect("the test waits");
        }
    })
    .await;
    let session = Arc::new(SessionTrust::default());
    session.extend(Moment(100));
    let clock = Arc::new(StepClock {
        early_left: AtomicU64::new(1),
    });
    let factory = HttpHandlerFactory::new(HttpOptions::new(format!("http://{address}/")), clock);
    let handler = factory.open(context(Gate::new(session))).expect("opens");
    let mut call = single();
    call.gate_time = Moment(0);
    assert_eq!(handler.process(call).await, not_sent());
    assert_eq!(
        received
            .recv()
            .await
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        Some(String::new())
    );
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let mut server = Server::start(|_| Act::Hang).await;
    let handler = open(HttpOptions::new(server.url()));
    let mut pending = handler.process(single());
    tokio::select! {
        reply = &mut pending => panic!("the server hangs, yet {reply:?}"),
        () = server.until_seen(1) => {}
    }
    drop(pending);
    server.until_open(0).await;
}

#[tokio::test]
async fn closing_lets_go_of_idle_connections_and_sends_no_more() {
    let mut server = Server::always(204, "").await;
    let handler = open(HttpOptions::new(server.url()));
    assert_eq!(handler.process(single()).await, Reply::AllOk);
    server.until_open(1).await;
    handler.close().await;
    handler.close().await;
    server.until_open(0).await;
    assert_eq!(handler.process(single()).await, not_sent());
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_connection_that_nobody_uses_is_closed_in_time() {
    let mut server = Server::always(204, "").await;
    let handler = open(HttpOptions {
        outbound: Outbound {
            pool_idle: Duration::from_millis(200),
            ..Outbound::default()
        },
        ..HttpOptions::new(server.url())
    });
    assert_eq!(handler.process(single()).await, Reply::AllOk);
    server.until_open(1).await;
    server.until_open(0).await;
}

/// Answers one request on a connection, then closes it without having said so.
async fn answer_once(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().await.expect("a connection");
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    while !seen.ends_with(b"}}") {
        let len = stream.read(&mut buffer).await.expect("a request");
        seen.extend_from_slice(&buffer[..len]);
    }
    let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
    stream.write_all(answer).await.expect("it is read");
}

#[tokio::test]
async fn a_connection_that_was_closed_while_nobody_used_it_is_not_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let handler = open(HttpOptions::new(format!("http://{address}/")));
    for _ in 0..3 {
        let (reply, ()) = tokio::join!(handler.process(single()), answer_once(&listener));
        assert_eq!(reply, Reply::AllOk);
        // The runtime hears of the end when it waits for something.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_business_may_close_each_connection() {
    let server =
        Server::start(|_| Act::Answer(204, vec![("connection", "close".into())], String::new())).await;
    let handler = open(HttpOptions::new(server.url()));
    for _ in 0..5 {
        assert_eq!(handler.process(single()).await, Reply::AllOk);
    }
    assert_eq!(server.connections(), 5);
}

#[tokio::test]
async fn slots_are_unbounded() {
    let server = Server::start(|_| answer(204, "")).await;
    assert_eq!(*open(HttpOptions::new(server.url())).slots().borrow(), None);
}

#[tokio::test]
async fn what_can_never_work_is_refused_at_once_with_a_reason() {
    let good = || HttpOptions::new("http://127.0.0.1:9000/");
    let url = |url: &str| HttpOptions::new(url);
    let header = |name: &str, value: &str| HttpOptions {
        headers: vec![(name.into(), value.into())],
        ..good()
    };
    let table = [
        (url(""), "can't be used"),
        (url("127.0.0.1:9000"), "did you mean \"http://127.0.0.1:9000\"?"),
        (
            url("localhost:9000/x"),
            "did you mean \"http://localhost:9000/x\"?",
        ),
        (url("user:geheim@host/x"), "hidden"),
        (url("/windrow"), "neither http://"),
        (url("ftp://host/"), "neither http nor https"),
        (url("file:///etc/passwd"), "can't be used"),
        (url("http://"), "can't be used"),
        (url("http://host:0/"), "1 to 65535"),
        (url("http://host:/"), "1 to 65535"),
        (url("http://host:99999/"), "1 to 65535"),
        (url("http://[::1]:99999/"), "1 to 65535"),
        (url("http://ho st/"), "can't be used"),
        (url("http://host/\r\nx: y"), "can't be used"),
        (url("http://user:geheim@host/"), "user or password"),
        (
            HttpOptions {
                method: "PO ST".into(),
                ..good()
            },
            "POST is usual",
        ),
        (
            HttpOptions {
                response_pointer: "data".into(),
                ..good()
            },
            "/data",
        ),
        (
            HttpOptions {
                secrets: vec!["geheim".into()],
                ..good()
            },
            "openssl",
        ),
        (header("Host", "x"), "windrow sets it"),
        (header("Webhook-Id", "x"), "windrow sets it"),
        (header("windrow-task", "x"), "windrow sets it"),
        (header("transfer-encoding", "chunked"), "windrow sets it"),
        (header("x y", "x"), "not a valid header name"),
        (header("x", "geheim\r\ny: z"), "characters"),
        (
            url("https://host/").through(Outbound {
                ca_file: Some("/nowhere/ca.pem".into()),
                ..Outbound::default()
            }),
            "ca_file",
        ),
    ];
    for (options, part) in table {
        let shown = format!("{options:?} {}", options.url);
        let factory = HttpHandlerFactory::new(options, clock());
        let Err(why) = factory.open(context(Gate::always_open())) else {
            panic!("{shown} opens")
        };
        assert!(why.to_string().contains(part), "{shown}: {why}");
        assert!(!why.to_string().contains("geheim"), "{why}");
    }
}

#[test]
fn usual_urls_open() {
    for url in [
        "http://host",
        "http://host/",
        "HTTP://host:1/p?q=1",
        "http://[::1]:65535/",
        "https://a.b:443/x#y",
        "http://中.example/",
    ] {
        let options = HttpOptions::new(url).through(Outbound {
            insecure_skip_verify: true,
            ..Outbound::default()
        });
        let opened = HttpHandlerFactory::new(options, clock()).open(context(Gate::always_open()));
        assert!(opened.is_ok(), "{url}: {:?}", opened.err());
    }
}

#[test]
fn debug_shows_no_secret() {
    let options = HttpOptions {
        headers: vec![("authorization".into(), "geheim".into())],
        secrets: vec!["whsec_geheim".into()],
        ..HttpOptions::new("http://user:geheim@host/")
    };
    let factory = HttpHandlerFactory::new(options, clock());
    assert!(!format!("{factory:?}").contains("geheim"));
}

#[tokio::test]
async fn a_secret_header_that_a_handler_says_back_is_masked_in_all_that_is_kept() {
    let body = r#"{"result":"fail","code":"NO","message":"got Bearer c4n4ry-5ecr3t",
        "output":{"url":"/?t=c4n4ry%2d5ecr3t","b64":"YzRuNHJ5LTVlY3IzdA=="},"logs":[{"message":"\u0063\u0034n4ry-5ecr3t"}]}"#;
    let server = Server::always(200, body).await;
    let handler = open(HttpOptions {
        headers: vec![
            ("x-key".into(), "Bearer c4n4ry-5ecr3t".into()),
            ("x-team".into(), "growth-team".into()),
        ],
        secret_headers: vec!["X-Key".into()],
        ..HttpOptions::new(server.url())
    });
    let reply = format!("{:?}", handler.process(single()).await);
    assert!(reply.contains("••••") && reply.contains("NO"), "{reply}");
    for part in ["c4n4ry", "5ecr3t", "YzRuNHJ5"] {
        assert!(!reply.contains(part), "{part}: {reply}");
    }
}
