//! Facts about creating, commanding and showing tasks.

use std::collections::BTreeSet;

use windrow_core::ids::{Epoch, INDEX_MAX, ItemCount, ItemIndex, ShardId, TaskId};
use windrow_core::items::run::IndexRun;
use windrow_core::items::stretches::Stretches;
use windrow_core::task::lifecycle::{CutOff, Desired, Status, StopReason};
use windrow_core::task::spec::TaskSpec;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::RunClose;
use windrow_engine::ports::ownership::session_store::Heartbeat;
use windrow_engine::ports::tasks::store::{
    CommandError, CreateError, Making, NewTask, TaskCommand, TaskStore, TaskView, Write,
};

use crate::fixture::{BUSINESS, Harness, NOW, at, closing, task, tuning, wait_note, write};

const STOP: TaskCommand = TaskCommand::Stop {
    reason: StopReason::Operator,
};

pub async fn a_new_task_waits_for_its_start(harness: Harness) {
    let made = harness.created(&task(10)).await;
    assert_eq!(
        (made.status, made.desired, made.start_no),
        (Status::Created, Desired::Rest, 0)
    );
    assert_eq!(made.meaning, u64::MAX - 7, "all 64 bits come back");
    assert_eq!(harness.view(made.id).await, made);
    let started = harness.command(made.id, TaskCommand::Start).await;
    assert_eq!(
        (started.status, started.desired, started.start_no),
        (Status::Queued, Desired::Run, 1)
    );
    assert_eq!(started.started_at, None, "nothing of it has run");
    let run = harness.running(10).await;
    assert_eq!(harness.view(run.shard.task).await.started_at, Some(NOW));
    assert!(started.version > made.version);
}

pub async fn terms_add_up_with_items_skipped_at_the_head(harness: Harness) {
    let shard = harness
        .queued_as(&NewTask {
            spec: TaskSpec {
                skip_first: ItemIndex(4),
                ..TaskSpec::default()
            },
            ..task(10)
        })
        .await;
    let session = harness.session().await;
    let run = harness.claimed(shard, Epoch(0), session).await;
    assert_eq!((run.range.start, run.watermark), (ItemIndex(4), ItemIndex(4)));
    assert_eq!(
        run.counters.excluded, 0,
        "what is excluded lies outside of the range"
    );
    harness.stored(at(&run, 1, 7)).await;
    let view = harness.view(shard.task).await;
    assert_eq!((view.counters.excluded, view.counters.succeeded), (4, 3));
    assert_eq!(view.counters.pending(view.total), 3);
    let all = harness
        .created(&NewTask {
            spec: TaskSpec {
                skip_first: ItemIndex(99),
                ..TaskSpec::default()
            },
            ..task(10)
        })
        .await;
    assert_eq!((all.counters.excluded, all.counters.pending(all.total)), (10, 0));
}

pub async fn commands_follow_the_transition_table(harness: Harness) {
    let made = harness.created(&task(10)).await;
    let refused = harness
        .store
        .command(made.id, &STOP, &write(), NOW)
        .await
        .unwrap_err();
    assert!(matches!(refused, CommandError::Refused(_)), "{refused}");
    assert_eq!(harness.view(made.id).await, made, "a refusal changes nothing");
    harness.command(made.id, TaskCommand::Start).await;
    assert!(
        harness
            .store
            .command(made.id, &TaskCommand::Start, &write(), NOW)
            .await
            .is_err()
    );
    let stopped = harness.command(made.id, STOP).await;
    assert_eq!(
        (stopped.status, stopped.stop_reason),
        (Status::Stopped, Some(StopReason::Operator))
    );
    let cancelled = harness.command(made.id, TaskCommand::Cancel).await;
    assert_eq!(
        (cancelled.status, cancelled.finished_at),
        (Status::Cancelled, Some(NOW))
    );
    let again = harness
        .store
        .command(made.id, &TaskCommand::Start, &write(), NOW)
        .await
        .unwrap_err();
    assert!(again.to_string().contains("has ended"), "{again}");
}

pub async fn a_start_after_a_stop_goes_on_where_it_was(harness: Harness) {
    let run = harness.running(10).await;
    let stopping = harness.command(run.shard.task, STOP).await;
    assert_eq!(stopping.status, Status::Stopping);
    let close = RunClose::stopped(StopReason::Business, "drained".to_owned());
    harness.stored(closing(&run, 1, 6, close)).await;
    let stopped = harness.view(run.shard.task).await;
    assert_eq!(
        (stopped.status, stopped.watermark),
        (Status::Stopped, ItemIndex(6))
    );
    assert_eq!(
        stopped.stop_reason,
        Some(StopReason::Operator),
        "the first reason is shown"
    );
    assert_eq!(stopped.status_text.as_deref(), Some("drained"));
    let started = harness.command(run.shard.task, TaskCommand::Start).await;
    assert_eq!(
        (started.status, started.start_no, started.stop_reason),
        (Status::Queued, 2, None)
    );
    let session = harness.session().await;
    let next = harness.claimed(run.shard, run.epoch, session).await;
    assert_eq!((next.watermark, next.run.0, next.stalls), (ItemIndex(6), 2, 0));
    // What runs of a task say of their end is only what they heard: that it is over.
    let deadline = TaskCommand::Stop {
        reason: StopReason::Deadline,
    };
    let stopping = harness.command(run.shard.task, deadline).await;
    assert_eq!(stopping.status_text.as_deref(), Some("its deadline passed"));
    let cut_off = CutOff {
        items: 2,
        runs: IndexRun::new(ItemIndex(6), 2).into_iter().collect(),
    };
    let (reason, text) = (StopReason::Operator, "stopped by command".to_owned());
    let close = RunClose::Stopped {
        reason,
        text,
        cut_off: cut_off.clone(),
    };
    harness.stored(closing(&next, 1, 6, close)).await;
    let stopped = harness.view(run.shard.task).await;
    assert_eq!(
        (stopped.status, stopped.stop_reason),
        (Status::Stopped, Some(StopReason::Deadline))
    );
    let told = "its deadline passed; 2 items were in flight and may repeat: #6–#7";
    assert_eq!(
        (stopped.status_text.as_deref(), &stopped.cut_off),
        (Some(told), &cut_off)
    );
    let started = harness.command(run.shard.task, TaskCommand::Start).await;
    assert!(started.cut_off.is_empty(), "it is about the present stop");
}

pub async fn stop_waits_for_the_owner_and_cancel_outlasts_it(harness: Harness) {
    let run = harness.running(10).await;
    assert_eq!(
        harness.command(run.shard.task, STOP).await.status,
        Status::Stopping
    );
    let now = harness.command(run.shard.task, TaskCommand::StopNow).await;
    assert_eq!((now.status, now.desired), (Status::Stopping, Desired::StopNow));
    let cancel = harness.command(run.shard.task, TaskCommand::Cancel).await;
    assert_eq!(
        (cancel.status, cancel.desired),
        (Status::Stopping, Desired::Cancel)
    );
    let again = harness.command(run.shard.task, STOP).await;
    assert_eq!(
        again.desired,
        Desired::Cancel,
        "a weaker desired doesn't replace a stronger one"
    );
    harness.stored(at(&run, 1, 3)).await;
}

pub async fn one_audit_entry_per_accepted_command(harness: Harness) {
    let made = harness.created(&task(10)).await;
    harness
        .store
        .command(made.id, &STOP, &write(), NOW)
        .await
        .unwrap_err();
    harness.command(made.id, TaskCommand::Start).await;
    harness
        .command(made.id, TaskCommand::Tune(Box::new(tuning())))
        .await;
    harness.command(made.id, STOP).await;
    harness.command(made.id, TaskCommand::Cancel).await;
    let entries = harness.store.audit(made.id).await.unwrap();
    let actions: Vec<&str> = entries.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(
        actions,
        [
            "task.create",
            "task.start",
            "task.tune",
            "task.stop",
            "task.cancel"
        ]
    );
    let stop = &entries[3];
    assert_eq!((stop.actor.as_str(), stop.source.as_str()), ("ada", "cli"));
    assert_eq!(stop.reason.as_deref(), Some("a test"));
    assert_eq!(stop.before.as_deref(), Some(r#"{"status":"queued"}"#));
    assert_eq!(stop.after.as_deref(), Some(r#"{"status":"stopped"}"#));
}

pub async fn a_replay_is_in_the_audit_of_the_task_whose_items_it_sends(harness: Harness) {
    let origin = harness.created(&task(10)).await;
    let new = NewTask {
        parent: Some(origin.id),
        ..task(2)
    };
    let items = Stretches::parse("3,7").unwrap();
    let how = Making {
        replay: Some(&items),
        ..Making::default()
    };
    let tried = Write {
        dry_run: true,
        ..write()
    };
    harness.store.make(&new, how, &tried, NOW).await.unwrap();
    let made = harness.store.make(&new, how, &write(), NOW).await.unwrap();
    let entries = harness.store.audit(origin.id).await.unwrap();
    let [_, replay] = entries.as_slice() else {
        panic!("one of its creation, one of the replay: {entries:?}")
    };
    assert_eq!(
        (replay.action.as_str(), replay.actor.as_str()),
        ("task.replay", "ada")
    );
    let after = format!(r#"{{"by":"{}","indexes":"3,7"}}"#, made.id);
    assert_eq!(replay.after.as_ref(), Some(&after));
    assert_eq!(harness.store.audit(made.id).await.unwrap().len(), 1);
}

pub async fn the_same_key_and_request_make_one_task(harness: Harness) {
    let new = NewTask {
        idempotency_key: Some("k1".to_owned()),
        ..task(10)
    };
    let first = harness.created(&new).await;
    let second = harness.created(&new).await;
    assert_eq!(first, second);
    assert_eq!(harness.store.audit(first.id).await.unwrap().len(), 1);
    let other = NewTask {
        total: ItemCount(11),
        ..new
    };
    let refused = harness.store.create(&other, &write(), NOW).await.unwrap_err();
    assert_eq!(refused, CreateError::KeyReused(first.id));
}

/// Sources are found too, so the port has to be said.
async fn find(harness: &Harness) -> Option<TaskView> {
    TaskStore::find(harness.store.as_ref(), BUSINESS, "nightly")
        .await
        .unwrap()
}

pub async fn a_name_is_taken_until_it_is_released(harness: Harness) {
    let new = NewTask {
        spec: TaskSpec {
            name: Some("nightly".to_owned()),
            ..TaskSpec::default()
        },
        ..task(10)
    };
    let first = harness.created(&new).await;
    let refused = harness.store.create(&new, &write(), NOW).await.unwrap_err();
    assert_eq!(refused, CreateError::NameTaken("nightly".to_owned(), first.id));
    harness.store.release_name(first.id, &write(), NOW).await.unwrap();
    harness.store.release_name(first.id, &write(), NOW).await.unwrap();
    assert_eq!(find(&harness).await, None);
    let second = harness.created(&new).await;
    assert_ne!(first.id, second.id);
    assert_eq!(find(&harness).await, Some(second));
    assert_eq!(harness.store.audit(first.id).await.unwrap().len(), 2);
}

pub async fn tuning_raises_the_revision_that_owners_see(harness: Harness) {
    let shard = harness.queued(10).await;
    let session = harness.session().await;
    harness.claimed(shard, Epoch(0), session).await;
    let before = harness.store.control(shard).await.unwrap();
    let mut changed = tuning();
    changed.parked_max = 5;
    let view = harness
        .command(shard.task, TaskCommand::Tune(Box::new(changed.clone())))
        .await;
    assert_eq!(view.status, Status::Running);
    let after = harness.store.control(shard).await.unwrap();
    assert_eq!((after.rev, after.tuning), (before.rev + 1, changed));
    let Heartbeat::Alive { shards, .. } = harness.store.beat(session).await.unwrap() else {
        panic!("alive")
    };
    assert_eq!(shards[0].control_rev, after.rev);
    let entries = harness.store.audit(shard.task).await.unwrap();
    assert!(entries[2].after.as_deref().unwrap().contains(r#""parked_max":5"#));
}

pub async fn a_queued_task_says_why_it_waits(harness: Harness) {
    let shard = harness.queued(10).await;
    let note = wait_note(shard.task, "waits for 500/s");
    for again in ["new", "known"] {
        let say = harness
            .store
            .explain_waits(std::slice::from_ref(&note), NOW)
            .await;
        assert_eq!(say, Ok(BTreeSet::from([shard.task])), "{again}");
    }
    let view = harness.view(shard.task).await;
    assert_eq!(view.status_reason.as_deref(), Some("capacity"));
    assert_eq!(view.status_text.as_deref(), Some("waits for 500/s"));
    let session = harness.session().await;
    harness.claimed(shard, Epoch(0), session).await;
    let say = harness
        .store
        .explain_waits(&[wait_note(shard.task, "waits")], NOW)
        .await;
    assert_eq!(
        say,
        Ok(BTreeSet::new()),
        "a running task takes no note, and nobody is told that it did"
    );
    let view = harness.view(shard.task).await;
    assert_eq!((view.status, view.status_reason), (Status::Running, None));
}

pub async fn unknown_things_are_named(harness: Harness) {
    let id = TaskId(99);
    let refused = harness.store.create(&task(1), &write(), NOW).await.unwrap_err();
    assert_eq!(refused, CreateError::NoBusiness(BUSINESS.to_owned()));
    let refused = harness.store.command(id, &STOP, &write(), NOW).await.unwrap_err();
    assert_eq!(refused, CommandError::NotFound(id));
    assert_eq!(harness.store.get(id).await.unwrap(), None);
    assert!(harness.store.control(ShardId { task: id, no: 0 }).await.is_err());
    harness.created(&task(1)).await;
    let big = NewTask {
        total: ItemCount(INDEX_MAX + 1),
        ..task(1)
    };
    let refused = harness.store.create(&big, &write(), NOW).await.unwrap_err();
    assert!(
        matches!(refused, CreateError::Store(StoreError::Refused(_))),
        "{refused}"
    );
}

pub async fn a_deleted_task_has_no_redrives_and_gives_its_key_back(harness: Harness) {
    let new = NewTask {
        idempotency_key: Some("k".to_owned()),
        ..task(10)
    };
    let made = harness.created(&new).await;
    harness.command(made.id, TaskCommand::Cancel).await;
    harness.store.delete(made.id, &write(), NOW).await.unwrap();
    let redrive = NewTask {
        parent: Some(made.id),
        ..task(1)
    };
    let refused = harness.store.create(&redrive, &write(), NOW).await.unwrap_err();
    assert_eq!(refused, CreateError::NoParent(made.id));
    let again = harness.store.create(&new, &write(), NOW).await.unwrap();
    assert_ne!(again.id, made.id, "a new one");
    assert_eq!(
        harness.store.create(&new, &write(), NOW).await.unwrap().id,
        again.id
    );
}

pub async fn a_dry_run_is_answered_as_what_then_comes_and_keeps_nothing(harness: Harness) {
    let tried_only = Write {
        dry_run: true,
        ..write()
    };
    let new = NewTask {
        spec: TaskSpec {
            name: Some("one".to_owned()),
            ..TaskSpec::default()
        },
        ..task(10)
    };
    harness.created(&task(10)).await;
    let tried = harness.store.create(&new, &tried_only, NOW).await.unwrap();
    assert_eq!(harness.store.get(tried.id).await.unwrap(), None::<TaskView>);
    let made = harness.created(&new).await;
    let mut expected = tried;
    expected.life.id = made.id;
    assert_eq!(made, expected);
    let taken = harness.store.create(&new, &tried_only, NOW).await.unwrap_err();
    assert_eq!(taken, CreateError::NameTaken("one".to_owned(), made.id));
    harness.want_hooks(r#"{"stopped":{}}"#).await;
    for command in [
        TaskCommand::Start,
        TaskCommand::Tune(Box::new(tuning())),
        STOP,
        TaskCommand::Cancel,
    ] {
        let (before, calls) = (harness.view(made.id).await, harness.calls_left().await.len());
        let audit = harness.store.audit(made.id).await.unwrap().len();
        let tried = harness
            .store
            .command(made.id, &command, &tried_only, NOW)
            .await
            .unwrap();
        assert_eq!(harness.view(made.id).await, before, "{command:?}");
        assert_eq!(
            harness.calls_left().await.len(),
            calls,
            "nobody is called for {command:?}"
        );
        assert_eq!(
            harness.store.audit(made.id).await.unwrap().len(),
            audit,
            "{command:?}"
        );
        let mut done = harness.command(made.id, command).await;
        // A start makes its token anew.
        done.life.start_token = tried.life.start_token.clone();
        assert_eq!(done, tried);
    }
    let refused = harness
        .store
        .command(made.id, &STOP, &tried_only, NOW)
        .await
        .unwrap_err();
    assert_eq!(
        refused,
        harness
            .store
            .command(made.id, &STOP, &write(), NOW)
            .await
            .unwrap_err()
    );
    harness.store.delete(made.id, &tried_only, NOW).await.unwrap();
    assert_eq!(harness.view(made.id).await.status, Status::Cancelled);
    harness.store.delete(made.id, &write(), NOW).await.unwrap();
}
