//! Recent counts of a task, over the API.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::Node;

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array()
        .expect("a list")
        .iter()
        .map(|one| one.as_f64().unwrap_or(f64::NAN))
        .collect()
}

/// Asks again until the answer fulfils a condition: samples come once a second.
async fn until(node: &Node, path: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let answer = node.admin.get(path).await.expect(200);
        if fits(&answer) {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{answer:#}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn the_past_of_a_task_is_whole_through_its_runs_and_after_its_end() {
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
    let more = json!({"rate": "100/s", "retry": {"backoff": "10ms..10ms x1 jitter 0%"}, "start": true});
    let task = node.task("push", 400, more).await;
    let path = format!("/v1/tasks/{task}");
    node.until(&task, "under way", |view| {
        view["counts"]["succeeded"].as_u64() >= Some(120)
    })
    .await;
    node.admin
        .post(&format!("{path}/stop"), json!({}))
        .await
        .expect(202);
    node.status(&task, "stopped").await;
    node.admin
        .post(&format!("{path}/start"), json!({}))
        .await
        .expect(202);
    node.status(&task, "finished").await;
    let all = |stats: &Value| {
        let sums = &stats["sums"];
        ["succeeded", "skipped", "failed"]
            .iter()
            .filter_map(|term| sums[term].as_u64())
            .sum::<u64>()
    };
    let stats = until(&node, &format!("{path}/stats"), |stats| all(stats) == 400).await;
    let (sums, series) = (&stats["sums"], &stats["series"]);
    assert_eq!(
        (&sums["skipped"], &sums["failed"]),
        (&json!(1), &json!(1)),
        "{stats:#}"
    );
    assert_eq!(
        sums["failed_attempts"], 2,
        "one that was tried again, one given up"
    );
    assert_eq!(
        stats["latency"]["count"], 401,
        "400 items, one of them twice: {stats:#}"
    );
    assert!(stats["latency"]["p50"].as_f64() >= Some(0.001), "{stats:#}");
    let buckets = stats["latency"]["buckets"].as_array().expect("a list");
    assert_eq!(
        buckets
            .iter()
            .filter_map(|one| one["count"].as_u64())
            .sum::<u64>(),
        401
    );
    let (rates, seconds) = (numbers(&series["rate"]), numbers(&series["seconds"]));
    for name in [
        "time",
        "target",
        "p50",
        "p95",
        "p99",
        "errors",
        "in_flight",
        "watermark",
        "window",
    ] {
        assert_eq!(
            series[name].as_array().map(Vec::len),
            Some(rates.len()),
            "{name}: {series:#}"
        );
    }
    let settled: f64 = rates
        .iter()
        .zip(&seconds)
        .map(|(rate, seconds)| rate * seconds)
        .sum();
    assert!(
        (settled - 400.0).abs() < 2.0,
        "the points add up: {settled} {series:#}"
    );
    assert!(
        rates.iter().all(|rate| *rate >= 0.0),
        "no run takes anything back: {series:#}"
    );
    assert!(
        series["target"]
            .as_array()
            .is_some_and(|all| all.contains(&json!(100.0))),
        "{series:#}"
    );
    assert!(
        stats["from"].as_str() < series["time"][0].as_str(),
        "it begins where something is known"
    );
    let coarse = node
        .admin
        .get(&format!("{path}/stats?step=60s"))
        .await
        .expect(200);
    let points = coarse["series"]["time"].as_array().map_or(0, Vec::len);
    assert!(
        (1..=2).contains(&points),
        "the run of some seconds lies in a minute or two: {coarse:#}"
    );
    assert_eq!(all(&coarse), 400, "{coarse:#}");
}

#[tokio::test]
async fn a_task_that_never_ran_has_no_points_and_senseless_times_are_refused() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node.task("push", 10, json!({})).await;
    let path = format!("/v1/tasks/{task}/stats");
    let stats = node.admin.get(&path).await.expect(200);
    assert_eq!(
        (&stats["series"]["time"], &stats["series"]["stalls"]),
        (&json!([]), &json!({})),
        "{stats:#}"
    );
    assert_eq!(
        (&stats["latency"]["count"], &stats["latency"]["p95"]),
        (&json!(0), &json!(null))
    );
    let day = "from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z";
    let stats = node.admin.get(&format!("{path}?{day}")).await.expect(200);
    assert_eq!(
        (&stats["from"], &stats["step_seconds"]),
        (&json!("2026-01-01T00:00:00.000Z"), &json!(40.0))
    );
    for wrong in [
        "step=10ms",
        "step=soon",
        "from=yesterday",
        "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
        "from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z&step=1s",
        "until=now",
    ] {
        node.admin
            .get(&format!("{path}?{wrong}"))
            .await
            .problem(400, "invalid-request");
    }
    node.admin
        .get("/v1/tasks/t999/stats")
        .await
        .problem(404, "not-found");
    let viewer = node.client("viewer", None).await;
    assert_eq!(viewer.get(&path).await.status, 200);
    node.business("other", &business.url(), json!({})).await;
    let stranger = node.client("business", Some("other")).await;
    stranger.get(&path).await.problem(404, "not-found");
}

#[tokio::test]
async fn what_all_tasks_did_is_the_sum_of_what_each_did() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let mut tasks = Vec::new();
    for _ in 0..2 {
        tasks.push(
            node.task("push", 150, json!({"rate": "50/s", "start": true}))
                .await,
        );
    }
    for task in &tasks {
        node.status(task, "finished").await;
    }
    let is_whole = |seen: &Value| seen["sums"]["succeeded"] == 300;
    let seen = until(&node, "/v1/cluster/stats?step=1s", is_whole).await;
    let series = &seen["series"];
    let counted: f64 = numbers(&series["rate"])
        .iter()
        .zip(numbers(&series["seconds"]))
        .map(|(rate, of)| rate * of)
        .sum();
    assert!((counted - 300.0).abs() < 3.0, "{seen:#}");
    let together = numbers(&series["target"]).into_iter().fold(0.0, f64::max);
    assert_eq!(together, 100.0, "both ran at once: {seen:#}");
    assert_eq!(seen["unreachable"], json!([]));
}
