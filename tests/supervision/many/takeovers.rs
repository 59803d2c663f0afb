//! A node that crashes or is paused: another one takes over in time, and what comes too late changes nothing.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::task::lifecycle::Status;
use windrow_engine::actors::runtime::context::ServingNow;

use super::{LOST_WITH_THE_RUN, LOST_WITHOUT_THE_STORE, STOP, TTL, finishes, two};
use crate::cluster::Cluster;
use crate::link::Way;
use crate::patience::holds_within;

async fn goes_on_after_a_crash(prefix: &str, with_leases: bool) {
    let (mut cluster, task) = two(prefix, with_leases).await;
    cluster.crash("a").await;
    let after = cluster.until_works("b").await;
    assert!(after <= TTL + Duration::from_secs(2), "after {after:?}");
    assert!(
        after >= Duration::from_secs(10),
        "before its owner's trust was over: {after:?}"
    );
    finishes(&cluster, task, LOST_WITH_THE_RUN).await;
    assert_eq!(cluster.turns(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn another_node_goes_on_two_seconds_after_the_promise_of_one_that_crashed() {
    goes_on_after_a_crash("crash", false).await;
}

#[tokio::test(start_paused = true)]
async fn with_leases_too_another_node_goes_on_in_time() {
    goes_on_after_a_crash("crash-l", true).await;
}

async fn passes_no_gate_after_a_pause(prefix: &str, with_leases: bool) {
    let (cluster, task) = two(prefix, with_leases).await;
    let zombie = cluster.sessions("a").await[0];
    cluster.node("a").link.database(Way::Hangs);
    cluster.node("a").link.redis(Way::Hangs);
    cluster.until_works("b").await;
    // The other is well on its way.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let opened = *cluster.node("a").handler.opened.lock().expect("ok");
    // Its late checkpoint, its late heartbeat and its late renewal arrive now.
    cluster.node("a").link.redis(Way::Open);
    cluster.node("a").link.database(Way::Open);
    // Long enough for whatever they may cause.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(cluster.turns(), ["a", "b"], "nothing left after the other began");
    let next = cluster.sessions("a").await;
    assert!(
        next.len() == 1 && next[0] != zombie,
        "it began a new session: {next:?}"
    );
    assert_eq!(
        *cluster.node("a").handler.opened.lock().expect("ok"),
        opened,
        "nothing was carried over"
    );
    finishes(&cluster, task, LOST_WITHOUT_THE_STORE).await;
    assert_eq!(cluster.turns(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_paused_beyond_its_promise_passes_no_gate_and_writes_nothing() {
    passes_no_gate_after_a_pause("pause", false).await;
}

#[tokio::test(start_paused = true)]
async fn with_leases_too_a_paused_node_passes_no_gate() {
    passes_no_gate_after_a_pause("pause-l", true).await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_whose_owner_died_is_committed_by_another_node_without_opening_the_handler() {
    for (prefix, with_leases) in [("stop-dead-1", false), ("stop-dead-2", true)] {
        let (mut cluster, task) = two(prefix, with_leases).await;
        cluster.crash("a").await;
        cluster.command(task, STOP).await;
        // Half of what its owner was promised.
        tokio::time::sleep(Duration::from_secs(8)).await;
        assert_eq!(
            cluster.view(task).await.status,
            Status::Stopping,
            "its owner may live"
        );
        let begun = Instant::now();
        cluster.until(task, Status::Stopped).await;
        assert!(begun.elapsed() <= Duration::from_secs(9), "{:?}", begun.elapsed());
        assert_eq!(*cluster.node("b").handler.opened.lock().expect("ok"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_node_ran_is_shown_as_waiting_also_where_nobody_may_take_it() {
    for (prefix, with_leases) in [("estate-1", false), ("estate-2", true)] {
        let (mut cluster, task) = two(prefix, with_leases).await;
        cluster.node("b").handle.set_serving(ServingNow {
            run_tasks: false,
            pools: None,
        });
        cluster.crash("a").await;
        let begun = Instant::now();
        cluster.until(task, Status::Queued).await;
        assert!(
            begun.elapsed() <= TTL + Duration::from_secs(4),
            "{:?}",
            begun.elapsed()
        );
        cluster.node("b").handle.set_serving(ServingNow {
            run_tasks: true,
            pools: None,
        });
        let after = cluster.until_works("b").await;
        assert!(after <= Duration::from_secs(2), "{after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_shards_of_a_dead_node_are_all_taken_over_in_time() {
    const TASKS: usize = 200;
    for (prefix, with_leases) in [("storm-1", false), ("storm-2", true)] {
        let mut cluster = Cluster::new(prefix, with_leases);
        cluster.slow = Duration::from_secs(3600);
        cluster.boot("a").await;
        for _ in 0..TASKS {
            cluster.task(10, |_| {}).await;
        }
        cluster.until_owned("a", TASKS).await;
        cluster.boot("b").await;
        cluster.boot("c").await;
        // Both have seen the first one's heart beat.
        tokio::time::sleep(Duration::from_secs(2)).await;
        cluster.crash("a").await;
        let begun = Instant::now();
        let taken = || cluster.owned("b") + cluster.owned("c");
        assert!(
            holds_within(TTL + Duration::from_secs(5), || taken() == TASKS).await,
            "{} of {TASKS}",
            taken()
        );
        assert!(
            begun.elapsed() <= TTL + Duration::from_secs(2),
            "all after {:?}",
            begun.elapsed()
        );
    }
}
