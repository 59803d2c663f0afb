//! What keeps a command from its answer: exit codes 3, 5, 6, and what is said.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::program::Person;
use crate::support::{Node, Recipe};

/// An address where nobody listens.
fn nowhere() -> String {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    format!("http://127.0.0.1:{port}")
}

#[tokio::test]
async fn nobody_there_is_said_within_seconds_and_safe_to_try_again() {
    let person = Person::new().env("WINDROW_SERVER", &nowhere());
    let begun = std::time::Instant::now();
    person
        .windrow("task list")
        .await
        .refused(6, &["can't reach http", "--server URL"]);
    assert!(
        begun.elapsed().as_secs() < 25,
        "a refused connection doesn't use up the whole time limit"
    );
    let told = person.windrow("task list -v").await.expect(6).stderr;
    assert_eq!(told.matches("; retrying in ").count(), 2, "{told}");
}

#[tokio::test]
async fn who_isnt_known_or_may_not_is_told_what_to_do() {
    let node = Node::start().await;
    let person = Person::new().env("WINDROW_SERVER", &node.url);
    person
        .windrow("task list")
        .await
        .refused(5, &["not signed in", "windrow ctx add"]);
    person
        .windrow("task list --token-file none")
        .await
        .refused(5, &["none"]);
    let viewer = node.client("viewer", None).await;
    let viewer = Person::new()
        .env("WINDROW_SERVER", &node.url)
        .env("WINDROW_TOKEN", viewer.token.as_ref().unwrap());
    viewer.windrow("task list").await.expect(0);
    let done = viewer.windrow("api POST /v1/nodes/n1/drain").await.expect(5);
    assert!(done.stderr.contains("permission denied"), "{}", done.stderr);
}

#[tokio::test]
async fn a_mistyped_name_is_told_with_the_one_that_is_meant() {
    let node = Node::start().await;
    node.business("push", "http://127.0.0.1:9/", serde_json::json!({}))
        .await;
    node.task("push", 3, serde_json::json!({"name": "black-friday"}))
        .await;
    let person = Person::admin(&node);
    person
        .windrow("limit create vendor-x --rate 300/s")
        .await
        .expect(0);
    let id = person
        .windrow("node list -o name")
        .await
        .expect(0)
        .stdout
        .trim()
        .to_owned();
    for (words, told) in [
        ("biz show pusch", ["did you mean push?", "windrow biz list"]),
        ("biz show psuh", ["did you mean push?", "windrow biz list"]),
        (
            "task list --business pusch",
            ["did you mean push?", "windrow biz list"],
        ),
        (
            "task show pusch/black-friday",
            ["did you mean push?", "windrow biz list"],
        ),
        (
            "task show push/blak-friday",
            ["did you mean black-friday?", "windrow task list --business push"],
        ),
        (
            "limit show vendorx",
            ["did you mean vendor-x?", "windrow limit list"],
        ),
        (
            "limit set vendorx --rate 5/s",
            ["did you mean vendor-x?", "windrow limit list"],
        ),
        (
            format!("node show {id}x").as_str(),
            [format!("did you mean {id}?").as_str(), "windrow node list"],
        ),
        // What is named in passing is a thing like any other.
        (
            "task create pusch --total 3",
            ["did you mean push?", "windrow biz list"],
        ),
        (
            format!("task move push/black-friday --to {id}x").as_str(),
            [format!("did you mean {id}?").as_str(), "windrow node list"],
        ),
    ] {
        person.windrow(words).await.refused(3, &told);
    }
    for (address, meant) in [
        ("black-friday", "did you mean push/black-friday?"),
        ("blak-friday", "did you mean push/black-friday?"),
        ("1", "did you mean t1?"),
    ] {
        let told = ["is neither an id such as t42 nor business/name", meant];
        person
            .windrow(&format!("task show {address}"))
            .await
            .refused(2, &told);
    }
    for words in ["task list --business nosuch", "task show nosuch/x"] {
        let told = person.windrow(words).await.expect(3).stderr;
        assert!(told.contains("`windrow biz list`"), "{told}");
        assert!(
            !told.contains("did you mean") && !told.contains("--business"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn an_address_that_is_none_is_wrong_usage() {
    for server in ["n1:7700", "ftp://n1", "http://n1/v1", "http://me:pw@n1"] {
        Person::new()
            .windrow(&format!("task list --server {server}"))
            .await
            .refused(2, &["--server http"]);
    }
}

#[tokio::test]
async fn the_exchange_is_shown_with_its_secrets_masked() {
    let node = Node::start().await;
    let person = Person::admin(&node);
    let token = node.admin.token.clone().unwrap();
    let lines = person.windrow("task list -v").await.expect(0).stderr;
    assert!(lines.starts_with("< 200 GET /v1/tasks?limit=50  "), "{lines}");
    let all = person.windrow("task list -vv").await.expect(0).stderr;
    assert!(
        all.contains("> GET /v1/tasks?limit=50") && all.contains("< content-type: application/json"),
        "{all}"
    );
    let words = [
        "api",
        "POST",
        "/v1/tokens",
        "-vv",
        "-d",
        r#"{"name":"x","role":"viewer"}"#,
    ];
    let made = person.run(&words, "").await.expect(0);
    let new = made.json()["token"].as_str().unwrap().to_owned();
    for secret in [&token, &new] {
        assert!(
            !all.contains(secret) && !made.stderr.contains(secret),
            "{}",
            made.stderr
        );
    }
    assert!(made.stderr.contains("idempotency-key: "), "{}", made.stderr);
}

#[tokio::test]
async fn a_certificate_of_an_own_authority_is_trusted_when_it_is_named() {
    let recipe = Recipe::new();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(recipe.path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(recipe.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let config = format!(
        "[http]\ntls_cert_file = {:?}\ntls_key_file = {:?}",
        recipe.path("cert.pem").display().to_string(),
        recipe.path("key.pem").display().to_string()
    );
    let node = recipe.config(&config).start().await;
    let person = Person::admin(&node);
    let ca = node.path("cert.pem").display().to_string();
    person
        .windrow("task list")
        .await
        .refused(6, &["certificate rejected: issued by", "--ca-file"]);
    person
        .windrow(&format!("task list --ca-file {ca}"))
        .await
        .expect(0);
    person
        .windrow("task list --ca-file none.pem")
        .await
        .refused(78, &["none.pem"]);
}

#[tokio::test]
async fn who_mixes_up_http_and_https_is_told_the_address_that_would_do() {
    let recipe = Recipe::new();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(recipe.path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(recipe.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (recipe.path("cert.pem"), recipe.path("key.pem"));
    let secure = recipe
        .config(&format!(
            "[http]\ntls_cert_file = {cert:?}\ntls_key_file = {key:?}"
        ))
        .start()
        .await;
    let plainly = secure.url.replace("https:", "http:");
    let person = Person::admin(&secure).env("WINDROW_SERVER", &plainly);
    let told = format!("the node speaks TLS: use {}", secure.url);
    // A long body breaks the connection from the other end while it is still written.
    let long = person.write("long.json", &format!("{{\"x\":\"{}\"}}", "x".repeat(900_000)));
    for words in [
        "task list",
        "task watch t1",
        &format!("api POST /v1/tasks -d @{long}"),
    ] {
        person
            .windrow(words)
            .await
            .refused(6, &[&told, &format!("--server {}", secure.url)]);
    }
    let plain = Node::start().await;
    let person = Person::admin(&plain).env("WINDROW_SERVER", &plain.url.replace("http:", "https:"));
    let ca = secure.path("cert.pem").display().to_string();
    let told = format!("the node speaks plain http: use {}", plain.url);
    person
        .windrow(&format!("task list --ca-file {ca}"))
        .await
        .refused(6, &[&told]);
}

/// A server that does nothing with a connection but this, and its address.
async fn odd_server(closes: bool) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            match closes {
                true => drop(stream),
                false => open.push(stream),
            }
        }
    });
    place.to_string()
}

#[tokio::test]
async fn a_server_that_closes_or_keeps_silent_may_speak_tls() {
    for closes in [true, false] {
        let place = odd_server(closes).await;
        let person = Person::new().env("WINDROW_SERVER", &format!("http://{place}"));
        let told = format!("--server https://{place}");
        person
            .windrow("task list --request-timeout 1s")
            .await
            .refused(6, &["if it uses TLS", &told]);
    }
}

#[tokio::test]
async fn who_hangs_up_each_time_is_not_asked_for_as_long_as_a_command_may_take() {
    let place = odd_server(true).await;
    let person = Person::new().env("WINDROW_SERVER", &format!("http://{place}"));
    let begun = std::time::Instant::now();
    person
        .windrow("task list --request-timeout 1m")
        .await
        .refused(6, &["closed the connection without a response"]);
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
}

/// A node that answers `/readyz` with this and nothing else at all, and its address.
async fn slow_node(readiness: &'static str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = [0; 4096];
                let read = stream.read(&mut head).await.unwrap_or(0);
                if head[..read].starts_with(b"GET /readyz ") {
                    let answer = format!(
                        "HTTP/1.1 503 Busy\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{readiness}",
                        readiness.len()
                    );
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
                std::future::pending::<()>().await;
            });
        }
    });
    format!("http://{place}")
}

#[tokio::test]
async fn a_node_that_answers_late_is_told_with_what_it_says_of_itself() {
    let away = r#"{"ready":false,"reasons":[{"reason":"store","text":"the database did not respond within 2 s"}],"degraded":[]}"#;
    let ready = r#"{"ready":true,"reasons":[],"degraded":[]}"#;
    for (readiness, told, advised) in [
        (
            away,
            "it reports: the database did not respond within 2 s",
            "check the database",
        ),
        (
            ready,
            "it reports that it is ready",
            "--request-timeout waits longer",
        ),
    ] {
        let person = Person::new().env("WINDROW_SERVER", &slow_node(readiness).await);
        let done = person.windrow("cluster status --request-timeout 1s").await;
        let done = done.refused(6, &["didn't respond within 1s", told, advised]);
        assert!(!done.stderr.contains("TLS"), "{}", done.stderr);
    }
}

#[tokio::test]
async fn who_waits_for_an_answer_hears_for_whose() {
    let place = odd_server(false).await;
    let person = Person::new().env("WINDROW_SERVER", &format!("http://{place}"));
    let told = format!("still waiting for a response from http://{place}");
    person
        .windrow("task list --request-timeout 4s")
        .await
        .refused(6, &[&told, "didn't respond within 4s"]);
    let quiet = person
        .windrow("task list --request-timeout 4s --quiet")
        .await
        .expect(6);
    assert!(!quiet.stderr.contains("still waiting"), "{}", quiet.stderr);
}

#[tokio::test]
async fn a_business_with_an_unknown_certificate_is_told_what_trusts_one() {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let recipe = Recipe::new();
    std::fs::write(recipe.path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(recipe.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (recipe.path("cert.pem"), recipe.path("key.pem"));
    let secure = recipe
        .config(&format!(
            "[http]\ntls_cert_file = {cert:?}\ntls_key_file = {key:?}"
        ))
        .start()
        .await;
    let node = Node::start().await;
    let words = format!("biz register push --url {}/hook", secure.url);
    Person::admin(&node).windrow(&words).await.refused(
        11,
        &[
            "certificate is refused: ",
            "--handler-ca-file",
            "--insecure-skip-verify",
        ],
    );
}

#[tokio::test]
async fn what_is_no_list_has_no_csv_and_a_wrong_path_names_the_right_one() {
    let node = Node::start().await;
    let person = Person::admin(&node);
    for line in [
        "version -o csv",
        "task report t1 -o csv",
        "api GET /v1/tasks -o csv",
    ] {
        let done = person.windrow(line).await.expect(2);
        assert!(
            done.stderr.contains("unsupported output format"),
            "{line}: {}",
            done.stderr
        );
    }
    for (path, meant) in [("/health", "`/healthz`"), ("/v1/", "remove the slash")] {
        let problem = node.admin.get(path).await.problem(404, "not-found");
        assert!(problem["try"][0].as_str().unwrap().contains(meant), "{problem:#}");
    }
    let problem = node
        .admin
        .get("/v1/tasks?limt=3")
        .await
        .problem(400, "invalid-request");
    assert_eq!(problem["errors"][0]["pointer"], "limt", "{problem:#}");
    assert!(
        problem["errors"][0]["try"]
            .as_str()
            .unwrap()
            .starts_with("did you mean limit?"),
        "{problem:#}"
    );
    person
        .windrow("task create push --url file:///etc/passwd")
        .await
        .refused(2, &["must start with http:// or https://", "--csv FILE"]);
    let missing = person
        .run(&["task", "create", "push", "--csv", "nofile.csv"], "")
        .await
        .expect(7);
    assert!(
        missing.stderr.contains("the file doesn't exist"),
        "{}",
        missing.stderr
    );
}
