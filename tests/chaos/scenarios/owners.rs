//! What happens to the processes of the cluster, its owners first: killed, suspended, ended, steered meanwhile.

use crate::evidence::{Harm, Order};
use crate::round::Round;

pub(super) async fn kill_9_owner(round: &mut Round<'_>) {
    round.wait(100, 1_500).await;
    let owner = round.cluster.owner();
    round.cluster.kill(owner);
    round.taken_over_from(owner).await;
    round.wait(0, 1_000).await;
    round.cluster.restart(owner).await;
}

pub(super) async fn kill_9_all(round: &mut Round<'_>) {
    round.wait(100, 1_000).await;
    for node in 0..round.cluster.nodes.len() {
        round.cluster.kill(node);
    }
    round.wait(0, 1_000).await;
}

pub(super) async fn kill_9_again_and_again(round: &mut Round<'_>) {
    for _ in 0..3 {
        round.wait(100, 1_000).await;
        let owner = round.cluster.owner();
        round.cluster.kill(owner);
        round.wait(0, 500).await;
        round.cluster.restart(owner).await;
        round.flows(5).await;
    }
}

pub(super) async fn stop_cont_beyond_ttl(round: &mut Round<'_>) {
    round.wait(100, 1_000).await;
    let owner = round.cluster.owner();
    let span = round.beyond_ttl();
    round.cluster.pause(owner);
    tokio::time::sleep(span).await;
    round.taken_over_from(owner).await;
    round.cluster.resume(owner);
    round.flows(20).await;
}

pub(super) async fn stop_cont_within_ttl(round: &mut Round<'_>) {
    for _ in 0..3 {
        let owner = round.cluster.owner();
        round.cluster.pause(owner);
        round.wait(50, 900).await;
        round.cluster.resume(owner);
        round.wait(300, 1_000).await;
    }
}

pub(super) async fn sigterm_rolling_restart(round: &mut Round<'_>) {
    for node in 0..round.cluster.nodes.len() {
        round.cluster.terminate(node).await;
        round.cluster.restart(node).await;
        round.flows(20).await;
    }
}

pub(super) async fn stop_and_start(round: &mut Round<'_>) {
    for _ in 0..2 {
        round.wait(100, 1_000).await;
        round.stop_and_start().await;
        round.flows(5).await;
    }
}

pub(super) async fn change_rate_during_kill(round: &mut Round<'_>) {
    let rate = round.cluster.settings.rate as f64;
    let owner = round.cluster.owner();
    round.cluster.kill(owner);
    round
        .cluster
        .order(round.task, Order::Rate((rate / 2.0).floor()))
        .await;
    round.taken_over_from(owner).await;
    round.wait(200, 1_500).await;
    round.cluster.order(round.task, Order::Rate(rate * 2.0)).await;
    round.cluster.restart(owner).await;
    round.flows(20).await;
}

pub(super) async fn stop_during_kill(round: &mut Round<'_>) {
    round.wait(100, 1_000).await;
    let owner = round.cluster.owner();
    round.cluster.kill(owner);
    if round.cluster.nodes.len() == 1 {
        round.cluster.restart(owner).await;
    }
    round.stop_and_start().await;
    round.cluster.restart(owner).await;
}

pub(super) async fn stop_during_pause(round: &mut Round<'_>) {
    round.wait(100, 1_000).await;
    let owner = round.cluster.owner();
    round.cluster.pause(owner);
    round.stop_and_start().await;
    round.taken_over_from(owner).await;
    round.cluster.resume(owner);
}

/// The owner dies, and whoever is about to follow it too.
pub(super) async fn kill_during_claim(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    round.cluster.kill(owner);
    let span = round.cluster.settings.ttl + round.rng.millis(0, 800);
    tokio::time::sleep(span).await;
    let next = (owner + 1 + usize::try_from(round.rng.next() % 2).expect("few")) % round.cluster.nodes.len();
    if next != owner {
        round.cluster.kill(next);
    }
    round.wait(500, 1_500).await;
}

/// The owner dies while it gives its shard back.
pub(super) async fn kill_during_close(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    let fault = round.cluster.faults.begin("SIGTERM, then SIGKILL", Harm::Node);
    round.cluster.nodes[owner].signal(rustix::process::Signal::TERM);
    round.wait(0, 120).await;
    round.cluster.kill(owner);
    round.cluster.faults.end(fault);
    round.taken_over_from(owner).await;
    round.cluster.restart(owner).await;
}
