//! How long a shard has no owner: after a crash, and after an orderly end.

use std::time::Duration;

use serde_json::json;

use super::print;
use crate::check::judge;
use crate::cluster::{Cluster, Link};
use crate::evidence::now;
use crate::node::PATIENCE;
use crate::proxy::Weather;
use crate::rng::Rng;
use crate::round::{begin, gather};
use crate::settings::{Settings, number};

/// `kill -9` of the owner to the first item that another node sends.
pub(super) async fn takeover(settings: &Settings) {
    let terms = number("TTL_MS").map_or_else(|| vec![3_000, 15_000], |ttl| vec![ttl]);
    for ttl in terms {
        let settings = Settings {
            ttl: Duration::from_millis(ttl),
            ..settings.clone()
        };
        let (mut cluster, mut rng, task) = flowing(&settings).await;
        let mut times = Vec::new();
        for _ in 0..number("ROUNDS").unwrap_or(50) {
            rng.moment(200, 1_500).await;
            let owner = cluster.owner();
            let killed = now();
            cluster.kill(owner);
            times.push((first_of_another(&cluster, owner, killed).await - killed) / 1000);
            cluster.restart(owner).await;
        }
        let far = settings.database_latency * 2;
        print(
            &format!("take-over, lease_ttl {ttl} ms, {:?} {far:?} away", settings.store),
            times,
        );
        finish(&mut cluster, task).await;
    }
}

/// SIGTERM of the owner: from the last answer that it got to the first item of the next, and what came twice.
pub(super) async fn handover(settings: &Settings) {
    let (mut cluster, mut rng, task) = flowing(settings).await;
    let (mut gaps, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..number("ROUNDS").unwrap_or(50) {
        rng.moment(200, 1_500).await;
        let owner = cluster.owner();
        let told = now();
        cluster.terminate(owner).await;
        ends.push((now() - told) / 1000);
        let first = first_of_another(&cluster, owner, told).await;
        gaps.push((first - last_answer(&cluster, owner, first)) / 1000);
        cluster.restart(owner).await;
    }
    print("hand-over: last answer to first item", gaps);
    print("SIGTERM to the end of the process", ends);
    finish(&mut cluster, task).await;
}

/// A cluster with a task that flows.
async fn flowing(settings: &Settings) -> (Cluster, Rng, i64) {
    let mut cluster = Cluster::start(settings).await;
    let task = begin(&mut cluster, 0).await;
    cluster.business.reaches(50).await;
    let latency = settings.database_latency;
    if !latency.is_zero() {
        cluster.weather(
            "far database",
            Link::Database,
            None,
            Weather {
                latency,
                ..Weather::default()
            },
        );
    }
    (cluster, Rng(number("SEED").unwrap_or(1)), task)
}

/// The gate time of the first item since then that another node sent.
async fn first_of_another(cluster: &Cluster, owner: usize, since: i64) -> i64 {
    let name = cluster.nodes[owner].name.clone();
    let begun = std::time::Instant::now();
    while begun.elapsed() < PATIENCE {
        let first = {
            let record = cluster.business.record();
            let newer = record
                .deliveries
                .iter()
                .rev()
                .take_while(|delivery| delivery.at > since);
            newer
                .filter(|delivery| delivery.node != name)
                .map(|delivery| delivery.gate)
                .min()
        };
        if let Some(first) = first {
            return first;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("nobody followed {name}");
}

fn last_answer(cluster: &Cluster, owner: usize, before: i64) -> i64 {
    let name = &cluster.nodes[owner].name;
    let record = cluster.business.record();
    let its = record
        .deliveries
        .iter()
        .filter(|delivery| delivery.node == *name && delivery.at < before);
    its.filter_map(|delivery| delivery.answered)
        .max()
        .unwrap_or(before)
}

/// Judges what there is so far, but for the end that doesn't come, and cancels the task.
pub(super) async fn finish(cluster: &mut Cluster, task: i64) {
    let (_, status, answer) = cluster
        .ask("POST", &format!("/v1/tasks/t{task}/cancel"), None, &json!({}))
        .await;
    assert!(status < 300, "{answer:#}");
    let judgement = judge(&gather(cluster, task, serde_json::Value::Null).await);
    let ends = ["tasks finish", "numbers add up", "told once"];
    let is_wrong = |finding: &&String| {
        !ends.iter().any(|end| finding.starts_with(end)) && !finding.contains("never answered for good")
    };
    let findings: Vec<&String> = judgement.findings.iter().filter(is_wrong).collect();
    println!(
        "{} deliveries, {} losses, {} hand-overs, {} repeats (worst {} of {}), pace +{:.1}",
        judgement.deliveries,
        judgement.losses,
        judgement.handovers,
        judgement.repeats,
        judgement.repeats_worst,
        judgement.repeats_allowed,
        judgement.pace_excess
    );
    assert!(findings.is_empty(), "{findings:#?}");
}
