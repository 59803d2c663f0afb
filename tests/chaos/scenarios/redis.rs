//! What happens to Redis, to what it holds and to the way there.

use crate::cluster::Link;
use crate::evidence::Harm;
use crate::proxy::Weather;
use crate::round::Round;

pub(super) async fn redis_kill(round: &mut Round<'_>) {
    let fault = round.kill_redis();
    let span = round.beyond_ttl();
    tokio::time::sleep(span).await;
    round.start_redis(fault);
    round.wait(500, 2_000).await;
}

pub(super) async fn redis_restart(round: &mut Round<'_>) {
    for _ in 0..2 {
        let fault = round.kill_redis();
        round.start_redis(fault);
        round.wait(500, 2_000).await;
    }
}

pub(super) async fn redis_hang(round: &mut Round<'_>) {
    let span = round.beyond_ttl();
    let fault = suspend(round);
    tokio::time::sleep(span).await;
    resume(round, fault);
    round.wait(500, 1_500).await;
}

/// From here to [`resume`] it answers nobody; what it holds grows old meanwhile.
pub(super) fn suspend(round: &mut Round<'_>) -> usize {
    let fault = round.cluster.faults.begin("Redis hangs", Harm::Redis);
    signal(round, "STOP");
    fault
}

pub(super) fn resume(round: &mut Round<'_>, fault: usize) {
    signal(round, "CONT");
    round.cluster.faults.end(fault);
}

fn signal(round: &Round<'_>, name: &str) {
    round
        .cluster
        .redis
        .as_ref()
        .expect("such a scenario needs Redis")
        .signal(name);
}

pub(super) async fn redis_flushall(round: &mut Round<'_>) {
    for _ in 0..3 {
        flush(round);
        round.wait(300, 1_500).await;
    }
}

pub(super) fn flush(round: &mut Round<'_>) {
    let fault = round.cluster.faults.begin("FLUSHALL", Harm::RedisLoss);
    if let Some(redis) = &round.cluster.redis {
        redis.cli(&["FLUSHALL"]);
        redis.cli(&["SCRIPT", "FLUSH"]);
    }
    round.cluster.faults.end(fault);
}

pub(super) async fn redis_slow(round: &mut Round<'_>) {
    let latency = round.rng.millis(200, 1_200);
    let span = round.beyond_ttl();
    round
        .storm(
            "Redis is slow",
            Link::Redis,
            None,
            Weather {
                latency,
                ..Weather::default()
            },
            span,
        )
        .await;
}

pub(super) async fn partition_node_redis(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    let span = round.beyond_ttl();
    round
        .storm("no Redis", Link::Redis, Some(owner), Weather::blackhole(), span)
        .await;
    round.wait(300, 1_000).await;
}

pub(super) async fn redis_strand(round: &mut Round<'_>) {
    let fault = round.cluster.strand("Redis connections", Link::Redis);
    let span = round.beyond_ttl();
    tokio::time::sleep(span).await;
    round.cluster.faults.end(fault);
    round.flows(20).await;
}

pub(super) async fn one_way_redis(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    for weather in [Weather::lost_replies(), Weather::held_requests()] {
        let span = round.beyond_ttl();
        round
            .storm("half of Redis", Link::Redis, Some(owner), weather, span)
            .await;
    }
}

pub(super) async fn stop_during_redis_hang(round: &mut Round<'_>) {
    let fault = suspend(round);
    round.wait(100, 1_000).await;
    round.stop_and_start().await;
    resume(round, fault);
}
