//! Limits that tasks share on three real nodes: killed, stopped and woken, with a limit that is changed meanwhile. The judge
//! has the business's own records only: when the pace let each call go, as its header says, since on a busy machine
//! calls are under way for seconds.

use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use serde_json::json;

use crate::business::Business;
use crate::cluster::{Cluster, until};
use crate::support::Node;

/// What a limit of so few items lets leave at once, over all nodes: four batches and one each.
const BURST: f64 = 8.0;
/// What stamps may be wrong by. Unit: seconds.
const STAMPED_LATE: f64 = 0.01;
/// A session that is silent for so long is fenced.
const TTL: &str = "[cluster]\nlease_ttl = \"4s\"\nlease_renew = \"1s\"\n";

/// What was called, and for which task.
fn calls(business: &Business) -> Vec<(SystemTime, String)> {
    let mut all: Vec<_> = business
        .seen()
        .iter()
        .filter(|seen| !seen.items().is_empty())
        .map(|seen| {
            let left = humantime::parse_rfc3339(seen.header("windrow-gate-time")).expect("a time");
            (left, seen.task().to_owned())
        })
        .collect();
    all.sort();
    all
}

/// In no interval more was called than these rates (each from its moment on) and the burst allow.
fn assert_within(calls: &[(SystemTime, String)], rates: &[(SystemTime, f64)], burst: f64) {
    let most = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let area = |upto: SystemTime| -> f64 {
        let ends = rates.iter().skip(1).map(|(at, _)| *at).chain([upto]);
        let span = |at: SystemTime, end: SystemTime| {
            end.min(upto).duration_since(at).unwrap_or_default().as_secs_f64()
        };
        rates
            .iter()
            .zip(ends)
            .map(|((at, rate), end)| span(*at, end) * rate)
            .sum()
    };
    let mut least = f64::INFINITY;
    for (number, (at, _)) in calls.iter().enumerate() {
        let allowed = area(*at);
        least = least.min(number as f64 - allowed);
        let above = (number + 1) as f64 - allowed - least;
        let seconds = |(left, task): &(SystemTime, String)| {
            format!(
                "{:.3} s {task}",
                left.duration_since(calls[0].0).unwrap_or_default().as_secs_f64()
            )
        };
        let until_now = || calls[..=number].iter().map(seconds).collect::<Vec<_>>();
        assert!(
            above <= burst + most * STAMPED_LATE,
            "{above} more than the limit gives: {:?}",
            until_now()
        );
    }
}

/// How many calls each task had in a span that begins now.
async fn counted(business: &Business, tasks: &[&str], span: Duration) -> Vec<usize> {
    let begun = SystemTime::now();
    tokio::time::sleep(span).await;
    let all = calls(business);
    let of = |task: &&str| all.iter().filter(|(at, of)| *at >= begun && of == task).count();
    tasks.iter().map(of).collect()
}

async fn limit(node: &Node, rate: &str) -> SystemTime {
    let changed = json!({"limits": {"rate": rate}, "defaults": {"rate": "1/10s"}});
    node.admin.patch("/v1/businesses/push", changed).await.expect(200);
    SystemTime::now()
}

#[tokio::test]
async fn three_nodes_never_send_more_than_a_limit_and_share_it() {
    let cluster = Cluster::new().await;
    let (n1, n2, n3) = (
        cluster.node("n1", TTL).await,
        cluster.node("n2", TTL).await,
        cluster.node("n3", TTL).await,
    );
    n1.business(
        "push",
        &cluster.business.url(),
        json!({"limits": {"rate": "60/s"}, "defaults": {"rate": "1/s"}}),
    )
    .await;
    let begun = SystemTime::now();
    let settings = || json!({"rate": "60/s", "shards": 3, "start": true});
    let one = n1.task("push", 1_000_000, settings()).await;
    let two = n2.task("push", 1_000_000, settings()).await;
    for task in [&one, &two] {
        until(&n1, &format!("/v1/tasks/{task}"), "running", |view| {
            view["status"] == "running"
        })
        .await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let each = counted(&cluster.business, &[&one, &two], Duration::from_secs(10)).await;
    assert!(
        each[0].abs_diff(each[1]) * 10 <= each[0].max(each[1]),
        "within 10 %: {each:?}"
    );
    assert!(
        (480..=620).contains(&(each[0] + each[1])),
        "all of it, or nearly: {each:?}"
    );
    // One is gone, another one stands still and wakes when its part has been given away.
    n3.signal(Signal::KILL);
    n2.signal(Signal::STOP);
    tokio::time::sleep(Duration::from_secs(9)).await;
    n2.signal(Signal::CONT);
    let left = counted(&cluster.business, &[&one, &two], Duration::from_secs(8)).await;
    assert!(left[0] + left[1] >= 240, "most of it goes on: {left:?}");
    let lowered = limit(&n1, "20/s").await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    let raised = limit(&n1, "60/s").await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let rates = [
        (begun, 60.0),
        (lowered + Duration::from_secs(3), 20.0),
        (raised, 60.0),
    ];
    assert_within(&calls(&cluster.business), &rates, BURST);
}

#[tokio::test]
async fn a_limit_that_cannot_be_divided_goes_round() {
    let cluster = Cluster::new().await;
    let (n1, _n2, _n3) = (
        cluster.node("n1", "").await,
        cluster.node("n2", "").await,
        cluster.node("n3", "").await,
    );
    n1.business(
        "push",
        &cluster.business.url(),
        json!({"limits": {"rate": "1/5s"}, "defaults": {"rate": "1/10s"}}),
    )
    .await;
    let begun = SystemTime::now();
    let task = n1
        .task(
            "push",
            1_000_000,
            json!({"rate": "1/5s", "shards": 3, "start": true}),
        )
        .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let all = calls(&cluster.business);
    assert!((7..=13).contains(&all.len()), "{} of twelve", all.len());
    assert_within(&all, &[(begun, 0.2)], BURST);
    n1.admin
        .post(&format!("/v1/tasks/{task}/stop"), json!({"now": true}))
        .await
        .expect(202);
}
