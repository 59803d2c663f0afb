//! Two and three nodes over one store: crash, pause, partition, lost leases, hand-over, drain and move.

mod claims;
mod handovers;
mod one_sided;
mod takeovers;
mod witnesses;

use std::time::Duration;

use windrow_core::ids::TaskId;
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_engine::ports::tasks::store::TaskCommand;

use super::LOST_WITH_THE_RUN;
use crate::cluster::Cluster;

const TTL: Duration = Duration::from_secs(15);
/// Longer than any test's retrying: 500 items a second.
const LONG: u64 = 60_000;
/// What a node may settle that still trusts itself and can't save any more: the rate for a whole promise.
const LOST_WITHOUT_THE_STORE: u64 = 500 * 15 + LOST_WITH_THE_RUN;
const STOP: TaskCommand = TaskCommand::Stop {
    reason: StopReason::Operator,
};

async fn two(prefix: &str, with_leases: bool) -> (Cluster, TaskId) {
    let mut cluster = Cluster::new(prefix, with_leases);
    cluster.boot("a").await;
    let task = cluster.task(LONG, |_| {}).await;
    cluster.until_works("a").await;
    cluster.boot("b").await;
    // Several scans: it sees the first one's heart beat, and leaves it alone.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(cluster.turns(), ["a"]);
    (cluster, task)
}

async fn finishes(cluster: &Cluster, task: TaskId, repeats_max: u64) {
    let view = cluster.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, LONG);
    assert_eq!(
        cluster.deliveries().len() as u64,
        LONG,
        "every item was delivered"
    );
    let repeats = cluster.repeats();
    assert!(repeats <= repeats_max, "{repeats} repeats, at most {repeats_max}");
}
