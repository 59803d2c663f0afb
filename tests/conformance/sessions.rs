//! Facts about node sessions.

use uuid::Uuid;
use windrow::domain::ids::{Epoch, SessionId};
use windrow::domain::lifecycle::{StopReason, Wish};
use windrow::ports::run_store::RunClose;
use windrow::ports::session_store::{Heartbeat, OwnedShard};
use windrow::ports::task_store::TaskCommand;

use crate::fixture::{Harness, new_session};

pub async fn only_a_silent_heartbeat_is_fenced(harness: Harness) {
    let session = harness.session().await;
    let seen = harness.heartbeat(session).await;
    assert_eq!(harness.store.beat(session).await.unwrap(), Heartbeat::Alive(vec![]));
    let next = harness.heartbeat(session).await;
    assert!(next > seen, "a heartbeat moves");
    assert!(!harness.store.fence(session, seen).await.unwrap(), "its owner is back");
    assert_eq!(harness.store.beat(session).await.unwrap(), Heartbeat::Alive(vec![]));
    let silent = harness.heartbeat(session).await;
    assert!(harness.store.fence(session, silent).await.unwrap());
    assert!(harness.store.fence(session, seen).await.unwrap(), "fenced already: go on");
}

pub async fn a_fenced_session_stays_fenced(harness: Harness) {
    let session = harness.session().await;
    harness.fence(session).await;
    for _ in 0..2 {
        assert_eq!(harness.store.beat(session).await.unwrap(), Heartbeat::Fenced);
    }
    let missing = SessionId(Uuid::new_v4());
    assert_eq!(
        harness.store.beat(missing).await.unwrap(),
        Heartbeat::Fenced,
        "a missing row counts as fenced"
    );
    assert!(harness.store.fence(missing, 1).await.unwrap());
    assert!(harness.store.begin(&new_session(session)).await.is_err(), "ids are never used again");
}

pub async fn a_heartbeat_reads_the_shards_of_its_session(harness: Harness) {
    let session = harness.session().await;
    let mut expected = Vec::new();
    for _ in 0..3 {
        let shard = harness.queued(10).await;
        let run = harness.claimed(shard, Epoch(0), session).await;
        expected.push(OwnedShard {
            shard,
            epoch: run.epoch,
            claim: run.claim,
            wish: Wish::Run,
            control_rev: 1,
        });
    }
    assert_eq!(harness.store.beat(session).await.unwrap(), Heartbeat::Alive(expected.clone()));
    let stop = TaskCommand::Stop { reason: StopReason::Operator };
    harness.command(expected[1].shard.task, stop).await;
    expected[1].wish = Wish::Stop;
    assert_eq!(harness.store.beat(session).await.unwrap(), Heartbeat::Alive(expected));
}

pub async fn the_lock_holder_fences_all_others_at_once(harness: Harness) {
    let (older, oldest) = (harness.session().await, harness.session().await);
    let me = harness.session().await;
    assert_eq!(harness.store.fence_all_but(me).await.unwrap(), 2);
    assert_eq!(harness.store.fence_all_but(me).await.unwrap(), 0);
    for session in [older, oldest] {
        assert_eq!(harness.store.beat(session).await.unwrap(), Heartbeat::Fenced);
    }
    assert_eq!(harness.store.beat(me).await.unwrap(), Heartbeat::Alive(vec![]));
}

pub async fn a_session_that_holds_a_shard_is_not_deleted(harness: Harness) {
    let session = harness.session().await;
    let shard = harness.queued(10).await;
    let run = harness.claimed(shard, Epoch(0), session).await;
    harness.store.end(session).await.unwrap();
    assert_eq!(harness.store.list().await.unwrap().len(), 1);
    harness
        .store
        .release(shard, run.epoch, run.claim, &RunClose::Released, crate::fixture::NOW)
        .await
        .unwrap();
    harness.store.end(session).await.unwrap();
    harness.store.end(session).await.unwrap();
    assert!(harness.store.list().await.unwrap().is_empty());
}

pub async fn the_first_witness_is_the_store_s_for_ever(harness: Harness) {
    let mut asked = tokio::task::JoinSet::new();
    for node in 0..8 {
        let store = harness.store.clone();
        asked.spawn(async move { store.witness(&format!("redis {node}")).await.unwrap() });
    }
    let told = asked.join_all().await;
    assert!(told.iter().all(|witness| *witness == told[0]), "{told:?}");
    assert_eq!(harness.store.witness("database").await.unwrap(), told[0]);
}
