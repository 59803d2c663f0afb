//! A limit that two tasks of three shards each share on all nodes, while nodes die, freeze and are cut off, and the limit moves.

use std::time::{Duration, Instant};

use serde_json::json;

use super::owners::finish;
use crate::cluster::{Cluster, Link};
use crate::evidence::now;
use crate::proxy::Weather;
use crate::rng::Rng;
use crate::round::begin;
use crate::settings::{Settings, number};

/// What a limit lets leave at once, as a part of a second's rate; at least four batches and one each.
const BURST_PART: f64 = 0.1;
const BURST_MIN: f64 = 8.0;
/// What stamps may be wrong by. Unit: seconds.
const STAMPED_LATE: f64 = 0.01;
/// After so long, and the promise of a node that is cut off, a lower limit holds.
const FOLLOWED: Duration = Duration::from_secs(3);

/// Rates per second, each from its moment (µs) on.
type Rates = Vec<(i64, f64)>;

pub(super) async fn limit(settings: &Settings) {
    let settings = Settings {
        shards: settings.shards.max(3),
        ..settings.clone()
    };
    let mut cluster = Cluster::start(&settings).await;
    let tasks = [begin(&mut cluster, 0).await, begin(&mut cluster, 1).await];
    let (full, low) = (settings.rate as f64, settings.rate as f64 / 3.0);
    set(&cluster, full).await;
    tokio::time::sleep(FOLLOWED).await;
    let mut rates: Rates = vec![(now(), full)];
    let mut rng = Rng(number("SEED").unwrap_or(1));
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(number("MINUTES").unwrap_or(3) * 60) {
        hurt(&mut cluster, &mut rng).await;
        if rates.last().is_some_and(|(_, rate)| *rate < full) {
            rates.push((now(), full));
            set(&cluster, full).await;
        } else {
            set(&cluster, low).await;
            tokio::time::sleep(settings.ttl + FOLLOWED).await;
            rates.push((now(), low));
        }
        rng.moment(1_000, 4_000).await;
    }
    let until = now();
    for task in tasks {
        finish(&mut cluster, task).await;
    }
    judge(&cluster, &rates, until);
}

async fn set(cluster: &Cluster, rate: f64) {
    let limits = json!({"limits": {"rate": format!("{rate}/s")}, "defaults": {"rate": "1/s"}});
    let (_, status, answer) = cluster.ask("PATCH", "/v1/businesses/chaos", None, &limits).await;
    assert!(status < 300, "{answer:#}");
}

/// One node is killed, frozen, or cut off from the database or from the business.
async fn hurt(cluster: &mut Cluster, rng: &mut Rng) {
    let node = (rng.next() % cluster.nodes.len() as u64) as usize;
    let span = cluster.settings.ttl * 2;
    match rng.next() % 4 {
        0 => {
            cluster.kill(node);
            tokio::time::sleep(span).await;
            cluster.restart(node).await;
        }
        1 => {
            cluster.pause(node);
            tokio::time::sleep(span).await;
            cluster.resume(node);
        }
        way => {
            let link = if way == 2 { Link::Database } else { Link::Business };
            let fault = cluster.weather("cut off", link, Some(node), Weather::blackhole());
            tokio::time::sleep(span).await;
            cluster.clear(fault, link, Some(node));
        }
    }
}

fn judge(cluster: &Cluster, rates: &Rates, until: i64) {
    let from = rates[0].0;
    let record = cluster.business.record();
    let gates = record.deliveries.iter().map(|delivery| delivery.gate);
    let mut gates: Vec<i64> = gates.filter(|gate| (from..until).contains(gate)).collect();
    gates.sort_unstable();
    let area = |upto: i64| -> f64 {
        let ends = rates.iter().skip(1).map(|(at, _)| *at).chain([upto]);
        let span = |at: i64, end: i64| (end.min(upto) - at).max(0) as f64 / 1e6;
        rates
            .iter()
            .zip(ends)
            .map(|((at, rate), end)| span(*at, end) * rate)
            .sum()
    };
    let (mut least, mut excess) = (f64::INFINITY, f64::NEG_INFINITY);
    for (number, gate) in gates.iter().enumerate() {
        let above = number as f64 - area(*gate);
        least = least.min(above);
        excess = excess.max(above + 1.0 - least);
    }
    let full = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let burst = (full * BURST_PART).max(BURST_MIN) + full * STAMPED_LATE;
    let used = gates.len() as f64 / area(until) * 100.0;
    println!(
        "{} attempts, {used:.0} % of the limit; at most {excess:.1} more than it in any interval, burst {burst:.1}",
        gates.len()
    );
    assert!(excess <= burst, "more than the limit gives");
    assert!(used >= 50.0, "too little gets through");
}
