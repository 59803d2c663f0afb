//! Peers that misbehave below HTTP, and addresses that can't or may not be reached.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use windrow_core::items::verdict::FailureClass;
use windrow_engine::ports::handling::handler::{CallFailure, Reply};
use windrow_handlers::http::HttpOptions;
use windrow_net::Outbound;
use windrow_net::egress::Egress;

use crate::support_server::{Act, Server, failure, open, raw, read_request, rows, single};

/// The reply to a single call of a peer that reads the request and then writes `bytes` and hangs up.
async fn reply_of(bytes: impl Into<Vec<u8>>) -> Reply {
    let bytes: Vec<u8> = bytes.into();
    let address = raw(move |mut stream| {
        let bytes = bytes.clone();
        async move {
            drop(read_request(&mut stream).await);
            // The other side may have hung up already.
            drop(stream.write_all(&bytes).await);
        }
    })
    .await;
    reply_from(&format!("http://{address}/")).await
}

async fn reply_from(url: &str) -> Reply {
    open(HttpOptions::new(url)).process(single()).await
}

fn is(reply: Reply, kind: &str, code: &str) -> String {
    let (found, failure) = failure(reply);
    assert_eq!(
        (found, failure.code.as_ref()),
        (kind, code),
        "{}",
        failure.message
    );
    failure.message
}

#[tokio::test]
async fn a_handler_that_never_answers_times_out() {
    let mut server = Server::start(|_| Act::Hang).await;
    let mut call = single();
    call.timeout = Duration::from_millis(200);
    let begun = Instant::now();
    let said = is(
        open(HttpOptions::new(server.url())).process(call).await,
        "unclear",
        "TIMEOUT",
    );
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_millis(150) && took < Duration::from_secs(5),
        "{took:?}"
    );
    assert!(
        said.contains("within 200ms") && said.contains("raise the call timeout (`timeout`)"),
        "{said}"
    );
    server.until_open(0).await;
}

/// Answers the first request when it is told to, on a thread of its own; says when that came.
fn answer_beside() -> (
    std::net::SocketAddr,
    tokio::sync::oneshot::Receiver<()>,
    std::sync::mpsc::Sender<()>,
) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (tell, told) = tokio::sync::oneshot::channel();
    let (go, gone) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let read = stream.read(&mut [0; 4096]).expect("a request");
        assert!(read > 0 && tell.send(()).is_ok());
        gone.recv().expect("told to answer");
        // More than is read at once: who looks once at what came has not seen all of it.
        let body = format!("{{\"result\":\"ok\"{}}}", " ".repeat(300_000));
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).expect("taken");
        drop(stream.read(&mut [0; 1]));
    });
    (address, told, go)
}

#[tokio::test]
async fn an_answer_that_came_while_the_process_stood_still_counts() {
    let (address, asked, go) = answer_beside();
    let handler = open(HttpOptions::new(format!("http://{address}/")));
    let mut call = single();
    call.timeout = Duration::from_millis(300);
    let timeout = call.timeout;
    let answered = tokio::spawn(async move { handler.process(call).await });
    asked.await.expect("the request came");
    go.send(()).expect("it waits");
    // What is tested: nothing else runs on this runtime meanwhile, no timer and no reader.
    std::thread::sleep(timeout + Duration::from_secs(1));
    assert!(matches!(answered.await.expect("no panic"), Reply::AllOk));
}

#[tokio::test]
async fn the_deadline_counts_from_the_gate() {
    let server = Server::always(204, "").await;
    let mut call = single();
    call.gate_time = call.gate_time.minus(Duration::from_secs(10));
    call.timeout = Duration::from_secs(9);
    is(
        open(HttpOptions::new(server.url())).process(call).await,
        "unclear",
        "TIMEOUT",
    );
    assert_eq!(server.connections(), 0);
    let server = Server::start(|_| Act::Hang).await;
    let mut call = single();
    call.gate_time = call.gate_time.minus(Duration::from_secs(10));
    call.timeout = Duration::from_millis(10_200);
    let begun = Instant::now();
    is(
        open(HttpOptions::new(server.url())).process(call).await,
        "unclear",
        "TIMEOUT",
    );
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(server.seen().len(), 1);
}

/// Writes `head`, then a byte now and then until the other side hangs up.
async fn trickle(mut stream: TcpStream, head: &'static str) {
    drop(read_request(&mut stream).await);
    drop(stream.write_all(head.as_bytes()).await);
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    while stream.write_all(b"x").await.is_ok() {
        ticks.tick().await;
    }
}

#[tokio::test]
async fn a_trickled_reply_is_cut_by_the_deadline() {
    let heads = [
        ("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n", "TIMEOUT"),
        ("HTTP/1.1 200 OK\r\nx: ", "TIMEOUT"),
        ("", "BAD_REPLY"),
        ("HTTP/1.1 500 Oh\r\ncontent-length: 100000\r\n\r\n", "HTTP_500"),
    ];
    for (head, code) in heads {
        let address = raw(move |stream| trickle(stream, head)).await;
        let mut call = single();
        call.timeout = Duration::from_millis(300);
        let begun = Instant::now();
        let (_, failure) = failure(
            open(HttpOptions::new(format!("http://{address}/")))
                .process(call)
                .await,
        );
        assert_eq!(failure.code, code, "{head}: {}", failure.message);
        assert!(begun.elapsed() < Duration::from_secs(5), "{head}");
    }
}

#[tokio::test]
async fn back_pressure_counts_even_when_its_body_never_ends() {
    let head = "HTTP/1.1 503 Busy\r\nretry-after: 3\r\ncontent-length: 100000\r\n\r\n";
    let address = raw(move |stream| trickle(stream, head)).await;
    let mut call = single();
    call.timeout = Duration::from_millis(200);
    let Reply::Failed(failed) = open(HttpOptions::new(format!("http://{address}/")))
        .process(call)
        .await
    else {
        panic!("succeeded")
    };
    assert!(
        matches!(&*failed, CallFailure::Failed { class: FailureClass::Unavailable, after: Some(wait), .. } if *wait == Duration::from_secs(3)),
        "{failed:?}"
    );
}

#[tokio::test]
async fn a_refused_connection_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let said = is(
        reply_from(&format!("http://{address}/")).await,
        "unreachable",
        "CONNECT",
    );
    assert!(
        said.contains(&address.to_string()) && said.contains("check that the handler is running"),
        "{said}"
    );
}

#[tokio::test]
async fn a_connection_that_breaks_is_a_reset() {
    is(reply_of("").await, "unclear", "RESET");
    is(reply_of("HTTP/1.1 200").await, "unclear", "RESET");
    is(
        reply_of("HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{\"result\":\"ok\"}").await,
        "unclear",
        "RESET",
    );
    is(
        reply_of("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc").await,
        "unclear",
        "RESET",
    );
    // Hanging up with unread bytes makes the kernel send a reset.
    let address = raw(|stream| async move { drop(stream.readable().await) }).await;
    is(
        reply_from(&format!("http://{address}/")).await,
        "unclear",
        "RESET",
    );
}

#[tokio::test]
async fn a_peer_that_speaks_something_else_is_a_bad_reply() {
    for garbage in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "220 mail ESMTP\r\n",
        "\0\0\0\0\0\0\0\0\0\0",
        "{\"result\":\"ok\"}\n\n",
    ] {
        let said = is(reply_of(garbage).await, "bad reply", "BAD_REPLY");
        assert!(said.contains("is an HTTP server listening there?"), "{said}");
    }
}

/// A peer that keeps its first connection for one answer, and ends it with these bytes when the next request comes; says how
/// many requests came.
async fn closes_kept_connections(last_words: &'static str) -> (String, Arc<AtomicU32>) {
    let asked = Arc::new(AtomicU32::new(0));
    let heard = asked.clone();
    let address = raw(move |stream| answer_until_second(stream, heard.clone(), last_words)).await;
    (format!("http://{address}/"), asked)
}

/// Answers what comes on a connection; the second request of all gets `last_words` and the end, if the first one came here too.
pub(crate) async fn answer_until_second(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    heard: Arc<AtomicU32>,
    last_words: &'static str,
) {
    let is_first = heard.load(Ordering::SeqCst) == 0;
    while read_request(&mut stream)
        .await
        .is_ok_and(|request| !request.is_empty())
    {
        let is_second = heard.fetch_add(1, Ordering::SeqCst) == 1;
        if is_first && is_second {
            drop(stream.write_all(last_words.as_bytes()).await);
            return;
        }
        drop(stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await);
    }
}

#[tokio::test]
async fn a_request_that_met_the_end_of_a_kept_connection_is_sent_again() {
    let (url, asked) = closes_kept_connections("").await;
    let handler = open(HttpOptions::new(url));
    assert_eq!(handler.process(single()).await, Reply::AllOk);
    assert_eq!(handler.process(single()).await, Reply::AllOk);
    assert_eq!(asked.load(Ordering::SeqCst), 3, "the second one twice");
}

#[tokio::test]
async fn a_request_whose_answer_began_is_not_sent_again() {
    for last_words in ["HTTP/1.1 2", "HTTP/1.1 102 Processing\r\n\r\n"] {
        let (url, asked) = closes_kept_connections(last_words).await;
        let handler = open(HttpOptions::new(url));
        assert_eq!(handler.process(single()).await, Reply::AllOk);
        is(handler.process(single()).await, "unclear", "RESET");
        assert_eq!(asked.load(Ordering::SeqCst), 2, "{last_words}");
    }
}

#[tokio::test]
async fn three_hundred_headers_are_read_and_no_more() {
    let head = |many: usize| format!("HTTP/1.1 204 Ok\r\n{}\r\n", "x: y\r\n".repeat(many));
    assert_eq!(reply_of(head(300)).await, Reply::AllOk);
    let said = is(reply_of(head(301)).await, "bad reply", "BAD_REPLY");
    assert!(said.contains("more than 300 headers"), "{said}");
}

#[tokio::test]
async fn long_headers_are_cut_at_64_kib() {
    let head = |bytes: usize| format!("HTTP/1.1 204 Ok\r\nx: {}\r\n\r\n", "x".repeat(bytes));
    assert_eq!(reply_of(head(30_000)).await, Reply::AllOk);
    is(reply_of(head(100_000)).await, "bad reply", "BAD_REPLY");
    let huge = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(1_000_000));
    is(reply_of(huge).await, "bad reply", "BAD_REPLY");
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(5000));
    is(reply_of(many).await, "bad reply", "BAD_REPLY");
}

#[tokio::test]
async fn an_endless_body_is_cut() {
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let body = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}",
        chunk.repeat(20)
    );
    is(reply_of(body).await, "bad reply", "REPLY_TOO_BIG");
    let lie = "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nx";
    is(reply_of(lie).await, "bad reply", "REPLY_TOO_BIG");
}

#[tokio::test]
async fn a_name_without_address_is_a_dns_failure() {
    let said = is(reply_from("http://no..such..name/").await, "unreachable", "DNS");
    assert!(said.contains("no..such..name"), "{said}");
}

#[tokio::test]
async fn denied_addresses_are_never_connected_to() {
    for url in [
        "http://169.254.169.254/latest",
        "http://[fe80::1]/",
        "http://[::ffff:169.254.169.254]/",
    ] {
        let said = is(reply_from(url).await, "rejected", "DENIED_ADDRESS");
        assert!(said.contains("deny_networks"), "{said}");
    }
    let server = Server::always(204, "").await;
    let networks = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| text.parse().expect(text))
            .collect::<Vec<_>>()
    };
    let loopback = networks(&["127.0.0.0/8", "::1/128"]);
    let port = server.address.port();
    for host in [
        "127.0.0.1",
        "localhost",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
    ] {
        let egress = Egress {
            allow: Vec::new(),
            deny: loopback.clone(),
            private: None,
        };
        let options = HttpOptions::new(format!("http://{host}:{port}/")).through(Outbound {
            egress,
            ..Outbound::default()
        });
        is(
            open(options).process(single()).await,
            "rejected",
            "DENIED_ADDRESS",
        );
    }
    let egress = Egress {
        allow: networks(&["10.0.0.0/8"]),
        deny: Vec::new(),
        private: None,
    };
    let options = HttpOptions::new(server.url()).through(Outbound {
        egress,
        ..Outbound::default()
    });
    let said = is(
        open(options).process(single()).await,
        "rejected",
        "DENIED_ADDRESS",
    );
    assert!(said.contains("allow_networks"), "{said}");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_name_is_resolved_and_connected_to() {
    let server = Server::always(204, "").await;
    let url = format!("http://localhost:{}/", server.address.port());
    assert_eq!(reply_from(&url).await, Reply::AllOk);
    assert_eq!(server.seen()[0].header("host"), Some(&url[7..url.len() - 1]));
}

/// A call that sends this much to a peer that takes nothing, and gives up.
async fn give_up_on_a_peer_that_reads_nothing(listener: &TcpListener) -> TcpStream {
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let data = format!("\"{}\"", "x".repeat(HELD_BYTES));
    let mut call = single();
    (call.rows, call.timeout) = (rows(3817, &[&data]), Duration::from_millis(300));
    let handler = open(HttpOptions::new(&url));
    let (reply, accepted) = tokio::join!(handler.process(call), listener.accept());
    is(reply, "unclear", "TIMEOUT");
    handler.close().await;
    accepted.expect("accepted").0
}

/// More than a peer with the smallest buffer takes, less than the kernel keeps for it. Unit: bytes.
const HELD_BYTES: usize = 12 * 1024;

#[tokio::test]
async fn what_a_peer_has_not_taken_yet_never_leaves_after_the_call_was_given_up() {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(1).expect("the smallest");
    socket
        .bind("127.0.0.1:0".parse().expect("an address"))
        .expect("bound");
    let listener = socket.listen(1).expect("listens");
    let mut stream = give_up_on_a_peer_that_reads_nothing(&listener).await;
    let mut taken = Vec::new();
    let end = stream.read_to_end(&mut taken).await;
    assert!(
        taken.len() < HELD_BYTES,
        "the whole request came: {} bytes",
        taken.len()
    );
    assert!(end.is_err(), "the connection is reset, not closed");
}

/// Everything that comes in over this socket is lost from now on, also what the other kernel sends again.
fn cut(stream: &TcpStream) {
    const RETURN: u16 = 0x06;
    let lose = socket2::SockFilter::new(RETURN, 0, 0, 0);
    socket2::SockRef::from(stream)
        .attach_filter(&[lose])
        .expect("cut");
}

fn heal(stream: &TcpStream) {
    socket2::SockRef::from(stream).detach_filter().expect("healed");
}

/// How soon the kernel sends again what a link lost for less than a second, and as long again. (200 ms, doubled.)
const SENT_AGAIN_WITHIN: Duration = Duration::from_secs(3);

#[tokio::test]
async fn what_a_link_lost_is_not_sent_when_it_heals_after_the_call_was_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let handler = open(HttpOptions::new(&url));
    let answered = async {
        let (mut stream, _) = listener.accept().await.expect("accepted");
        read_request(&mut stream).await.expect("a request");
        stream
            .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
            .await
            .expect("answered");
        stream
    };
    let (reply, mut stream) = tokio::join!(handler.process(single()), answered);
    assert_eq!(reply, Reply::AllOk);
    cut(&stream);
    let mut call = single();
    call.timeout = Duration::from_millis(300);
    is(handler.process(call).await, "unclear", "TIMEOUT");
    heal(&stream);
    let mut late = [0; 1];
    let came = tokio::time::timeout(SENT_AGAIN_WITHIN, stream.read(&mut late)).await;
    assert!(
        !matches!(came, Ok(Ok(1))),
        "the request came although its call was given up"
    );
}

#[tokio::test]
async fn a_link_that_heals_in_time_brings_the_call_that_waits_for_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let client = TcpStream::connect(listener.local_addr().expect("an address"));
    let (client, accepted) = tokio::join!(client, listener.accept());
    let (mut client, mut stream) = (client.expect("connected"), accepted.expect("accepted").0);
    cut(&stream);
    client.write_all(b"held").await.expect("the kernel takes it");
    heal(&stream);
    let mut held = [0; 4];
    stream
        .read_exact(&mut held)
        .await
        .expect("the kernel sends it again: what the test above sees is no accident");
}

#[tokio::test]
async fn a_port_that_does_not_finish_the_handshake_was_never_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let url = format!("https://{}/", listener.local_addr().expect("an address"));
    // Reading the authorities of TLS takes time too, and is none of the call's.
    let handler = open(HttpOptions::new(&url));
    let mut call = single();
    call.timeout = Duration::from_millis(200);
    let said = is(handler.process(call).await, "unreachable", "CONNECT");
    assert!(said.contains("within 200ms") && said.contains("TLS"), "{said}");
}
