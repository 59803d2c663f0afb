//! Callbacks over https.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use h2::Reason;
use hyper::Version;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use windrow_engine::ports::handling::handler::{HandlerFactory, Reply};
use windrow_engine::ports::ownership::gate::Gate;
use windrow_handlers::http::{HttpHandlerFactory, HttpOptions};
use windrow_net::Outbound;

use crate::http_faults::answer_until_second;
use crate::support_server::{
    Act, Seen, Server, answer, clock, context, failure, open, raw, read_request, single,
};

/// A server whose certificate is for `host`, and the file that holds it.
pub(crate) async fn secure(host: &str) -> (Server, TempDir) {
    let (tls, folder) = acceptor(host, &[b"h2", b"http/1.1"]);
    let server = Server::start_with(|_| answer(204, ""), Some(tls)).await;
    (server, folder)
}

/// TLS with a certificate for `host` and these protocols, and the folder with the file that holds it.
fn acceptor(host: &str, protocols: &[&[u8]]) -> (TlsAcceptor, TempDir) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([host.to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a matching key");
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("ca.pem"), cert.pem()).expect("written");
    (TlsAcceptor::from(Arc::new(config)), folder)
}

fn options(server: &Server, folder: &TempDir) -> HttpOptions {
    through(server, trusting(folder))
}

fn trusting(folder: &TempDir) -> Outbound {
    Outbound {
        ca_file: Some(folder.path().join("ca.pem")),
        ..Outbound::default()
    }
}

fn through(server: &Server, outbound: Outbound) -> HttpOptions {
    at(server.address, outbound)
}

fn at(address: SocketAddr, outbound: Outbound) -> HttpOptions {
    let url = format!("https://localhost:{}/windrow", address.port());
    HttpOptions::new(url).through(outbound)
}

#[tokio::test]
async fn a_request_that_met_the_end_of_a_kept_secure_connection_is_sent_again() {
    for (last_words, calls) in [("", 3), ("HTTP/1.1 2", 2)] {
        let (tls, folder) = acceptor("localhost", &[b"http/1.1"]);
        let asked = Arc::new(AtomicU32::new(0));
        let heard = asked.clone();
        let address = raw(move |stream| {
            let (tls, heard) = (tls.clone(), heard.clone());
            async move {
                let stream = tls.accept(stream).await.expect("a session");
                answer_until_second(stream, heard, last_words).await;
            }
        })
        .await;
        let handler = open(at(address, trusting(&folder)));
        assert_eq!(handler.process(single()).await, Reply::AllOk);
        let is_taken = handler.process(single()).await == Reply::AllOk;
        assert_eq!(is_taken, last_words.is_empty(), "{last_words}");
        assert_eq!(asked.load(Ordering::SeqCst), calls, "{last_words}");
    }
}

/// Answers each stream but the second one, which ends for this reason.
async fn reset_second(stream: TcpStream, tls: TlsAcceptor, heard: Arc<AtomicU32>, reason: Reason) {
    let stream = tls.accept(stream).await.expect("a session");
    let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        if heard.fetch_add(1, Ordering::SeqCst) == 1 {
            respond.send_reset(reason);
            continue;
        }
        let head = hyper::Response::builder().status(204).body(()).expect("a head");
        drop(respond.send_response(head, true));
    }
}

#[tokio::test]
async fn a_stream_that_the_server_refused_is_sent_again() {
    for (reason, calls) in [(Reason::REFUSED_STREAM, 3), (Reason::INTERNAL_ERROR, 2)] {
        let (tls, folder) = acceptor("localhost", &[b"h2"]);
        let asked = Arc::new(AtomicU32::new(0));
        let heard = asked.clone();
        let address = raw(move |stream| reset_second(stream, tls.clone(), heard.clone(), reason)).await;
        let handler = open(at(address, trusting(&folder)));
        assert_eq!(handler.process(single()).await, Reply::AllOk);
        let is_taken = handler.process(single()).await == Reply::AllOk;
        assert_eq!(is_taken, reason == Reason::REFUSED_STREAM, "{reason}");
        assert_eq!(asked.load(Ordering::SeqCst), calls, "{reason}");
    }
}

#[tokio::test]
async fn a_private_authority_is_trusted_when_it_is_named() {
    let (server, folder) = secure("localhost").await;
    assert_eq!(
        open(options(&server, &folder)).process(single()).await,
        Reply::AllOk
    );
    assert_eq!(server.seen()[0].version, Version::HTTP_2);
}

#[tokio::test]
async fn an_authority_can_be_given_as_text_and_wins_over_the_file() {
    let (server, folder) = secure("localhost").await;
    let (_, other) = secure("localhost").await;
    let pem = std::fs::read_to_string(folder.path().join("ca.pem")).expect("there");
    let trusted = through(
        &server,
        Outbound {
            ca_pem: Some(pem),
            ..trusting(&other)
        },
    );
    assert_eq!(open(trusted).process(single()).await, Reply::AllOk);
}

#[tokio::test]
async fn http2_can_be_turned_off() {
    let (server, folder) = secure("localhost").await;
    let handler = open(through(
        &server,
        Outbound {
            http2: false,
            ..trusting(&folder)
        },
    ));
    assert_eq!(handler.process(single()).await, Reply::AllOk);
    assert_eq!(server.seen()[0].version, Version::HTTP_11);
}

#[tokio::test]
async fn an_unknown_certificate_is_refused() {
    let (server, _) = secure("localhost").await;
    let (_, other) = secure("localhost").await;
    let (kind, failure) = failure(open(options(&server, &other)).process(single()).await);
    assert_eq!(
        (kind, failure.code.as_ref()),
        ("unreachable", "TLS"),
        "{}",
        failure.message
    );
    assert!(
        [
            "certificate is refused: ",
            "`ca_file`",
            "--handler-ca-file",
            "--insecure-skip-verify"
        ]
        .iter()
        .all(|part| failure.message.contains(part)),
        "{}",
        failure.message
    );
    assert_eq!(server.seen().len(), 0);
}

/// Without `ca_file` the system's certificates count; a machine that has none says so when the run opens.
#[tokio::test]
async fn a_private_authority_is_refused_when_it_is_not_named() {
    let (server, _) = secure("localhost").await;
    let options = through(&server, Outbound::default());
    let failure = match HttpHandlerFactory::new(options, clock()).open(context(Gate::always_open())) {
        Ok(handler) => failure(handler.process(single()).await).1,
        Err(why) => why.failure,
    };
    assert_eq!(failure.code, "TLS", "{}", failure.message);
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    let (server, folder) = secure("example.org").await;
    let (kind, failure) = failure(open(options(&server, &folder)).process(single()).await);
    assert_eq!(
        (kind, failure.code.as_ref()),
        ("unreachable", "TLS"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn verification_can_be_switched_off() {
    let (server, _) = secure("example.org").await;
    let options = through(
        &server,
        Outbound {
            insecure_skip_verify: true,
            ..Outbound::default()
        },
    );
    assert_eq!(open(options).process(single()).await, Reply::AllOk);
}

#[tokio::test]
async fn where_a_server_never_answers_plain_http_tls_is_guessed() {
    let resetting = raw(|mut stream| async move { drop(read_request(&mut stream).await) }).await;
    let silent = raw(|mut stream| async move {
        drop(read_request(&mut stream).await);
        std::future::pending::<()>().await;
    })
    .await;
    let calls = AtomicU32::new(0);
    let answers_once = move |_: &Seen| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => answer(204, ""),
        _ => Act::Hang,
    };
    let slow = Server::start(answers_once).await;
    for (address, code, guessed) in [
        (resetting, "RESET", false),
        (silent, "TIMEOUT", true),
        (slow.address, "TIMEOUT", false),
    ] {
        let handler = open(HttpOptions::new(format!("http://127.0.0.1:{}/", address.port())));
        if address == slow.address {
            assert_eq!(handler.process(single()).await, Reply::AllOk);
        }
        let mut call = single();
        call.timeout = std::time::Duration::from_millis(300);
        let (_, failure) = failure(handler.process(call).await);
        assert_eq!(failure.code, code, "{}", failure.message);
        let has_guess = failure.message.contains("It may expect TLS: try https://");
        assert_eq!(has_guess, guessed, "{}", failure.message);
        let may_be_another = failure.message.contains("is an HTTP server listening there?");
        assert_eq!(may_be_another, guessed, "{}", failure.message);
    }
}

#[tokio::test]
async fn a_plain_server_behind_https_is_a_tls_failure() {
    let address = raw(|mut stream| async move { drop(read_request(&mut stream).await) }).await;
    let plain = Server::always(204, "").await;
    for (port, told) in [
        (address.port(), "no"),
        (plain.address.port(), "the server speaks plain http"),
    ] {
        let url = format!("https://127.0.0.1:{port}/");
        let options = HttpOptions::new(url).through(Outbound {
            insecure_skip_verify: true,
            ..Outbound::default()
        });
        let mut call = single();
        call.timeout = std::time::Duration::from_millis(500);
        let (kind, failure) = failure(open(options).process(call).await);
        assert_eq!(kind, "unreachable");
        assert!(
            ["TLS", "CONNECT"].contains(&failure.code.as_ref()),
            "{}",
            failure.message
        );
        assert!(failure.message.contains(told), "{}", failure.message);
    }
}

#[tokio::test]
async fn a_tls_server_behind_http_is_told_by_name_and_gets_no_item() {
    let (server, _) = secure("localhost").await;
    let url = format!("http://127.0.0.1:{}/", server.address.port());
    let (kind, failure) = failure(open(HttpOptions::new(url)).process(single()).await);
    assert_eq!(
        (kind, failure.code.as_ref()),
        ("unreachable", "TLS"),
        "{}",
        failure.message
    );
    assert_eq!(failure.message, "the server speaks TLS: use https in the URL");
    assert_eq!(server.seen().len(), 0);
}

/// A gate before `server` that lets only TLS through: the connections of others are reset, as many servers do that speak it.
async fn closing_on_plain(server: std::net::SocketAddr) -> (std::net::SocketAddr, Arc<AtomicUsize>) {
    let gate = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let (address, asked) = (gate.local_addr().expect("bound"), Arc::new(AtomicUsize::new(0)));
    let handshakes = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut came, _)) = gate.accept().await {
            let mut first = [0];
            came.peek(&mut first).await.ok();
            if first != [0x16] {
                came.set_zero_linger().ok();
                continue;
            }
            handshakes.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut behind = TcpStream::connect(server).await.expect("the server listens");
                tokio::io::copy_bidirectional(&mut came, &mut behind).await.ok();
            });
        }
    });
    (address, asked)
}

#[tokio::test]
async fn a_tls_server_that_only_closes_plain_connections_is_told_by_name_too() {
    let (server, _) = secure("localhost").await;
    let (address, asked) = closing_on_plain(server.address).await;
    let handler = open(HttpOptions::new(format!("http://{address}/")));
    for _ in 0..3 {
        let (kind, failure) = failure(handler.process(single()).await);
        assert_eq!((kind, failure.code.as_ref()), ("unreachable", "TLS"));
        assert_eq!(failure.message, "the server speaks TLS: use https in the URL");
    }
    assert_eq!((server.seen().len(), asked.load(Ordering::Relaxed)), (0, 1));
}

#[tokio::test]
async fn a_server_that_closes_every_connection_is_asked_once_whether_it_speaks_tls() {
    let nobody = "127.0.0.1:1".parse().expect("an address");
    let (address, asked) = closing_on_plain(nobody).await;
    let handler = open(HttpOptions::new(format!("http://{address}/")));
    for _ in 0..3 {
        let (kind, failure) = failure(handler.process(single()).await);
        assert_eq!((kind, failure.code.as_ref()), ("unclear", "RESET"));
        assert!(
            failure.message.contains("did the handler crash"),
            "{}",
            failure.message
        );
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}
