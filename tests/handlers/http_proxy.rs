//! Callbacks through a forward proxy.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use tempfile::TempDir;
use windrow_engine::ports::handling::handler::Reply;
use windrow_handlers::http::HttpOptions;
use windrow_net::Outbound;
use windrow_net::egress::Egress;

use crate::http_tls::secure;
use crate::support_server::{Server, failure, open, raw, read_request, single};

/// A forward proxy, and the first line of each request that it got.
struct ForwardProxy {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ForwardProxy {
    async fn start() -> ForwardProxy {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = asked.clone();
        let address = raw(move |stream| forward(stream, heard.clone())).await;
        ForwardProxy {
            url: format!("http://{address}"),
            asked,
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("held by nobody").clone()
    }
}

async fn forward(mut client: TcpStream, asked: Arc<Mutex<Vec<String>>>) {
    let request = read_request(&mut client).await.expect("a request");
    let text = String::from_utf8_lossy(&request).into_owned();
    let first = text.lines().next().unwrap_or_default().to_owned();
    asked.lock().expect("held by nobody").push(first.clone());
    let target = first.split_whitespace().nth(1).unwrap_or_default();
    if first.starts_with("CONNECT ") {
        let mut server = TcpStream::connect(target).await.expect("the handler listens");
        client
            .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
            .await
            .expect("written");
        copy_bidirectional(&mut client, &mut server).await.ok();
        return;
    }
    let host = target
        .strip_prefix("http://")
        .and_then(|rest| rest.split('/').next())
        .expect("a whole url");
    let mut server = TcpStream::connect(host).await.expect("the handler listens");
    server.write_all(&request).await.expect("written");
    copy_bidirectional(&mut client, &mut server).await.ok();
}

#[tokio::test]
async fn a_proxy_gets_the_whole_url_of_an_http_handler() {
    let (server, proxy) = (Server::always(204, "").await, ForwardProxy::start().await);
    let options = HttpOptions::new(server.url()).through(Outbound {
        proxy: Some(proxy.url.clone()),
        ..Outbound::default()
    });
    let handler = open(options);
    assert_eq!(handler.process(single()).await, Reply::AllOk);
    assert_eq!(handler.process(single()).await, Reply::AllOk);
    assert_eq!(
        proxy.asked(),
        [format!("POST {} HTTP/1.1", server.url())],
        "one connection, kept"
    );
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].header("host"), Some(server.address.to_string().as_str()));
}

#[tokio::test]
async fn an_https_handler_is_reached_through_a_tunnel_and_its_own_certificate_counts() {
    let ((server, folder), proxy) = (secure("localhost").await, ForwardProxy::start().await);
    let port = server.address.port();
    let through = |trusted: &TempDir| {
        let (ca_file, proxy) = (Some(trusted.path().join("ca.pem")), Some(proxy.url.clone()));
        let outbound = Outbound {
            ca_file,
            proxy,
            ..Outbound::default()
        };
        HttpOptions::new(format!("https://localhost:{port}/windrow")).through(outbound)
    };
    assert_eq!(open(through(&folder)).process(single()).await, Reply::AllOk);
    assert_eq!(proxy.asked(), [format!("CONNECT localhost:{port} HTTP/1.1")]);
    let (_, other) = secure("localhost").await;
    let (kind, why) = failure(open(through(&other)).process(single()).await);
    assert_eq!(
        (kind, why.code.as_ref()),
        ("unreachable", "TLS"),
        "{}",
        why.message
    );
}

#[tokio::test]
async fn a_proxy_that_refuses_the_tunnel_is_a_charged_failure_that_says_so() {
    let refuse = |mut stream: TcpStream| async move {
        drop(read_request(&mut stream).await);
        stream.write_all(b"HTTP/1.1 403 Not here\r\n\r\n").await.ok();
    };
    let silent = |mut stream: TcpStream| async move { drop(read_request(&mut stream).await) };
    for (address, said) in [
        (raw(refuse).await, "403 Not here"),
        (raw(silent).await, "closed the connection"),
    ] {
        let proxy = Some(format!("http://{address}"));
        let outbound = Outbound {
            proxy,
            insecure_skip_verify: true,
            ..Outbound::default()
        };
        let options = HttpOptions::new("https://handler.test/").through(outbound);
        let (kind, why) = failure(open(options).process(single()).await);
        assert_eq!(
            (kind, why.code.as_ref()),
            ("unreachable", "PROXY"),
            "{}",
            why.message
        );
        assert!(why.message.contains(said), "{}", why.message);
    }
}

#[tokio::test]
async fn the_guard_judges_the_proxys_address_and_a_handlers_that_is_written_as_one() {
    let (server, proxy) = (Server::always(204, "").await, ForwardProxy::start().await);
    let deny = |network: &str| Egress {
        allow: Vec::new(),
        deny: vec![network.parse().expect("a network")],
        private: None,
    };
    let options = |url: &str, network: &str| {
        let (proxy, egress) = (Some(proxy.url.clone()), deny(network));
        HttpOptions::new(url).through(Outbound {
            proxy,
            egress,
            ..Outbound::default()
        })
    };
    for (url, network) in [
        (server.url().as_str(), "127.0.0.0/8"),
        ("http://169.254.169.254/latest", "169.254.0.0/16"),
    ] {
        let (kind, why) = failure(open(options(url, network)).process(single()).await);
        assert_eq!(
            (kind, why.code.as_ref()),
            ("rejected", "DENIED_ADDRESS"),
            "{}",
            why.message
        );
    }
    assert!(
        proxy.asked().is_empty() && server.seen().is_empty(),
        "nothing left"
    );
}

#[tokio::test]
async fn a_proxy_that_is_none_is_refused_when_a_run_opens() {
    for (proxy, said) in [
        ("https://p:1", "plain HTTP"),
        ("http://ann:geheim@p:1", "password"),
    ] {
        let options = HttpOptions::new("http://h/").through(Outbound {
            proxy: Some(proxy.to_owned()),
            ..Outbound::default()
        });
        let factory =
            windrow_handlers::http::HttpHandlerFactory::new(options, crate::support_server::clock());
        let why = factory.check().expect_err("refused").to_string();
        assert!(why.contains(said) && !why.contains("geheim"), "{why}");
    }
}
