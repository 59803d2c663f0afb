//! How long it takes, how much gets through: tables for `scripts/chaos.sh --measure NAME`.

mod limits;
mod outages;
mod owners;

use std::time::Duration;

use crate::cluster::Cluster;
use crate::long::quantile;
use crate::settings::{Settings, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn measurement() {
    if text("MEASURE").is_none() {
        println!("nothing is wanted: scripts/chaos.sh says how");
        return;
    }
    let mut settings = Settings::wanted();
    // As much as a measurement may need; what is left is cancelled.
    settings.items = 10_000_000;
    match text("MEASURE").as_deref() {
        Some("takeover") => owners::takeover(&settings).await,
        Some("handover") => owners::handover(&settings).await,
        Some("redis-outage") => outages::redis(&settings).await,
        Some("db-outage") => outages::database(&settings).await,
        Some("cpu") => outages::processors(&settings).await,
        Some("rate") => outages::rate(&settings).await,
        Some("path-outage") => outages::path(&settings).await,
        Some("limit") => limits::limit(&settings).await,
        other => panic!(
            "no measurement is named {other:?}; there are takeover, handover, redis-outage, db-outage, \
             path-outage, cpu, rate and limit"
        ),
    }
}

/// A line of a table. Unit: milliseconds.
fn print(what: &str, mut times: Vec<i64>) {
    times.sort_unstable();
    println!(
        "{what:<44} n {:>3}  min {:>6}  p50 {:>6}  p90 {:>6}  p99 {:>6}  max {:>6} ms",
        times.len(),
        times.first().copied().unwrap_or_default(),
        quantile(&times, 50),
        quantile(&times, 90),
        quantile(&times, 99),
        times.last().copied().unwrap_or_default(),
    );
}

/// Items per second that were delivered during a span from now on.
async fn throughput(cluster: &Cluster, span: Duration) -> f64 {
    let (before, begun) = (cluster.business.count(), std::time::Instant::now());
    tokio::time::sleep(span).await;
    (cluster.business.count() - before) as f64 / begun.elapsed().as_secs_f64()
}
