//! What happens to the business and to the way there.

use std::time::Duration;

use crate::cluster::Link;
use crate::evidence::Harm;
use crate::proxy::Weather;
use crate::round::Round;
use crate::script::Mood;

pub(super) async fn business_misbehaves(round: &mut Round<'_>) {
    let fault = round
        .cluster
        .faults
        .begin("the business misbehaves", Harm::Business);
    round.cluster.business.becomes(Mood {
        bad: 10,
        ..Mood::default()
    });
    round.wait(3_000, 5_000).await;
    round.cluster.business.becomes(Mood::default());
    // Calls that hang are still out.
    tokio::time::sleep(Duration::from_secs(4)).await;
    round.cluster.faults.end(fault);
}

pub(super) async fn business_is_busy(round: &mut Round<'_>) {
    for _ in 0..2 {
        let fault = round.cluster.faults.begin("the business is busy", Harm::Business);
        round.cluster.business.becomes(Mood {
            is_busy: true,
            ..Mood::default()
        });
        round.wait(300, 1_500).await;
        round.cluster.business.becomes(Mood::default());
        round.cluster.faults.end(fault);
        round.flows(20).await;
    }
}

pub(super) async fn partition_node_business(round: &mut Round<'_>) {
    let owner = round.cluster.owner();
    let weather = [
        Weather::blackhole(),
        Weather::lost_replies(),
        Weather {
            refuses: true,
            ..Weather::blackhole()
        },
    ];
    for weather in weather {
        let span = round.rng.millis(500, 1_500);
        round
            .storm("business cut off", Link::Business, Some(owner), weather, span)
            .await;
        round.wait(200, 500).await;
    }
}
