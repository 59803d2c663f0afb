//! `windrow api`, `openapi` and `version`.

use serde_json::json;

use crate::program::Person;
use crate::support::Node;

#[tokio::test]
async fn a_raw_call_prints_the_body_as_it_came() {
    let node = Node::start().await;
    let person = Person::admin(&node);
    let sent = node.admin.get("/v1/tokens").await;
    let done = person.windrow("api GET /v1/tokens").await.expect(0);
    assert_eq!(done.stdout.trim_end().as_bytes(), &sent.body[..]);
    assert_eq!(done.stderr, "");
    let body = json!({"name": "push", "url": "http://127.0.0.1:9/"}).to_string();
    let made = person
        .run(&["api", "POST", "/v1/businesses?check=skip", "-d", &body], "")
        .await
        .expect(0);
    assert_eq!(made.json()["name"], "push");
    person.write("patch.json", r#"{"display_name":"Push"}"#);
    let header = "If-Match: \"1\"";
    let words = [
        "api",
        "patch",
        "/v1/businesses/push",
        "-d",
        "@patch.json",
        "-H",
        header,
    ];
    assert_eq!(
        person.run(&words, "").await.expect(0).json()["display_name"],
        "Push"
    );
    assert_eq!(person.run(&words, "").await.expect(4).json()["status"], 412);
    let from_pipe = ["api", "PATCH", "/v1/businesses/push", "-d", "-"];
    let done = person
        .run(&from_pipe, r#"{"display_name":"Pull"}"#)
        .await
        .expect(0);
    assert_eq!(done.json()["display_name"], "Pull");
}

#[tokio::test]
async fn a_refused_raw_call_prints_its_problem_and_says_it_with_the_exit_code() {
    let node = Node::start().await;
    let person = Person::admin(&node);
    let done = person.windrow("api GET /v1/tasks/t9").await.expect(3);
    assert_eq!(done.json()["status"], 404);
    assert!(done.stderr.contains("error: not found"), "{}", done.stderr);
    let done = person
        .run(&["api", "POST", "/v1/tasks", "-d", r#"{"bussiness":"x"}"#], "")
        .await
        .expect(7);
    assert!(done.stderr.contains("/bussiness"), "{}", done.stderr);
    person.windrow("api FETCH /v1/tasks").await.refused(2, &["FETCH"]);
    person.windrow("api GET v1/tasks").await.refused(2, &["v1/tasks"]);
    person
        .windrow("api POST /v1/tasks -d @none.json")
        .await
        .refused(7, &["none.json"]);
}

#[tokio::test]
async fn the_description_and_the_versions_are_those_of_the_node() {
    let node = Node::start().await;
    let person = Person::admin(&node);
    let of_node = format!("openapi --server {}", node.url);
    let document = person.windrow(&of_node).await.expect(0).json();
    assert_eq!(person.windrow("openapi").await.expect(0).json(), document);
    assert_eq!(
        document["openapi"].as_str().map(|version| &version[..3]),
        Some("3.1")
    );
    let own = person.windrow("version").await.expect(0).stdout;
    assert!(
        own.starts_with(concat!("windrow ", env!("CARGO_PKG_VERSION"))),
        "{own}"
    );
    let both = person
        .windrow(&format!("version --server {}", node.url))
        .await
        .expect(0)
        .stdout;
    assert!(both.starts_with(&own) && both.contains("API v1"), "{both}");
    let body = person
        .windrow(&format!("version -o json --server {}", node.url))
        .await
        .expect(0)
        .json();
    assert_eq!(body["client"], body["node"]["version"]);
}
