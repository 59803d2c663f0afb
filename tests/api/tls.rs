//! The façade over TLS, with HTTP/2 where the client offers it.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Version};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::rt::TokioExecutor;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;

use crate::support::Recipe;

struct Secure {
    recipe: Recipe,
    roots: RootCertStore,
}

fn secure() -> Secure {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).expect("a root");
    let recipe = Recipe::new();
    let (chain, key) = (recipe.path("cert.pem"), recipe.path("key.pem"));
    std::fs::write(&chain, cert.pem()).expect("written");
    std::fs::write(&key, signing_key.serialize_pem()).expect("written");
    let text = format!("[http]\ntls_cert_file = {chain:?}\ntls_key_file = {key:?}");
    Secure {
        recipe: recipe.config(&text),
        roots,
    }
}

fn client(
    roots: &RootCertStore,
    http2: bool,
) -> Pool<hyper_rustls::HttpsConnector<hyper_util::client::legacy::connect::HttpConnector>, Full<Bytes>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    let builder = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only();
    let connector = if http2 {
        builder.enable_http1().enable_http2().build()
    } else {
        builder.enable_http1().build()
    };
    Pool::builder(TokioExecutor::new()).build(connector)
}

#[tokio::test]
async fn a_node_with_a_certificate_speaks_https_only_and_both_versions_of_http() {
    let Secure { recipe, roots } = secure();
    let node = recipe.start().await;
    assert!(node.url.starts_with("https://"), "{}", node.url);
    for (http2, version) in [(true, Version::HTTP_2), (false, Version::HTTP_11)] {
        let pool = client(&roots, http2);
        // Twice: a connection is used again.
        for _ in 0..2 {
            let request = Request::get(format!("{}/v1/whoami", node.url))
                .header(
                    "authorization",
                    format!("Bearer {}", node.admin.token.as_deref().expect("a token")),
                )
                .body(Full::default())
                .expect("a request");
            let answer = pool.request(request).await.expect("an answer");
            assert_eq!((answer.status().as_u16(), answer.version()), (200, version));
            let body = answer.into_body().collect().await.expect("a body").to_bytes();
            let whoami: Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(whoami["role"], "admin");
        }
    }
    let stranger = client(&RootCertStore::empty(), true);
    let request = Request::get(format!("{}/healthz", node.url))
        .body(Full::default())
        .expect("a request");
    assert!(stranger.request(request).await.is_err(), "nobody vouches for it");
    let plain = Pool::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let url = node.url.replace("https://", "http://");
    let request = Request::get(format!("{url}/healthz"))
        .body(Full::default())
        .expect("a request");
    assert!(
        plain.request(request).await.is_err(),
        "nothing is answered in the clear"
    );
    assert_eq!(node.stop().await, Some(0));
}

#[tokio::test]
async fn a_certificate_that_can_not_be_used_is_refused_before_anything_is_begun() {
    let Secure { recipe, .. } = secure();
    let other = generate_simple_self_signed(["other".to_owned()]).expect("a certificate");
    for (name, text) in [
        ("key.pem", other.signing_key.serialize_pem()),
        ("key.pem", "no key".to_owned()),
        ("cert.pem", String::new()),
    ] {
        let good = std::fs::read_to_string(recipe.path(name)).expect("there");
        std::fs::write(recipe.path(name), text).expect("written");
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_windrow"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(recipe.path("data"))
            .env("WINDROW_HTTP__TLS_CERT_FILE", recipe.path("cert.pem"))
            .env("WINDROW_HTTP__TLS_KEY_FILE", recipe.path("key.pem"))
            .current_dir(recipe.path(""))
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(78), "{said}");
        assert!(said.contains("http.tls_"), "{said}");
        assert!(!recipe.path("data").exists(), "nothing was begun");
        std::fs::write(recipe.path(name), good).expect("written");
    }
}
