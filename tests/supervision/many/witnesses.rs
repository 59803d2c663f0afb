//! A node without the database, without the leases, or with leases that were lost.

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::settings::{Auto, Rate, RateLimit};
use windrow_core::task::lifecycle::Status;

use super::{LONG, LOST_WITH_THE_RUN, STOP, TTL, finishes, two};
use crate::cluster::Cluster;
use crate::link::Way;

#[tokio::test(start_paused = true)]
async fn a_node_without_the_database_is_not_fenced_while_its_lease_lives_and_goes_on_when_it_is_back() {
    let (cluster, task) = two("cut-db", true).await;
    let session = cluster.sessions("a").await;
    cluster.node("a").link.database(Way::Cut);
    // Two promises.
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(
        cluster.sessions("a").await,
        session,
        "whoever doesn't get the lease fences nobody"
    );
    assert_eq!(cluster.turns(), ["a"]);
    cluster.node("a").link.database(Way::Open);
    finishes(&cluster, task, 0).await;
    assert_eq!(cluster.turns(), ["a"]);
    assert_eq!(
        *cluster.node("a").handler.opened.lock().expect("ok"),
        1,
        "one run did it all"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_can_not_save_for_long_gives_its_shards_to_one_that_can() {
    let (cluster, task) = two("cut-long", true).await;
    let begun = Instant::now();
    cluster.node("a").link.database(Way::Cut);
    cluster.until_works("b").await;
    let took = begun.elapsed();
    // Its trust, two lives of a lease, and a renewal.
    assert!(
        (TTL * 2..TTL * 3 + Duration::from_secs(5)).contains(&took),
        "{took:?}"
    );
    assert_eq!(cluster.turns(), ["a", "b"]);
    cluster.node("a").link.database(Way::Open);
    finishes(&cluster, task, 500 * 50).await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_no_longer_than_that_for_an_owner_that_can_not_save() {
    let (cluster, task) = two("cut-stop", true).await;
    cluster.node("a").link.database(Way::Cut);
    let begun = Instant::now();
    cluster.command(task, STOP).await;
    cluster.until(task, Status::Stopped).await;
    assert!(
        begun.elapsed() < TTL * 3 + Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    let called = cluster.deliveries();
    tokio::time::sleep(TTL * 3).await;
    assert_eq!(
        cluster.deliveries(),
        called,
        "nothing is called once it is stopped"
    );
    assert_eq!(cluster.turns(), ["a"], "nobody opened the handler again to stop");
    cluster.node("a").link.database(Way::Open);
}

#[tokio::test(start_paused = true)]
async fn losing_the_leases_costs_nothing_while_the_database_answers() {
    let (cluster, task) = two("cut-redis", true).await;
    for name in ["a", "b"] {
        cluster.node(name).link.redis(Way::Cut);
    }
    // More than two lives of a lease.
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(cluster.turns(), ["a"]);
    // A task that begins meanwhile needs no lease either.
    let other = cluster.task(100, |_| {}).await;
    let view = cluster.until(other, Status::Finished).await;
    assert_eq!(view.counters.succeeded, 100);
    for name in ["a", "b"] {
        cluster.node(name).link.redis(Way::Open);
    }
    let view = cluster.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, LONG);
    let runs: u32 = ["a", "b"]
        .iter()
        .map(|name| *cluster.node(name).handler.opened.lock().expect("ok"))
        .sum();
    assert_eq!(runs, 2, "one run each");
}

#[tokio::test(start_paused = true)]
async fn after_a_wipe_of_the_leases_the_runs_set_theirs_again() {
    let (cluster, task) = two("wipe", true).await;
    for _ in 0..3 {
        cluster.leases.as_ref().expect("there are").wipe();
        // A renewal or two between the losses.
        tokio::time::sleep(Duration::from_secs(7)).await;
    }
    finishes(&cluster, task, 0).await;
    assert_eq!(cluster.turns(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_released_shard_is_taken_although_the_leases_were_lost_a_moment_ago() {
    let mut cluster = Cluster::new("wipe-new", true);
    cluster.boot("a").await;
    cluster.leases.as_ref().expect("there are").wipe();
    let task = cluster.task(100, |_| {}).await;
    let begun = Instant::now();
    cluster.until(task, Status::Finished).await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

async fn waits_for_the_witness(prefix: &str, takes_over: bool) {
    let mut cluster = Cluster::new(prefix, true);
    cluster.times.takeover_without_leases = takes_over;
    cluster.boot("a").await;
    let task = cluster.task(LONG, |_| {}).await;
    cluster.until_works("a").await;
    cluster.boot("b").await;
    // It has seen the first one's heart beat.
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.node("b").link.redis(Way::Cut);
    cluster.crash("a").await;
    let is_down = |reason: Option<&str>| reason == Some("coordinator_down");
    let view = cluster
        .until_that(task, "coordinator_down", |view| {
            is_down(view.status_reason.as_deref())
        })
        .await;
    assert!(
        view.status_text
            .expect("has a text")
            .contains("takeover_without_redis")
    );
    let begun = Instant::now();
    if takes_over {
        cluster.until_works("b").await;
        assert!(
            (13..18).contains(&begun.elapsed().as_secs()),
            "a TTL more: {:?}",
            begun.elapsed()
        );
    } else {
        // Many promises: no time is long enough.
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(cluster.turns(), ["a"]);
        assert!(
            is_down(cluster.view(task).await.status_reason.as_deref()),
            "and it still says so"
        );
        cluster.node("b").link.redis(Way::Open);
        cluster.until_works("b").await;
    }
    cluster
        .until_that(task, "running without a reason", |view| {
            view.status_reason.is_none()
        })
        .await;
    finishes(&cluster, task, LOST_WITH_THE_RUN).await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_owner_that_may_live_on_a_lease_is_left_alone_and_its_task_says_so() {
    waits_for_the_witness("blind", false).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_of_several_shards_says_no_longer_that_one_waits_for_redis_once_it_is_followed() {
    let mut cluster = Cluster::new("blind-shards", true);
    for name in ["a", "b"] {
        cluster.boot(name).await;
    }
    let rate = RateLimit::Limited(Rate::per_second(10).expect("not zero"));
    let shards = Auto::Fixed(NonZeroU32::new(2).expect("not zero"));
    let task = cluster.sharded(9_000, shards, |tuning| tuning.rate = rate).await;
    for name in ["a", "b"] {
        cluster.until_owned(name, 1).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.node("b").link.redis(Way::Cut);
    cluster.crash("a").await;
    cluster
        .until_that(task, "coordinator_down", |view| {
            view.status_reason.as_deref() == Some("coordinator_down")
        })
        .await;
    cluster.node("b").link.redis(Way::Open);
    cluster.until_owned("b", 2).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let view = cluster.view(task).await;
    assert_eq!((view.status, view.status_reason), (Status::Running, None));
}

#[tokio::test(start_paused = true)]
async fn where_it_is_wanted_a_silent_owner_is_followed_without_leases_after_a_longer_wait() {
    waits_for_the_witness("blind-yes", true).await;
}
