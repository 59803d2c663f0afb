//! Callbacks to servers that demand a client certificate.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use windrow_config::HttpHandler;
use windrow_core::business::secrets::BusinessSecrets;
use windrow_core::business::{BusinessSpec, HandlerSpec, HttpHandlerSpec};
use windrow_core::ids::WallMs;
use windrow_engine::ports::handling::handler::{HandlerFactory, Reply};
use windrow_engine::ports::ownership::gate::Gate;
use windrow_handlers::http::{HttpHandlerFactory, HttpOptions};
use windrow_net::{ClientCertificate, Half, Outbound};

use crate::authority::Authority;
use crate::support_server::{Server, answer, clock, context, failure, open, raw, single};

const HTTP_1: &[u8] = b"http/1.1";
const HTTP_2: &[u8] = b"h2";

async fn demanding(authority: &Authority, protocols: &[&[u8]]) -> Server {
    let tls = authority.demanding("localhost", protocols);
    Server::start_with(|_| answer(204, ""), Some(tls)).await
}

/// A server that refuses every handshake, and hears the client out: a connection that is reset may lose the alert.
async fn refusing(authority: &Authority, protocols: &[&[u8]]) -> SocketAddr {
    let tls = authority.demanding("localhost", protocols);
    raw(move |stream| {
        let tls = tls.clone();
        async move {
            let Err((_, mut stream)) = tls.accept(stream).into_fallible().await else {
                panic!("the certificate is accepted");
            };
            stream.shutdown().await.ok();
            stream.read_to_end(&mut Vec::new()).await.ok();
        }
    })
    .await
}

fn presenting(
    address: SocketAddr,
    authority: &Authority,
    client_cert: Option<ClientCertificate>,
) -> HttpOptions {
    let url = format!("https://localhost:{}/windrow", address.port());
    HttpOptions::new(url).through(Outbound {
        ca_pem: Some(authority.pem()),
        client_cert,
        ..Outbound::default()
    })
}

fn texts((cert, key): (String, String)) -> ClientCertificate {
    ClientCertificate::Texts { cert, key }
}

#[tokio::test]
async fn a_server_that_demands_a_certificate_is_shown_one() {
    let authority = Authority::new("ours");
    for protocols in [&[HTTP_1][..], &[HTTP_2, HTTP_1]] {
        let server = demanding(&authority, protocols).await;
        let own = texts(authority.issue("windrow", 4000));
        let handler = open(presenting(server.address, &authority, Some(own)));
        assert_eq!(handler.process(single()).await, Reply::AllOk);
    }
}

#[tokio::test]
async fn a_server_that_misses_a_certificate_gets_no_item_and_says_how_to_present_one() {
    let (authority, other) = (Authority::new("ours"), Authority::new("theirs"));
    for protocols in [&[HTTP_1][..], &[HTTP_2, HTTP_1]] {
        for (client_cert, told) in [
            (None, "requires a client certificate;"),
            (
                Some(texts(other.issue("windrow", 4000))),
                "requires a client certificate of an authority that it trusts",
            ),
        ] {
            let address = refusing(&authority, protocols).await;
            let handler = open(presenting(address, &authority, client_cert));
            let (kind, failure) = failure(handler.process(single()).await);
            assert_eq!(
                (kind, failure.code.as_ref()),
                ("unreachable", "TLS"),
                "{}",
                failure.message
            );
            for part in [told, "`client_cert_file`", "--client-cert FILE"] {
                assert!(failure.message.contains(part), "{}", failure.message);
            }
        }
    }
}

#[tokio::test]
async fn a_certificate_renewed_in_its_file_is_used_by_the_next_run() {
    let (authority, other) = (Authority::new("ours"), Authority::new("theirs"));
    let server = demanding(&authority, &[HTTP_1]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let (cert, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    let write = |(text, secret): (String, String)| {
        std::fs::write(&cert, text).expect("written");
        std::fs::write(&key, secret).expect("written");
    };
    let files = ClientCertificate::Files {
        cert: cert.clone(),
        key: key.clone(),
    };
    let options = presenting(server.address, &authority, Some(files));
    let factory = HttpHandlerFactory::new(options, clock());
    let opened = || factory.open(context(Gate::always_open()));
    write(other.issue("windrow", 4000));
    let before = opened().expect("opened");
    assert_eq!(failure(before.process(single()).await).1.code, "TLS");
    write(authority.issue("windrow", 4000));
    let after = opened().expect("opened");
    assert_eq!(after.process(single()).await, Reply::AllOk);
    write(authority.issue("windrow", 2020));
    let expired = opened().err().expect("refused").failure;
    assert_eq!(expired.code, "CLIENT_CERT", "{}", expired.message);
    for part in ["c.pem", "expired on 2020-12-31", "renew it"] {
        assert!(expired.message.contains(part), "{}", expired.message);
    }
}

#[test]
fn a_pair_that_can_not_be_presented_is_refused_with_its_half_and_why() {
    let authority = Authority::new("ours");
    let (cert, key) = authority.issue("windrow", 4000);
    let (_, other_key) = authority.issue("other", 4000);
    let old = authority.issue("windrow", 2020);
    let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    for (cert, key, half, told) in [
        (&cert, &other_key, Half::Key, "doesn't belong to the certificate"),
        (&old.0, &old.1, Half::Certificate, "expired on 2020-12-31"),
        (&key, &key, Half::Certificate, "contains no certificate"),
        (&cert, &cert, Half::Key, "contains no private key"),
        (&cert, &encrypted, Half::Key, "openssl pkey"),
        (&String::new(), &key, Half::Certificate, "BEGIN CERTIFICATE"),
    ] {
        let fault = texts((cert.clone(), key.clone())).load().expect_err("refused");
        assert_eq!(fault.half, half, "{told}: {fault}");
        assert!(fault.why.contains(told), "{told}: {fault}");
    }
    assert!(
        texts((cert.clone(), format!("{cert}{key}"))).load().is_ok(),
        "one file for both"
    );
    let shown = format!("{:?}", texts((cert, key)));
    assert_eq!(shown, "ClientCertificate");
}

#[test]
fn the_certificate_of_a_business_is_shown_to_its_own_host_only() {
    let authority = Authority::new("ours");
    let (cert, key) = authority.issue("windrow", 4000);
    let spec = BusinessSpec {
        display_name: None,
        pool: "default".to_owned(),
        handler: HandlerSpec::Http(HttpHandlerSpec {
            url: "https://push.example/windrow".to_owned(),
            client_cert_pem: Some(cert.clone()),
            ..HttpHandlerSpec::default()
        }),
        hooks: Default::default(),
        defaults: Default::default(),
        limits: Default::default(),
    };
    let secrets = BusinessSecrets::default().with_values(BTreeMap::new(), BTreeMap::new(), Some(key.clone()));
    let shown_to = |url: &str| {
        let config = HttpHandler::default();
        HttpOptions::for_business(&config, url, &spec, &secrets, WallMs(0))
            .outbound
            .client_cert
    };
    assert_eq!(shown_to("https://push.example/hook"), Some(texts((cert, key))));
    assert_eq!(shown_to("https://hooks.example/hook"), None);
}
