//! The first calls of `/docs` can be copied: they are for the address that was asked, and each does what it says.

use std::process::{Command, Output};

use hyper::Method;
use serde_json::Value;

use crate::support::{Node, Recipe};

/// The lines of the page that are for a terminal.
async fn calls(node: &Node, headers: &[(&str, &str)]) -> String {
    let page = node
        .admin
        .send(Method::GET, "/docs", headers, Default::default())
        .await;
    assert_eq!(
        (page.status, page.header("cache-control")),
        (200, Some("no-store"))
    );
    let page = page.text();
    let calls = page
        .split_once("<pre>")
        .and_then(|(_, rest)| rest.split_once("</pre>"));
    let calls = calls.expect("some lines").0.to_owned();
    calls
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

fn typed(line: &str, before: &str) -> Output {
    let text = format!("{before}\n{line}");
    let done = Command::new("sh").args(["-ec", &text]).output().expect("a shell");
    assert!(
        done.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    done
}

/// Types every line of the page; the task of the last answer is the one that was made.
async fn all_work(node: &Node) {
    let calls = calls(node, &[]).await;
    let (token, calls) = match calls.split_once('\n') {
        Some((token, calls)) if token.starts_with("TOKEN=") => (token.to_owned(), calls.to_owned()),
        _ => (String::new(), calls),
    };
    let mut last = Value::Null;
    for line in calls.lines() {
        let (token, line) = (token.clone(), line.to_owned());
        let done = tokio::task::spawn_blocking(move || typed(&line, &token))
            .await
            .expect("done");
        last = serde_json::from_slice(&done.stdout).expect("JSON");
        assert!(last["type"].is_null(), "a problem: {last:#}");
    }
    assert_eq!(last["items"][0]["business"], "example", "{last:#}");
}

#[tokio::test]
async fn whoever_sits_at_the_machine_can_copy_the_first_calls() {
    let node = Node::start().await;
    let shown = calls(&node, &[]).await;
    let file = node.path("admin.token");
    assert!(
        shown.contains(&node.url) && shown.contains(file.to_str().expect("text")),
        "{shown}"
    );
    all_work(&node).await;
}

#[tokio::test]
async fn without_sign_in_they_have_no_token() {
    let node = Recipe::new().config("[auth]\nmode = \"off\"\n").start().await;
    let shown = calls(&node, &[]).await;
    assert!(!shown.contains("TOKEN"), "{shown}");
    all_work(&node).await;
}

#[tokio::test]
async fn where_the_token_is_no_other_machine_and_no_other_page_is_told() {
    let node = Node::start().await;
    let path = node.path("admin.token");
    let path = path.to_str().expect("text");
    for header in [
        ("x-forwarded-for", "192.0.2.7"),
        ("host", "evil.example:7700"),
        ("origin", "http://evil.example"),
    ] {
        let shown = calls(&node, &[header]).await;
        assert!(
            shown.contains("TOKEN=wrk_") && !shown.contains(path),
            "{header:?}: {shown}"
        );
        assert!(!shown.contains("evil"), "{shown}");
    }
}

#[tokio::test]
async fn the_index_names_what_answers() {
    let node = Node::start().await;
    let index = node.admin.get("/v1").await.expect(200);
    let named = index["resources"].as_object().expect("names");
    for name in ["cluster", "datasets", "schedules"] {
        let path = named[name].as_str().expect("a path");
        node.admin.get(path).await.expect(200);
    }
}
