//! Facts about candidates and claims.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use windrow_core::ids::{ClaimId, Epoch, ItemIndex, SessionId, ShardId, WallMs};
use windrow_core::task::lifecycle::{Desired, Status, StopReason};
use windrow_core::task::spec::TaskSpec;
use windrow_engine::ports::ownership::run_store::{
    Candidate, CandidateQuery, CheckpointAck, ClaimOutcome, ClaimRequest, LeftBy, RunClose,
};
use windrow_engine::ports::ownership::session_store::Heartbeat;
use windrow_engine::ports::tasks::store::{NewTask, TaskCommand};

use crate::fixture::{Harness, NOW, at, closing, hunt, new_session, request, task, write};

const STOP: TaskCommand = TaskCommand::Stop {
    reason: StopReason::Operator,
};

async fn candidates(harness: &Harness, alive: &[SessionId], now: WallMs) -> Vec<Candidate> {
    let hunt = CandidateQuery {
        alive: alive.to_vec(),
        now,
        ..hunt()
    };
    let game = harness.store.candidates(&hunt).await.unwrap();
    assert_eq!(game.next, None, "one page holds all");
    game.found
}

pub async fn of_24_concurrent_claimants_one_wins(harness: Harness) {
    let shard = harness.queued(10).await;
    let harness = Arc::new(harness);
    let gate = Arc::new(tokio::sync::Barrier::new(24));
    let mut claimants = Vec::new();
    for _ in 0..24 {
        let (harness, gate) = (harness.clone(), gate.clone());
        let session = harness.session().await;
        claimants.push(tokio::spawn(async move {
            gate.wait().await;
            harness
                .store
                .claim(request(shard, Epoch(0), session))
                .await
                .unwrap()
        }));
    }
    let mut winners = 0;
    for claimant in claimants {
        winners += u32::from(matches!(claimant.await.unwrap(), ClaimOutcome::Claimed(_)));
    }
    assert_eq!(winners, 1);
    assert_eq!(harness.view(shard.task).await.status, Status::Running);
}

pub async fn a_lost_answer_to_a_claim_is_recognised(harness: Harness) {
    let shard = harness.queued(10).await;
    let session = harness.session().await;
    let same = request(shard, Epoch(0), session);
    let first = harness.store.claim(same).await.unwrap();
    assert!(matches!(first, ClaimOutcome::Claimed(_)));
    let later = ClaimRequest {
        now: WallMs(NOW.0 + 5000),
        ..same
    };
    assert_eq!(
        harness.store.claim(later).await.unwrap(),
        first,
        "no second run, no higher epoch"
    );
    harness.fence(session).await;
    assert_eq!(harness.store.claim(same).await.unwrap(), ClaimOutcome::Lost);
}

pub async fn a_fenced_or_missing_session_claims_nothing(harness: Harness) {
    let shard = harness.queued(10).await;
    let fenced = harness.session().await;
    harness.fence(fenced).await;
    for session in [fenced, SessionId(Uuid::new_v4())] {
        let outcome = harness
            .store
            .claim(request(shard, Epoch(0), session))
            .await
            .unwrap();
        assert_eq!(outcome, ClaimOutcome::Lost);
    }
    assert_eq!(harness.view(shard.task).await.status, Status::Queued);
}

pub async fn a_shard_of_a_live_session_is_not_to_be_had(harness: Harness) {
    let run = harness.running(10).await;
    let other = harness.session().await;
    let outcome = harness
        .store
        .claim(request(run.shard, run.epoch, other))
        .await
        .unwrap();
    assert_eq!(outcome, ClaimOutcome::Lost);
    let Heartbeat::Alive { shards: none, .. } = harness.store.beat(other).await.unwrap() else {
        panic!("alive")
    };
    assert!(none.is_empty());
}

pub async fn epochs_grow_with_the_clock_and_without_it(harness: Harness) {
    let shard = harness.queued(10).await;
    let mut seen = Epoch(0);
    for (now, expected) in [(5_000, 5_000), (5_000, 5_001), (4_000, 5_002), (9_000, 9_000)] {
        let session = harness.session().await;
        let asked = ClaimRequest {
            now: WallMs(now),
            ..request(shard, seen, session)
        };
        let ClaimOutcome::Claimed(run) = harness.store.claim(asked).await.unwrap() else {
            panic!("free")
        };
        assert_eq!(run.epoch, Epoch(expected));
        let stale = ClaimRequest {
            claim: ClaimId(Uuid::new_v4()),
            ..asked
        };
        assert_eq!(harness.store.claim(stale).await.unwrap(), ClaimOutcome::Lost);
        harness.fence(session).await;
        seen = run.epoch;
    }
}

pub async fn claims_without_progress_are_counted(harness: Harness) {
    let shard = harness.queued(10).await;
    let mut seen = Epoch(0);
    for expected in [0, 1, 2] {
        let session = harness.session().await;
        let run = harness.claimed(shard, seen, session).await;
        assert_eq!(run.stalls, expected);
        harness.fence(session).await;
        seen = run.epoch;
    }
    let session = harness.session().await;
    let run = harness.claimed(shard, seen, session).await;
    harness.stored(at(&run, 1, 1)).await;
    harness.fence(session).await;
    let session = harness.session().await;
    let run = harness.claimed(shard, run.epoch, session).await;
    assert_eq!(run.stalls, 0, "watermark moved");
    harness.stored(closing(&run, 1, 1, RunClose::Released)).await;
    let run = harness.claimed(shard, run.epoch, session).await;
    assert_eq!(run.stalls, 0, "a run that ended calmly is no stall");
}

pub async fn pages_of_candidates_show_each_once_whatever_their_size(harness: Harness) {
    let mut expected = Vec::new();
    for (priority, started) in [(0, 30), (5, 20), (0, 10), (5, 40), (-1, 5)] {
        let made = harness
            .created(&NewTask {
                spec: TaskSpec {
                    priority,
                    ..TaskSpec::default()
                },
                ..task(10)
            })
            .await;
        let at = WallMs(NOW.0 + started);
        harness
            .store
            .command(made.id, &TaskCommand::Start, &write(), at)
            .await
            .unwrap();
        expected.push((priority, at, ShardId { task: made.id, no: 0 }));
    }
    // The third waits for its recovery: another state, and so a later place.
    let session = harness.session().await;
    let run = harness.claimed(expected[2].2, Epoch(0), session).await;
    let not_before = WallMs(NOW.0 + 50);
    let close = RunClose::Recovering {
        not_before,
        reason: "x".into(),
        text: "waits".into(),
        nth: None,
    };
    harness.stored(closing(&run, 1, 2, close)).await;
    let last = expected.remove(2);
    expected.push(last);
    for limit in [1, 2, 4, 5, 6] {
        let mut hunt = CandidateQuery {
            limit,
            now: WallMs(NOW.0 + 100),
            ..hunt()
        };
        let mut seen = Vec::new();
        loop {
            let page = harness.store.candidates(&hunt).await.unwrap();
            assert!(page.found.len() <= limit as usize);
            seen.extend(
                page.found
                    .into_iter()
                    .map(|one| (one.rank.priority.0, one.rank.since, one.rank.shard)),
            );
            hunt.after = page.next;
            if hunt.after.is_none() {
                break;
            }
        }
        assert_eq!(seen, expected, "pages of {limit}");
    }
}

pub async fn only_tasks_of_the_pools_that_are_served_are_found(harness: Harness) {
    let shard = harness.queued(10).await;
    let of = |pools: &[&str]| Some(pools.iter().map(|pool| (*pool).to_owned()).collect::<Vec<_>>());
    let ask = async |pools| {
        let hunt = CandidateQuery { pools, ..hunt() };
        harness.store.candidates(&hunt).await.unwrap().found.len()
    };
    assert_eq!(ask(of(&["slow", "default"])).await, 1);
    assert_eq!(ask(of(&["slow"])).await, 0);
    assert_eq!(ask(of(&[])).await, 0);
    let session = harness.session().await;
    harness.claimed(shard, Epoch(0), session).await;
    harness.command(shard.task, STOP).await;
    assert_eq!(
        ask(of(&["slow"])).await,
        1,
        "what is to be stopped is found by all"
    );
}

pub async fn candidates_are_shards_without_a_live_owner(harness: Harness) {
    let made = harness.created(&task(10)).await;
    assert!(
        candidates(&harness, &[], NOW).await.is_empty(),
        "a created task doesn't run by itself"
    );
    harness.command(made.id, TaskCommand::Start).await;
    let shard = ShardId { task: made.id, no: 0 };
    let found = candidates(&harness, &[], NOW).await;
    assert_eq!(
        (found.len(), found[0].session, found[0].desired),
        (1, None, Desired::Run)
    );
    let session = harness.session().await;
    let run = harness.claimed(shard, found[0].epoch, session).await;
    assert!(candidates(&harness, &[session], NOW).await.is_empty(), "alive");
    let silent = candidates(&harness, &[], NOW).await;
    assert_eq!((silent[0].session, silent[0].epoch), (Some(session), run.epoch));
    harness.fence(session).await;
    assert_eq!(
        candidates(&harness, &[session], NOW).await.len(),
        1,
        "fenced, whoever thinks it alive"
    );
    let missing = SessionId(Uuid::new_v4());
    assert_eq!(candidates(&harness, &[missing], NOW).await.len(), 1);
}

pub async fn candidates_honour_waiting_time_and_restore_window(harness: Harness) {
    let run = harness.running(10).await;
    let not_before = WallMs(NOW.0 + 15_000);
    let close = RunClose::Recovering {
        not_before,
        reason: "error_budget".into(),
        text: "waits".into(),
        nth: Some(1),
    };
    harness.stored(closing(&run, 1, 2, close)).await;
    let session = harness.session().await;
    assert!(candidates(&harness, &[], NOW).await.is_empty());
    let early = harness
        .store
        .claim(request(run.shard, run.epoch, session))
        .await
        .unwrap();
    assert_eq!(early, ClaimOutcome::Lost);
    assert_eq!(candidates(&harness, &[], not_before).await.len(), 1);
    let far = WallMs(NOW.0 + 31 * 86_400_000);
    assert!(
        candidates(&harness, &[], far).await.is_empty(),
        "idle for longer than the window"
    );
}

pub async fn past_its_deadline_a_shard_is_a_candidate_to_be_stopped_only(harness: Harness) {
    let deadline = NOW.plus(Duration::from_secs(60));
    let shard = harness
        .queued_as(&NewTask {
            spec: TaskSpec {
                deadline: Some(deadline),
                ..TaskSpec::default()
            },
            ..task(10)
        })
        .await;
    let session = harness.session().await;
    assert_eq!(candidates(&harness, &[], WallMs(deadline.0 - 1)).await.len(), 1);
    assert!(
        candidates(&harness, &[], deadline).await.is_empty(),
        "nothing of it may leave any more"
    );
    harness.claimed(shard, Epoch(0), session).await;
    harness.command(shard.task, STOP).await;
    assert_eq!(candidates(&harness, &[], deadline).await.len(), 1, "its run ends");
}

pub async fn a_stopped_task_of_a_dead_owner_is_claimed_to_commit_stopped(harness: Harness) {
    let run = harness.running(10).await;
    harness.stored(at(&run, 1, 4)).await;
    assert_eq!(
        harness.command(run.shard.task, STOP).await.status,
        Status::Stopping
    );
    harness
        .store
        .fence_all_but(SessionId(Uuid::new_v4()))
        .await
        .unwrap();
    assert_eq!(
        harness.view(run.shard.task).await.status,
        Status::Stopping,
        "a fence alone stops nothing"
    );
    let far = WallMs(NOW.0 + 31 * 86_400_000);
    let found = candidates(&harness, &[], far).await;
    assert_eq!(
        (found.len(), found[0].desired),
        (1, Desired::Stop),
        "a stop is committed however old"
    );
    let session = harness.session().await;
    let next = harness.claimed(run.shard, found[0].epoch, session).await;
    assert_eq!((next.desired, next.watermark), (Desired::Stop, ItemIndex(4)));
    assert_eq!(harness.view(run.shard.task).await.status, Status::Stopping);
    let close = RunClose::stopped(StopReason::Operator, "its node died".into());
    harness.stored(closing(&next, 1, 4, close)).await;
    assert_eq!(harness.view(run.shard.task).await.status, Status::Stopped);
    assert!(candidates(&harness, &[], NOW).await.is_empty());
}

pub async fn a_shard_that_its_node_does_not_run_is_released(harness: Harness) {
    let run = harness.running(10).await;
    harness.stored(at(&run, 1, 4)).await;
    let other = ClaimId(Uuid::new_v4());
    let refused = harness
        .store
        .release(run.shard, run.epoch, other, &RunClose::Released, NOW)
        .await
        .unwrap();
    assert_eq!(refused, CheckpointAck::Fenced);
    for _ in 0..2 {
        let released = harness
            .store
            .release(run.shard, run.epoch, run.claim, &RunClose::Released, NOW)
            .await
            .unwrap();
        assert_eq!(released, CheckpointAck::Stored, "a repeat says the same");
    }
    let view = harness.view(run.shard.task).await;
    assert_eq!((view.status, view.watermark), (Status::Queued, ItemIndex(4)));
    assert_eq!(candidates(&harness, &[], NOW).await[0].session, None);
    assert_eq!(
        harness.write(at(&run, 2, 5)).await,
        CheckpointAck::Fenced,
        "nothing more under that claim"
    );
    let session = SessionId(Uuid::new_v4());
    harness.store.begin(&new_session(session)).await.unwrap();
    let stale = request(run.shard, Epoch(run.epoch.0 - 1), session);
    assert_eq!(
        harness.store.claim(stale).await.unwrap(),
        ClaimOutcome::Lost,
        "another epoch was seen"
    );
    let next = harness.claimed(run.shard, run.epoch, session).await;
    assert_eq!(next.watermark, ItemIndex(4));
    let handed_over = LeftBy {
        node: "n1".to_owned(),
        is_lost: false,
    };
    assert_eq!(next.left_by, Some(handed_over));
    assert_eq!(run.left_by, None, "the first run has it from nobody");
}
