//! Finishing early around a crash: what was called and not saved must not become "never sent".

use crate::evidence::Order;
use crate::round::Round;

/// The owner dies, and nobody follows it yet when the order comes.
pub(super) async fn finish_before_takeover(round: &mut Round<'_>) {
    round.wait(500, 3_000).await;
    let owner = round.cluster.owner();
    round.cluster.kill(owner);
    if round.cluster.nodes.len() == 1 {
        round.cluster.restart(owner).await;
    }
    round.cluster.order(round.task, Order::Finish).await;
    round.taken_over_from(owner).await;
    round.cluster.restart(owner).await;
}

/// The order meets an owner that has just begun to call again what its predecessor may have called.
pub(super) async fn finish_after_takeover(round: &mut Round<'_>) {
    round.wait(500, 3_000).await;
    let owner = round.cluster.owner();
    round.cluster.kill(owner);
    if round.cluster.nodes.len() == 1 {
        round.cluster.restart(owner).await;
        round.flows(1).await;
    }
    round.taken_over_from(owner).await;
    round.cluster.order(round.task, Order::Finish).await;
    round.cluster.restart(owner).await;
}

/// The order is acknowledged, and whoever was to obey it dies.
pub(super) async fn finish_then_kill(round: &mut Round<'_>) {
    round.wait(500, 3_000).await;
    let owner = round.cluster.owner();
    round.cluster.order(round.task, Order::Finish).await;
    round.wait(0, 60).await;
    round.cluster.kill(owner);
    round.wait(0, 500).await;
    round.cluster.restart(owner).await;
}
