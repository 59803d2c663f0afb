//! Facts about the verbs of a task's life beside start and stop: later starts, hooks, canary, finish, recover, edits,
//! deletion.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use windrow_core::ids::{Epoch, ItemCount, ItemIndex, ShardId, WallMs};
use windrow_core::items::stretches::Stretches;
use windrow_core::settings::{Auto, FailedAttempts};
use windrow_core::task::failed_codes::FAILED_CODES_MAX;
use windrow_core::task::lifecycle::{Desired, Status, StopReason, TASK_RECOVERS, TaskResult};
use windrow_core::task::spec::JsonText;
use windrow_core::task::spec::{SpecPatch, TaskSpec};
use windrow_core::task::{Canary, CanaryThen};
use windrow_engine::ports::handling::outbox::Settlement;
use windrow_engine::ports::ownership::run_store::{CandidateQuery, RunClose};
use windrow_engine::ports::tasks::failure_list::FailurePage;
use windrow_engine::ports::tasks::store::{
    CommandError, CommandRefusal, NewTask, TaskCommand, TaskEdit, TaskView, WaitNote,
};

use crate::fixture::{Harness, NOW, at, closing, failed, hunt, task, tuning, with, write};

const STOP: TaskCommand = TaskCommand::Stop {
    reason: StopReason::Operator,
};
const PREPARE: &str = r#"{"prepare":{"timeout":"1m"},"stopped":{},"finished":{}}"#;
const DAY: Duration = Duration::from_secs(86_400);

fn range(total: u64) -> NewTask {
    NewTask {
        source: format!(r#"{{"kind":"range","total":{total}}}"#),
        ..task(total)
    }
}

fn edit(edit: TaskEdit) -> TaskCommand {
    TaskCommand::Edit(Box::new(edit))
}

async fn refused(harness: &Harness, id: ShardId, command: TaskCommand) -> CommandError {
    harness
        .store
        .command(id.task, &command, &write(), NOW)
        .await
        .unwrap_err()
}

async fn is_candidate(harness: &Harness, shard: ShardId, now: WallMs) -> bool {
    let mut hunt = CandidateQuery { now, ..hunt() };
    loop {
        let game = harness.store.candidates(&hunt).await.unwrap();
        if game.found.iter().any(|candidate| candidate.rank.shard == shard) {
            return true;
        }
        if game.next.is_none() {
            return false;
        }
        hunt.after = game.next;
    }
}

fn fields(error: &CommandError) -> Vec<&'static str> {
    match error {
        CommandError::Refused(CommandRefusal::Fields(refusals)) => {
            refusals.iter().map(|refusal| refusal.field).collect()
        }
        other => panic!("{other}"),
    }
}

pub async fn a_later_start_waits_for_its_time(harness: Harness) {
    let later = NOW.plus(Duration::from_secs(60));
    let shard = harness
        .queued_as(&NewTask {
            spec: TaskSpec {
                start_at: Some(later),
                ..TaskSpec::default()
            },
            ..task(10)
        })
        .await;
    let view = harness.view(shard.task).await;
    assert_eq!(
        (view.status, view.status_reason.as_deref()),
        (Status::Queued, Some("start_at"))
    );
    assert!(view.status_text.unwrap().contains(&later.to_rfc3339()));
    assert!(!is_candidate(&harness, shard, NOW).await, "it isn't time");
    assert!(is_candidate(&harness, shard, later).await, "it is");
    harness.command(shard.task, STOP).await;
    let view = harness.command(shard.task, TaskCommand::StartAt(NOW)).await;
    assert_eq!(
        (view.status, view.status_reason),
        (Status::Queued, None),
        "a new time replaces the old one"
    );
    assert!(is_candidate(&harness, shard, NOW).await);
}

pub async fn what_waits_for_its_time_is_given_another(harness: Harness) {
    let later = |seconds| NOW.plus(Duration::from_secs(seconds));
    let shard = harness
        .queued_as(&NewTask {
            spec: TaskSpec {
                start_at: Some(later(60)),
                ..TaskSpec::default()
            },
            ..task(10)
        })
        .await;
    let started = harness.view(shard.task).await;
    let view = harness.command(shard.task, TaskCommand::StartAt(later(30))).await;
    assert_eq!(
        (view.status, view.spec.start_at, view.status_reason.as_deref()),
        (Status::Queued, Some(later(30)), Some("start_at"))
    );
    assert!(!is_candidate(&harness, shard, later(29)).await, "it isn't time");
    assert!(is_candidate(&harness, shard, later(30)).await, "it is");
    let view = harness.command(shard.task, TaskCommand::StartAt(NOW)).await;
    assert_eq!(
        (view.status, view.status_reason.as_deref()),
        (Status::Queued, None)
    );
    assert_eq!(view.start_no, started.start_no, "it is the same start");
    assert!(is_candidate(&harness, shard, NOW).await);
    let writes = write();
    let again = harness
        .store
        .command(shard.task, &TaskCommand::StartAt(NOW), &writes, NOW)
        .await;
    assert!(again.is_err(), "it waits for no time any more");
}

/// A task whose business prepares itself, and the token of its start.
async fn awaiting(harness: &Harness, new: &NewTask) -> (ShardId, String) {
    harness.created(&task(1)).await;
    harness.want_hooks(PREPARE).await;
    let shard = harness.queued_as(new).await;
    let (_, body) = harness.calls_left().await.pop().unwrap();
    assert_eq!(body["type"], "task.prepare");
    (shard, body["start_token"].as_str().unwrap().to_owned())
}

pub async fn a_start_token_lies_in_no_row_as_it_is_delivered(harness: Harness) {
    harness.created(&task(1)).await;
    harness.want_hooks(PREPARE).await;
    harness.queued_as(&range(10)).await;
    let lying = harness.outbox_rows().await;
    let call = harness
        .store
        .take_due(NOW, NOW.plus(DAY), 10)
        .await
        .unwrap()
        .remove(0);
    let body: serde_json::Value = serde_json::from_str(&call.body).unwrap();
    let token = body["start_token"].as_str().unwrap();
    assert!(token.starts_with("wst_"), "{body}");
    assert!(harness.store.start_of_token(token).await.unwrap().is_some());
    assert!(lying.iter().all(|row| !row.contains("wst_")), "{lying:?}");
    harness.store.settle(&call, &Settlement::Done).await.unwrap();
    let kept = harness.outbox_rows().await;
    assert!(kept.iter().all(|row| !row.contains("start_token")), "{kept:?}");
}

pub async fn a_business_that_prepares_itself_is_asked_before_anything_runs(harness: Harness) {
    let (shard, token) = awaiting(&harness, &range(10)).await;
    let view = harness.view(shard.task).await;
    assert_eq!(
        (view.status, view.desired, view.start_no),
        (Status::AwaitingBusiness, Desired::Run, 1)
    );
    assert_eq!(
        view.awaiting_until,
        Some(NOW.plus(Duration::from_secs(65))),
        "the timeout and a margin"
    );
    assert!(
        !is_candidate(&harness, shard, NOW.plus(DAY)).await,
        "nothing can be claimed"
    );
    let start = harness.store.start_of_token(&token).await.unwrap().unwrap();
    assert_eq!((start.task, start.start_no, start.is_live), (shard.task, 1, true));
    assert_eq!(harness.store.start_of_token("wst_other").await.unwrap(), None);
    let change = TaskEdit {
        total: Some(ItemCount(20)),
        spec: SpecPatch {
            skip_first: Some(ItemIndex(5)),
            params: Some(json_text(r#"{"a":1}"#)),
            ..SpecPatch::default()
        },
        ..TaskEdit::default()
    };
    let view = harness
        .command(
            shard.task,
            TaskCommand::Ready {
                start_no: 1,
                edit: Box::new(change),
            },
        )
        .await;
    assert_eq!(
        (view.status, view.total, view.awaiting_until),
        (Status::Queued, ItemCount(20), None)
    );
    assert_eq!(
        (view.counters.excluded, view.spec.params.as_deref()),
        (5, Some(r#"{"a":1}"#))
    );
    let session = harness.session().await;
    let run = harness.claimed(shard, Epoch(0), session).await;
    assert_eq!(
        (run.range.start, run.range.end),
        (ItemIndex(5), ItemIndex(20)),
        "shards are cut after it"
    );
    let again = TaskCommand::Ready {
        start_no: 1,
        edit: Box::default(),
    };
    assert!(
        matches!(
            refused(&harness, shard, again).await,
            CommandError::Refused(CommandRefusal::Status(_))
        ),
        "it is ready already"
    );
}

pub async fn an_answer_to_an_earlier_start_is_stale(harness: Harness) {
    let (shard, first) = awaiting(&harness, &range(10)).await;
    let stopped = harness.command(shard.task, STOP).await;
    assert_eq!(
        (stopped.status, stopped.awaiting_until),
        (Status::Stopped, None),
        "nothing is in flight"
    );
    let start = harness.store.start_of_token(&first).await.unwrap().unwrap();
    assert!(!start.is_live, "a stop ends the start");
    harness.command(shard.task, TaskCommand::Start).await;
    let old = TaskCommand::Ready {
        start_no: 1,
        edit: Box::default(),
    };
    let stale = CommandError::Refused(CommandRefusal::StaleStart { given: 1, present: 2 });
    assert_eq!(refused(&harness, shard, old).await, stale);
    let start = harness.store.start_of_token(&first).await.unwrap().unwrap();
    assert_eq!(
        (start.start_no, start.is_live),
        (1, false),
        "it is known for what it was"
    );
    let no = TaskCommand::NotReady {
        start_no: 2,
        text: "no templates".to_owned(),
    };
    let view = harness.command(shard.task, no).await;
    assert_eq!(
        (view.status, view.stop_reason),
        (Status::Stopped, Some(StopReason::Business))
    );
    assert_eq!(view.status_text.as_deref(), Some("no templates"));
    assert!(!is_candidate(&harness, shard, NOW.plus(DAY)).await);
    let cancelled = harness.command(shard.task, TaskCommand::Cancel).await;
    assert_eq!(cancelled.status, Status::Cancelled);
}

pub async fn a_business_hears_of_the_ends_it_wants_to_hear_of(harness: Harness) {
    harness.created(&task(1)).await;
    harness.want_hooks(r#"{"finished":{}}"#).await;
    let run = harness.running(4).await;
    harness.stored(at(&run, 1, 2)).await;
    let close = RunClose::stopped(StopReason::Business, "enough".to_owned());
    harness.stored(closing(&run, 2, 2, close)).await;
    assert_eq!(harness.calls_left().await, [], "it doesn't want to hear of stops");
    harness.want_hooks(r#"{"stopped":{},"finished":{}}"#).await;
    harness.command(run.shard.task, TaskCommand::Start).await;
    harness.command(run.shard.task, STOP).await;
    harness.command(run.shard.task, TaskCommand::Start).await;
    let session = harness.session().await;
    let run = harness.claimed(run.shard, run.epoch, session).await;
    harness.stored(closing(&run, 1, 4, RunClose::Done)).await;
    let store = harness.store.store_id().await.unwrap().0;
    let calls = harness.calls_left().await;
    let ids: Vec<&str> = calls.iter().map(|(id, _)| id.as_str()).collect();
    let task = run.shard.task;
    assert_eq!(
        ids,
        [
            format!("{store}-{task}-s2-task.stopped"),
            format!("{store}-{task}-s3-task.finished")
        ]
    );
    let (stopped, finished) = (&calls[0].1, &calls[1].1);
    assert_eq!(
        (&stopped["reason"], &stopped["counts"]["pending"]),
        (&"operator".into(), &2.into())
    );
    assert_eq!(
        (&finished["type"], &finished["result"]),
        (&"task.finished".into(), &"succeeded".into())
    );
    assert_eq!(
        (&finished["counts"]["succeeded"], &finished["start"]),
        (&4.into(), &3.into())
    );
}

pub async fn a_start_after_the_canary_goes_on_with_the_rest(harness: Harness) {
    let canary = Canary {
        items: NonZeroU64::MIN,
        then: CanaryThen::Stop,
    };
    let shard = harness
        .queued_as(&NewTask {
            spec: TaskSpec {
                canary: Some(canary),
                ..TaskSpec::default()
            },
            ..task(10)
        })
        .await;
    assert_eq!(harness.store.control(shard).await.unwrap().canary, Some(canary));
    harness.command(shard.task, STOP).await;
    assert_eq!(
        harness.command(shard.task, TaskCommand::Start).await.spec.canary,
        Some(canary),
        "it isn't done"
    );
    let session = harness.session().await;
    let run = harness.claimed(shard, Epoch(0), session).await;
    let close = RunClose::stopped(StopReason::CanaryDone, "1 of 1 went well".to_owned());
    harness.stored(closing(&run, 1, 1, close)).await;
    let view = harness.view(shard.task).await;
    assert_eq!(
        (view.stop_reason, view.spec.canary),
        (Some(StopReason::CanaryDone), Some(canary))
    );
    let view = harness.command(shard.task, TaskCommand::Start).await;
    assert_eq!((view.status, view.spec.canary), (Status::Queued, None));
    assert_eq!(harness.store.control(shard).await.unwrap().canary, None);
}

pub async fn finishing_early_by_command_cuts_what_was_not_dispatched(harness: Harness) {
    let run = harness.running(100).await;
    let rev = harness.store.control(run.shard).await.unwrap().rev;
    let view = harness
        .command(run.shard.task, TaskCommand::Finish { end: ItemIndex(40) })
        .await;
    assert_eq!(
        (view.status, view.finish_at),
        (Status::Running, Some(ItemIndex(40)))
    );
    let control = harness.store.control(run.shard).await.unwrap();
    assert_eq!(
        (control.finish_at, control.rev),
        (Some(ItemIndex(40)), rev + 1),
        "its owner sees it"
    );
    let view = harness
        .command(run.shard.task, TaskCommand::Finish { end: ItemIndex(60) })
        .await;
    assert_eq!(view.finish_at, Some(ItemIndex(40)), "it never grows");
    let wrong = refused(&harness, run.shard, TaskCommand::Finish { end: ItemIndex(100) }).await;
    assert_eq!(fields(&wrong), ["total"]);
    harness.stored(at(&run, 1, 30)).await;
    harness.command(run.shard.task, STOP).await;
    let close = RunClose::stopped(StopReason::Operator, "stopped".to_owned());
    harness.stored(closing(&run, 2, 30, close)).await;
    let view = harness
        .command(run.shard.task, TaskCommand::Finish { end: ItemIndex(35) })
        .await;
    assert_eq!(
        (view.status, view.counters.excluded),
        (Status::Stopped, 65),
        "nobody owns it: cut at once"
    );
    let grown = refused(
        &harness,
        run.shard,
        edit(TaskEdit {
            total: Some(ItemCount(200)),
            ..no_edit()
        }),
    )
    .await;
    assert_eq!(fields(&grown), ["total"], "its end is decided");
    let view = harness
        .command(run.shard.task, TaskCommand::Finish { end: ItemIndex(0) })
        .await;
    assert_eq!(
        (view.status, view.result),
        (Status::Finished, Some(TaskResult::Early)),
        "nothing is left"
    );
    assert_eq!((view.counters.succeeded, view.counters.excluded), (30, 70));
}

fn no_edit() -> TaskEdit {
    TaskEdit::default()
}

pub async fn a_recovering_task_is_tried_at_once_when_told(harness: Harness) {
    let run = harness.running(10).await;
    let close = RunClose::Recovering {
        not_before: NOW.plus(DAY),
        reason: "error_rate".to_owned(),
        text: "too many".to_owned(),
        nth: Some(2),
    };
    harness.stored(closing(&run, 1, 3, close)).await;
    let view = harness.view(run.shard.task).await;
    assert_eq!((view.status, view.recoveries), (Status::Recovering, 2));
    assert!(!is_candidate(&harness, run.shard, NOW).await);
    let view = harness.command(run.shard.task, TaskCommand::Recover).await;
    assert_eq!(
        (view.status, view.next_at, view.recoveries),
        (Status::Queued, None, 2)
    );
    assert!(is_candidate(&harness, run.shard, NOW).await);
    assert!(matches!(
        refused(&harness, run.shard, TaskCommand::Recover).await,
        CommandError::Refused(CommandRefusal::Status(_))
    ));
}

pub async fn another_error_budget_ends_the_pause_of_the_old_one(harness: Harness) {
    let run = harness.running(10).await;
    let close = RunClose::Recovering {
        not_before: NOW.plus(DAY),
        reason: TASK_RECOVERS.to_owned(),
        text: "too many".to_owned(),
        nth: Some(2),
    };
    harness.stored(closing(&run, 1, 3, close)).await;
    let mut tuning = harness.view(run.shard.task).await.tuning.clone();
    tuning.max_attempts = NonZeroU32::MAX;
    let other = TaskCommand::Tune(Box::new(tuning.clone()));
    let view = harness.command(run.shard.task, other).await;
    assert_eq!(view.status, Status::Recovering, "nothing that it pauses for");
    tuning.error_budget.failed_attempts = Some(FailedAttempts::AUTO);
    let budget = TaskCommand::Tune(Box::new(tuning.clone()));
    let view = harness.command(run.shard.task, budget).await;
    assert_eq!((view.status, view.recoveries), (Status::Queued, 2));
    assert_eq!(view.tuning, tuning);
    assert!(is_candidate(&harness, run.shard, NOW).await);
}

pub async fn what_a_task_means_changes_only_before_it_has_run(harness: Harness) {
    let other = harness
        .created(&NewTask {
            spec: TaskSpec {
                name: Some("taken".to_owned()),
                ..TaskSpec::default()
            },
            ..range(1)
        })
        .await;
    let made = harness.created(&range(10)).await;
    let shard = ShardId { task: made.id, no: 0 };
    let all = TaskEdit {
        total: Some(ItemCount(8)),
        spec: SpecPatch {
            name: Some(Some("night".to_owned())),
            labels: Some(BTreeMap::from([("team".to_owned(), "growth".to_owned())])),
            priority: Some(7),
            deadline: Some(Some(NOW.plus(DAY))),
            params: Some(json_text("{}")),
            skip_first: Some(ItemIndex(3)),
            ..SpecPatch::default()
        },
        ..no_edit()
    };
    let view = harness.command(made.id, edit(all.clone())).await;
    assert_eq!(
        (view.total, view.spec.skip_first, view.counters.excluded),
        (ItemCount(8), ItemIndex(3), 3)
    );
    assert_eq!(
        (view.spec.name.as_deref(), view.spec.priority, view.spec.deadline),
        (Some("night"), 7, Some(NOW.plus(DAY)))
    );
    assert_eq!(
        view.source, r#"{"kind":"range","total":8}"#,
        "the source says the same"
    );
    let taken = refused(
        &harness,
        shard,
        edit(TaskEdit {
            spec: SpecPatch {
                name: Some(Some("taken".to_owned())),
                ..SpecPatch::default()
            },
            ..no_edit()
        }),
    )
    .await;
    assert_eq!(
        taken,
        CommandError::Refused(CommandRefusal::NameTaken("taken".to_owned(), other.id))
    );
    harness.command(made.id, TaskCommand::Start).await;
    let session = harness.session().await;
    let run = harness.claimed(shard, Epoch(0), session).await;
    assert_eq!((run.range.start, run.range.end), (ItemIndex(3), ItemIndex(8)));
    assert_eq!(
        fields(&refused(&harness, shard, edit(all)).await),
        ["skip_first", "params", "total"]
    );
    let described = TaskEdit {
        spec: SpecPatch {
            name: Some(None),
            deadline: Some(None),
            ..SpecPatch::default()
        },
        ..no_edit()
    };
    let view = harness.command(made.id, edit(described)).await;
    assert_eq!(
        (view.spec.name.as_deref(), view.spec.deadline, view.status),
        (None, None, Status::Running),
        "while it runs"
    );
    harness.command(made.id, STOP).await;
    let close = RunClose::stopped(StopReason::Operator, "stopped".to_owned());
    harness.stored(closing(&run, 1, 5, close)).await;
    let smaller = TaskEdit {
        total: Some(ItemCount(7)),
        spec: SpecPatch {
            skip_first: Some(ItemIndex(0)),
            ..SpecPatch::default()
        },
        ..no_edit()
    };
    assert_eq!(
        fields(&refused(&harness, shard, edit(smaller)).await),
        ["skip_first", "total"]
    );
    let view = harness
        .command(
            made.id,
            edit(TaskEdit {
                total: Some(ItemCount(12)),
                ..no_edit()
            }),
        )
        .await;
    assert_eq!(
        (view.total, view.counters.pending(view.total)),
        (ItemCount(12), 7)
    );
    harness.command(made.id, TaskCommand::Start).await;
    let run = harness.claimed(shard, run.epoch, session).await;
    assert_eq!(
        (run.watermark, run.range.end),
        (ItemIndex(5), ItemIndex(12)),
        "it goes on, further"
    );
}

pub async fn a_change_of_what_was_changed_meanwhile_is_refused(harness: Harness) {
    let made = harness.created(&task(10)).await;
    let rename = edit(TaskEdit {
        spec: SpecPatch {
            name: Some(Some("a".to_owned())),
            ..SpecPatch::default()
        },
        ..no_edit()
    });
    let seen = Some(made.version);
    let view = harness
        .store
        .command_if(made.id, seen, &rename, &write(), NOW)
        .await
        .unwrap();
    let late = harness
        .store
        .command_if(made.id, seen, &rename, &write(), NOW)
        .await
        .unwrap_err();
    assert_eq!(
        late,
        CommandError::Changed {
            expected: made.version,
            found: view.version
        }
    );
}

pub async fn many_waiting_tasks_are_explained_at_once(harness: Harness) {
    let mut shards = Vec::new();
    for _ in 0..3 {
        shards.push(harness.queued(10).await);
    }
    let stopped = harness.command(shards[2].task, STOP).await;
    let note = |shard: &ShardId| WaitNote {
        task: shard.task,
        reason: "capacity".to_owned(),
        text: "waits for room".to_owned(),
    };
    let notes: Vec<WaitNote> = shards.iter().map(note).collect();
    harness.store.explain_waits(&notes, NOW).await.unwrap();
    let first = harness.view(shards[0].task).await;
    assert_eq!(first.status_reason.as_deref(), Some("capacity"));
    assert_eq!(harness.view(shards[2].task).await, stopped, "it isn't queued");
    harness.store.explain_waits(&notes, NOW).await.unwrap();
    assert_eq!(
        harness.view(shards[0].task).await.version,
        first.version,
        "nothing new is nothing written"
    );
}

pub async fn an_ended_task_is_deleted_with_everything_of_it(harness: Harness) {
    let run = harness.running(3).await;
    let id = run.shard.task;
    let early = harness.store.delete(id, &write(), NOW).await.unwrap_err();
    assert!(
        matches!(early, CommandError::Refused(CommandRefusal::Status(_))),
        "{early}"
    );
    harness
        .stored(with(closing(&run, 1, 3, RunClose::Done), vec![failed(1, "BAD")]))
        .await;
    let child = harness
        .created(&NewTask {
            parent: Some(id),
            ..task(1)
        })
        .await;
    let kept = harness.store.delete(id, &write(), NOW).await.unwrap_err();
    assert_eq!(kept, CommandError::HasRedrive(child.id));
    harness.command(child.id, TaskCommand::Cancel).await;
    harness.store.delete(id, &write(), NOW).await.unwrap();
    assert_eq!(harness.store.get(id).await.unwrap(), None::<TaskView>);
    assert_eq!(harness.store.groups(id).await.unwrap(), []);
    assert_eq!(
        harness
            .store
            .page(id, &FailurePage::ByIndex(None), 10)
            .await
            .unwrap(),
        []
    );
    let audit = harness.store.audit(id).await.unwrap();
    assert_eq!(audit.last().unwrap().action, "task.delete", "the audit stays");
    let gone = harness.store.delete(id, &write(), NOW).await.unwrap_err();
    assert_eq!(gone, CommandError::NotFound(id));
    assert!(
        harness.created(&task(1)).await.id > child.id,
        "its number is never used again"
    );
}

pub async fn codes_that_are_given_up_reach_every_owner_and_outlast_it(harness: Harness) {
    let run = harness.running(100).await;
    let id = run.shard.task;
    let before = harness.store.control(run.shard).await.unwrap();
    assert!(before.failed_codes.is_empty());
    let fail = |code: &str| TaskCommand::Fail {
        code: code.to_owned(),
    };
    let view = harness.command(id, fail("TIMEOUT")).await;
    assert_eq!(view.status, Status::Running);
    let after = harness.store.control(run.shard).await.unwrap();
    assert_eq!(after.rev, before.rev + 1, "owners look");
    assert!(after.failed_codes.covers("TIMEOUT", NOW));
    assert!(
        !after.failed_codes.covers("TIMEOUT", WallMs(NOW.0 + 1)),
        "it is about what has failed by then"
    );
    let later = NOW.plus(Duration::from_secs(9));
    harness
        .store
        .command(id, &fail("TIMEOUT"), &write(), later)
        .await
        .unwrap();
    harness.command(id, STOP).await;
    let close = RunClose::stopped(StopReason::Operator, "asked for".to_owned());
    harness.stored(closing(&run, 1, 40, close)).await;
    let view = harness.command(id, fail("RESET")).await;
    assert_eq!(view.status, Status::Stopped);
    harness.command(id, TaskCommand::Start).await;
    let control = harness.store.control(run.shard).await.unwrap();
    assert_eq!(control.failed_codes, view.failed_codes);
    assert!(control.failed_codes.covers("TIMEOUT", later) && control.failed_codes.covers("RESET", NOW));
    let entries = harness.store.audit(id).await.unwrap();
    let told = entries
        .iter()
        .rev()
        .find(|entry| entry.action == "task.fail")
        .unwrap();
    assert!(
        told.before.as_deref().is_some_and(|text| !text.contains("RESET")),
        "{told:?}"
    );
    assert!(
        told.after.as_deref().is_some_and(|text| text.contains("RESET")),
        "{told:?}"
    );
    for no in 0..FAILED_CODES_MAX - 2 {
        harness.command(id, fail(&format!("C{no}"))).await;
    }
    let one_more = harness.store.command(id, &fail("D"), &write(), NOW).await;
    assert!(
        matches!(one_more, Err(CommandError::Refused(CommandRefusal::Codes(_)))),
        "{one_more:?}"
    );
}

pub async fn items_that_people_want_skipped_reach_every_owner_and_outlast_it(harness: Harness) {
    let skip = |text: &str| TaskCommand::Skip(Stretches::parse(text).unwrap());
    let id = harness.created(&task(100)).await.id;
    let view = harness.command(id, skip("90-99")).await;
    assert_eq!(
        (view.status, view.skips.to_string().as_str()),
        (Status::Created, "90-99")
    );
    let run = harness.running(100).await;
    let id = run.shard.task;
    let before = harness.store.control(run.shard).await.unwrap();
    assert!(before.skips.is_empty());
    harness.command(id, skip("12,5-9")).await;
    let after = harness.store.control(run.shard).await.unwrap();
    assert_eq!(
        (after.rev, after.skips.to_string().as_str()),
        (before.rev + 1, "5-9,12")
    );
    harness.command(id, skip("9-11")).await;
    harness.command(id, STOP).await;
    let close = RunClose::stopped(StopReason::Operator, "asked for".to_owned());
    harness.stored(closing(&run, 1, 40, close)).await;
    harness.command(id, TaskCommand::Start).await;
    let control = harness.store.control(run.shard).await.unwrap();
    assert_eq!(control.skips.to_string(), "5-12");
    let beyond = harness.store.command(id, &skip("100"), &write(), NOW).await;
    assert!(
        matches!(beyond, Err(CommandError::Refused(CommandRefusal::Fields(_)))),
        "{beyond:?}"
    );
    let entries = harness.store.audit(id).await.unwrap();
    let told = entries
        .iter()
        .rev()
        .find(|entry| entry.action == "task.skip")
        .unwrap();
    let says = |text: Option<&str>, part: &str| text.is_some_and(|text| text.contains(part));
    assert!(says(told.after.as_deref(), "\"9-11\"") && says(told.after.as_deref(), "skipped_by_operator"));
    assert!(says(told.before.as_deref(), "\"items\":6"), "{told:?}");
    harness.command(id, TaskCommand::Cancel).await;
    let late = harness.store.command(id, &skip("1"), &write(), NOW).await;
    assert!(
        matches!(late, Err(CommandError::Refused(CommandRefusal::Status(_)))),
        "{late:?}"
    );
}

pub async fn a_start_that_judges_items_changes_the_settings_with_it(harness: Harness) {
    let shard = ShardId {
        task: harness.created(&task(10)).await.id,
        no: 0,
    };
    let at_once = Auto::Fixed(Duration::ZERO);
    let view = harness.command(shard.task, TaskCommand::StartJudging(None)).await;
    assert_eq!((view.status, view.tuning.judge_after), (Status::Queued, at_once));
    assert_ne!(tuning().judge_after, at_once);
    let control = harness.store.control(shard).await.unwrap();
    assert_eq!(
        (control.rev, control.tuning.judge_after),
        (view.control_rev, at_once)
    );
    let entries = harness.store.audit(shard.task).await.unwrap();
    assert_eq!(entries.last().unwrap().action, "task.start");
    let again = harness
        .store
        .command(shard.task, &TaskCommand::StartJudging(None), &write(), NOW)
        .await;
    assert!(
        matches!(again, Err(CommandError::Refused(_))),
        "it is started: {again:?}"
    );
    let later = NOW.plus(Duration::from_secs(60));
    harness.command(shard.task, STOP).await;
    let view = harness
        .command(shard.task, TaskCommand::StartJudging(Some(later)))
        .await;
    assert_eq!(
        (view.spec.start_at, view.tuning.judge_after),
        (Some(later), at_once)
    );
}

fn json_text(text: &str) -> Option<JsonText> {
    serde_json::from_str(text).ok()
}
