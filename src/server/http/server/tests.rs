//! Raw connections against a real listener: what a slow, a loud and a late client get.

use std::io::{self, Read, Write};
use std::net::TcpStream as Client;
use std::sync::mpsc;

use axum::Extension;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::*;

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server on a thread of its own, until the value is dropped.
struct Running {
    address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    ended: mpsc::Receiver<bool>,
}

impl Running {
    fn start(limits: Limits, router: Router) -> Running {
        let (end, ending) = oneshot::channel::<()>();
        let (tell, ended) = mpsc::channel();
        let (bound, address) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                bound
                    .send(listener.local_addr().expect("an address"))
                    .expect("somebody waits");
                let server = Server {
                    listener: Listener::Tcp(listener, None),
                    router,
                    limits,
                };
                let done = server.serve(async { drop(ending.await) }).await;
                tell.send(done).ok();
            });
        });
        Running {
            address: address.recv().expect("it starts"),
            end: Some(end),
            ended,
        }
    }

    fn connect(&self) -> Client {
        let client = Client::connect(self.address).expect("a connection");
        client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        client
    }

    /// Sends bytes and reads to the end of the connection.
    fn talk(&self, bytes: &[u8]) -> String {
        let mut client = self.connect();
        client.write_all(bytes).expect("sent");
        everything(&mut client)
    }

    fn end(mut self) -> bool {
        drop(self.end.take());
        self.ended.recv_timeout(PATIENCE).expect("it ends")
    }
}

/// All that comes until the server closes; a reset after the answer is an end too.
fn everything(client: &mut Client) -> String {
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match client.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("the server neither answers nor closes: {error}"),
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn router() -> Router {
    let echo = |body: axum::body::Bytes| async move { body.len().to_string() };
    Router::new()
        .route("/", get(|| async { "here" }))
        .route("/echo", post(echo))
}

fn quick() -> Limits {
    let short = Duration::from_millis(300);
    Limits {
        head_patience: short,
        body_patience: short,
        write_patience: short,
        end_patience: PATIENCE,
        ..Limits::default()
    }
}

#[test]
fn a_request_is_answered_with_the_address_of_its_peer() {
    let peer = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.ip().to_string() };
    let server = Running::start(quick(), Router::new().route("/", get(peer)));
    let answer = server.talk(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert!(
        answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("127.0.0.1"),
        "{answer}"
    );
    assert!(server.end(), "nothing was under way");
}

#[test]
fn a_head_that_does_not_end_is_cut_off_and_so_is_silence() {
    let server = Running::start(quick(), router());
    for begun in [&b""[..], b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: "] {
        assert!(!server.talk(begun).contains("200 OK"), "no request was made");
    }
}

#[test]
fn drops_of_a_head_do_not_buy_time() {
    let server = Running::start(quick(), router());
    let mut client = server.connect();
    client.write_all(b"GET / HTTP/1.1\r\n").expect("sent");
    let mut drops = 0;
    // Ends when the server closes; each drop alone comes well within its patience.
    while client.write_all(b"x-drop: 1\r\n").is_ok() && drops < 100 {
        drops += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(drops < 100, "the server still listens after {drops} drops");
}

#[test]
fn heads_that_are_too_large_or_too_many_are_refused() {
    let server = Running::start(Limits::default(), router());
    let large = format!(
        "GET / HTTP/1.1\r\nhost: x\r\nx-large: {}\r\n\r\n",
        "x".repeat(4 * HEAD_BYTES_MAX)
    );
    let many = "x-many: 1\r\n".repeat(HEADERS_MAX + 1);
    for request in [large, format!("GET / HTTP/1.1\r\nhost: x\r\n{many}\r\n")] {
        let answer = server.talk(request.as_bytes());
        assert!(
            answer.starts_with("HTTP/1.1 431 ") || answer.is_empty(),
            "{answer}"
        );
    }
    let fine = format!(
        "GET / HTTP/1.1\r\nconnection: close\r\nx-large: {}\r\n\r\n",
        "x".repeat(8 << 10)
    );
    assert!(server.talk(fine.as_bytes()).starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn a_body_that_stalls_or_drips_is_cut_off() {
    let server = Running::start(quick(), router());
    let stalled = server.talk(b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf of it");
    assert!(stalled.starts_with("HTTP/1.1 400 "), "{stalled}");
    let mut client = server.connect();
    client
        .write_all(b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n")
        .expect("sent");
    let mut drops = 0;
    while client.write_all(b"x").is_ok() && drops < 100 {
        drops += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(drops < 100, "the server still takes drops after {drops}");
    let whole =
        server.talk(b"POST /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4\r\n\r\nwhole");
    assert!(
        whole.starts_with("HTTP/1.1 200 OK") && whole.ends_with('4'),
        "{whole}"
    );
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let large = || async { "x".repeat(64 << 20) };
    let server = Running::start(quick(), Router::new().route("/", get(large)));
    let mut client = server.connect();
    client
        .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        .expect("sent");
    // It reads nothing until the server has given up on it, which is what lets the server end.
    assert!(server.end(), "nobody is left");
    assert!(everything(&mut client).len() < 64 << 20, "not all of it was sent");
}

/// Says of each request whether there was a connection for it.
fn crowded() -> Router {
    let say = |crowded: Option<Extension<Crowded>>| async move {
        if crowded.is_some() { "no room" } else { "room" }
    };
    Router::new().route("/", get(say)).route("/healthz", get(say))
}

#[test]
fn a_connection_too_many_hears_of_health_only_and_a_closed_one_makes_room() {
    let limits = Limits {
        connections: 5,
        per_peer: 2,
        ..Limits::default()
    };
    let server = Running::start(limits, crowded());
    let mut held: Vec<Client> = (0..2).map(|_| server.connect()).collect();
    for client in &mut held {
        // An answer proves that the connection was taken.
        client
            .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            .expect("sent");
        let mut byte = [0];
        client.read_exact(&mut byte).expect("answered");
    }
    let refused = server.talk(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(
        refused.ends_with("no room") && refused.contains("connection: close"),
        "{refused}"
    );
    let health = server.talk(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(
        health.starts_with("HTTP/1.1 200 ") && health.ends_with("\r\n\r\nroom"),
        "{health}"
    );
    assert!(
        !server.talk(b"").contains("HTTP"),
        "who says nothing doesn't hold one of the few"
    );
    drop(held);
    let until = std::time::Duration::from_millis(20);
    let free = (0..500).any(|_| {
        std::thread::sleep(until);
        server
            .talk(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .ends_with("\nroom")
    });
    assert!(free, "there is room again");
}

#[test]
fn who_is_refused_before_the_body_was_read_sees_the_answer() {
    let no = || async { (axum::http::StatusCode::TOO_MANY_REQUESTS, "no") };
    let server = Running::start(Limits::default(), Router::new().route("/", post(no)));
    let body = vec![b'x'; 4 << 20];
    for round in 0..20 {
        let mut client = server.connect();
        let head = format!(
            "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        client.write_all(head.as_bytes()).expect("sent");
        // A client that reads only once it has sent all: a reset would fail it here, or take the answer with it.
        client
            .write_all(&body)
            .unwrap_or_else(|error| panic!("cut off in round {round}: {error}"));
        let answer = everything(&mut client);
        assert!(
            answer.starts_with("HTTP/1.1 429 ") && answer.ends_with("no"),
            "round {round}: {answer}"
        );
        assert!(answer.contains("connection: close"), "{answer}");
    }
    let read = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n".repeat(2);
    let mut client = server.connect();
    client.write_all(read.as_bytes()).expect("sent");
    let mut text = String::new();
    while text.matches("429").count() < 2 {
        let mut buffer = [0; 1024];
        let count = client.read(&mut buffer).expect("answered");
        assert!(count > 0, "a connection whose bodies were read goes on: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
}

#[test]
fn the_end_waits_for_requests_and_idle_connections_hold_nothing_up() {
    let (begin, begun) = mpsc::channel();
    let go = Arc::new(tokio::sync::Notify::new());
    let wait = go.clone();
    let slow = move || {
        let (begin, wait) = (begin.clone(), wait.clone());
        async move {
            begin.send(()).ok();
            wait.notified().await;
            "done"
        }
    };
    let server = Running::start(
        Limits {
            end_patience: PATIENCE,
            ..Limits::default()
        },
        Router::new().route("/", get(slow)),
    );
    let idle = server.connect();
    let mut client = server.connect();
    client
        .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        .expect("sent");
    begun.recv_timeout(PATIENCE).expect("it runs");
    let address = server.address;
    let ending = std::thread::spawn(move || server.end());
    while Client::connect(address).is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
    go.notify_one();
    assert!(
        everything(&mut client).ends_with("done"),
        "what was asked before the end is answered"
    );
    assert!(ending.join().expect("it ends"), "in time");
    drop(idle);
}
