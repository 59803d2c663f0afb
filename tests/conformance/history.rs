//! Facts about what people are told afterwards: who took a shard from whom, and what rested for too long.

use std::time::Duration;

use uuid::Uuid;
use windrow_core::ids::{Epoch, ItemIndex, SessionId, TaskId, WallMs};
use windrow_core::life::succession::Loss;
use windrow_core::task::lifecycle::{DORMANT, Status, dormant_text};
use windrow_core::task::spec::TaskSpec;
use windrow_engine::ports::ownership::run_store::{
    CandidateQuery, ClaimOutcome, ClaimRequest, LeftBy, RunClose, ShardCheckpoint,
};
use windrow_engine::ports::ownership::session_store::NewSession;
use windrow_engine::ports::tasks::store::{AuditEntry, NewTask, TaskCommand, WaitNote};

use crate::fixture::{Harness, NOW, at, closing, hunt, new_session, request, task, write};

const DAY: Duration = Duration::from_secs(24 * 3600);
const WINDOW: Duration = Duration::from_secs(30 * 24 * 3600);

async fn session_of(harness: &Harness, node: &str) -> SessionId {
    let id = SessionId(Uuid::new_v4());
    harness
        .store
        .begin(&NewSession {
            node: node.to_owned(),
            ..new_session(id)
        })
        .await
        .unwrap();
    id
}

/// What the audit says of shards.
async fn told(harness: &Harness, id: TaskId) -> Vec<AuditEntry> {
    let entries = harness.store.audit(id).await.unwrap();
    entries
        .into_iter()
        .filter(|entry| entry.action.starts_with("shard."))
        .collect()
}

pub async fn who_took_a_shard_from_whom_is_told(harness: Harness) {
    let shard = harness.queued(100).await;
    let dead = session_of(&harness, "a").await;
    let run = harness.claimed(shard, Epoch(0), dead).await;
    let horizon = ItemIndex(52);
    harness
        .stored(ShardCheckpoint {
            horizon,
            ..at(&run, 1, 40)
        })
        .await;
    assert_eq!(
        told(&harness, shard.task).await,
        [],
        "a first claim takes nothing"
    );
    harness.fence(dead).await;
    let heir = session_of(&harness, "b").await;
    let asked = ClaimRequest {
        now: WallMs(NOW.0 + 12_345),
        ..request(shard, run.epoch, heir)
    };
    let ClaimOutcome::Claimed(next) = harness.store.claim(asked).await.unwrap() else {
        panic!("free")
    };
    assert_eq!(
        harness.store.claim(asked).await.unwrap(),
        ClaimOutcome::Claimed(next.clone()),
        "once"
    );
    let entries = told(&harness, shard.task).await;
    assert_eq!(entries.len(), 1, "{entries:?}");
    let entry = &entries[0];
    assert_eq!(
        (entry.action.as_str(), entry.actor.as_str()),
        ("shard.taken_over", "windrow")
    );
    let text = "b took over shard 0 from a, which was fenced after 12s without a save; up to 12 items may be called again";
    assert_eq!(entry.reason.as_deref(), Some(text));
    assert!(
        entry.before.as_deref().unwrap().contains(r#""node":"a""#),
        "{entry:?}"
    );
    assert!(
        entry.after.as_deref().unwrap().contains(r#""node":"b""#),
        "{entry:?}"
    );

    let close = RunClose::Recovering {
        not_before: WallMs(NOW.0 + 50_000),
        reason: "unavailable".to_owned(),
        text: "the handler is down".to_owned(),
        nth: Some(1),
    };
    harness.stored(closing(&next, 1, 40, close)).await;
    let third = session_of(&harness, "c").await;
    let asked = ClaimRequest {
        now: WallMs(NOW.0 + 60_000),
        ..request(shard, next.epoch, third)
    };
    let ClaimOutcome::Claimed(last) = harness.store.claim(asked).await.unwrap() else {
        panic!("it is to be run")
    };
    harness.fence(third).await;
    harness
        .store
        .disown(&[shard], WallMs(NOW.0 + 90_000))
        .await
        .unwrap();
    let entries = told(&harness, shard.task).await;
    let fourth = session_of(&harness, "d").await;
    let asked = ClaimRequest {
        now: WallMs(NOW.0 + 91_000),
        ..request(shard, last.epoch, fourth)
    };
    let ClaimOutcome::Claimed(heir) = harness.store.claim(asked).await.unwrap() else {
        panic!("it waits for a node")
    };
    let left_by = LeftBy {
        node: "c".to_owned(),
        is_lost: true,
    };
    assert_eq!(heir.left_by, Some(left_by), "who goes on can tell whose it was");
    let mut said: Vec<(&str, &str)> = entries
        .iter()
        .map(|entry| (entry.action.as_str(), entry.reason.as_deref().unwrap()))
        .collect();
    said.sort_unstable();
    assert_eq!(
        said,
        [
            (
                "shard.lost",
                "c was fenced after 30s without a save of shard 0, which waits for a node; up to 60 items may be called again"
            ),
            ("shard.recovering", "shard 0 on b: the handler is down"),
            ("shard.taken_over", text),
        ]
    );
    let silent = |entry: &AuditEntry| {
        let (before, after) = (entry.before.as_deref()?, entry.after.as_deref()?);
        Some(Loss::of(before, after)?.silent.as_secs())
    };
    let lost = entries.iter().find(|entry| entry.action == "shard.lost").unwrap();
    assert_eq!(
        (silent(lost), silent(entry)),
        (Some(30), Some(12)),
        "as a fact too"
    );
}

pub async fn what_rested_for_too_long_is_found_and_told_and_only_a_command_wakes_it(harness: Harness) {
    let run = harness.running(100).await;
    let fresh = harness.queued(10).await.task;
    let later = NewTask {
        spec: TaskSpec {
            start_at: Some(WallMs(NOW.0 + 1)),
            ..TaskSpec::default()
        },
        ..task(10)
    };
    let waits = harness.queued_as(&later).await.task;
    let id = run.shard.task;
    harness.stored(at(&run, 1, 40)).await;
    let soon = NOW.plus(DAY);
    let found = |now: WallMs| harness.store.dormant(now.minus(WINDOW), 10);
    assert_eq!(found(soon).await.unwrap(), []);
    let much_later = NOW.plus(31 * DAY);
    assert!(
        !found(much_later).await.unwrap().contains(&id),
        "it has an owner still"
    );
    let sessions = harness.store.list().await.unwrap();
    for session in &sessions {
        harness.fence(session.id).await;
    }
    harness.store.disown(&[run.shard], much_later).await.unwrap();
    let mut dormant = found(much_later).await.unwrap();
    dormant.sort_unstable();
    assert_eq!(dormant, [id, fresh, waits]);
    let seen = CandidateQuery {
        now: much_later,
        restore_window: WINDOW,
        ..hunt()
    };
    assert!(
        harness.store.candidates(&seen).await.unwrap().found.is_empty(),
        "nobody would take them"
    );

    let text = dormant_text(WINDOW);
    assert!(text.contains("idle longer than 30d"), "{text}");
    let note = |task| WaitNote {
        task,
        reason: DORMANT.to_owned(),
        text: text.clone(),
    };
    harness
        .store
        .explain_waits(&[note(id), note(fresh)], much_later)
        .await
        .unwrap();
    let view = harness.view(id).await;
    assert_eq!(
        (view.status, view.status_reason.as_deref()),
        (Status::Queued, Some(DORMANT))
    );
    assert_eq!(found(much_later).await.unwrap(), [waits], "the others say so");
    let none: [String; 0] = [];
    let unserved = harness.store.unserved(&none, much_later, 10).await.unwrap();
    assert!(unserved.iter().all(|(task, _)| *task == waits), "{unserved:?}");

    for (task, command) in [(id, TaskCommand::Start), (fresh, TaskCommand::Recover)] {
        let woken = harness
            .store
            .command(task, &command, &write(), much_later)
            .await
            .unwrap();
        assert_eq!((woken.status, woken.status_reason), (Status::Queued, None));
        let refused = harness
            .store
            .command(task, &TaskCommand::Start, &write(), much_later)
            .await;
        refused.expect_err("it is awake");
    }
    let game = harness.store.candidates(&seen).await.unwrap();
    let tasks: Vec<TaskId> = game
        .found
        .iter()
        .map(|candidate| candidate.rank.shard.task)
        .collect();
    assert_eq!(tasks, [id, fresh]);
    let session = harness.session().await;
    let asked = ClaimRequest {
        now: much_later,
        ..request(run.shard, run.epoch, session)
    };
    let ClaimOutcome::Claimed(next) = harness.store.claim(asked).await.unwrap() else {
        panic!("free")
    };
    assert_eq!((next.watermark.0, next.stalls), (40, 0), "it goes on, forgiven");
}

pub async fn what_recovers_for_too_long_is_dormant_too(harness: Harness) {
    let run = harness.running(100).await;
    let close = RunClose::Recovering {
        not_before: NOW.plus(DAY),
        reason: "unavailable".to_owned(),
        text: "the handler is down".to_owned(),
        nth: Some(1),
    };
    let last = ShardCheckpoint {
        close: Some(close),
        ..at(&run, 1, 40)
    };
    harness.stored(last).await;
    let found = |days: u32| harness.store.dormant(NOW.plus(days * DAY).minus(WINDOW), 10);
    assert_eq!(found(31).await.unwrap(), [], "its time came a day later");
    assert_eq!(found(32).await.unwrap(), [run.shard.task]);
    let note = WaitNote {
        task: run.shard.task,
        reason: DORMANT.to_owned(),
        text: dormant_text(WINDOW),
    };
    harness
        .store
        .explain_waits(&[note], NOW.plus(32 * DAY))
        .await
        .unwrap();
    let now = NOW.plus(32 * DAY);
    let woken = harness
        .store
        .command(run.shard.task, &TaskCommand::Recover, &write(), now)
        .await
        .unwrap();
    assert_eq!((woken.status, woken.status_reason), (Status::Queued, None));
    let seen = CandidateQuery {
        now,
        restore_window: WINDOW,
        ..hunt()
    };
    assert_eq!(harness.store.candidates(&seen).await.unwrap().found.len(), 1);
}
