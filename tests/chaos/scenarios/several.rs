//! What happens to two of them at once.

use super::{database, redis};
use crate::cluster::Link;
use crate::proxy::Weather;
use crate::round::Round;

/// Both witnesses at once: the owner can't horizon the database, and Redis forgets it.
pub(super) async fn partition_and_flushall(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    let fault = round
        .cluster
        .weather("no database", Link::Database, Some(owner), Weather::blackhole());
    round.wait(100, 2_000).await;
    redis::flush(round);
    let span = round.beyond_ttl();
    tokio::time::sleep(span).await;
    round.cluster.clear(fault, Link::Database, Some(owner));
    round.flows(20).await;
}

pub(super) async fn redis_and_db_hang(round: &mut Round<'_>) {
    let redis_fault = redis::suspend(round);
    let span = round.beyond_ttl();
    let database_fault = database::suspend(round);
    tokio::time::sleep(span).await;
    database::resume(round, database_fault);
    redis::resume(round, redis_fault);
    round.flows(20).await;
}

pub(super) async fn kill_during_redis_outage(round: &mut Round<'_>) {
    let fault = round.kill_redis();
    round.wait(200, 1_500).await;
    let owner = round.cluster.owner();
    round.cluster.kill(owner);
    let span = round.beyond_ttl();
    tokio::time::sleep(span).await;
    round.start_redis(fault);
    round.taken_over_from(owner).await;
    round.cluster.restart(owner).await;
}
