//! Named limits in units on three real nodes: killed, stopped and woken, raised meanwhile. The judge has the business's own
//! records only: what each answer said that its call used.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::business::{Act, Business, Seen};
use crate::cluster::{Cluster, until};
use crate::support::Node;

/// A session that is silent for so long is fenced.
const QUICK: &str = "[cluster]\nlease_ttl = \"4s\"\nlease_renew = \"1s\"\n";
/// The most that an answer says.
const LARGEST: u64 = 9;

fn tokens(seen: &Seen) -> u64 {
    seen.items().iter().map(|(index, _)| 1 + index % LARGEST).sum()
}

/// Tells each call what it used, and says it for all calls in their order.
fn answer(business: &Business, takes: Duration) {
    business.becomes(move |seen| Act::json(200, json!({"result": "ok", "used": tokens(seen)})).after(takes));
}

fn used(business: &Business) -> Vec<(Instant, u64)> {
    let mut used: Vec<(Instant, u64)> = business
        .seen()
        .iter()
        .map(|seen| (seen.at, tokens(seen)))
        .collect();
    used.sort();
    used
}

async fn limited(node: &Node, limits: &[&str], url: &str) {
    let metering = json!({"limits": limits, "cost_from": ["tokens = {answer./used}"]});
    let made = json!({"name": "openai", "metering": metering});
    node.admin.post("/v1/limits", made).await.expect(201);
    for name in ["push", "mail"] {
        node.business(name, url, json!({"limits": {"named": ["openai"]}}))
            .await;
    }
}

async fn start(node: &Node, business: &str, more: Value) -> String {
    let mut body = json!({"rate": "600/s", "concurrency": 6, "shards": 3, "start": true});
    body.as_object_mut()
        .expect("an object")
        .extend(more.as_object().expect("an object").clone());
    node.task(business, 1_000_000, body).await
}

#[tokio::test]
async fn three_nodes_together_keep_a_pace_in_tokens_also_when_one_dies() {
    let cluster = Cluster::new().await;
    answer(&cluster.business, Duration::from_millis(20));
    let (n1, n2, n3) = (
        cluster.node("n1", QUICK).await,
        cluster.node("n2", QUICK).await,
        cluster.node("n3", QUICK).await,
    );
    limited(&n1, &["6000 tokens/min"], &cluster.business.url()).await;
    let one = start(&n1, "push", json!({})).await;
    let two = start(&n2, "mail", json!({})).await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    let begun = Instant::now();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let steady: u64 = used(&cluster.business)
        .iter()
        .filter(|(at, _)| *at >= begun)
        .map(|(_, tokens)| tokens)
        .sum();
    // A busy machine uses less, never more.
    assert!((500..=1_080).contains(&steady), "of 1,000: {steady}");
    n3.signal(Signal::KILL);
    n2.signal(Signal::STOP);
    tokio::time::sleep(Duration::from_secs(7)).await;
    n2.signal(Signal::CONT);
    tokio::time::sleep(Duration::from_secs(6)).await;
    let shown = n1.admin.get("/v1/limits/openai").await.expect(200);
    assert_eq!(shown["metering"]["limits"], json!(["6k tokens/min"]), "{shown:#}");
    for (task, node) in [(&one, &n1), (&two, &n1)] {
        let stop = json!({"now": true});
        node.admin
            .post(&format!("/v1/tasks/{task}/stop"), stop)
            .await
            .expect(202);
    }
    let all = used(&cluster.business);
    // Of four sessions a largest call each, the calls in flight, and 100 ms of it. Stamps are the business's.
    let room = 4 * LARGEST + 36 * LARGEST + 10;
    for (at, (from, _)) in all.iter().enumerate() {
        let mut sum = 0;
        for (to, tokens) in &all[at..] {
            sum += tokens;
            let earned = to.duration_since(*from).as_secs_f64() * 100.0;
            assert!(sum as f64 <= earned + room as f64, "{sum} in {earned}");
        }
    }
}

#[tokio::test]
async fn three_nodes_together_spend_a_total_once_and_go_on_when_it_is_raised() {
    let cluster = Cluster::new().await;
    answer(&cluster.business, Duration::from_millis(50));
    let (n1, n2, n3) = (
        cluster.node("n1", QUICK).await,
        cluster.node("n2", QUICK).await,
        cluster.node("n3", QUICK).await,
    );
    limited(&n1, &["9000 tokens"], &cluster.business.url()).await;
    let one = start(&n1, "push", json!({})).await;
    let two = start(&n2, "mail", json!({})).await;
    let business = &cluster.business;
    let total = || used(business).iter().map(|(_, tokens)| tokens).sum::<u64>();
    let begun = Instant::now();
    while total() < 2_000 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} tokens", total());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    n3.signal(Signal::KILL);
    for task in [&one, &two] {
        until(&n1, &format!("/v1/tasks/{task}"), "stopped", |view| {
            view["status"] == "stopped" && view["stop_reason"] == "limit_reached"
        })
        .await;
    }
    let spent = total();
    // Each of three nodes' calls in flight may have cost more than the mean that was reserved for them.
    assert!(spent <= 9_000 + 36 * LARGEST, "{spent}");
    let shown = n1.admin.get("/v1/limits/openai").await.expect(200);
    let amount = |name: &str| -> f64 {
        let text = shown["uses"][0][name].as_str().expect("a decimal");
        text.parse().expect("a number")
    };
    let counted = amount("spent") + amount("unsure");
    assert!(counted >= spent as f64, "{spent} were spent: {shown:#}");
    assert!(amount("unsure") < 9_000.0 / 4.0, "{shown:#}");
    assert!(counted > 8_900.0, "all of it counts: {shown:#}");
    drop(n2);
    let raised = json!({"metering": {"limits": ["12k tokens"], "cost_from": ["tokens = {answer./used}"]}});
    n1.admin.patch("/v1/limits/openai", raised).await.expect(200);
    n1.admin
        .post(&format!("/v1/tasks/{one}/start"), json!({}))
        .await
        .expect(202);
    let begun = Instant::now();
    while total() < spent + 1_000 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} tokens", total());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
