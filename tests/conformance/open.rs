//! Open tasks: items are appended while they run, until they are sealed.

use std::sync::Arc;

use crate::fixture::*;
use windrow_core::ids::{Epoch, ItemCount, ItemIndex, ShardId, TaskId, WallMs};
use windrow_core::life::RunClose;
use windrow_core::task::lifecycle::{ShardState, Status, TaskResult};
use windrow_core::task::supply::{
    APPEND_BYTES_MAX, APPEND_ITEMS_MAX, AppendRefusal, BACKLOG_ITEMS_MAX, Intake, Supply,
};
use windrow_engine::ports::ownership::run_store::{ClaimedShard, ShardCheckpoint};
use windrow_engine::ports::sources::append::{AppendError, Appended, NewBlock};
use windrow_engine::ports::tasks::store::{CommandError, CommandRefusal, NewTask, TaskCommand, Write};
use windrow_engine::ports::tasks::upkeep::Sweep;

fn open() -> NewTask {
    NewTask {
        is_open: true,
        source: r#"{"kind":"appended"}"#.to_owned(),
        ..task(0)
    }
}

fn block(key: Option<&str>, rows: &[&str]) -> NewBlock {
    let mut block = NewBlock::new(key.map(str::to_owned));
    rows.iter().for_each(|row| block.push(row));
    block
}

/// A block of so many items.
fn items(count: u64) -> NewBlock {
    let mut block = NewBlock::new(None);
    (0..count).for_each(|no| block.push(&no.to_string()));
    block
}

async fn append(harness: &Harness, task: TaskId, block: &NewBlock) -> Result<Appended, AppendError> {
    harness.store.append_items(task, block, &write(), NOW).await
}

async fn appended(harness: &Harness, task: TaskId, count: u64) -> Appended {
    append(harness, task, &items(count)).await.unwrap()
}

async fn running(harness: &Harness, count: u64) -> ClaimedShard {
    let shard = harness.queued_as(&open()).await;
    if count > 0 {
        appended(harness, shard.task, count).await;
    }
    let session = harness.session().await;
    harness.claimed(shard, Epoch(0), session).await
}

fn refusal(outcome: Result<Appended, AppendError>) -> AppendRefusal {
    match outcome {
        Err(AppendError::Refused(refusal)) => refusal,
        other => panic!("{other:?} is no refusal"),
    }
}

pub async fn an_open_task_begins_empty_and_grows_by_what_is_appended(harness: Harness) {
    let run = running(&harness, 0).await;
    let task = run.shard.task;
    let view = harness.view(task).await;
    assert_eq!((view.total, view.intake), (ItemCount(0), Some(Intake::Open)));
    let before = harness.store.control(run.shard).await.unwrap();
    let one = appended(&harness, task, 3).await;
    assert_eq!((one.first, one.items, one.total), (ItemIndex(0), 3, ItemCount(3)));
    let two = appended(&harness, task, 2).await;
    assert_eq!((two.first, two.total), (ItemIndex(3), ItemCount(5)));
    let control = harness.store.control(run.shard).await.unwrap();
    let supply = Supply {
        end: ItemIndex(5),
        is_sealed: false,
    };
    assert_eq!(control.supply, Some(supply), "its owner hears of it");
    assert_eq!(control.rev, before.rev + 2);
    assert_eq!(control.shared.items, ItemCount(5));
    // A checkpoint of a run that knew less takes nothing back.
    harness.stored(at(&run, 1, 2)).await;
    let shard = &harness.view(task).await.shards[0];
    assert_eq!(
        (shard.end, shard.range_end, shard.watermark),
        (ItemIndex(5), ItemIndex(5), ItemIndex(2))
    );
    let fixed = harness.running(4).await;
    assert_eq!(harness.store.control(fixed.shard).await.unwrap().supply, None);
}

pub async fn a_block_is_appended_once_a_key_however_often_it_is_sent(harness: Harness) {
    let task = running(&harness, 1).await.shard.task;
    let sent = block(Some("k1"), &["{\"a\":1}", "2"]);
    let first = append(&harness, task, &sent).await.unwrap();
    assert!(!first.is_repeat);
    appended(&harness, task, 1).await;
    let again = append(&harness, task, &sent).await.unwrap();
    assert_eq!(
        (again.first, again.items, again.is_repeat),
        (first.first, 2, true)
    );
    assert_eq!(again.total, ItemCount(4), "how long it is now");
    let other = append(&harness, task, &block(Some("k1"), &["{\"a\":1}"])).await;
    assert_eq!(other, Err(AppendError::KeyReused(task)));
    let another = harness.created(&open()).await.id;
    let same = append(&harness, another, &sent).await.unwrap();
    assert!(!same.is_repeat, "a key is of its task");
    let dry = Write {
        dry_run: true,
        ..write()
    };
    let tried = harness
        .store
        .append_items(task, &items(5), &dry, NOW)
        .await
        .unwrap();
    assert_eq!(tried.first, ItemIndex(4));
    assert_eq!(
        harness.view(task).await.total,
        ItemCount(4),
        "a dry run keeps nothing"
    );
    let none = append(&harness, TaskId(i64::MAX), &items(1)).await;
    assert_eq!(none, Err(AppendError::NotFound(TaskId(i64::MAX))));
}

pub async fn a_sealed_task_takes_no_more_and_a_fixed_one_none(harness: Harness) {
    let run = running(&harness, 2).await;
    let task = run.shard.task;
    let sent = block(Some("k"), &["1"]);
    let first = append(&harness, task, &sent).await.unwrap();
    let view = harness.command(task, TaskCommand::Seal).await;
    assert_eq!(
        (view.status, view.intake),
        (Status::Running, Some(Intake::Sealed))
    );
    assert!(
        harness
            .store
            .control(run.shard)
            .await
            .unwrap()
            .supply
            .unwrap()
            .is_sealed
    );
    assert_eq!(
        refusal(append(&harness, task, &items(1)).await),
        AppendRefusal::Sealed(task)
    );
    let again = append(&harness, task, &sent).await.unwrap();
    assert_eq!(
        (again.first, again.is_repeat),
        (first.first, true),
        "what was acknowledged stays so"
    );
    let fixed = harness.running(4).await.shard.task;
    assert_eq!(
        refusal(append(&harness, fixed, &items(1)).await),
        AppendRefusal::NotOpen(fixed)
    );
    let refused = harness
        .store
        .command(fixed, &TaskCommand::Seal, &write(), NOW)
        .await;
    let not_open = CommandError::Refused(CommandRefusal::NotOpen(fixed));
    assert_eq!(refused.unwrap_err(), not_open);
    let cancelled = running(&harness, 2).await.shard.task;
    harness.command(cancelled, TaskCommand::Cancel).await;
    assert!(matches!(
        refusal(append(&harness, cancelled, &items(1)).await),
        AppendRefusal::Status(_)
    ));
}

pub async fn a_run_that_did_not_know_the_last_item_gives_its_shard_back(harness: Harness) {
    let run = running(&harness, 2).await;
    let task = run.shard.task;
    appended(&harness, task, 3).await;
    harness.command(task, TaskCommand::Seal).await;
    // It settled what it knew.
    harness.stored(closing(&run, 1, 2, RunClose::Done)).await;
    let view = harness.view(task).await;
    assert_eq!(
        (view.status, view.shards[0].state),
        (Status::Queued, ShardState::Idle)
    );
    let open = running(&harness, 2).await;
    harness.stored(closing(&open, 1, 2, RunClose::Done)).await;
    let view = harness.view(open.shard.task).await;
    assert_eq!(view.status, Status::Queued, "more may come");
}

pub async fn a_sealed_task_finishes_once_all_is_settled(harness: Harness) {
    let run = running(&harness, 2).await;
    let task = run.shard.task;
    appended(&harness, task, 3).await;
    harness.stored(at(&run, 1, 4)).await;
    harness.command(task, TaskCommand::Seal).await;
    harness.stored(closing(&run, 2, 5, RunClose::Done)).await;
    let view = harness.view(task).await;
    assert_eq!(
        (view.status, view.result, view.counters.succeeded),
        (Status::Finished, Some(TaskResult::Succeeded), 5)
    );
    assert!(matches!(
        append(&harness, task, &items(1)).await,
        Err(AppendError::Refused(AppendRefusal::Sealed(_)))
    ));
}

pub async fn a_seal_finishes_what_rests_and_has_nothing_left(harness: Harness) {
    let run = running(&harness, 2).await;
    let task = run.shard.task;
    harness.stored(closing(&run, 1, 2, RunClose::Released)).await;
    let view = harness.command(task, TaskCommand::Seal).await;
    assert_eq!(
        (view.status, view.result),
        (Status::Finished, Some(TaskResult::Succeeded))
    );
    let left = running(&harness, 2).await;
    harness.stored(closing(&left, 1, 1, RunClose::Released)).await;
    let view = harness.command(left.shard.task, TaskCommand::Seal).await;
    assert_eq!(view.status, Status::Queued, "an item is left");
    let created = harness.created(&open()).await.id;
    let view = harness.command(created, TaskCommand::Seal).await;
    assert_eq!(view.status, Status::Created, "nobody started it");
    harness.command(created, TaskCommand::Start).await;
    let session = harness.session().await;
    let shard = ShardId { task: created, no: 0 };
    let empty = harness.claimed(shard, Epoch(0), session).await;
    harness.stored(closing(&empty, 1, 0, RunClose::Done)).await;
    assert_eq!(harness.view(created).await.status, Status::Finished);
}

pub async fn a_task_that_is_finished_early_takes_no_more(harness: Harness) {
    let run = running(&harness, 10).await;
    let task = run.shard.task;
    harness
        .command(task, TaskCommand::Finish { end: ItemIndex(4) })
        .await;
    assert_eq!(
        refusal(append(&harness, task, &items(1)).await),
        AppendRefusal::Sealed(task)
    );
    // The business may say so, too, when nothing is left that it would cut off.
    let run = running(&harness, 3).await;
    let task = run.shard.task;
    let finished = ShardCheckpoint {
        finish_at: Some(ItemIndex(3)),
        ..at(&run, 1, 3)
    };
    harness.stored(finished).await;
    assert_eq!(
        refusal(append(&harness, task, &items(1)).await),
        AppendRefusal::Sealed(task)
    );
    harness.stored(closing(&run, 2, 3, RunClose::Done)).await;
    assert_eq!(harness.view(task).await.status, Status::Finished);
    // What was appended before it was heard is left out.
    let run = running(&harness, 3).await;
    let task = run.shard.task;
    appended(&harness, task, 2).await;
    let finished = ShardCheckpoint {
        finish_at: Some(ItemIndex(3)),
        ..closing(&run, 1, 3, RunClose::Done)
    };
    harness.stored(finished).await;
    let view = harness.view(task).await;
    assert_eq!(
        (view.status, view.result),
        (Status::Finished, Some(TaskResult::Early))
    );
    assert_eq!(view.counters.excluded, 2);
}

pub async fn items_are_read_by_index_from_their_blocks(harness: Harness) {
    let task = running(&harness, 0).await.shard.task;
    for rows in [&["0", "1"][..], &["2"], &["3", "4", "5"]] {
        append(&harness, task, &block(None, rows)).await.unwrap();
    }
    let read = async |at, bytes| {
        let found = harness.store.blocks(task, ItemIndex(at), bytes).await.unwrap();
        found
            .into_iter()
            .map(|block| (block.first.0, block.rows))
            .collect::<Vec<_>>()
    };
    assert_eq!(read(1, 1).await, [(0, "0\n1\n".to_owned())]);
    let all = [(2, "2\n".to_owned()), (3, "3\n4\n5\n".to_owned())];
    assert_eq!(read(2, 1000).await, all);
    assert_eq!(read(5, 1000).await, [(3, "3\n4\n5\n".to_owned())]);
    assert_eq!(read(6, 1000).await, []);
}

pub async fn of_many_writers_each_block_has_a_place_of_its_own(harness: Harness) {
    let task = running(&harness, 0).await.shard.task;
    let store = harness.store.clone();
    let writers = (0..8).map(|writer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut places = Vec::new();
            for no in 0..10 {
                let sent = block(Some(&format!("{writer}-{no}")), &["1", "2", "3"]);
                let added = store.append_items(task, &sent, &write(), NOW).await.unwrap();
                let again = store.append_items(task, &sent, &write(), NOW).await.unwrap();
                assert_eq!((added.first, again.is_repeat), (again.first, true));
                places.push(added.first.0);
            }
            places
        })
    });
    let mut places = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        places.extend(writer.await.unwrap());
    }
    places.sort_unstable();
    assert_eq!(places, (0..80).map(|no| no * 3).collect::<Vec<u64>>());
    assert_eq!(harness.view(task).await.total, ItemCount(240));
}

pub async fn what_is_settled_is_forgotten_and_failures_stay(harness: Harness) {
    let run = running(&harness, 0).await;
    let task = run.shard.task;
    for _ in 0..4 {
        appended(&harness, task, 2).await;
    }
    harness.stored(with(at(&run, 1, 6), vec![failed(3, "BAD")])).await;
    let sweep = async |before: i64| {
        harness
            .store
            .sweep(Sweep::Appended, WallMs(before))
            .await
            .unwrap()
    };
    assert_eq!(sweep(NOW.0).await, 0, "they are too young");
    assert!(sweep(NOW.0 + 1).await > 0);
    let is_there = async |at| {
        !harness
            .store
            .blocks(task, ItemIndex(at), 1)
            .await
            .unwrap()
            .is_empty()
    };
    let there = [
        is_there(0).await,
        is_there(3).await,
        is_there(5).await,
        is_there(6).await,
    ];
    assert_eq!(
        there,
        [false, true, false, true],
        "the one that failed, and what is left"
    );
    assert_eq!(sweep(NOW.0 + 1).await, 0);
    appended(&harness, task, 1).await;
    assert_eq!(harness.view(task).await.total, ItemCount(9), "its places stay");
}

pub async fn a_key_outlasts_the_rows_that_it_was_used_for(harness: Harness) {
    let run = running(&harness, 0).await;
    let task = run.shard.task;
    let sent = block(Some("monday"), &["1", "2"]);
    let first = append(&harness, task, &sent).await.unwrap();
    appended(&harness, task, 2).await;
    let waiting = async || harness.store.bytes_waiting(task).await.unwrap();
    assert_eq!(waiting().await, 8);
    harness.stored(at(&run, 1, 3)).await;
    assert_eq!(waiting().await, 4, "a block waits until its last item is settled");
    let sweep = async |what: Sweep| harness.store.sweep(what, WallMs(NOW.0 + 1)).await.unwrap();
    assert_eq!(sweep(Sweep::AppendKeys).await, 0, "its rows are there");
    assert_eq!(sweep(Sweep::Appended).await, 1);
    assert_eq!(sweep(Sweep::Appended).await, 0, "nothing is looked at twice");
    let blocks = async |at| {
        harness
            .store
            .blocks(task, ItemIndex(at), usize::MAX)
            .await
            .unwrap()
    };
    assert!(blocks(0).await.is_empty() && blocks(1).await.is_empty());
    assert_eq!(blocks(2).await.len(), 1, "an item of it is open");
    let again = append(&harness, task, &sent).await.unwrap();
    assert_eq!((again.first, again.is_repeat), (first.first, true));
    let other = append(&harness, task, &block(Some("monday"), &["3"])).await;
    assert!(matches!(other, Err(AppendError::KeyReused(_))), "{other:?}");
    assert_eq!(sweep(Sweep::AppendKeys).await, 1);
    assert_eq!(sweep(Sweep::AppendKeys).await, 0);
    let anew = append(&harness, task, &sent).await.unwrap();
    assert_eq!((anew.first, anew.is_repeat), (ItemIndex(4), false));
    assert_eq!(blocks(2).await.len(), 2);
}

pub async fn a_backlog_has_a_bound(harness: Harness) {
    let task = harness.created(&open()).await.id;
    let long = format!("\"{}\"", "x".repeat(APPEND_BYTES_MAX as usize - 3));
    let too_long = format!("\"{}\"", "x".repeat(APPEND_BYTES_MAX as usize));
    assert!(matches!(
        refusal(append(&harness, task, &block(None, &[&too_long])).await),
        AppendRefusal::Size { .. }
    ));
    assert!(matches!(
        refusal(append(&harness, task, &NewBlock::new(None)).await),
        AppendRefusal::Size { items: 0, .. }
    ));
    let one = append(&harness, task, &block(None, &[&long])).await;
    assert_eq!(one.unwrap().first, ItemIndex(0), "as long as may be");
    let run = running(&harness, 0).await;
    let task = run.shard.task;
    let many = items(APPEND_ITEMS_MAX);
    for _ in 0..BACKLOG_ITEMS_MAX / APPEND_ITEMS_MAX {
        append(&harness, task, &many).await.unwrap();
    }
    let full = refusal(append(&harness, task, &items(1)).await);
    assert!(matches!(full, AppendRefusal::Full { items, .. } if items == BACKLOG_ITEMS_MAX + 1));
    harness.stored(at(&run, 1, 1)).await;
    appended(&harness, task, 1).await;
    assert!(
        append(&harness, task, &items(1)).await.is_err(),
        "one was settled, one was appended"
    );
}
