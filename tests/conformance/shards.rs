//! Tasks of several shards: cut, shared, told and finished as one.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use windrow_core::ids::{Epoch, ItemCount, ItemIndex, ShardId, TaskId};
use windrow_core::settings::{Auto, Rate, RateLimit};
use windrow_core::shards::{Directives, Pause, PauseReason, Share, Slow};
use windrow_core::task::lifecycle::{ShardState, Status, StopReason, TaskResult};
use windrow_core::task::spec::{Shards, SpecPatch, TaskSpec};
use windrow_core::task::{Canary, CanaryThen};
use windrow_engine::ports::ownership::run_store::{
    Candidate, ClaimOutcome, ClaimedShard, RunClose, ShardCheckpoint,
};
use windrow_engine::ports::tasks::store::{
    COORDINATOR_DOWN, CommandError, CommandRefusal, NewTask, TaskCommand, TaskEdit, WaitNote,
};

use crate::fixture::{
    Harness, NOW, at, closing, failed, hunt, request, task, tuning, wait_note, with, write,
};

fn split(total: u64, shards: u32) -> NewTask {
    NewTask {
        spec: TaskSpec {
            shards: Shards(Auto::Fixed(NonZeroU32::new(shards).unwrap())),
            ..TaskSpec::default()
        },
        ..task(total)
    }
}

/// All shards of a started task, each owned by a session of its own.
async fn owned(harness: &Harness, new: &NewTask) -> Vec<ClaimedShard> {
    let id = harness.queued_as(new).await.task;
    let mut runs = Vec::new();
    for shard in harness.view(id).await.life.shards {
        let session = harness.session().await;
        runs.push(
            harness
                .claimed(
                    ShardId {
                        task: id,
                        no: shard.no,
                    },
                    Epoch(0),
                    session,
                )
                .await,
        );
    }
    runs
}

async fn shares(harness: &Harness, id: TaskId) -> Vec<Option<u32>> {
    harness
        .view(id)
        .await
        .shards
        .iter()
        .map(|shard| shard.part().map(Share::parts))
        .collect()
}

async fn candidates(harness: &Harness) -> Vec<Candidate> {
    harness.store.candidates(&hunt()).await.unwrap().found
}

async fn found(harness: &Harness) -> Vec<u32> {
    candidates(harness)
        .await
        .iter()
        .map(|candidate| candidate.rank.shard.no)
        .collect()
}

fn telling(run: &ClaimedShard, seq: u64, told: Directives) -> ShardCheckpoint {
    ShardCheckpoint {
        told,
        ..at(run, seq, run.range.start.0)
    }
}

pub async fn a_task_is_cut_when_it_starts_and_again_only_before_it_ran(harness: Harness) {
    let new = NewTask {
        spec: TaskSpec {
            skip_first: ItemIndex(2),
            ..split(12, 3).spec
        },
        ..split(12, 3)
    };
    let made = harness.created(&new).await;
    assert_eq!((made.shards.len(), made.spec.shards), (1, new.spec.shards));
    let view = harness.command(made.id, TaskCommand::Start).await;
    let ranges: Vec<(u64, u64)> = view
        .shards
        .iter()
        .map(|shard| (shard.first.0, shard.end.0))
        .collect();
    assert_eq!(ranges, [(2, 6), (6, 9), (9, 12)]);
    assert_eq!(shares(&harness, made.id).await, [Some(3); 3]);
    harness
        .command(
            made.id,
            TaskCommand::Stop {
                reason: StopReason::Operator,
            },
        )
        .await;
    let edit = TaskEdit {
        total: Some(ItemCount(5)),
        ..TaskEdit::default()
    };
    harness.command(made.id, TaskCommand::Edit(Box::new(edit))).await;
    let view = harness.command(made.id, TaskCommand::Start).await;
    let ranges: Vec<(u64, u64)> = view
        .shards
        .iter()
        .map(|shard| (shard.first.0, shard.end.0))
        .collect();
    assert_eq!(ranges, [(2, 3), (3, 4), (4, 5)]);

    let session = harness.session().await;
    let run = harness
        .claimed(ShardId { task: made.id, no: 1 }, Epoch(0), session)
        .await;
    let close = RunClose::stopped(StopReason::Operator, "stopped".to_owned());
    harness
        .command(
            made.id,
            TaskCommand::Stop {
                reason: StopReason::Operator,
            },
        )
        .await;
    harness.stored(closing(&run, 1, 3, close)).await;
    let edit = TaskEdit {
        total: Some(ItemCount(100)),
        ..TaskEdit::default()
    };
    harness.command(made.id, TaskCommand::Edit(Box::new(edit))).await;
    let view = harness.command(made.id, TaskCommand::Start).await;
    let ranges: Vec<(u64, u64)> = view
        .shards
        .iter()
        .map(|shard| (shard.first.0, shard.end.0))
        .collect();
    assert_eq!(
        ranges,
        [(2, 3), (3, 4), (4, 100)],
        "what has run stays; the last grows"
    );
}

pub async fn the_number_of_shards_changes_until_the_task_has_run(harness: Harness) {
    let cut_into = |shards| {
        let shards = Some(Shards(Auto::Fixed(NonZeroU32::new(shards).unwrap())));
        TaskCommand::Edit(Box::new(TaskEdit {
            spec: SpecPatch {
                shards,
                ..SpecPatch::default()
            },
            ..TaskEdit::default()
        }))
    };
    let stop = || TaskCommand::Stop {
        reason: StopReason::Operator,
    };
    let id = harness.created(&split(12, 3)).await.id;
    let refused = async |shards| match harness.store.command(id, &cut_into(shards), &write(), NOW).await {
        Err(CommandError::Refused(CommandRefusal::Fields(fields))) if fields.len() == 1 => {
            fields[0].to_string()
        }
        other => panic!("{other:?}"),
    };
    let view = harness.command(id, cut_into(2)).await;
    assert_eq!(
        (view.spec.shards.0, view.shards.len()),
        (Auto::Fixed(NonZeroU32::new(2).unwrap()), 1)
    );
    harness.command(id, TaskCommand::Start).await;
    assert_eq!(shares(&harness, id).await, [Some(2); 2]);
    assert_eq!(
        refused(4).await,
        "shards: it is fixed while the task is queued; stop the task first"
    );
    harness.command(id, stop()).await;
    harness.command(id, cut_into(1)).await;
    let view = harness.command(id, TaskCommand::Start).await;
    let ranges: Vec<(u64, u64)> = view
        .shards
        .iter()
        .map(|shard| (shard.first.0, shard.end.0))
        .collect();
    assert_eq!(
        (ranges.as_slice(), shares(&harness, id).await.as_slice()),
        ([(0, 12)].as_slice(), [Some(1)].as_slice())
    );

    let session = harness.session().await;
    let run = harness
        .claimed(ShardId { task: id, no: 0 }, Epoch(0), session)
        .await;
    let why = "shards: it is fixed once the task has run, because each shard keeps its progress; clone the task instead";
    assert_eq!(refused(4).await, why, "while it runs");
    harness.command(id, stop()).await;
    let close = RunClose::stopped(StopReason::Operator, "stopped".to_owned());
    harness.stored(closing(&run, 1, 3, close)).await;
    assert_eq!(refused(4).await, why, "and when it is stopped");
    let audit = harness.store.audit(id).await.unwrap();
    let edits: Vec<_> = audit.iter().filter(|entry| entry.action == "task.edit").collect();
    let told = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
    assert_eq!(
        (told(&edits[0].before), told(&edits[0].after)),
        (r#"{"shards":3}"#.into(), r#"{"shards":2}"#.into())
    );
}

pub async fn a_shard_that_is_done_leaves_its_part_and_the_last_one_finishes_the_task(harness: Harness) {
    let mut new = split(30, 3);
    new.tuning.rate = RateLimit::Limited(Rate::per_second(90).unwrap());
    let runs = owned(&harness, &new).await;
    let id = runs[0].shard.task;
    let rev = harness.store.control(runs[1].shard).await.unwrap().rev;
    harness.stored(closing(&runs[0], 1, 10, RunClose::Done)).await;
    assert_eq!(shares(&harness, id).await, [None, Some(2), Some(2)]);
    let control = harness.store.control(runs[1].shard).await.unwrap();
    assert!(control.rev > rev, "its owner sees it");
    assert_eq!(
        (control.shared.share, control.shared.items),
        (Share::one_of(2), ItemCount(30))
    );
    let view = harness.view(id).await;
    assert_eq!(
        (view.status, view.watermark, view.counters.succeeded),
        (Status::Running, ItemIndex(10), 10)
    );

    // The owner of the second gives it back: others find it with its part of the rate.
    harness.stored(closing(&runs[1], 1, 12, RunClose::Released)).await;
    let found = candidates(&harness).await;
    let second = found
        .iter()
        .find(|candidate| candidate.rank.shard.no == 1)
        .unwrap();
    // It fits wherever it fitted at first; what it was left is booked when it runs.
    assert_eq!(
        (second.share, second.rate),
        (
            Share::one_of(3),
            RateLimit::Limited(Rate::per_second(30).unwrap())
        )
    );
    let session = harness.session().await;
    let again = harness.claimed(second.rank.shard, second.epoch, session).await;
    harness.stored(closing(&runs[2], 1, 30, RunClose::Done)).await;
    assert_eq!(shares(&harness, id).await, [None, Some(1), None]);
    let failed = with(closing(&again, 1, 20, RunClose::Done), vec![failed(15, "BAD")]);
    harness.stored(failed).await;
    let view = harness.view(id).await;
    assert_eq!(
        (view.status, view.result),
        (Status::Finished, Some(TaskResult::WithFailures))
    );
    let audit = harness.store.audit(id).await.unwrap();
    assert_eq!(
        audit
            .iter()
            .filter(|entry| entry.action == "task.finished")
            .count(),
        1
    );
}

pub async fn a_command_is_answered_with_the_owners_that_a_look_shows(harness: Harness) {
    let new = NewTask {
        idempotency_key: Some("once".to_owned()),
        ..split(20, 2)
    };
    let runs = owned(&harness, &new).await;
    let id = runs[0].shard.task;
    let answer = harness.command(id, TaskCommand::Tune(Box::new(tuning()))).await;
    assert!(
        answer
            .shards
            .iter()
            .all(|shard| answer.owners.contains_key(&shard.no)),
        "{:?}",
        answer.shards
    );
    assert_eq!(answer, harness.view(id).await);
    assert_eq!(harness.created(&new).await, answer, "a repeat of its making");
}

pub async fn shards_that_do_not_add_up_are_not_finished(harness: Harness) {
    let runs = owned(&harness, &split(20, 2)).await;
    let mut short = closing(&runs[0], 1, 10, RunClose::Done);
    short.counters.succeeded = 9;
    harness.stored(short).await;
    harness.stored(closing(&runs[1], 1, 20, RunClose::Done)).await;
    let view = harness.view(runs[0].shard.task).await;
    assert_eq!(
        (view.status, view.status_reason.as_deref()),
        (Status::Finalizing, Some("proof_failed"))
    );
}

pub async fn what_one_shard_is_told_all_hear(harness: Harness) {
    let runs = owned(&harness, &split(100, 2)).await;
    let until = |seconds| NOW.plus(Duration::from_secs(seconds));
    let pause = |seconds| Pause {
        until: until(seconds),
        reason: PauseReason::BackPressure,
    };
    let told = |seconds| Directives {
        pause: Some(pause(seconds)),
        ..Directives::default()
    };
    harness.stored(telling(&runs[0], 1, told(30))).await;
    let control = harness.store.control(runs[1].shard).await.unwrap();
    assert_eq!((control.pause, control.slow), (Some(pause(30)), None));
    harness.stored(telling(&runs[1], 1, told(20))).await;
    let slow = Slow {
        rate: Rate::per_second(3).unwrap(),
        until: until(60),
    };
    harness
        .stored(telling(
            &runs[1],
            2,
            Directives {
                slow: Some(slow),
                ..Directives::default()
            },
        ))
        .await;
    let control = harness.store.control(runs[0].shard).await.unwrap();
    assert_eq!(control.pause, Some(pause(30)), "it is never shortened");
    let heard = control.slow.unwrap();
    assert_eq!(
        (heard.until, heard.rate.micros_per_second()),
        (slow.until, slow.rate.micros_per_second())
    );
    let rows = with(at(&runs[0], 2, 3), vec![failed(0, "BAD"), failed(1, "BAD")]);
    harness.stored(rows).await;
    assert_eq!(
        harness
            .store
            .control(runs[1].shard)
            .await
            .unwrap()
            .shared
            .failed_elsewhere,
        2
    );
    assert_eq!(
        harness
            .store
            .control(runs[0].shard)
            .await
            .unwrap()
            .shared
            .failed_elsewhere,
        0
    );
}

pub async fn a_finish_that_one_shard_is_told_cuts_all(harness: Harness) {
    let runs = owned(&harness, &split(100, 4)).await;
    let id = runs[0].shard.task;
    harness.stored(closing(&runs[3], 1, 75, RunClose::Released)).await;
    let told = Directives {
        finish: Some(ItemIndex(30)),
        ..Directives::default()
    };
    harness
        .stored(ShardCheckpoint {
            finish_at: Some(ItemIndex(30)),
            ..telling(&runs[0], 1, told)
        })
        .await;
    let view = harness.view(id).await;
    assert_eq!(view.finish_at, Some(ItemIndex(30)));
    assert_eq!(
        view.shards[3].state,
        ShardState::Done,
        "nobody owned it and nothing of it had left"
    );
    assert_eq!(
        harness.store.control(runs[1].shard).await.unwrap().finish_at,
        Some(ItemIndex(30))
    );
    harness.stored(closing(&runs[0], 2, 25, RunClose::Done)).await;
    // The second had dispatched up to 40, the third nothing.
    let cut = |run: &ClaimedShard, low: u64| ShardCheckpoint {
        finish_at: Some(ItemIndex(low)),
        ..closing(run, 1, low, RunClose::Done)
    };
    harness.stored(cut(&runs[1], 40)).await;
    harness.stored(cut(&runs[2], 50)).await;
    let view = harness.view(id).await;
    assert_eq!(
        (view.status, view.result),
        (Status::Finished, Some(TaskResult::Early))
    );
    assert_eq!((view.counters.succeeded, view.counters.excluded), (40, 60));
}

pub async fn the_shards_of_a_task_recover_together_and_once(harness: Harness) {
    let runs = owned(&harness, &split(90, 3)).await;
    let id = runs[0].shard.task;
    harness.stored(closing(&runs[2], 1, 60, RunClose::Released)).await;
    let recovering = |seconds, nth, text: &str| RunClose::Recovering {
        not_before: NOW.plus(Duration::from_secs(seconds)),
        reason: "error_budget".to_owned(),
        text: text.to_owned(),
        nth,
    };
    harness
        .stored(closing(&runs[0], 1, 0, recovering(15, Some(1), "too many")))
        .await;
    let view = harness.view(id).await;
    assert_eq!(
        (view.status, view.status_text.as_deref()),
        (Status::Running, Some("too many"))
    );
    let pause = harness.store.control(runs[1].shard).await.unwrap().pause.unwrap();
    let until = NOW.plus(Duration::from_secs(15));
    assert_eq!(
        pause,
        Pause {
            until,
            reason: PauseReason::ErrorBudget
        }
    );
    // It found out by itself at the same time: the recovery that is under way stays.
    harness
        .stored(closing(&runs[1], 1, 30, recovering(30, Some(1), "here, too")))
        .await;
    let view = harness.view(id).await;
    assert_eq!(
        (view.status, view.status_text.as_deref()),
        (Status::Recovering, Some("too many"))
    );
    assert_eq!((view.recoveries, view.next_at), (1, Some(until)));
    assert!(
        view.shards.iter().all(|shard| shard.next_at() == Some(until)),
        "{:?}",
        view.shards
    );
    assert_eq!(found(&harness).await, [] as [u32; 0]);
    harness.command(id, TaskCommand::Recover).await;
    assert_eq!(found(&harness).await, [0, 1, 2]);
    assert_eq!(harness.store.control(runs[1].shard).await.unwrap().pause, None);
}

pub async fn what_is_said_of_a_silent_owner_goes_when_its_shard_is_claimed(harness: Harness) {
    let runs = owned(&harness, &split(90, 3)).await;
    let (id, lost) = (runs[0].shard.task, &runs[1]);
    let owner = harness.view(id).await.life.shards[1].session.expect("it has one");
    harness.fence(owner).await;
    let note = WaitNote {
        reason: COORDINATOR_DOWN.to_owned(),
        ..wait_note(id, "its owner is silent")
    };
    harness.store.explain_waits(&[note], NOW).await.unwrap();
    let said = harness.view(id).await;
    assert_eq!(
        (said.status, said.status_reason.as_deref()),
        (Status::Running, Some(COORDINATOR_DOWN))
    );
    harness.stored(at(&runs[0], 1, 10)).await;
    assert_eq!(
        harness.view(id).await.status_reason,
        said.status_reason,
        "it waits yet"
    );
    let heir = harness.session().await;
    harness.claimed(lost.shard, lost.epoch, heir).await;
    let view = harness.view(id).await;
    assert_eq!(
        (view.status, view.status_reason, view.status_text),
        (Status::Running, None, None)
    );
    assert!(view.version > said.version, "who watches it hears of that");
}

pub async fn only_the_first_shard_is_to_be_had_before_the_canary_has_passed(harness: Harness) {
    let canary = Some(Canary {
        items: NonZeroU64::new(5).unwrap(),
        then: CanaryThen::Continue,
    });
    let id = harness
        .queued_as(&NewTask {
            spec: TaskSpec {
                canary,
                ..split(40, 4).spec
            },
            ..split(40, 4)
        })
        .await
        .task;
    assert_eq!(found(&harness).await, [0]);
    let session = harness.session().await;
    let second = request(ShardId { task: id, no: 1 }, Epoch(0), session);
    assert_eq!(harness.store.claim(second).await.unwrap(), ClaimOutcome::Lost);
    let run = harness
        .claimed(ShardId { task: id, no: 0 }, Epoch(0), session)
        .await;
    harness
        .stored(ShardCheckpoint {
            canary_passed: true,
            ..at(&run, 1, 5)
        })
        .await;
    assert_eq!(
        found(&harness)
            .await
            .into_iter()
            .filter(|no| *no > 0)
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );

    let wide = Some(Canary {
        items: NonZeroU64::new(20).unwrap(),
        then: CanaryThen::Stop,
    });
    let id = harness
        .queued_as(&NewTask {
            spec: TaskSpec {
                canary: wide,
                ..split(40, 4).spec
            },
            ..split(40, 4)
        })
        .await
        .task;
    assert_eq!(
        harness.view(id).await.shards.len(),
        1,
        "the first holds more than the canary"
    );
}

pub async fn auto_counts_the_nodes_that_live(harness: Harness) {
    let mut new = NewTask {
        spec: TaskSpec {
            shards: Shards(Auto::Auto),
            ..TaskSpec::default()
        },
        ..task(100)
    };
    new.tuning.rate = RateLimit::Unlimited;
    harness.session().await;
    let gone = harness.session().await;
    harness.session().await;
    harness.fence(gone).await;
    let id = harness.queued_as(&new).await.task;
    assert_eq!(harness.view(id).await.shards.len(), 2);
}
