//! Facts about node sessions.

use uuid::Uuid;
use windrow_core::ids::{Epoch, SessionId, ShardId};
use windrow_core::task::lifecycle::{Desired, StopReason};
use windrow_engine::ports::ownership::run_store::{CandidateQuery, MOVE_PATIENCE, RunClose};
use windrow_engine::ports::ownership::session_store::{Heartbeat, NewSession, OwnedShard};
use windrow_engine::ports::tasks::store::{CommandError, MoveRefusal, TaskCommand};

use crate::fixture::{Harness, NOW, alive, hunt, new_session, write};

pub async fn only_a_silent_heartbeat_is_fenced(harness: Harness) {
    let session = harness.session().await;
    let seen = harness.heartbeat(session).await;
    assert_eq!(harness.store.beat(session).await.unwrap(), alive(vec![]));
    let next = harness.heartbeat(session).await;
    assert!(next > seen, "a heartbeat moves");
    assert!(
        !harness.store.fence(session, seen, NOW).await.unwrap(),
        "its owner is back"
    );
    assert_eq!(harness.store.beat(session).await.unwrap(), alive(vec![]));
    let silent = harness.heartbeat(session).await;
    assert!(harness.store.fence(session, silent, NOW).await.unwrap());
    assert!(
        harness.store.fence(session, seen, NOW).await.unwrap(),
        "fenced already: go on"
    );
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
    assert!(harness.store.fence(missing, 1, NOW).await.unwrap());
    assert!(
        harness.store.begin(&new_session(session)).await.is_err(),
        "ids are never used again"
    );
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
            desired: Desired::Run,
            control_rev: 1,
            leaves: false,
        });
    }
    assert_eq!(
        harness.store.beat(session).await.unwrap(),
        alive(expected.clone())
    );
    let stop = TaskCommand::Stop {
        reason: StopReason::Operator,
    };
    harness.command(expected[1].shard.task, stop).await;
    expected[1].desired = Desired::Stop;
    assert_eq!(harness.store.beat(session).await.unwrap(), alive(expected));
}

pub async fn the_lock_holder_fences_all_others_at_once(harness: Harness) {
    let (older, oldest) = (harness.session().await, harness.session().await);
    let me = harness.session().await;
    assert_eq!(harness.store.fence_all_but(me).await.unwrap(), 2);
    assert_eq!(harness.store.fence_all_but(me).await.unwrap(), 0);
    for session in [older, oldest] {
        assert_eq!(harness.store.beat(session).await.unwrap(), Heartbeat::Fenced);
    }
    assert_eq!(harness.store.beat(me).await.unwrap(), alive(vec![]));
}

pub async fn a_session_that_holds_a_shard_is_not_deleted(harness: Harness) {
    let session = harness.session().await;
    let shard = harness.queued(10).await;
    let run = harness.claimed(shard, Epoch(0), session).await;
    harness.store.end(session).await.unwrap();
    assert_eq!(harness.store.list().await.unwrap().len(), 1);
    harness
        .store
        .release(shard, run.epoch, run.claim, &RunClose::Released, NOW)
        .await
        .unwrap();
    harness.store.end(session).await.unwrap();
    harness.store.end(session).await.unwrap();
    assert!(harness.store.list().await.unwrap().is_empty());
}

pub async fn a_node_that_is_to_be_drained_hears_it_with_its_heartbeat_and_after_a_fence(harness: Harness) {
    let drained = Heartbeat::Alive {
        shards: vec![],
        drain: true,
    };
    let session = harness.session().await;
    assert!(
        !harness.store.request_drain("n7", true).await.unwrap(),
        "nobody is called n7"
    );
    assert!(harness.store.request_drain("n1", true).await.unwrap());
    assert_eq!(harness.store.beat(session).await.unwrap(), drained);
    assert!(harness.store.list().await.unwrap()[0].drain);
    harness.fence(session).await;
    let next = harness.session().await;
    assert_eq!(
        harness.store.beat(next).await.unwrap(),
        drained,
        "the next life of the node knows it"
    );
    assert!(harness.store.request_drain("n1", false).await.unwrap());
    assert_eq!(harness.store.beat(next).await.unwrap(), alive(vec![]));
    harness.fence(next).await;
    assert!(
        !harness.store.request_drain("n1", true).await.unwrap(),
        "no session of it lives"
    );
}

pub async fn a_shard_that_is_moved_is_left_to_its_node_for_a_while(harness: Harness) {
    let (there, here) = (session_of(&harness, "n2").await, harness.session().await);
    let shard = harness.queued(10).await;
    let moved = async |only, to: &str| {
        harness
            .store
            .move_shards(shard.task, only, to, &write(), NOW)
            .await
    };
    let refused = |refusal: MoveRefusal| Err(CommandError::Move(refusal));
    assert_eq!(
        moved(None, "n2").await,
        refused(MoveRefusal::NotRunning(shard.task.to_string()))
    );
    let run = harness.claimed(shard, Epoch(0), here).await;
    assert_eq!(moved(None, "n9").await, refused(MoveRefusal::NoNode("n9".into())));
    assert_eq!(
        moved(Some(7), "n2").await,
        refused(MoveRefusal::NoShard(ShardId { no: 7, ..shard }))
    );
    assert_eq!(
        moved(None, "n1").await,
        refused(MoveRefusal::AlreadyThere(shard.task.to_string(), "n1".into()))
    );
    harness.store.request_drain("n2", true).await.unwrap();
    assert_eq!(
        moved(None, "n2").await,
        refused(MoveRefusal::Draining("n2".into()))
    );
    harness.store.request_drain("n2", false).await.unwrap();
    assert_eq!(moved(Some(0), "n2").await, Ok(1));
    let Heartbeat::Alive { shards, .. } = harness.store.beat(here).await.unwrap() else {
        panic!("alive")
    };
    assert!(shards[0].leaves, "its owner hears it");
    let later = NOW.plus(MOVE_PATIENCE * 3);
    harness
        .store
        .release(shard, run.epoch, run.claim, &RunClose::Released, later)
        .await
        .unwrap();
    let found = async |node: &str, now| {
        let hunt = CandidateQuery {
            alive: vec![there, here],
            now,
            node: node.into(),
            ..hunt()
        };
        harness.store.candidates(&hunt).await.unwrap().found.len()
    };
    assert_eq!((found("n1", later).await, found("n2", later).await), (0, 1));
    assert_eq!(
        found("n1", later.plus(MOVE_PATIENCE)).await,
        1,
        "afterwards anybody takes it"
    );
    harness.claimed(shard, run.epoch, there).await;
    let Heartbeat::Alive { shards, .. } = harness.store.beat(there).await.unwrap() else {
        panic!("alive")
    };
    assert!(!shards[0].leaves, "a claim ends the desired");
    let audit = harness.store.audit(shard.task).await.unwrap();
    let last = audit.last().unwrap();
    assert_eq!(
        (last.action.as_str(), last.after.as_deref()),
        ("task.move", Some(r#"{"shards":[0],"to":"n2"}"#))
    );
}

async fn session_of(harness: &Harness, node: &str) -> SessionId {
    let id = SessionId(Uuid::new_v4());
    let new = NewSession {
        node: node.to_owned(),
        ..new_session(id)
    };
    harness.store.begin(&new).await.unwrap();
    id
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
