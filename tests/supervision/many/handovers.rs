//! A node that ends, drains or loses a task to another: nothing is repeated.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::ownership::session_store::SessionStore;
use windrow_engine::ports::tasks::store::{CommandError, MoveRefusal, TaskStore};

use super::{LOST_WITHOUT_THE_STORE, TTL, finishes, two};
use crate::link::Way;
use crate::tasks::write;

async fn hands_over(prefix: &str, with_leases: bool) {
    let (mut cluster, task) = two(prefix, with_leases).await;
    let leaving = cluster.nodes.remove("a").expect("it runs");
    assert!(
        leaving.handle.drain(Duration::from_secs(60)).await,
        "everything ended in time"
    );
    let after = cluster.until_works("b").await;
    // Without hints: the longest way to the other's next scan.
    assert!(after <= Duration::from_millis(1_400), "after {after:?}");
    assert!(cluster.sessions("a").await.is_empty(), "its session is over");
    finishes(&cluster, task, 0).await;
    assert_eq!(cluster.turns(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_ends_hands_over_at_the_next_scan_and_nothing_is_repeated() {
    hands_over("hand", false).await;
}

#[tokio::test(start_paused = true)]
async fn with_leases_too_a_hand_over_takes_a_scan_at_most() {
    hands_over("hand-l", true).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_ends_has_given_its_leases_back_however_slow_their_store_is() {
    let (mut cluster, task) = two("hand-slow", true).await;
    let leaving = cluster.nodes.remove("a").expect("it runs");
    let slow = async {
        leaving.link.redis(Way::Hangs);
        tokio::time::sleep(Duration::from_millis(700)).await;
        leaving.link.redis(Way::Open);
    };
    let (drained, ()) = tokio::join!(leaving.handle.drain(Duration::from_secs(60)), slow);
    assert!(drained, "everything ended in time");
    // A lease that is held would keep the other one out until it ends.
    let after = cluster.until_works("b").await;
    assert!(after < TTL / 2, "nobody holds it: {after:?}");
    finishes(&cluster, task, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_to_be_drained_hands_over_stays_up_and_takes_nothing_until_it_is_wanted_again() {
    let (cluster, task) = two("wish", true).await;
    assert_eq!(
        cluster.store.request_drain(&cluster.name("a"), true).await,
        Ok(true)
    );
    let after = cluster.until_works("b").await;
    assert!(after <= Duration::from_secs(3), "after {after:?}");
    let session = cluster.sessions("a").await;
    let all = cluster.store.list().await.expect("memory");
    assert!(
        all.iter().any(|seen| seen.id == session[0] && seen.face.draining),
        "it shows that it drains"
    );
    // Now nobody takes anything.
    cluster
        .store
        .request_drain(&cluster.name("b"), true)
        .await
        .expect("memory");
    cluster.until(task, Status::Queued).await;
    // Many scans, none of which may take it.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(cluster.view(task).await.status, Status::Queued);
    assert_eq!(cluster.sessions("a").await, session, "it lives all the time");
    assert_eq!(
        cluster.store.request_drain(&cluster.name("a"), false).await,
        Ok(true)
    );
    let after = cluster.until_works("a").await;
    assert!(after <= Duration::from_secs(3), "after {after:?}");
    finishes(&cluster, task, 0).await;
    assert_eq!(cluster.turns(), ["a", "b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_moved_goes_on_at_the_named_node_without_a_repeat() {
    let (mut cluster, task) = two("move", true).await;
    cluster.boot("c").await;
    let moved = async |to: &str| {
        cluster
            .store
            .move_shards(task, None, to, &write(), cluster.clock_now())
            .await
    };
    assert_eq!(moved(&cluster.name("c")).await, Ok(1));
    let after = cluster.until_works("c").await;
    assert!(after <= Duration::from_secs(3), "after {after:?}");
    let refusal = MoveRefusal::AlreadyThere(task.to_string(), cluster.name("c"));
    assert_eq!(moved(&cluster.name("c")).await, Err(CommandError::Move(refusal)));
    finishes(&cluster, task, 0).await;
    assert_eq!(cluster.turns(), ["a", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_moved_to_a_node_that_has_just_died_goes_on_elsewhere() {
    let (mut cluster, task) = two("move-dead", false).await;
    cluster.crash("b").await;
    let to = cluster.name("b");
    assert_eq!(
        cluster
            .store
            .move_shards(task, None, &to, &write(), cluster.clock_now())
            .await,
        Ok(1)
    );
    cluster.until(task, Status::Queued).await;
    let after = cluster.until_works("a").await;
    assert!(
        (28..=33).contains(&after.as_secs()),
        "it was left to the other for half a minute: {after:?}"
    );
    finishes(&cluster, task, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_ends_without_its_database_says_so_and_ends_in_time() {
    let (mut cluster, task) = two("end-cut", true).await;
    cluster.node("a").link.database(Way::Hangs);
    let begun = Instant::now();
    let ended = cluster.node("a").handle.drain_now(Duration::from_secs(120)).await;
    assert!(!ended, "something is left");
    // A lease after that nothing it did would count.
    let most = cluster.times.lease_ttl + Duration::from_secs(5);
    assert!(begun.elapsed() <= most, "{:?}", begun.elapsed());
    cluster.nodes.remove("a");
    cluster.until_works("b").await;
    finishes(&cluster, task, LOST_WITHOUT_THE_STORE * 2).await;
}
