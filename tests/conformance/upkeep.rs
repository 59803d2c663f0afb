//! Facts about hook calls, about what time makes due, and about what isn't kept longer.

use std::time::Duration;

use uuid::Uuid;
use windrow_core::business::HookKind;
use windrow_core::handler::elsewhere::Reaching;
use windrow_core::ids::{Epoch, SessionId, TaskId, WallMs};
use windrow_core::items::verdict::Outage;
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_core::task::spec::TaskSpec;
use windrow_engine::ports::handling::outbox::{Delivery, HookTarget, Settlement, Target};
use windrow_engine::ports::ownership::run_store::{CheckpointAck, ClaimedShard, RunClose, ShardCheckpoint};
use windrow_engine::ports::ownership::session_store::SessionFace;
use windrow_engine::ports::tasks::failure_list::FailurePage;
use windrow_engine::ports::tasks::store::{NewTask, TaskCommand};
use windrow_engine::ports::tasks::upkeep::Sweep;

use crate::fixture::{BUSINESS, Harness, NOW, at, closing, failed, task, with, write};

const STOP: TaskCommand = TaskCommand::Stop {
    reason: StopReason::Operator,
};
const HOUR: Duration = Duration::from_secs(3600);

fn lease(now: WallMs) -> WallMs {
    now.plus(Duration::from_secs(30))
}

async fn take(harness: &Harness, now: WallMs) -> Vec<Delivery> {
    harness.store.take_due(now, lease(now), 10).await.unwrap()
}

/// A business that wants to hear everything.
async fn listening(harness: &Harness) {
    harness
        .store
        .ensure_business(BUSINESS, &write(), NOW)
        .await
        .unwrap();
    harness
        .want_hooks(r#"{"prepare":{},"stopped":{},"finished":{}}"#)
        .await;
}

pub async fn a_hook_call_is_taken_by_one_dispatcher_until_its_time_is_up(harness: Harness) {
    listening(&harness).await;
    let shard = harness.queued(10).await;
    let first = take(&harness, NOW).await.remove(0);
    let hook = HookTarget {
        task: shard.task,
        start_no: 1,
        business: BUSINESS.to_owned(),
        kind: HookKind::Prepare,
    };
    assert_eq!((&first.target, first.attempts), (&Target::Hook(hook), 1));
    assert!(first.body.contains("start_token") && first.delivery_id.ends_with("-s1-task.prepare"));
    assert!(take(&harness, NOW).await.is_empty(), "it is out");
    let second = take(&harness, lease(NOW)).await.remove(0);
    assert_eq!(
        (second.attempts, second.delivery_id.as_str()),
        (2, first.delivery_id.as_str())
    );
    let done = Settlement::Done;
    assert!(
        !harness.store.settle(&first, &done).await.unwrap(),
        "the first dispatcher is too late"
    );
    let due_at = NOW.plus(HOUR);
    let again = Settlement::Again {
        due_at,
        error: Some("busy".to_owned()),
    };
    assert!(harness.store.settle(&second, &again).await.unwrap());
    assert!(take(&harness, lease(lease(NOW))).await.is_empty());
    let third = take(&harness, due_at).await.remove(0);
    assert_eq!((third.attempts, &third.body), (3, &first.body));
    assert!(harness.store.settle(&third, &done).await.unwrap());
    assert!(!harness.store.settle(&third, &done).await.unwrap(), "once");
    assert!(take(&harness, NOW.plus(24 * HOUR)).await.is_empty());
}

pub async fn calls_that_are_over_are_kept_for_a_while(harness: Harness) {
    listening(&harness).await;
    for _ in 0..3 {
        harness.queued(10).await;
    }
    let calls = take(&harness, NOW).await;
    assert_eq!(calls.len(), 3);
    harness.store.settle(&calls[0], &Settlement::Done).await.unwrap();
    harness
        .store
        .settle(
            &calls[1],
            &Settlement::Dead {
                error: "gone".to_owned(),
            },
        )
        .await
        .unwrap();
    let later = NOW.plus(HOUR);
    assert_eq!(
        harness.store.sweep(Sweep::Delivered, NOW).await.unwrap(),
        0,
        "not older"
    );
    assert_eq!(harness.store.sweep(Sweep::Delivered, later).await.unwrap(), 1);
    assert_eq!(harness.store.sweep(Sweep::Delivered, later).await.unwrap(), 0);
    assert_eq!(harness.store.sweep(Sweep::GivenUp, later).await.unwrap(), 1);
    let left = take(&harness, lease(NOW)).await;
    assert_eq!(
        left.iter().map(|call| call.id).collect::<Vec<_>>(),
        [calls[2].id],
        "what is due stays"
    );
}

pub async fn what_is_past_its_deadline_is_found_while_that_matters(harness: Harness) {
    let deadline = |ms| Some(NOW.plus(Duration::from_millis(ms)));
    let late = harness
        .queued_as(&NewTask {
            spec: TaskSpec {
                deadline: deadline(50),
                ..TaskSpec::default()
            },
            ..task(10)
        })
        .await;
    let later = harness
        .queued_as(&NewTask {
            spec: TaskSpec {
                deadline: deadline(20),
                ..TaskSpec::default()
            },
            ..task(10)
        })
        .await;
    let stopped = harness
        .queued_as(&NewTask {
            spec: TaskSpec {
                deadline: deadline(10),
                ..TaskSpec::default()
            },
            ..task(10)
        })
        .await;
    harness.command(stopped.task, STOP).await;
    harness
        .created(&NewTask {
            spec: TaskSpec {
                deadline: deadline(10),
                ..TaskSpec::default()
            },
            ..task(10)
        })
        .await;
    harness.queued(10).await;
    let find = async |ms| {
        harness
            .store
            .past_deadline(NOW.plus(Duration::from_millis(ms)), 10)
            .await
            .unwrap()
    };
    assert_eq!(find(19).await, []);
    assert_eq!(find(20).await, [later.task]);
    assert_eq!(find(50).await, [later.task, late.task]);
    let session = harness.session().await;
    harness.claimed(late, Epoch(0), session).await;
    assert_eq!(find(50).await, [later.task, late.task], "one that runs too");
}

pub async fn a_start_that_was_not_answered_in_time_is_found(harness: Harness) {
    listening(&harness).await;
    let shard = harness.queued(10).await;
    let until = harness.view(shard.task).await.awaiting_until.unwrap();
    let find = async |now| harness.store.unanswered(now, 10).await.unwrap();
    assert_eq!(find(WallMs(until.0 - 1)).await, []);
    assert_eq!(find(until).await, [(shard.task, 1)]);
    harness.command(shard.task, STOP).await;
    assert_eq!(find(until).await, []);
}

pub async fn tasks_that_no_pool_serves_and_starts_that_are_due_are_found(harness: Harness) {
    let at = NOW.plus(HOUR);
    let now = harness.queued(10).await;
    let later = harness
        .queued_as(&NewTask {
            spec: TaskSpec {
                start_at: Some(at),
                ..TaskSpec::default()
            },
            ..task(10)
        })
        .await;
    let find = async |pools: &[&str], now| {
        let pools: Vec<String> = pools.iter().map(|pool| (*pool).to_owned()).collect();
        let found = harness.store.unserved(&pools, now, 10).await.unwrap();
        assert!(found.iter().all(|(_, pool)| pool == "default"));
        found.into_iter().map(|(task, _)| task).collect::<Vec<TaskId>>()
    };
    assert_eq!(find(&["slow"], NOW).await, [now.task]);
    assert_eq!(find(&[], at).await, [now.task, later.task]);
    assert_eq!(find(&["slow", "default"], at).await, []);
    let is_due = async |after, upto| harness.store.is_start_due(after, upto).await.unwrap();
    assert!(!is_due(NOW, WallMs(at.0 - 1)).await && is_due(NOW, at).await);
    assert!(!is_due(at, at.plus(HOUR)).await, "seen before");
}

pub async fn failures_and_tasks_are_found_once_they_ended_long_enough_ago(harness: Harness) {
    let run = harness.running(10).await;
    let last = closing(&run, 1, 10, RunClose::Done);
    harness.stored(with(last, vec![failed(3, "BAD")])).await;
    let origin = run.shard.task;
    assert_eq!(harness.view(origin).await.status, Status::Finished);
    let open = harness.running(10).await;
    harness
        .stored(with(at(&open, 1, 5), vec![failed(2, "BAD")]))
        .await;
    let later = NOW.plus(HOUR);
    assert_eq!(harness.store.ended_before(NOW, 10).await.unwrap(), []);
    assert_eq!(harness.store.ended_before(later, 10).await.unwrap(), [origin]);
    let redrive = harness
        .created(&NewTask {
            parent: Some(origin),
            ..task(1)
        })
        .await;
    let failures = async |id| {
        harness
            .store
            .page(id, &FailurePage::ByIndex(None), 10)
            .await
            .unwrap()
            .len()
    };
    harness.store.sweep(Sweep::Failures, later).await.unwrap();
    assert_eq!(failures(origin).await, 1, "its redrive needs it");
    harness.command(redrive.id, TaskCommand::Cancel).await;
    harness.store.sweep(Sweep::Failures, NOW).await.unwrap();
    assert_eq!(failures(origin).await, 1, "not old enough");
    harness.store.sweep(Sweep::Failures, later).await.unwrap();
    assert_eq!((failures(origin).await, failures(open.shard.task).await), (0, 1));
    let groups = harness.store.groups(origin).await.unwrap();
    assert_eq!(groups[0].count, 1, "how many there were is kept");
}

pub async fn a_session_says_how_it_shows_itself_and_goes_when_it_is_over(harness: Harness) {
    let id = harness.session().await;
    let face = SessionFace {
        address: Some("https://n1:7700".to_owned()),
        pools: Some(vec!["default".to_owned(), "slow".to_owned()]),
        capacity: Some(windrow_core::capacity::Load(2_000_000_000)),
        labels: [("zone".to_owned(), "a".to_owned())].into(),
        draining: true,
    };
    assert!(harness.store.describe(id, &face).await.unwrap());
    let seen = harness.store.list().await.unwrap().remove(0);
    assert_eq!(
        (&seen.face, seen.started_at, seen.ckpt_version_max),
        (&face, NOW, 1)
    );
    assert!(
        !harness
            .store
            .describe(SessionId(Uuid::new_v4()), &face)
            .await
            .unwrap()
    );
    let shard = harness.queued(10).await;
    let run = harness.claimed(shard, Epoch(0), id).await;
    let later = NOW.plus(HOUR);
    assert_eq!(
        harness.store.sweep(Sweep::Sessions, later).await.unwrap(),
        0,
        "it lives"
    );
    harness.fence(id).await;
    assert!(
        !harness.store.describe(id, &SessionFace::default()).await.unwrap(),
        "a fenced one says nothing"
    );
    assert_eq!(
        harness.store.sweep(Sweep::Sessions, later).await.unwrap(),
        0,
        "a shard names it"
    );
    let released = harness
        .store
        .release(shard, run.epoch, run.claim, &RunClose::Released, NOW)
        .await
        .unwrap();
    assert_eq!(released, CheckpointAck::Stored);
    assert_eq!(
        harness.store.sweep(Sweep::Sessions, NOW).await.unwrap(),
        0,
        "not old enough"
    );
    assert_eq!(harness.store.sweep(Sweep::Sessions, later).await.unwrap(), 1);
    assert!(harness.store.list().await.unwrap().is_empty());
}

pub async fn what_a_fenced_session_held_waits_again_or_is_stopped(harness: Harness) {
    let disown = async || {
        let orphans = harness.store.orphans(&[], 10).await.unwrap();
        let shards: Vec<_> = orphans.into_iter().map(|(shard, _)| shard).collect();
        harness.store.disown(&shards, NOW).await.unwrap()
    };
    let session = harness.session().await;
    let (one, other) = (harness.queued(10).await, harness.queued(10).await);
    let run = harness.claimed(one, Epoch(0), session).await;
    harness.claimed(other, Epoch(0), session).await;
    let alive = harness.running(10).await;
    harness.command(other.task, STOP).await;
    assert_eq!(disown().await, [], "its owner lives");
    let silent = harness.store.orphans(&[session], 10).await.unwrap();
    assert_eq!(silent, [(one, session), (other, session)]);
    assert_eq!(
        harness.store.disown(&[one, other], NOW).await.unwrap(),
        [],
        "silent is not fenced"
    );
    harness.fence(session).await;
    assert_eq!(disown().await, [one.task, other.task]);
    assert_eq!(disown().await, []);
    let view = harness.view(one.task).await;
    assert_eq!(view.status, Status::Queued);
    assert!(
        view.status_text
            .unwrap()
            .starts_with("the node that ran it is gone")
    );
    assert_eq!(harness.view(other.task).await.status, Status::Stopped);
    assert_eq!(harness.view(alive.shard.task).await.status, Status::Running);
    assert_eq!(
        harness.write(at(&run, 1, 5)).await,
        CheckpointAck::Fenced,
        "the old owner writes nothing"
    );
    let next = harness.session().await;
    let again = harness.claimed(one, run.epoch, next).await;
    assert_eq!(
        (again.run.0, again.stalls),
        (2, run.stalls + 1),
        "a crash without progress still counts"
    );
    harness.command(other.task, TaskCommand::Start).await;
    assert_eq!(harness.view(other.task).await.status, Status::Queued);
}

pub async fn runs_elsewhere_whose_handler_is_not_down_are_found(harness: Harness) {
    let mine = harness.session().await;
    let own = harness.claimed(harness.queued(10).await, Epoch(0), mine).await;
    let (up, down) = (harness.running(10).await, harness.running(10).await);
    harness.queued(10).await;
    let outage = Some(Outage {
        since: NOW,
        probes: 3,
    });
    for (run, outage) in [(&own, None), (&up, None), (&down, outage)] {
        harness
            .stored(ShardCheckpoint {
                outage,
                ..at(run, 1, 4)
            })
            .await;
    }
    let reaching = async |limit| harness.store.reaching(BUSINESS, mine, limit).await.unwrap();
    let of = |run: &ClaimedShard, succeeded| Reaching {
        shard: run.shard,
        epoch: run.epoch,
        succeeded,
    };
    assert_eq!(reaching(10).await, [of(&up, 4)]);
    harness.stored(at(&down, 2, 5)).await;
    assert_eq!(reaching(10).await, [of(&up, 4), of(&down, 5)]);
    assert_eq!(reaching(1).await, [of(&up, 4)]);
    assert_eq!(harness.store.reaching("nobody", mine, 10).await.unwrap(), []);
    harness
        .store
        .release(up.shard, up.epoch, up.claim, &RunClose::Released, NOW)
        .await
        .unwrap();
    assert_eq!(reaching(10).await, [of(&down, 5)]);
}

pub async fn old_entries_of_the_audit_go_and_those_of_tasks_that_are_kept_stay(harness: Harness) {
    let kept = harness.created(&task(1)).await.id;
    let gone = harness.running(1).await;
    harness.stored(closing(&gone, 1, 1, RunClose::Done)).await;
    harness
        .store
        .delete(gone.shard.task, &write(), NOW)
        .await
        .unwrap();
    let sweep = async |before| harness.store.sweep(Sweep::Audit, before).await.unwrap();
    assert_eq!(sweep(NOW).await, 0, "not old enough");
    assert!(sweep(WallMs(NOW.0 + 1)).await > 0);
    assert_eq!(sweep(WallMs(NOW.0 + 1)).await, 0, "nothing is looked at twice");
    assert!(harness.store.audit(gone.shard.task).await.unwrap().is_empty());
    assert!(!harness.store.audit(kept).await.unwrap().is_empty());
}
