//! `windrow ctx`: which node is asked, and who asks.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::program::Person;
use crate::support::Node;

#[tokio::test]
async fn a_context_is_added_used_shown_and_removed() {
    let node = Node::start().await;
    let person = Person::new();
    let file = node.path("admin.token").display().to_string();
    person
        .windrow(&format!("ctx add home --server {} --token-file {file}", node.url))
        .await
        .expect(0);
    person.windrow("task list").await.expect(0);
    let path = person.path(".config/windrow/contexts.toml");
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let words = [
        "ctx",
        "add",
        "other",
        "--server",
        "http://127.0.0.1:1",
        "--token-stdin",
    ];
    person.run(&words, "wrk_secret\n").await.expect(0);
    let list = person.windrow("ctx").await.expect(0).stdout;
    assert!(list.contains("*        home") && list.contains("other"), "{list}");
    person.windrow("ctx use other").await.expect(0);
    let shown = person.windrow("ctx show -o json").await.expect(0);
    assert_eq!(shown.json()["name"], "other");
    for words in [
        "ctx show",
        "ctx show -o csv",
        "ctx list -o wide",
        "ctx list -o json",
    ] {
        assert!(
            !person
                .windrow(words)
                .await
                .expect(0)
                .stdout
                .contains("wrk_secret"),
            "{words}"
        );
    }
    person.windrow("task list --context home").await.expect(0);
    let by_env = Person::new().env("XDG_CONFIG_HOME", &person.path(".config").display().to_string());
    by_env
        .env("WINDROW_CONTEXT", "home")
        .windrow("task list")
        .await
        .expect(0);
    person.windrow("ctx remove other").await.expect(0);
    assert_eq!(
        person.windrow("ctx list -o json").await.expect(0).json()["items"][0]["current"],
        false
    );
    person
        .windrow("ctx show")
        .await
        .refused(3, &["no context is current"]);
}

#[tokio::test]
async fn a_context_that_isnt_there_or_is_wrong_is_told() {
    let person = Person::new();
    let none = person.windrow("ctx").await.expect(0);
    assert_eq!(none.stdout, "");
    assert!(none.stderr.contains("windrow ctx add"), "{}", none.stderr);
    person
        .windrow("ctx add prod --server http://127.0.0.1:1")
        .await
        .expect(0);
    person
        .windrow("ctx use prd")
        .await
        .refused(3, &["prd", "did you mean \"prod\"?"]);
    person
        .windrow("task list --context prd")
        .await
        .refused(3, &["prod"]);
    person
        .windrow("ctx add x --server nowhere")
        .await
        .refused(2, &["nowhere"]);
    let told = person
        .windrow("ctx add y --server http://127.0.0.1:1 --token-file nope")
        .await
        .expect(0)
        .stderr;
    assert!(
        told.contains("warning: ") && told.contains("/nope doesn't exist"),
        "{told}"
    );
    person.write(".config/windrow/contexts.toml", "[context.a]\nsever = \"x\"\n");
    person
        .windrow("task list")
        .await
        .refused(78, &["did you mean \"server\"?", "contexts.toml"]);
}

#[tokio::test]
async fn a_stored_token_isnt_sent_to_another_server() {
    let node = Node::start().await;
    let person = Person::new();
    let file = node.path("admin.token").display().to_string();
    person
        .windrow(&format!(
            "ctx add home --server http://127.0.0.1:1 --token-file {file}"
        ))
        .await
        .expect(0);
    person
        .windrow(&format!("task list --server {}", node.url))
        .await
        .refused(5, &["not signed in"]);
    let words = format!("api GET /v1/whoami --server {} --token-file {file}", node.url);
    let body: Value = person.windrow(&words).await.expect(0).json();
    assert_eq!(body["role"], "admin");
}
