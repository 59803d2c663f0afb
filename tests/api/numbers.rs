//! `/metrics` of a real node: what a task's calls left behind, also of one that was shorter than a look.

use std::time::Duration;

use serde_json::json;

use crate::business::{Act, Business};
use crate::support::{Client, Node};

/// The value of a sample whose line begins so.
fn value(page: &str, begins: &str) -> Option<f64> {
    let line = page.lines().find(|line| line.starts_with(begins))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

async fn page(node: &Node) -> String {
    let answer = Client::new(&node.url, None).get("/metrics").await;
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.body.to_vec()).expect("text")
}

#[tokio::test]
async fn what_a_short_task_did_is_counted_to_the_last_item() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(3, _)] => Act::json(
            200,
            json!({"result": "fail", "code": "NO_USER", "message": "gone"}),
        ),
        [(5, 1)] => Act::status(500),
        [(7, _)] => Act::json(200, json!({"result": "skip"})),
        _ => Act::ok().after(Duration::from_millis(2)),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let more = json!({"rate": "500/s", "retry": {"backoff": "10ms..10ms x1 jitter 0%"}, "start": true});
    let task = node.task("push", 60, more).await;
    node.status(&task, "finished").await;
    let page = page(&node).await;
    let of = |name: &str, labels: &str| value(&page, &format!("{name}{{{labels}}}"));
    let attempts = |result: &str, code: &str| {
        let labels = format!(r#"business="push",task="{task}",result="{result}",code="{code}""#);
        of("windrow_item_attempts_total", &labels)
    };
    assert_eq!(attempts("ok", ""), Some(58.0), "{page}");
    assert_eq!(attempts("skip", ""), Some(1.0));
    assert_eq!(attempts("fail", "NO_USER"), Some(1.0));
    assert_eq!(attempts("retry", "HTTP_500"), Some(1.0), "{page}");
    let calls = r#"business="push",kind="http""#;
    assert_eq!(
        of("windrow_handler_duration_seconds_count", calls),
        Some(61.0),
        "60 items, one of them twice"
    );
    assert!(of("windrow_handler_duration_seconds_sum", calls) >= Some(0.1));
    let all = format!(r#"{calls},le="+Inf""#);
    assert_eq!(of("windrow_handler_duration_seconds_bucket", &all), Some(61.0));
    let delays = format!(r#"task="{task}""#);
    // What waited too long after it was given out goes back and is given out again.
    assert!(
        of("windrow_dispatch_delay_seconds_count", &delays) >= Some(61.0),
        "{page}"
    );
    let status = |status: &str| {
        of(
            "windrow_task_status",
            &format!(r#"task="{task}",status="{status}""#),
        )
    };
    assert_eq!((status("finished"), status("running")), (Some(1.0), Some(0.0)));
    assert!(value(&page, r#"windrow_lease_renewals_total{result="renewed"}"#) >= Some(1.0));
    assert!(value(&page, "windrow_checkpoint_duration_seconds_count") >= Some(1.0));
    assert_eq!(value(&page, "windrow_checkpoint_errors_total"), Some(0.0));
    assert!(
        value(
            &page,
            r#"windrow_store_query_duration_seconds_count{op="insert"}"#
        ) >= Some(1.0)
    );
    assert!(value(&page, r#"windrow_data_log_entries_total{level="error"}"#).is_some());
}

#[tokio::test]
async fn a_task_that_runs_shows_its_head_its_budget_and_what_is_unsaved() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(0, _)] => Act::ok().after(Duration::from_secs(60)),
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let more = json!({"rate": "20/s", "timeout": "90s", "error_budget": "5", "start": true});
    let task = node.task("push", 1_000_000, more).await;
    node.until(&task, "under way", |view| {
        view["counts"]["succeeded"].as_u64() >= Some(20)
    })
    .await;
    let text = page(&node).await;
    let of = |name: &str| value(&text, &format!(r#"{name}{{task="{task}"}}"#));
    assert!(
        of("windrow_window_head_age_seconds") > Some(0.8),
        "item 0 holds it: {text}"
    );
    assert_eq!(of("windrow_error_budget_remaining_ratio"), Some(1.0));
    assert!(of("windrow_checkpoint_age_seconds").is_some());
    assert_eq!(value(&text, "windrow_leases_held"), Some(1.0));
    let waits = node
        .task(
            "push",
            5,
            json!({"start_at": "2999-01-01T00:00:00Z", "start": true}),
        )
        .await;
    node.status(&waits, "queued").await;
    let line = format!(r#"windrow_task_status{{task="{waits}",status="queued"}}"#);
    assert_eq!(
        value(&page(&node).await, &line),
        Some(1.0),
        "one that has not run is shown as well"
    );
}

#[tokio::test]
async fn a_drained_node_that_is_watched_is_no_alarm() {
    let node = Node::start().await;
    let name = node.admin.get("/v1/nodes").await.expect(200)["items"][0]["id"].clone();
    let path = format!("/v1/nodes/{}/drain", name.as_str().expect("a name"));
    node.admin.post(&path, json!({})).await.expect(202);
    for _ in 0..9 {
        assert_eq!(node.admin.get("/readyz").await.status, 503);
    }
    let page = page(&node).await;
    let failed: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("windrow_http_server_requests_total{") && line.contains("status=\"5"))
        .collect();
    assert!(
        !failed.is_empty() && failed.iter().all(|line| line.contains("route=\"/readyz\"")),
        "{failed:?}"
    );
    let rules = include_str!("../../deploy/alerts.yml");
    let rule = rules
        .split("- alert: ")
        .find(|rule| rule.starts_with("WindrowErrors\n"))
        .expect("a rule");
    assert!(rule.contains(r#"route!="/readyz""#), "{rule}");
}
