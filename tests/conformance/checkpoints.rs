//! Facts about fenced checkpoints, their side records and the ends of runs and tasks.

use std::num::NonZeroU64;

use windrow_core::execution::{HORIZON_OF_CLAIM, Horizon};
use windrow_core::ids::{ClaimId, Epoch, ItemIndex, ShardId, WallMs};
use windrow_core::items::verdict::SideRecord;
use windrow_core::task::lifecycle::{Status, StopReason, TaskResult};
use windrow_core::task::spec::TaskSpec;
use windrow_core::task::{Canary, CanaryThen};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::{
    CHECKPOINT_SHARDS_MAX, CheckpointAck, ClaimedShard, FAILURE_CODE_OTHER, FAILURE_CODES_MAX, RunClose,
    ShardCheckpoint,
};
use windrow_engine::ports::tasks::failure_list::FailurePage;
use windrow_engine::ports::tasks::store::{CommandError, NewTask, TaskCommand};

use crate::fixture::{Harness, NOW, at, closing, failed, parked, retrying, task, with, write};

pub async fn progress_comes_back_with_the_next_claim(harness: Harness) {
    let run = harness.running(1000).await;
    let blob: Vec<u8> = (0..131_072_u32).map(|byte| (byte % 251) as u8).collect();
    let mut checkpoint = at(&run, 1, 10);
    checkpoint.blob = blob.clone();
    checkpoint.high_water = ItemIndex(70);
    checkpoint.counters.skipped = 5;
    checkpoint.counters.in_flight = 9;
    checkpoint.side = vec![SideRecord::Retrying(retrying(12, "TIMEOUT"))];
    harness.stored(checkpoint).await;
    let session = harness.session().await;
    harness.store.fence_all_but(session).await.unwrap();
    let next = harness.claimed(run.shard, run.epoch, session).await;
    assert_eq!((next.watermark, next.high_water), (ItemIndex(10), ItemIndex(70)));
    assert_eq!(
        (
            next.counters.succeeded,
            next.counters.skipped,
            next.counters.in_flight
        ),
        (10, 5, 0)
    );
    assert_eq!(next.blob, blob);
    assert_eq!(next.retrying, [retrying(12, "TIMEOUT")]);
    assert!(next.epoch > run.epoch && next.run.0 == 2);
}

pub async fn a_repeat_of_the_same_number_is_stored_once(harness: Harness) {
    let run = harness.running(10).await;
    let checkpoint = with(at(&run, 1, 3), vec![failed(1, "BAD")]);
    for _ in 0..3 {
        harness.stored(checkpoint.clone()).await;
    }
    assert_eq!(harness.store.groups(run.shard.task).await.unwrap()[0].count, 1);
    let unwritten = ShardCheckpoint {
        seq: windrow_core::ids::CheckpointSeq(0),
        ..at(&run, 1, 9)
    };
    let fresh = harness.running(10).await;
    let zero = ShardCheckpoint {
        shard: fresh.shard,
        epoch: fresh.epoch,
        claim: fresh.claim,
        ..unwritten
    };
    assert_eq!(
        harness.write(zero).await,
        CheckpointAck::Fenced,
        "0 is the number of the claim itself"
    );
}

pub async fn a_zombie_leaves_no_side_records(harness: Harness) {
    let old = harness.running(10).await;
    harness.stored(at(&old, 7, 2)).await;
    let session = harness.session().await;
    harness.store.fence_all_but(session).await.unwrap();
    let new = harness.claimed(old.shard, old.epoch, session).await;
    let stale_claim = ShardCheckpoint {
        claim: old.claim,
        ..at(&new, 8, 5)
    };
    let stale_epoch = ShardCheckpoint {
        epoch: old.epoch,
        ..at(&new, 8, 5)
    };
    for stale in [
        at(&old, 8, 5),
        stale_claim,
        stale_epoch,
        closing(&old, 9, 10, RunClose::Done),
    ] {
        let stale = with(stale, vec![failed(1, "BAD"), parked(2, NOW)]);
        assert_eq!(harness.write(stale).await, CheckpointAck::Fenced);
    }
    let view = harness.view(old.shard.task).await;
    assert_eq!((view.watermark, view.status), (ItemIndex(2), Status::Running));
    assert!(
        harness
            .store
            .page(old.shard.task, &FailurePage::ByIndex(None), 10)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(harness.store.groups(old.shard.task).await.unwrap().is_empty());
    assert!(
        harness
            .store
            .parked_due(old.shard, WallMs(i64::MAX), None, 1)
            .await
            .unwrap()
            .is_empty()
    );
    harness.stored(at(&new, 1, 3)).await;
}

pub async fn watermark_and_numbers_never_fall(harness: Harness) {
    let run = harness.running(10).await;
    harness.stored(at(&run, 5, 6)).await;
    assert_eq!(harness.write(at(&run, 4, 8)).await, CheckpointAck::Fenced);
    assert_eq!(harness.write(at(&run, 6, 5)).await, CheckpointAck::Fenced);
    assert_eq!(harness.view(run.shard.task).await.watermark, ItemIndex(6));
    harness.stored(at(&run, 6, 6)).await;
}

pub async fn a_fenced_shard_does_not_disturb_the_others(harness: Harness) {
    let (one, two, three) = (
        harness.running(10).await,
        harness.running(10).await,
        harness.running(10).await,
    );
    let zombie = ShardCheckpoint {
        claim: ClaimId(uuid::Uuid::new_v4()),
        ..at(&two, 1, 5)
    };
    let zombie = with(zombie, vec![failed(1, "BAD")]);
    let gone = ShardCheckpoint {
        shard: ShardId { no: 9, ..one.shard },
        ..at(&one, 1, 5)
    };
    let batch = [
        at(&one, 1, 4),
        zombie,
        gone,
        with(at(&three, 1, 5), vec![failed(2, "BAD")]),
    ];
    let acks = harness.store.checkpoint(&batch).await.unwrap();
    use CheckpointAck::{Fenced, Stored};
    assert_eq!(acks, [Stored, Fenced, Fenced, Stored]);
    assert_eq!(harness.view(one.shard.task).await.watermark, ItemIndex(4));
    assert_eq!(harness.view(two.shard.task).await.watermark, ItemIndex(0));
    assert_eq!(
        harness
            .store
            .page(two.shard.task, &FailurePage::ByIndex(None), 9)
            .await
            .unwrap(),
        []
    );
    assert_eq!(
        harness
            .store
            .page(three.shard.task, &FailurePage::ByIndex(None), 9)
            .await
            .unwrap()
            .len(),
        1
    );
}

pub async fn a_lost_answer_to_the_last_checkpoint_is_recognised(harness: Harness) {
    let run = harness.running(10).await;
    let last = closing(&run, 1, 10, RunClose::Done);
    harness.stored(last.clone()).await;
    let first = harness.view(run.shard.task).await;
    harness.stored(last).await;
    assert_eq!(harness.view(run.shard.task).await, first);
    assert_eq!(
        harness.write(at(&run, 2, 10)).await,
        CheckpointAck::Fenced,
        "the run has ended"
    );
}

pub async fn a_whole_task_finishes_in_the_transaction_of_its_last_checkpoint(harness: Harness) {
    let run = harness.running(10).await;
    harness.stored(at(&run, 1, 4)).await;
    harness.stored(closing(&run, 2, 10, RunClose::Done)).await;
    let view = harness.view(run.shard.task).await;
    assert_eq!(
        (view.status, view.result),
        (Status::Finished, Some(TaskResult::Succeeded))
    );
    assert_eq!((view.finished_at, view.watermark), (Some(NOW), ItemIndex(10)));
    assert_eq!(view.counters.pending(view.total), 0);
    let entries = harness.store.audit(run.shard.task).await.unwrap();
    let last = entries.last().unwrap();
    assert_eq!(
        (last.action.as_str(), last.source.as_str()),
        ("task.finished", "system")
    );
    let empty = harness.running(0).await;
    harness.stored(closing(&empty, 1, 0, RunClose::Done)).await;
    assert_eq!(harness.view(empty.shard.task).await.status, Status::Finished);
}

pub async fn a_task_that_does_not_add_up_is_not_finished(harness: Harness) {
    let break_it: [fn(&mut ShardCheckpoint); 5] = [
        |c| c.watermark = ItemIndex(9),
        |c| c.counters.succeeded -= 1,
        |c| {
            c.counters.succeeded -= 1;
            c.counters.parked = 1;
        },
        // Counted as failed, but no failure is recorded.
        |c| {
            c.counters.succeeded -= 1;
            c.counters.failed = 1;
        },
        |c| c.side = vec![parked(3, NOW)],
    ];
    for broken in break_it {
        let run = harness.running(10).await;
        let mut last = closing(&run, 1, 10, RunClose::Done);
        broken(&mut last);
        harness.stored(last).await;
        let view = harness.view(run.shard.task).await;
        assert_eq!((view.status, view.result), (Status::Finalizing, None));
        assert_eq!(view.status_reason.as_deref(), Some("proof_failed"));
        assert!(view.status_text.is_some() && view.finished_at.is_none());
    }
}

pub async fn an_end_that_did_not_add_up_is_proved_again_when_told(harness: Harness) {
    let run = harness.running(10).await;
    let id = run.shard.task;
    let mut last = closing(&run, 1, 10, RunClose::Done);
    last.counters.succeeded -= 1;
    harness.stored(last).await;
    let view = harness.command(id, TaskCommand::Recover).await;
    assert_eq!(
        (view.status, view.status_reason.as_deref()),
        (Status::Finalizing, Some("proof_failed"))
    );
    harness.mend(id).await;
    assert_eq!(
        harness.view(id).await.status,
        Status::Finalizing,
        "nobody looks by himself"
    );
    let view = harness.command(id, TaskCommand::Recover).await;
    assert_eq!(
        (view.status, view.result),
        (Status::Finished, Some(TaskResult::Succeeded))
    );
    assert_eq!((view.finished_at, view.status_reason), (Some(NOW), None));
    let audit = harness.store.audit(id).await.unwrap();
    let actions: Vec<&str> = audit.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(
        actions[actions.len() - 3..],
        ["task.recover", "task.recover", "task.finished"]
    );
    let late = harness
        .store
        .command(id, &TaskCommand::Recover, &write(), NOW)
        .await;
    assert!(matches!(late, Err(CommandError::Refused(_))), "{late:?}");
}

pub async fn failures_make_the_result_with_failures(harness: Harness) {
    let run = harness.running(10).await;
    harness.stored(with(at(&run, 1, 5), vec![failed(1, "BAD")])).await;
    let mut last = closing(&run, 2, 10, RunClose::Done);
    last.counters.succeeded = 9;
    last.counters.failed = 1;
    harness.stored(last).await;
    let view = harness.view(run.shard.task).await;
    assert_eq!(
        (view.status, view.result),
        (Status::Finished, Some(TaskResult::WithFailures))
    );
}

pub async fn what_a_dead_owner_may_have_called_is_not_excluded(harness: Harness) {
    let run = harness.running(1000).await;
    let first = Horizon {
        may_leave: ItemIndex(HORIZON_OF_CLAIM),
        may_have_left: ItemIndex(0),
    };
    assert_eq!(run.horizon, first, "the claim lets the first items leave");
    let far = |run: &ClaimedShard| ShardCheckpoint {
        high_water: ItemIndex(40),
        horizon: ItemIndex(370),
        ..at(run, 1, 20)
    };
    harness.stored(far(&run)).await;
    let view = harness
        .command(run.shard.task, TaskCommand::Finish { end: ItemIndex(500) })
        .await;
    assert_eq!(
        (view.finish_at, view.counters.excluded),
        (Some(ItemIndex(500)), 0),
        "its owner decides"
    );
    let session = harness.session().await;
    harness.store.fence_all_but(session).await.unwrap();
    let next = harness.claimed(run.shard, run.epoch, session).await;
    assert_eq!(
        next.horizon,
        Horizon {
            may_leave: ItemIndex(370),
            may_have_left: ItemIndex(370)
        }
    );
    harness
        .stored(ShardCheckpoint {
            close: Some(RunClose::Released),
            ..far(&next)
        })
        .await;
    let view = harness
        .command(run.shard.task, TaskCommand::Finish { end: ItemIndex(30) })
        .await;
    assert_eq!(
        (view.finish_at, view.counters.excluded),
        (Some(ItemIndex(370)), 630),
        "nobody owns it"
    );
    let last = harness.claimed(run.shard, next.epoch, session).await;
    harness.stored(closing(&last, 1, 370, RunClose::Done)).await;
    let view = harness.view(run.shard.task).await;
    assert_eq!(
        (view.status, view.result),
        (Status::Finished, Some(TaskResult::Early))
    );
}

pub async fn finishing_early_excludes_what_was_not_dispatched(harness: Harness) {
    let run = harness.running(100).await;
    let mut early = at(&run, 1, 20);
    early.high_water = ItemIndex(40);
    early.finish_at = Some(ItemIndex(30));
    harness.stored(early.clone()).await;
    let view = harness.view(run.shard.task).await;
    assert_eq!(
        (view.counters.excluded, view.counters.pending(view.total)),
        (60, 20),
        "40 were dispatched"
    );
    assert_eq!(
        view.cut_at(),
        Some(ItemIndex(40)),
        "more had left than it was to keep"
    );
    let mut later = at(&run, 2, 20);
    later.finish_at = Some(ItemIndex(90));
    harness.stored(later).await;
    assert_eq!(
        harness.view(run.shard.task).await.counters.excluded,
        60,
        "the end never grows again"
    );
    let session = harness.session().await;
    harness.store.fence_all_but(session).await.unwrap();
    let next = harness.claimed(run.shard, run.epoch, session).await;
    assert_eq!(next.finish_at, Some(ItemIndex(40)));
    harness.stored(closing(&next, 1, 40, RunClose::Done)).await;
    let view = harness.view(run.shard.task).await;
    assert_eq!(
        (view.status, view.result),
        (Status::Finished, Some(TaskResult::Early))
    );
    assert_eq!(view.counters.accounted(), 100);
}

pub async fn a_canary_is_kept_until_its_run_says_that_it_has_passed(harness: Harness) {
    let canary = Some(Canary {
        items: NonZeroU64::new(5).unwrap(),
        then: CanaryThen::Continue,
    });
    let shard = harness
        .queued_as(&NewTask {
            spec: TaskSpec {
                canary,
                ..TaskSpec::default()
            },
            ..task(10)
        })
        .await;
    let session = harness.session().await;
    let run = harness.claimed(shard, Epoch(0), session).await;
    harness.stored(at(&run, 1, 3)).await;
    let before = harness.store.control(shard).await.unwrap();
    assert_eq!(before.canary, canary);
    let zombie = ShardCheckpoint {
        canary_passed: true,
        epoch: Epoch(run.epoch.0 - 1),
        ..at(&run, 2, 5)
    };
    assert_eq!(harness.write(zombie).await, CheckpointAck::Fenced);
    assert_eq!(
        harness.store.control(shard).await.unwrap().canary,
        canary,
        "a stale run says nothing"
    );
    let passed = ShardCheckpoint {
        canary_passed: true,
        ..at(&run, 2, 5)
    };
    for _ in 0..2 {
        harness.stored(passed.clone()).await;
        let after = harness.store.control(shard).await.unwrap();
        assert_eq!((after.canary, after.rev), (None, before.rev));
    }
}

pub async fn a_run_may_stop_its_task(harness: Harness) {
    let run = harness.running(10).await;
    let close = RunClose::stopped(StopReason::HandlerGone, "answered 410".to_owned());
    harness.stored(closing(&run, 1, 3, close)).await;
    let view = harness.view(run.shard.task).await;
    assert_eq!(
        (view.status, view.stop_reason),
        (Status::Stopped, Some(StopReason::HandlerGone))
    );
    assert_eq!(view.status_text.as_deref(), Some("answered 410"));
    let entries = harness.store.audit(run.shard.task).await.unwrap();
    assert_eq!(entries.last().unwrap().action, "task.stopped");
    assert_eq!(
        harness.command(run.shard.task, TaskCommand::Start).await.status,
        Status::Queued
    );
}

pub async fn a_recovering_task_waits_for_its_time(harness: Harness) {
    let run = harness.running(10).await;
    let not_before = WallMs(NOW.0 + 15_000);
    let close = RunClose::Recovering {
        not_before,
        reason: "error_budget".into(),
        text: "10 of 20".into(),
        nth: Some(1),
    };
    harness.stored(closing(&run, 1, 3, close)).await;
    let view = harness.view(run.shard.task).await;
    assert_eq!(view.status, Status::Recovering);
    assert_eq!(view.status_reason.as_deref(), Some("error_budget"));
    assert_eq!(view.status_text.as_deref(), Some("10 of 20"));
    let stop = TaskCommand::Stop {
        reason: StopReason::Operator,
    };
    assert_eq!(
        harness.command(run.shard.task, stop).await.status,
        Status::Stopped,
        "nobody owns it"
    );
    harness.command(run.shard.task, TaskCommand::Start).await;
    let session = harness.session().await;
    harness.claimed(run.shard, run.epoch, session).await;
}

pub async fn a_run_that_would_recover_stops_when_its_task_is_to_stop(harness: Harness) {
    let run = harness.running(10).await;
    harness.command(run.shard.task, TaskCommand::StopNow).await;
    let not_before = WallMs(NOW.0 + 15_000);
    let close = RunClose::Recovering {
        not_before,
        reason: "error_budget".into(),
        text: "again".into(),
        nth: Some(1),
    };
    harness.stored(closing(&run, 1, 3, close)).await;
    let view = harness.view(run.shard.task).await;
    assert_eq!(
        (view.status, view.stop_reason),
        (Status::Stopped, Some(StopReason::Operator))
    );
    assert_eq!(
        (view.status_reason, view.status_text),
        (None, None),
        "it isn't tried again"
    );
}

pub async fn cancel_ends_in_cancelled_when_the_owner_stops(harness: Harness) {
    let run = harness.running(10).await;
    harness.command(run.shard.task, TaskCommand::Cancel).await;
    let close = RunClose::stopped(StopReason::Operator, "cancelled".to_owned());
    harness.stored(closing(&run, 1, 3, close)).await;
    let view = harness.view(run.shard.task).await;
    assert_eq!((view.status, view.finished_at), (Status::Cancelled, Some(NOW)));
    let done = harness.running(10).await;
    harness.command(done.shard.task, TaskCommand::Cancel).await;
    harness.stored(closing(&done, 1, 10, RunClose::Done)).await;
    assert_eq!(
        harness.view(done.shard.task).await.status,
        Status::Finished,
        "nothing was left to cancel"
    );
}

pub async fn failed_items_are_counted_once(harness: Harness) {
    let run = harness.running(100).await;
    let later = |index| {
        let mut retrying = retrying(index, "BAD");
        retrying.at = WallMs(NOW.0 + 50);
        SideRecord::Failed(retrying)
    };
    harness
        .stored(with(at(&run, 1, 10), vec![failed(7, "BAD"), failed(3, "BAD")]))
        .await;
    harness
        .stored(with(
            at(&run, 2, 20),
            vec![later(7), later(12), failed(13, "ODD")],
        ))
        .await;
    let final_ones = vec![
        SideRecord::Cleared(ItemIndex(3)),
        SideRecord::Retrying(retrying(7, "X")),
    ];
    harness.stored(with(at(&run, 3, 20), final_ones)).await;
    let groups = harness.store.groups(run.shard.task).await.unwrap();
    let counts: Vec<(&str, u64)> = groups
        .iter()
        .map(|group| (group.code.as_str(), group.count))
        .collect();
    assert_eq!(counts, [("BAD", 3), ("ODD", 1)]);
    assert_eq!((groups[0].first_at, groups[0].last_at), (NOW, WallMs(NOW.0 + 50)));
    assert_eq!(
        (groups[0].example_index, groups[0].example.as_str()),
        (ItemIndex(3), "item 3 failed")
    );
    let failures = harness
        .store
        .page(run.shard.task, &FailurePage::ByIndex(Some(ItemIndex(3))), 2)
        .await
        .unwrap();
    let found: Vec<(u64, u32, &str)> = failures
        .iter()
        .map(|item| (item.index.0, item.attempts, item.code.as_deref().unwrap()))
        .collect();
    assert_eq!(found, [(7, 3, "BAD"), (12, 3, "BAD")]);
}

pub async fn codes_past_the_hundredth_are_counted_as_other(harness: Harness) {
    let run = harness.running(1000).await;
    let side: Vec<SideRecord> = (0..150)
        .map(|index| failed(index, &format!("E{index:03}")))
        .collect();
    let (first, second) = side.split_at(90);
    harness.stored(with(at(&run, 1, 200), first.to_vec())).await;
    let mut second = second.to_vec();
    second.push(failed(160, "E000"));
    harness.stored(with(at(&run, 2, 200), second)).await;
    let groups = harness.store.groups(run.shard.task).await.unwrap();
    assert_eq!(groups.len(), FAILURE_CODES_MAX + 1);
    assert_eq!(
        (groups[0].code.as_str(), groups[0].count),
        (FAILURE_CODE_OTHER, 50)
    );
    assert_eq!(
        (groups[1].code.as_str(), groups[1].count),
        ("E000", 2),
        "a known code keeps its group"
    );
    assert_eq!(groups.iter().map(|group| group.count).sum::<u64>(), 151);
}

pub async fn items_come_and_go_with_their_records(harness: Harness) {
    let run = harness.running(100).await;
    let side = vec![
        SideRecord::Retrying(retrying(5, "BUSY")),
        parked(6, WallMs(NOW.0 + 10)),
        SideRecord::Retrying(retrying(8, "BUSY")),
        // The last record of an item wins.
        SideRecord::Cleared(ItemIndex(8)),
    ];
    harness.stored(with(at(&run, 1, 5), side)).await;
    let evicted = windrow_core::items::verdict::FailingItem {
        failure: None,
        attempts: 0,
        ..retrying(9, "")
    };
    let side = vec![
        SideRecord::Cleared(ItemIndex(5)),
        SideRecord::Retrying(retrying(6, "LATE")),
        SideRecord::Retrying(evicted.clone()),
    ];
    harness.stored(with(at(&run, 2, 5), side)).await;
    assert!(
        harness
            .store
            .parked_due(run.shard, WallMs(i64::MAX), None, 1)
            .await
            .unwrap()
            .is_empty()
    );
    let session = harness.session().await;
    harness.store.fence_all_but(session).await.unwrap();
    let next = harness.claimed(run.shard, run.epoch, session).await;
    assert_eq!(next.retrying, [retrying(6, "LATE"), evicted]);
}

pub async fn parked_items_are_paged_by_due_time(harness: Harness) {
    let run = harness.running(5000).await;
    let due = |index: u64| WallMs(NOW.0 + (index * 7 % 50).cast_signed());
    let side: Vec<SideRecord> = (0..3000).map(|index| parked(index, due(index))).collect();
    let mut checkpoint = at(&run, 1, 3000);
    checkpoint.counters.succeeded = 0;
    checkpoint.counters.parked = 3000;
    checkpoint.side = side;
    harness.stored(checkpoint).await;
    let mut expected: Vec<(WallMs, u64)> = (0..3000).map(|index| (due(index), index)).collect();
    expected.sort();
    let before = WallMs(NOW.0 + 24);
    expected.retain(|(at, _)| *at <= before);
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = harness
            .store
            .parked_due(run.shard, before, after, 333)
            .await
            .unwrap();
        let Some(last) = page.last() else { break };
        after = Some((last.due_at, last.index));
        assert!(
            page.iter().all(|item| item.at == NOW),
            "it failed then, whenever it is due"
        );
        found.extend(page.iter().map(|item| (item.due_at, item.index.0)));
    }
    assert_eq!(found, expected);
    assert_eq!(harness.view(run.shard.task).await.counters.parked, 3000);
}

pub async fn more_than_a_hundred_shards_at_once_are_refused(harness: Harness) {
    let shard = harness.queued(10).await;
    let session = harness.session().await;
    let run: ClaimedShard = harness.claimed(shard, Epoch(0), session).await;
    let batch = vec![at(&run, 1, 1); CHECKPOINT_SHARDS_MAX + 1];
    let refused = harness.store.checkpoint(&batch).await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused(_)), "{refused}");
    assert_eq!(harness.view(shard.task).await.watermark, ItemIndex(0));
    let acks = harness.store.checkpoint(&batch[1..]).await.unwrap();
    assert_eq!(acks, [CheckpointAck::Stored; CHECKPOINT_SHARDS_MAX]);
}
