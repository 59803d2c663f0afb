//! What happens to the database server, to its disk and to the way there.

use crate::cluster::Link;
use crate::evidence::Harm;
use crate::proxy::{Flow, Way, Weather};
use crate::round::Round;

pub(super) async fn db_kill(round: &mut Round<'_>) {
    let fault = round.cluster.faults.begin("database killed", Harm::Database);
    round.cluster.database.kill();
    round.wait(0, 4_000).await;
    round.cluster.database.restart();
    round.cluster.faults.end(fault);
    round.flows(20).await;
}

pub(super) async fn db_restart(round: &mut Round<'_>) {
    let fault = round.cluster.faults.begin("database restarts", Harm::Database);
    round.cluster.database.restart();
    round.cluster.faults.end(fault);
    round.flows(20).await;
}

pub(super) async fn db_hang(round: &mut Round<'_>) {
    let span = round.beyond_ttl();
    let fault = suspend(round);
    tokio::time::sleep(span).await;
    resume(round, fault);
    round.flows(20).await;
}

/// From here to [`resume`] it answers nobody; what was said to it waits.
pub(super) fn suspend(round: &mut Round<'_>) -> usize {
    let fault = round.cluster.faults.begin("database hangs", Harm::Database);
    round.cluster.database.signal("STOP");
    fault
}

pub(super) fn resume(round: &mut Round<'_>, fault: usize) {
    round.cluster.database.signal("CONT");
    round.cluster.faults.end(fault);
}

/// Statements are obeyed and nobody hears of it, again and again: at each kind of statement sooner or later.
pub(super) async fn db_lost_ack(round: &mut Round<'_>) {
    for _ in 0..6 {
        let owner = round.cluster.owner();
        let span = round.rng.millis(20, 700);
        round
            .storm(
                "answers of the database lost",
                Link::Database,
                Some(owner),
                Weather::lost_replies(),
                span,
            )
            .await;
        round.wait(100, 600).await;
    }
}

pub(super) async fn db_slow(round: &mut Round<'_>) {
    let latency = round.rng.millis(50, 300);
    let span = round.beyond_ttl();
    round
        .storm(
            "database is slow",
            Link::Database,
            None,
            Weather {
                latency,
                ..Weather::default()
            },
            span,
        )
        .await;
}

/// Connections end in the middle of whatever is said.
pub(super) async fn db_cut_connections(round: &mut Round<'_>) {
    for _ in 0..8 {
        let node = round.any();
        let way = if round.rng.next().is_multiple_of(2) {
            Way::Up
        } else {
            Way::Down
        };
        let bytes = u32::try_from(round.rng.next() % 3_000).expect("small");
        let fault = round
            .cluster
            .faults
            .begin("database connections cut", Harm::Database);
        for proxy in round.cluster.links(Link::Database, Some(node)) {
            match bytes % 3 {
                0 => proxy.reset(),
                1 => proxy.half_close(way),
                _ => proxy.cut_after(way, bytes),
            }
        }
        round.wait(100, 500).await;
        round.cluster.faults.end(fault);
    }
}

/// Not a byte more can be written, for longer than anybody is believed without one.
pub(super) async fn db_disk_full(round: &mut Round<'_>) {
    let fault = round
        .cluster
        .faults
        .begin("the database's disk is full", Harm::Database);
    if !round.cluster.database.fill_disk() {
        eprintln!("    NOT PLAYED: this machine doesn't let the database have a small disk of its own");
        return;
    }
    let span = round.beyond_ttl();
    tokio::time::sleep(span).await;
    round.cluster.database.spare_disk();
    round.cluster.faults.end(fault);
    round.flows(20).await;
}

pub(super) async fn partition_node_db(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    let span = round.beyond_ttl();
    round
        .storm(
            "no database",
            Link::Database,
            Some(owner),
            Weather::blackhole(),
            span,
        )
        .await;
    round.flows(20).await;
}

/// What was said during the partition arrives after it: late checkpoints, late claims.
pub(super) async fn partition_node_db_held(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    let span = round.beyond_ttl();
    round
        .storm(
            "database held",
            Link::Database,
            Some(owner),
            Weather::held(),
            span,
        )
        .await;
    round.flows(20).await;
}

/// Every connection of every node falls silent without a word; new ones work.
pub(super) async fn db_strand(round: &mut Round<'_>) {
    let fault = round.cluster.strand("database connections", Link::Database);
    let span = round.beyond_ttl();
    tokio::time::sleep(span).await;
    round.cluster.faults.end(fault);
    round.flows(20).await;
}

pub(super) async fn one_way_db(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    let weather = [
        Weather::lost_replies(),
        Weather {
            down: Flow::Hold,
            ..Weather::default()
        },
        Weather::held_requests(),
    ];
    let at = usize::try_from(round.rng.next() % 3).expect("few");
    let span = round.beyond_ttl();
    round
        .storm(
            "half of the database",
            Link::Database,
            Some(owner),
            weather[at],
            span,
        )
        .await;
    round.flows(20).await;
}

pub(super) async fn stop_during_db_hang(round: &mut Round<'_>) {
    let fault = suspend(round);
    round.wait(100, 2_000).await;
    // Nobody acknowledges it before the database is back.
    let port = round.cluster.nodes[0].port;
    let path = format!("/v1/tasks/t{}/stop", round.task);
    let answer = crate::api::call(port, "POST", &path, None, &serde_json::json!({})).await;
    assert!(
        !matches!(answer, Ok((200..=299, _))),
        "acknowledged without a database: {answer:?}"
    );
    resume(round, fault);
    round.stop_and_start().await;
}
