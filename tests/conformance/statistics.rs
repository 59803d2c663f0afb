//! Facts about what was done in each day: the days of a shard sum up to its counters, whatever happens.

use windrow_core::ids::{ClaimId, ShardId, TaskId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::stats::daily::{Cells, Settled, TaskCounts, Totals, UtcDay, grouped};
use windrow_core::task::lifecycle::Status;
use windrow_core::task::spec::TaskSpec;
use windrow_engine::ports::ownership::run_store::{CheckpointAck, RunClose, ShardCheckpoint};
use windrow_engine::ports::tasks::statistics::{Period, ShardDay, TaskTotals};
use windrow_engine::ports::tasks::store::{NewTask, TaskCommand, Write};
use windrow_engine::ports::tasks::upkeep::Sweep;

use crate::fixture::{BUSINESS, Harness, NOW, at, closing, failed, task, with, write};

/// The day of `NOW`, and one in which nothing else happens.
fn today() -> UtcDay {
    UtcDay::of(NOW)
}

fn tomorrow() -> WallMs {
    today().next().start()
}

fn later(checkpoint: ShardCheckpoint) -> ShardCheckpoint {
    ShardCheckpoint {
        now: tomorrow(),
        ..checkpoint
    }
}

fn settled(succeeded: u64, skipped: u64, failed: u64) -> Settled {
    Settled {
        succeeded,
        skipped,
        failed,
    }
}

fn tasks(created: u64, finished: u64, cancelled: u64) -> TaskCounts {
    TaskCounts {
        created,
        finished,
        cancelled,
    }
}

/// Both days, of all businesses.
fn both_days() -> Period {
    Period {
        from: today(),
        until: today().next().next(),
        business: None,
    }
}

async fn days(harness: &Harness, shard: ShardId) -> Vec<(UtcDay, Settled)> {
    let days = harness.store.shard_days(shard.task).await.unwrap();
    let own = days.into_iter().filter(|day| day.shard == shard);
    own.map(|day| (day.day, day.items)).collect()
}

async fn by_day(harness: &Harness) -> Vec<(UtcDay, Totals)> {
    let cells = harness.store.cells(&both_days()).await.unwrap();
    grouped(&cells, |_, day| day).into_iter().collect()
}

pub async fn the_days_of_a_shard_sum_up_to_its_counters(harness: Harness) {
    let run = harness.running(100).await;
    assert_eq!(days(&harness, run.shard).await, [], "nothing was settled");
    harness.stored(at(&run, 1, 10)).await;
    harness
        .stored(with(at(&run, 2, 30), vec![failed(12, "BAD")]))
        .await;
    let mut skipping = later(with(at(&run, 3, 50), vec![]));
    (skipping.counters.failed, skipping.counters.skipped) = (1, 7);
    skipping.counters.succeeded = 42;
    harness.stored(skipping.clone()).await;
    let both = [(today(), settled(29, 0, 1)), (today().next(), settled(13, 7, 0))];
    assert_eq!(days(&harness, run.shard).await, both);

    let session = harness.session().await;
    harness.store.fence_all_but(session).await.unwrap();
    let next = harness.claimed(run.shard, run.epoch, session).await;
    assert_eq!(days(&harness, run.shard).await, both, "a claim settles nothing");
    let mut last = later(closing(&next, 1, 100, RunClose::Done));
    (last.counters.failed, last.counters.skipped) = (1, 7);
    last.counters.succeeded = 92;
    harness.stored(last).await;
    let ended = [(today(), settled(29, 0, 1)), (today().next(), settled(63, 7, 0))];
    assert_eq!(days(&harness, run.shard).await, ended);
    let view = harness.view(run.shard.task).await;
    assert_eq!(Settled::of(&view.counters), settled(92, 7, 1));
}

pub async fn what_is_refused_or_repeated_is_counted_once_or_never(harness: Harness) {
    let run = harness.running(100).await;
    for _ in 0..3 {
        harness.stored(at(&run, 1, 10)).await;
    }
    harness.stored(at(&run, 2, 10)).await;
    let stranger = ShardCheckpoint {
        claim: ClaimId(uuid::Uuid::new_v4()),
        ..at(&run, 3, 60)
    };
    for refused in [stranger, at(&run, 2, 70), at(&run, 1, 80)] {
        harness.write(refused).await;
    }
    let session = harness.session().await;
    harness.store.fence_all_but(session).await.unwrap();
    harness.claimed(run.shard, run.epoch, session).await;
    assert_eq!(harness.write(at(&run, 4, 90)).await, CheckpointAck::Fenced);
    assert_eq!(days(&harness, run.shard).await, [(today(), settled(10, 0, 0))]);
}

pub async fn a_clock_that_is_behind_counts_for_the_later_day(harness: Harness) {
    let run = harness.running(100).await;
    harness.stored(at(&run, 1, 10)).await;
    harness.stored(later(at(&run, 2, 10))).await;
    harness.stored(at(&run, 3, 15)).await;
    assert_eq!(
        days(&harness, run.shard).await,
        [(today(), settled(15, 0, 0))],
        "nothing was settled later"
    );
    harness.stored(later(at(&run, 4, 20))).await;
    harness.stored(at(&run, 5, 40)).await;
    let both = [(today(), settled(15, 0, 0)), (today().next(), settled(25, 0, 0))];
    assert_eq!(days(&harness, run.shard).await, both);
}

pub async fn a_batch_counts_each_of_its_shards(harness: Harness) {
    let (one, two) = (harness.running(50).await, harness.running(50).await);
    harness.stored(at(&one, 1, 5)).await;
    let gone = ShardCheckpoint {
        shard: ShardId { no: 9, ..two.shard },
        ..at(&two, 1, 5)
    };
    let batch = [later(at(&two, 1, 20)), gone, at(&one, 2, 7), at(&one, 3, 9)];
    let acks = harness.store.checkpoint(&batch).await.unwrap();
    use CheckpointAck::{Fenced, Stored};
    assert_eq!(acks, [Stored, Fenced, Stored, Stored]);
    assert_eq!(days(&harness, one.shard).await, [(today(), settled(9, 0, 0))]);
    assert_eq!(
        days(&harness, two.shard).await,
        [(today().next(), settled(20, 0, 0))]
    );
}

pub async fn days_businesses_and_tasks_are_told_apart(harness: Harness) {
    let other = "push";
    harness.store.ensure_business(other, &write(), NOW).await.unwrap();
    let run = harness.running(10).await;
    harness.stored(at(&run, 1, 4)).await;
    harness.stored(later(closing(&run, 2, 10, RunClose::Done))).await;
    let theirs = NewTask {
        business: other.to_owned(),
        spec: TaskSpec {
            name: Some("theirs".to_owned()),
            ..TaskSpec::default()
        },
        ..task(10)
    };
    let shard = harness.queued_as(&theirs).await;
    let session = harness.session().await;
    let second = harness.claimed(shard, windrow_core::ids::Epoch(0), session).await;
    harness.stored(at(&second, 1, 3)).await;
    let idle = harness.created(&task(10)).await;
    harness.command(idle.id, TaskCommand::Cancel).await;

    let cells = harness.store.cells(&both_days()).await.unwrap();
    let expected: Cells = [
        (
            (BUSINESS.to_owned(), today()),
            Totals {
                tasks: tasks(2, 0, 1),
                items: settled(4, 0, 0),
            },
        ),
        (
            (BUSINESS.to_owned(), today().next()),
            Totals {
                tasks: tasks(0, 1, 0),
                items: settled(6, 0, 0),
            },
        ),
        (
            (other.to_owned(), today()),
            Totals {
                tasks: tasks(1, 0, 0),
                items: settled(3, 0, 0),
            },
        ),
    ]
    .into();
    assert_eq!(cells, expected);

    let of_other = Period {
        business: Some(other.to_owned()),
        ..both_days()
    };
    let only = harness.store.cells(&of_other).await.unwrap();
    assert_eq!(
        only.keys()
            .map(|(business, _)| business.as_str())
            .collect::<Vec<_>>(),
        [other]
    );
    let first_day = Period {
        until: today().next(),
        ..both_days()
    };
    assert_eq!(harness.store.cells(&first_day).await.unwrap().len(), 2);
    let nobody = Period {
        business: Some("nobody".to_owned()),
        ..both_days()
    };
    assert_eq!(harness.store.cells(&nobody).await.unwrap(), Cells::new());

    let totals = |task: TaskId, name: Option<&str>, business: &str, status, items| TaskTotals {
        task,
        name: name.map(str::to_owned),
        business: business.to_owned(),
        status,
        items,
    };
    let newest = totals(
        shard.task,
        Some("theirs"),
        other,
        Status::Running,
        settled(3, 0, 0),
    );
    let oldest = totals(
        run.shard.task,
        None,
        BUSINESS,
        Status::Finished,
        settled(10, 0, 0),
    );
    let page = |period: Period, after, limit| {
        let store = &harness.store;
        async move { store.task_totals(&period, after, limit).await.unwrap() }
    };
    assert_eq!(
        page(both_days(), None, 10).await,
        [newest.clone(), oldest.clone()]
    );
    assert_eq!(page(both_days(), None, 1).await, std::slice::from_ref(&newest));
    assert_eq!(page(both_days(), Some(shard.task), 10).await, [oldest]);
    assert_eq!(page(of_other, None, 10).await, [newest]);
    let second_day = Period {
        from: today().next(),
        ..both_days()
    };
    let items: Vec<Settled> = page(second_day, None, 10)
        .await
        .into_iter()
        .map(|it| it.items)
        .collect();
    assert_eq!(items, [settled(6, 0, 0)]);
}

pub async fn a_day_whose_counters_fell_again_is_none(harness: Harness) {
    let run = harness.running(10).await;
    harness.stored(at(&run, 1, 4)).await;
    let mut fallen = at(&run, 2, 4);
    fallen.counters = Counters::default();
    harness.stored(fallen).await;
    assert_eq!(days(&harness, run.shard).await, []);
}

pub async fn a_deleted_task_leaves_its_days_to_its_business(harness: Harness) {
    for _ in 0..2 {
        let run = harness.running(10).await;
        harness.stored(at(&run, 1, 4)).await;
        harness.stored(later(closing(&run, 2, 10, RunClose::Done))).await;
        let before = by_day(&harness).await;
        let dry = Write {
            dry_run: true,
            ..write()
        };
        harness.store.delete(run.shard.task, &dry, NOW).await.unwrap();
        assert_eq!(days(&harness, run.shard).await.len(), 2, "a dry run keeps them");
        harness.store.delete(run.shard.task, &write(), NOW).await.unwrap();
        assert_eq!(
            by_day(&harness).await,
            before,
            "nothing is lost, nothing counted twice"
        );
        assert_eq!(
            harness.store.shard_days(run.shard.task).await.unwrap(),
            Vec::<ShardDay>::new()
        );
        assert_eq!(
            harness.store.task_totals(&both_days(), None, 9).await.unwrap(),
            []
        );
    }
    let totals: Vec<Totals> = by_day(&harness)
        .await
        .into_iter()
        .map(|(_, totals)| totals)
        .collect();
    let first = Totals {
        tasks: tasks(2, 0, 0),
        items: settled(8, 0, 0),
    };
    let second = Totals {
        tasks: tasks(0, 2, 0),
        items: settled(12, 0, 0),
    };
    assert_eq!(totals, [first, second]);

    let sweep =
        async |before: WallMs| while harness.store.sweep(Sweep::Statistics, before).await.unwrap() > 0 {};
    sweep(WallMs(tomorrow().0 - 1)).await;
    assert_eq!(by_day(&harness).await.len(), 2, "a day is kept until it is over");
    sweep(tomorrow()).await;
    assert_eq!(by_day(&harness).await, [(today().next(), second)]);
}
