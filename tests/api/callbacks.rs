//! What each answer of a business does to its task, through the whole service; and its signatures.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::{Node, sum};

/// A task of `total` items whose first call is answered by `act`, all others well; and what became of it.
async fn outcome(node: &Node, name: &str, total: u64, more: Value, act: Act) -> (Value, Business) {
    let calls = AtomicU32::new(0);
    let business = Business::start(move |seen| {
        let first = seen.kind().ends_with(".process") && calls.fetch_add(1, Ordering::Relaxed) == 0;
        if first { act.clone() } else { Act::ok() }
    })
    .await;
    node.business(name, &business.url(), json!({})).await;
    let settings = json!({"start": true, "rate": "1000/s", "concurrency": 1, "error_budget": "none",
        "retry": {"max_attempts": 3, "backoff": "10ms..10ms x1 jitter 0%"}});
    let mut body = settings;
    crate::support::merge(&mut body, more);
    let task = node.task(name, total, body).await;
    let ended = |view: &Value| matches!(view["status"].as_str(), Some("finished" | "stopped"));
    (node.until(&task, "ended", ended).await, business)
}

fn counts(view: &Value) -> (u64, u64, u64) {
    let count = |name: &str| view["counts"][name].as_u64().expect("a number");
    (count("succeeded"), count("skipped"), count("failed"))
}

#[tokio::test]
async fn each_status_and_result_of_a_single_call_has_its_outcome() {
    let node = Node::start().await;
    let table: Vec<(&str, Act, (u64, u64, u64), usize)> = vec![
        ("empty-2xx", Act::status(200), (3, 0, 0), 3),
        ("no-content", Act::status(204), (3, 0, 0), 3),
        ("ok", Act::json(200, json!({"result": "ok"})), (3, 0, 0), 3),
        ("skip", Act::json(200, json!({"result": "skip"})), (2, 1, 0), 3),
        (
            "retry",
            Act::json(200, json!({"result": "retry", "code": "BUSY"})),
            (3, 0, 0),
            4,
        ),
        (
            "retry-after",
            Act::json(200, json!({"result": "retry", "retry_after": "50ms"})),
            (3, 0, 0),
            4,
        ),
        (
            "fail",
            Act::json(200, json!({"result": "fail", "code": "X"})),
            (2, 0, 1),
            3,
        ),
        (
            "bad-reply",
            Act {
                body: "<html>".into(),
                ..Act::status(200)
            },
            (3, 0, 0),
            4,
        ),
        (
            "unknown-result",
            Act::json(200, json!({"result": "perhaps"})),
            (3, 0, 0),
            4,
        ),
        ("bad-request", Act::status(400), (3, 0, 0), 4),
        ("unprocessable", Act::status(422), (2, 0, 1), 3),
        (
            "unprocessable-skip",
            Act::json(422, json!({"result": "skip"})),
            (2, 1, 0),
            3,
        ),
        ("timeout-408", Act::status(408), (3, 0, 0), 4),
        ("early-425", Act::status(425), (3, 0, 0), 4),
        ("server-error", Act::status(500), (3, 0, 0), 4),
        (
            "overload-429",
            Act::status(429).header("retry-after", "0"),
            (3, 0, 0),
            4,
        ),
        (
            "overload-503",
            Act::status(503).header("retry-after", "0"),
            (3, 0, 0),
            4,
        ),
        // One refusal is charged; only three in a row stop the task.
        ("unauthorized", Act::status(401), (3, 0, 0), 4),
        (
            "moved",
            Act::status(302).header("location", "http://169.254.169.254/"),
            (3, 0, 0),
            4,
        ),
    ];
    for (name, act, wanted, calls) in table {
        let (view, business) = outcome(&node, name, 3, json!({}), act).await;
        assert_eq!(view["status"], "finished", "{name}: {view:#}");
        assert_eq!(counts(&view), wanted, "{name}: {view:#}");
        assert_eq!(sum(&view), 3, "{name}");
        assert_eq!(business.items().len(), calls, "{name}: {:?}", business.items());
    }
}

#[tokio::test]
async fn an_answer_that_ends_the_task_says_why() {
    let node = Node::start().await;
    let (gone, _) = outcome(&node, "gone", 3, json!({}), Act::status(410)).await;
    assert_eq!(
        (&gone["status"], &gone["stop_reason"]),
        (&json!("stopped"), &json!("handler_gone")),
        "{gone:#}"
    );
    for (name, status) in [
        ("rejected-401", 401),
        ("rejected-404", 404),
        ("rejected-405", 405),
        ("moved-301", 301),
    ] {
        let business = Business::start(move |_| Act::status(status)).await;
        node.business(name, &business.url(), json!({})).await;
        let settings = json!({"start": true, "error_budget": "none", "concurrency": 1,
            "retry": {"backoff": "10ms..10ms x1 jitter 0%"}});
        let task = node.task(name, 100, settings).await;
        let view = node.status(&task, "stopped").await;
        assert_eq!(view["stop_reason"], "handler_rejected", "{name}: {view:#}");
        assert_eq!(business.items().len(), 3, "{name}: not a million retries");
    }
    let stop = Act::json(
        200,
        json!({"result": "ok", "command": {"command": "stop", "reason": "enough"}}),
    );
    let (stopped, _) = outcome(&node, "stop", 100, json!({}), stop).await;
    assert_eq!(stopped["stop_reason"], "business", "{stopped:#}");
    assert!(
        stopped["status_text"].as_str().unwrap().contains("enough"),
        "{stopped:#}"
    );
    let finish = Act::json(
        200,
        json!({"result": "ok", "command": {"command": "finish", "total": 2}}),
    );
    let (finished, business) = outcome(&node, "finish", 100, json!({}), finish).await;
    assert_eq!(finished["result"], "early", "{finished:#}");
    assert_eq!(sum(&finished), 100);
    assert!(business.items().len() < 100);
}

#[tokio::test]
async fn a_batch_is_answered_item_by_item() {
    let node = Node::start().await;
    let reply = json!({"results": [{"index": 1, "result": "skip"}, {"index": 2, "result": "fail", "code": "X"},
        {"index": 3, "result": "retry", "code": "BUSY"}], "default": "ok"});
    let more = json!({"batch": 5, "concurrency": 5});
    let (view, business) = outcome(&node, "batch", 5, more.clone(), Act::json(200, reply)).await;
    assert_eq!(counts(&view), (3, 1, 1), "{view:#}");
    assert!(business.items().contains(&(3, 2)), "{:?}", business.items());
    let missing = json!({"results": [{"index": 0, "result": "ok"}]});
    let (view, business) = outcome(&node, "missing", 5, more, Act::json(200, missing)).await;
    assert_eq!(counts(&view), (5, 0, 0), "{view:#}");
    let again: Vec<u64> = business
        .items()
        .iter()
        .filter(|(_, attempt)| *attempt == 2)
        .map(|(i, _)| *i)
        .collect();
    assert_eq!(again, [1, 2, 3, 4], "what was not named is never silently ok");
}

#[tokio::test]
async fn pauses_and_slow_downs_are_obeyed_without_loss() {
    let node = Node::start().await;
    let pause = Act::json(200, json!({"command": {"command": "pause_for", "for": "300ms"}}));
    let (view, business) = outcome(&node, "pause", 5, json!({}), pause).await;
    assert_eq!(counts(&view), (5, 0, 0), "{view:#}");
    let seen = business.seen();
    let calls: Vec<_> = seen.iter().filter(|seen| seen.kind() == "item.process").collect();
    let gap = calls[1].at.duration_since(calls[0].at);
    assert!(gap >= std::time::Duration::from_millis(290), "{gap:?}");
    let slow = Act::json(
        200,
        json!({"command": {"command": "slow_down", "rate": "50/s", "for": "10s"}}),
    );
    let (view, _) = outcome(&node, "slow", 20, json!({}), slow).await;
    assert_eq!(counts(&view), (20, 0, 0), "{view:#}");
}

/// Verified by the library that businesses use: `standardwebhooks` from PyPI, in the environment that
/// `scripts/install-tools.sh` makes.
#[tokio::test]
async fn signatures_verify_with_the_standard_webhooks_library() {
    let node = Node::start().await;
    let business = Business::willing().await;
    let made = node
        .business("push", &business.url(), json!({"hooks": {"finished": {}}}))
        .await;
    let first = made["secret"].as_str().expect("shown once").to_owned();
    let task = node.task("push", 3, json!({"start": true})).await;
    node.status(&task, "finished").await;
    let rotated = node
        .admin
        .post("/v1/businesses/push/rotate-secret", json!({}))
        .await
        .expect(200);
    let second = rotated["secret"].as_str().expect("shown once").to_owned();
    assert_ne!(first, second);
    let before = business.seen().len();
    let task = node.task("push", 3, json!({"start": true, "batch": 3})).await;
    node.status(&task, "finished").await;
    while business.of_kind("task.finished").len() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let calls: Vec<Value> = business
        .seen()
        .iter()
        .enumerate()
        .map(|(nth, seen)| {
            let headers: serde_json::Map<String, Value> =
                ["webhook-id", "webhook-timestamp", "webhook-signature"]
                    .into_iter()
                    .map(|name| (name.to_owned(), json!(seen.header(name))))
                    .collect();
            let secrets = if nth < before {
                json!([first])
            } else {
                json!([first, second])
            };
            json!({"headers": headers, "body": String::from_utf8_lossy(&seen.raw), "secrets": secrets})
        })
        .collect();
    let path = node.path("calls.json");
    std::fs::write(&path, json!(calls).to_string()).unwrap();
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/target/python/bin/python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/verify_signatures.py");
    let output = std::process::Command::new(python).arg(script).arg(&path).output();
    let output = output.expect("scripts/install-tools.sh makes target/python");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        format!("verified {}", calls.len())
    );
}
