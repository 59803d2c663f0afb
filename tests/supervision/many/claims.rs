//! Names and claims: who may be whom, and who owns what.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;
use windrow_core::ids::{CheckpointSeq, ClaimId, Epoch, ItemIndex, SessionId, ShardId, TaskId};
use windrow_core::items::counters::Counters;
use windrow_core::shards::Directives;
use windrow_core::task::lifecycle::Status;
use windrow_engine::actors::runtime::begin::PATIENCE;
use windrow_engine::actors::runtime::context::ServingNow;
use windrow_engine::actors::runtime::handle::NotStarted;
use windrow_engine::ports::ownership::run_store::{
    ClaimOutcome, ClaimRequest, ClaimedShard, RunClose, RunStore, ShardCheckpoint,
};
use windrow_engine::ports::ownership::session_store::{NewSession, SessionFace, SessionStore};
use windrow_memory::{Call, When};

use super::{LONG, TTL, finishes};
use crate::cluster::Cluster;

#[tokio::test(start_paused = true)]
async fn the_name_of_a_live_node_is_taken_and_that_of_a_dead_one_is_free_after_a_moment() {
    let mut cluster = Cluster::new("name", false);
    let rival = SessionId(Uuid::new_v4());
    cluster
        .store
        .begin(&session(&cluster.name("a"), rival))
        .await
        .expect("memory");
    let store = cluster.store.clone();
    let beating = tokio::spawn(async move {
        loop {
            store.beat(rival).await.expect("memory");
            // As often as a heart beats.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let refused = cluster
        .try_boot("a")
        .await
        .expect_err("the name is taken")
        .to_string();
    assert!(
        refused.contains("another live node is called name-a") && refused.contains("node.id"),
        "{refused}"
    );
    beating.abort();
    let begun = Instant::now();
    cluster.boot("a").await;
    assert!(begun.elapsed() <= Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_while_a_node_looks_for_its_name_is_waited_for_and_not_for_ever() {
    let mut cluster = Cluster::new("restart", false);
    let died = SessionId(Uuid::new_v4());
    cluster
        .store
        .begin(&session(&cluster.name("a"), died))
        .await
        .expect("memory");
    // Each look at the sessions is one that may fail, and the one after it too.
    for fails in [1, 2, 5] {
        cluster.store.faults().fail_next(Call::Read, When::Before, fails);
        cluster.boot("a").await;
        let node = cluster.nodes.remove("a").expect("it runs");
        assert!(
            node.handle.drain(Duration::from_secs(60)).await,
            "it ended in time"
        );
    }
    cluster
        .store
        .faults()
        .fail_next(Call::Read, When::Before, u32::MAX);
    let begun = Instant::now();
    let error = cluster.try_boot("b").await.expect_err("it stays away");
    assert!(
        matches!(&error, NotStarted::Store(cause) if cause.to_string().contains("stayed away")),
        "{error}"
    );
    let took = begun.elapsed();
    assert!((PATIENCE..PATIENCE * 2).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_ends_in_order_takes_what_is_left_of_its_earlier_lives_with_it() {
    let mut cluster = Cluster::new("lives", false);
    for name in ["a", "b"] {
        let died = SessionId(Uuid::new_v4());
        cluster
            .store
            .begin(&session(&cluster.name(name), died))
            .await
            .expect("memory");
        let left = cluster.store.list().await.expect("memory");
        let heartbeat = left
            .iter()
            .find(|one| one.id == died)
            .expect("it has begun")
            .heartbeat;
        assert!(
            cluster
                .store
                .fence(died, heartbeat, cluster.clock_now())
                .await
                .expect("memory")
        );
    }
    cluster.boot("a").await;
    let leaving = cluster.nodes.remove("a").expect("it runs");
    assert!(
        leaving.handle.drain(Duration::from_secs(60)).await,
        "it ended in time"
    );
    let left: Vec<String> = cluster
        .store
        .list()
        .await
        .expect("memory")
        .into_iter()
        .map(|one| one.node)
        .collect();
    assert_eq!(left, [cluster.name("b")], "only the one that died is shown");
}

fn session(node: &str, id: SessionId) -> NewSession {
    NewSession {
        id,
        node: node.to_owned(),
        version: "test".into(),
        lease_duration: TTL,
        ckpt_version_max: 1,
        started_at: windrow_core::ids::WallMs(0),
        face: SessionFace::default(),
    }
}

/// The only shard of a task that nobody ran, claimed past every actor.
async fn claimed(cluster: &Cluster, task: TaskId, session: SessionId) -> ClaimedShard {
    let request = ClaimRequest {
        shard: ShardId { task, no: 0 },
        seen: Epoch(0),
        claim: ClaimId(Uuid::new_v4()),
        session,
        now: cluster.clock_now(),
    };
    match cluster.store.claim(request).await.expect("memory") {
        ClaimOutcome::Claimed(run) => *run,
        ClaimOutcome::Lost | ClaimOutcome::Newer(_) => panic!("it is free"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_the_rows_give_to_a_node_that_does_not_run_it_is_released_and_run() {
    let mut cluster = Cluster::new("orphan", true);
    cluster.boot("a").await;
    cluster.nodes["a"].handle.set_serving(ServingNow {
        run_tasks: false,
        pools: None,
    });
    let task = cluster.task(100, |_| {}).await;
    // As one whose answer was lost.
    claimed(&cluster, task, cluster.sessions("a").await[0]).await;
    cluster.nodes["a"].handle.set_serving(ServingNow {
        run_tasks: true,
        pools: None,
    });
    let begun = Instant::now();
    cluster.until(task, Status::Finished).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_is_recognised_and_runs_once() {
    let mut cluster = Cluster::new("ack", true);
    cluster.boot("a").await;
    cluster.boot("b").await;
    cluster.store.faults().fail_next(Call::Claim, When::After, 1);
    let task = cluster.task(LONG, |_| {}).await;
    finishes(&cluster, task, 0).await;
    assert_eq!(cluster.turns().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_of_a_newer_program_is_left_to_a_newer_node_and_the_task_says_so() {
    let mut cluster = Cluster::new("newer", false);
    let task = cluster.task(100, |_| {}).await;
    let newer = SessionId(Uuid::new_v4());
    cluster
        .store
        .begin(&session("newer", newer))
        .await
        .expect("memory");
    let run = claimed(&cluster, task, newer).await;
    let checkpoint = ShardCheckpoint {
        shard: run.shard,
        epoch: run.epoch,
        claim: run.claim,
        seq: CheckpointSeq(1),
        watermark: ItemIndex(10),
        high_water: ItemIndex(10),
        horizon: ItemIndex(10),
        counters: Counters {
            succeeded: 10,
            ..Counters::default()
        },
        blob: vec![0xB7, 2, 0, 0],
        side: Vec::new(),
        finish_at: None,
        canary_passed: false,
        told: Directives::default(),
        outage: None,
        lines: Vec::new(),
        results_kept: 0,
        results: Vec::new(),
        close: Some(RunClose::Released),
        now: cluster.clock_now(),
    };
    cluster.store.checkpoint(&[checkpoint]).await.expect("memory");
    cluster.boot("a").await;
    let is_newer = |reason: Option<&str>| reason == Some("newer_version");
    cluster
        .until_that(task, "newer_version", |view| {
            is_newer(view.status_reason.as_deref())
        })
        .await;
    // Many scans, none of which may take it.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let view = cluster.view(task).await;
    assert_eq!(
        (view.status, view.watermark),
        (Status::Queued, ItemIndex(10)),
        "nothing was touched"
    );
    assert!(is_newer(view.status_reason.as_deref()));
}
