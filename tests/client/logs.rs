//! `windrow log`.

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::business::Business;
use crate::program::Person;
use crate::support::{Node, PATIENCE};

async fn append(node: &Node, task: &str, entries: serde_json::Value) {
    node.admin
        .post(&format!("/v1/tasks/{task}/logs"), json!({ "entries": entries }))
        .await
        .expect(202);
}

async fn node_with_lines() -> Node {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 10, json!({"name": "one"})).await;
    node.task("push", 10, json!({})).await;
    let first = json!({"level": "warn", "message": "slow upstream", "index": 1234, "extra": {"ms": 900}});
    append(&node, "t1", json!([first, {"message": "half done"}])).await;
    append(&node, "t2", json!([{"level": "error", "message": "db gone"}])).await;
    node
}

#[tokio::test]
async fn the_newest_line_is_the_last_for_people_and_the_first_for_scripts() {
    let node = node_with_lines().await;
    let person = Person::admin(&node);
    let text = person.windrow("log").await.expect(0).stdout;
    let ends: Vec<&str> = text.lines().map(|line| line.get(20..).unwrap_or(line)).collect();
    let expected = [
        "warn  t1 #1,234 slow upstream",
        "info  t1 half done",
        "error t2 db gone",
    ];
    assert_eq!(ends, expected, "{text}");
    let body = person.windrow("log -o json").await.expect(0).stdout;
    assert_eq!(
        body.trim_end().as_bytes(),
        &node.admin.get("/v1/logs?limit=50").await.body[..],
        "verbatim"
    );
    let wide = person
        .windrow("log --task push/one -o wide")
        .await
        .expect(0)
        .stdout;
    assert!(
        wide.contains(" #1,234 slow upstream {\"ms\":900}\n") && !wide.contains("t2"),
        "{wide}"
    );
    let rows = person.windrow("log -o csv --limit 1").await.expect(0).stdout;
    assert!(
        rows.starts_with("number,at,level,task,index,origin,code,message,extra,data\n"),
        "{rows}"
    );
}

#[tokio::test]
async fn a_log_is_narrowed() {
    let node = node_with_lines().await;
    let person = Person::admin(&node);
    for (words, count) in [
        ("--level warn", 2),
        ("--level error", 1),
        ("--index 1234", 1),
        ("--text UPSTREAM", 1),
        ("--origin business", 3),
        ("--origin system", 0),
        ("--since 1h", 3),
        ("--since 2999-01-01T00:00:00Z", 0),
        ("--until 1h", 0),
        ("--until 2999-01-01T00:00:00Z", 3),
        ("--task t2", 1),
        ("--limit 2", 2),
    ] {
        let text = person
            .windrow(&format!("log {words} -o name"))
            .await
            .expect(0)
            .stdout;
        assert_eq!(text.lines().count(), count, "{words}");
    }
    assert_eq!(
        person.windrow("log --origin system").await.expect(0).stderr,
        "no lines\n"
    );
    let one = person
        .windrow("task log push/one --search UPSTREAM")
        .await
        .expect(0)
        .stdout;
    assert!(
        one.ends_with(" warn  #1,234 slow upstream\n") && one.lines().count() == 1,
        "{one}"
    );
    person
        .windrow("log --since whenever")
        .await
        .refused(2, &["10m", "yesterday 18:00"]);
    person.windrow("log --task t99").await.refused(3, &["t99"]);
    let told = person.windrow("log --follow -o json").await.expect(2).stdout;
    assert!(told.contains("-o ndjson"), "{told}");
}

#[tokio::test]
async fn a_log_is_followed_line_by_line() {
    let node = node_with_lines().await;
    let person = Person::admin(&node);
    let mut child = person.begin(&["log", "--follow", "--level", "warn", "-o", "ndjson"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut messages = Vec::new();
    for wanted in 1..=4 {
        if wanted == 3 {
            append(
                &node,
                "t1",
                json!([{"message": "not asked for"}, {"level": "warn", "message": "third"}]),
            )
            .await;
        }
        if wanted == 4 {
            append(&node, "t2", json!([{"level": "error", "message": "fourth"}])).await;
        }
        let line = tokio::time::timeout(PATIENCE, lines.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        messages.push(line["message"].as_str().unwrap().to_owned());
    }
    assert_eq!(messages, ["slow upstream", "db gone", "third", "fourth"]);
}
