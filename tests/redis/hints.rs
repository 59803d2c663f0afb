//! Hints reach the other nodes, come back after a loss, and can't be used to do harm.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::timeout;
use uuid::Uuid;
use windrow_core::ids::{SessionId, TaskId};
use windrow_engine::ports::handling::meters::HintFate;
use windrow_engine::ports::ownership::hints::{Hint, Hints};

use crate::fixture::{Node, eventually, options};
use crate::groups::{Cluster, Sentinels};
use crate::servers::Redis;

fn task(no: i64) -> Hint {
    Hint::Task(TaskId(no))
}

/// Sends hints until one is heard: who listens may not be there yet, and a hint is not kept for it.
async fn reaches(from: &Node, to: &Node) {
    eventually("a hint arrives", async || {
        from.redis.hints.send(Hint::Work);
        timeout(Duration::from_millis(500), to.redis.hints.heard())
            .await
            .is_ok()
    })
    .await;
    // What was sent before it was noticed that one arrived.
    while timeout(Duration::from_millis(300), to.redis.hints.heard())
        .await
        .is_ok()
    {}
}

#[tokio::test]
async fn a_hint_reaches_every_other_node_once_and_not_its_sender() {
    let server = Redis::start();
    let options = options(&server.url());
    let nodes = [
        Node::begin(options.clone()),
        Node::begin(options.clone()),
        Node::begin(options),
    ];
    reaches(&nodes[0], &nodes[1]).await;
    reaches(&nodes[0], &nodes[2]).await;
    while timeout(Duration::from_millis(300), nodes[1].redis.hints.heard())
        .await
        .is_ok()
    {}
    let all = [task(1), task(2), Hint::Session(SessionId(Uuid::new_v4()))];
    all.iter().for_each(|hint| nodes[0].redis.hints.send(*hint));
    for node in &nodes[1..] {
        let mut heard = Vec::new();
        while heard.len() < all.len() {
            heard.extend(
                timeout(Duration::from_secs(30), node.redis.hints.heard())
                    .await
                    .expect("heard"),
            );
        }
        assert_eq!(
            heard.iter().copied().collect::<BTreeSet<_>>(),
            all.into_iter().collect()
        );
        assert_eq!(heard.len(), all.len());
    }
    assert_eq!(nodes[0].meters.hints(HintFate::Heard), 0, "nobody hears itself");
    assert!(nodes[0].meters.hints(HintFate::Sent) >= 5);
}

#[tokio::test]
async fn hints_of_other_stores_and_prefixes_are_not_heard() {
    let server = Redis::start();
    let mine = options(&server.url());
    let (mut store, mut prefix) = (mine.clone(), mine.clone());
    store.store.0 = "zzzzzz".to_owned();
    prefix.prefix = "other".to_owned();
    let listener = Node::begin(mine.clone());
    reaches(&Node::begin(mine), &listener).await;
    let before = listener.meters.hints(HintFate::Heard);
    for stranger in [Node::begin(store), Node::begin(prefix)] {
        stranger.redis.hints.send(task(1));
        eventually("it is sent", async || stranger.meters.hints(HintFate::Sent) == 1).await;
    }
    assert!(
        timeout(Duration::from_millis(500), listener.redis.hints.heard())
            .await
            .is_err()
    );
    assert_eq!(listener.meters.hints(HintFate::Heard), before);
}

#[tokio::test]
async fn who_listens_comes_back_after_a_restart() {
    let mut server = Redis::start();
    let options = options(&server.url());
    let (from, to) = (Node::begin(options.clone()), Node::begin(options));
    reaches(&from, &to).await;
    server.kill();
    eventually("sending fails", async || {
        from.redis.hints.send(Hint::Work);
        from.meters.hints(HintFate::Dropped) > 0
    })
    .await;
    server.restart();
    reaches(&from, &to).await;
}

#[tokio::test]
async fn more_than_the_queue_holds_is_dropped_and_counted_while_redis_hangs() {
    let server = Redis::start();
    let options = options(&server.url());
    let (from, to) = (Node::begin(options.clone()), Node::begin(options));
    reaches(&from, &to).await;
    server.signal("STOP");
    let count = |fate| from.meters.hints(fate);
    let before = count(HintFate::Sent) + count(HintFate::Dropped);
    let begun = tokio::time::Instant::now();
    (0..100_000).for_each(|no| from.redis.hints.send(task(no + 1)));
    assert!(begun.elapsed() < Duration::from_secs(10), "sending never waits");
    assert!(count(HintFate::Dropped) >= 98_000, "{}", count(HintFate::Dropped));
    server.signal("CONT");
    eventually("all are accounted for", async || {
        count(HintFate::Sent) + count(HintFate::Dropped) == before + 100_000
    })
    .await;
    reaches(&from, &to).await;
}

#[tokio::test]
async fn what_is_forged_has_no_effect_but_a_look() {
    let server = Redis::start();
    let options = options(&server.url());
    let (from, to) = (Node::begin(options.clone()), Node::begin(options));
    reaches(&from, &to).await;
    let channel = "windrow:{a1b2c3}:hints";
    let huge = "x".repeat(100_000);
    for message in [
        "",
        "task t1",
        "windrow-hints 9 x\ntask t1",
        "{\"stop\":\"t1\"}",
        &huge,
    ] {
        assert_eq!(server.cli(&["PUBLISH", channel, message]), "2");
    }
    eventually("they are counted", async || {
        to.meters.hints(HintFate::Unreadable) == 5
    })
    .await;
    let forged = format!("windrow-hints 1 {}\ntask t9\nstop t1", Uuid::new_v4());
    server.cli(&["PUBLISH", channel, &forged]);
    let heard = timeout(Duration::from_secs(30), to.redis.hints.heard())
        .await
        .expect("heard");
    assert_eq!(heard, [task(9)]);
    // A flood is gathered into few looks, each at most at what a node holds.
    let flood = Node::begin(crate::fixture::options(&server.url()));
    (0..900).for_each(|no| flood.redis.hints.send(task(no % 3 + 1)));
    eventually("it is sent", async || flood.meters.hints(HintFate::Sent) == 900).await;
    let mut looks = 0;
    while let Ok(heard) = timeout(Duration::from_millis(500), to.redis.hints.heard()).await {
        assert!(heard.len() <= 3, "{heard:?}");
        looks += 1;
    }
    assert!(looks <= 50, "{looks}");
}

#[tokio::test]
async fn hints_cross_a_cluster_and_follow_sentinels() {
    let cluster = Cluster::start().await;
    let urls: Vec<_> = cluster.each().collect();
    let node = |at: usize| {
        let mut options = options("redis://x");
        options.url = urls[at].clone();
        Node::begin(options)
    };
    let (first, second) = (node(0), node(1));
    reaches(&first, &second).await;
    let mut group = Sentinels::start().await;
    let (from, to) = (
        Node::begin(options(&group.url())),
        Node::begin(options(&group.url())),
    );
    reaches(&from, &to).await;
    group.master.kill();
    reaches(&from, &to).await;
}

#[tokio::test]
async fn a_hint_takes_milliseconds() {
    let server = Redis::start();
    let options = options(&server.url());
    let (from, to) = (Node::begin(options.clone()), Node::begin(options));
    reaches(&from, &to).await;
    let mut took = Vec::new();
    for no in 1..=200 {
        let begun = tokio::time::Instant::now();
        from.redis.hints.send(task(no));
        let heard = timeout(Duration::from_secs(30), to.redis.hints.heard())
            .await
            .expect("heard");
        assert_eq!(heard, [task(no)]);
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    println!(
        "a hint takes {:?}, at most {:?} (of 200; 20 ms of it are gathered)",
        took[100], took[199]
    );
    // The target for a stop across nodes is 500 ms; half of it may be the machine's noise.
    assert!(took[100] < Duration::from_millis(250), "{:?}", took[100]);
}
