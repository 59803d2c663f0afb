//! A business whose handler demands a client certificate: registered, called, kept and shown.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::authority::Authority;
use crate::support::{Node, Recipe, files};

const PATH: &str = "/v1/businesses/push";

/// A handler that demands a certificate of the authority and does everything at once; counts the requests.
async fn demanding(authority: &Authority) -> (SocketAddr, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, tls) = (
        listener.local_addr().unwrap(),
        authority.demanding("127.0.0.1", &[b"h2", b"http/1.1"]),
    );
    let asked = Arc::new(AtomicU32::new(0));
    let counter = asked.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (tls, counter) = (tls.clone(), counter.clone());
            tokio::spawn(async move {
                let Ok(stream) = tls.accept(stream).await else {
                    return;
                };
                let answer = service_fn(move |_| {
                    counter.fetch_add(1, Ordering::Relaxed);
                    let mut answer = Response::new(Full::<Bytes>::default());
                    *answer.status_mut() = StatusCode::NO_CONTENT;
                    async { Ok::<_, Infallible>(answer) }
                });
                let server = auto::Builder::new(TokioExecutor::new());
                server.serve_connection(TokioIo::new(stream), answer).await.ok();
            });
        }
    });
    (address, asked)
}

async fn runs_three(node: &Node) {
    let task = node.task("push", 3, json!({"start": true})).await;
    let done = node.status(&task, "finished").await;
    assert_eq!(done["counts"]["succeeded"], 3, "{done:#}");
}

#[tokio::test]
async fn a_business_presents_its_certificate_whose_key_is_never_shown() {
    let authority = Authority::new("ours");
    let (address, asked) = demanding(&authority).await;
    let recipe = Recipe::new();
    let node = recipe.start().await;
    let (cert, key) = authority.issue("windrow", 4000);
    let body = json!({
        "name": "push", "url": format!("https://{address}/windrow"), "ca_pem": authority.pem(),
        "client_cert_pem": cert, "client_key_pem": key,
    });
    let made = node.admin.post("/v1/businesses", body).await.expect(201);
    assert_eq!(
        (&made["client_cert_pem"], &made["client_key_pem"]),
        (&json!(cert), &json!("***"))
    );
    runs_three(&node).await;
    assert!(asked.load(Ordering::Relaxed) > 0);

    let renewed = authority.issue("windrow", 4000);
    let patch = json!({"client_cert_pem": renewed.0});
    let problem = node
        .admin
        .patch(PATH, patch)
        .await
        .problem(422, "validation-failed");
    assert_eq!(problem["errors"][0]["pointer"], "/client_key_pem", "{problem:#}");
    let patch = json!({"client_cert_pem": renewed.0, "client_key_pem": renewed.1});
    node.admin.patch(PATH, patch).await.expect(200);
    let patch = json!({"client_key_pem": "***", "display_name": "Push"});
    node.admin.patch(PATH, patch).await.expect(200);
    runs_three(&node).await;
    let elsewhere = json!({"url": "https://other.example/"});
    let problem = node
        .admin
        .patch(PATH, elsewhere)
        .await
        .problem(422, "validation-failed");
    assert_eq!(problem["errors"][0]["pointer"], "/client_key_pem", "{problem:#}");
    let removed = node.admin.patch(PATH, json!({"client_cert_pem": null})).await;
    assert_eq!(removed.expect(200)["client_key_pem"], Value::Null);

    let mut shown = vec![node.said()];
    for path in [PATH, "/v1/businesses/push/revisions", "/v1/audit", "/v1/logs"] {
        shown.push(node.admin.get(path).await.text());
    }
    let secret = key.lines().nth(1).unwrap();
    assert!(shown.iter().all(|text| !text.contains(secret)));
    let data = node.data();
    assert_eq!(node.stop().await, Some(0));
    for file in files(&data) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(
            !bytes.windows(secret.len()).any(|part| part == secret.as_bytes()),
            "{file:?}"
        );
    }
}

#[tokio::test]
async fn half_a_certificate_or_one_that_can_not_be_presented_is_refused_at_registration() {
    let authority = Authority::new("ours");
    let node = Node::start().await;
    let (cert, key) = authority.issue("windrow", 4000);
    let (_, other) = authority.issue("windrow", 4000);
    let old = authority.issue("windrow", 2020);
    for (url, cert, key, pointer, told) in [
        ("https://h/", Some(&cert), None, "/client_key_pem", "required"),
        ("https://h/", None, Some(&key), "/client_cert_pem", "required"),
        (
            "https://h/",
            Some(&cert),
            Some(&other),
            "/client_key_pem",
            "doesn't belong",
        ),
        (
            "https://h/",
            Some(&old.0),
            Some(&old.1),
            "/client_cert_pem",
            "expired on",
        ),
        (
            "http://h/",
            Some(&cert),
            Some(&key),
            "/client_cert_pem",
            "https://",
        ),
    ] {
        let body = json!({"name": "push", "url": url, "client_cert_pem": cert, "client_key_pem": key});
        let problem = node
            .admin
            .post("/v1/businesses?check=skip", body)
            .await
            .problem(422, "validation-failed");
        let error = &problem["errors"][0];
        assert_eq!(error["pointer"], pointer, "{problem:#}");
        assert!(error["detail"].as_str().unwrap().contains(told), "{problem:#}");
    }
}

#[tokio::test]
async fn the_certificate_of_the_node_is_presented_for_businesses_without_one() {
    let authority = Authority::new("ours");
    let (address, _) = demanding(&authority).await;
    let recipe = Recipe::new();
    let paths = ["ca.pem", "c.pem", "k.pem"].map(|name| recipe.path(name));
    let (cert, key) = authority.issue("n1", 4000);
    for (path, text) in paths.iter().zip([authority.pem(), cert, key]) {
        std::fs::write(path, text).unwrap();
    }
    let [ca, cert, key] = &paths;
    let config =
        format!("[handler.http]\nca_file = {ca:?}\nclient_cert_file = {cert:?}\nclient_key_file = {key:?}\n");
    let node = recipe.config(&config).start().await;
    node.business("push", &format!("https://{address}/windrow"), json!({}))
        .await;
    runs_three(&node).await;
}

#[tokio::test]
async fn a_job_presents_the_certificate_of_its_flags() {
    let authority = Authority::new("ours");
    let (address, asked) = demanding(&authority).await;
    let place = tempfile::tempdir().unwrap();
    let (cert, key) = authority.issue("job", 4000);
    for (name, text) in [("ca.pem", authority.pem()), ("cert.pem", cert), ("key.pem", key)] {
        std::fs::write(place.path().join(name), text).unwrap();
    }
    let run = async |with: &[&str]| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_windrow"));
        command
            .args([
                "run",
                "--total",
                "3",
                "--handler-ca-file",
                "ca.pem",
                "--first-contact",
                "1s",
                "--url",
            ])
            .arg(format!("https://{address}/windrow"))
            .args(with);
        command.current_dir(place.path()).env("HOME", place.path());
        let done = command.output().await.unwrap();
        (
            done.status.code(),
            String::from_utf8_lossy(&done.stderr).into_owned(),
        )
    };
    let (code, said) = run(&["--name", "bare"]).await;
    assert!(code != Some(0) && said.contains("certificate"), "{code:?} {said}");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let (code, said) = run(&[
        "--name",
        "own",
        "--client-cert",
        "cert.pem",
        "--client-key",
        "key.pem",
    ])
    .await;
    assert_eq!(code, Some(0), "{said}");
    assert!(asked.load(Ordering::Relaxed) >= 3, "{said}");
}
