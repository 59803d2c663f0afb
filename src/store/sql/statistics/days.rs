//! Rows of days. A shard's day ends under the shard's lock, with the first checkpoint that settles something on a
//! later day. Until then it is the difference between the shard's counters and those at the start of the day, so that
//! most checkpoints write only their shard. A business's day grows under the lock of a task that is deleted.

use std::collections::BTreeMap;

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Alias, Expr, ExprTrait as _, Func, OnConflict};
use sea_orm::{ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, QueryFilter, QueryOrder};

use crate::sql::entity::{business_day, shard_day, shard_head, task};
use crate::sql::task::record;
use crate::sql::{Fetch, Pluck, Run, Store, Transaction, error, words};
use windrow_core::ids::{ShardId, TaskId, WallMs};
use windrow_core::stats::daily::{Settled, TaskCounts, Totals, UtcDay};
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::ShardCheckpoint;
use windrow_engine::ports::tasks::statistics::ShardDay;
use windrow_engine::ports::tasks::upkeep::SWEEP_MAX;

/// Returns the day that begins for a shard with a checkpoint: one that settles something on a later day than the
/// last. `row` is the shard before it. (With a clock that runs behind, nothing counts for an earlier day: it counts
/// for the later one.)
pub(crate) fn begun(checkpoint: &ShardCheckpoint, row: &shard_head::Model) -> Option<UtcDay> {
    let day = UtcDay::of(checkpoint.now);
    let settles = Settled::of(&checkpoint.counters) != counted(row);
    (settles && day.0 > row.day).then_some(day)
}

/// Completed days of shards: one statement for those of several checkpoints, and usually none.
#[derive(Debug, Default)]
pub(crate) struct OverDays(Vec<shard_day::ActiveModel>);

impl OverDays {
    /// Adds the day that a checkpoint ends, if it ends one.
    pub(crate) fn take(&mut self, checkpoint: &ShardCheckpoint, row: &shard_head::Model) {
        let items = of_last_day(row);
        if begun(checkpoint, row).is_none() || items == Settled::default() {
            return;
        }
        self.0.push(shard_day::ActiveModel {
            task_id: Set(row.task_id),
            shard_no: Set(row.shard_no),
            day: Set(row.day),
            succeeded: Set(items.succeeded.cast_signed()),
            skipped: Set(items.skipped.cast_signed()),
            failed: Set(items.failed.cast_signed()),
        });
    }

    /// Writes the days in one statement.
    pub(crate) async fn write(self, transaction: &Transaction) -> Result<(), StoreError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let written = shard_day::Entity::insert_many(self.0).exec_without_returning(transaction);
        written.await.map(drop).map_err(error)
    }
}

/// Returns all items that a shard has settled.
fn counted(row: &shard_head::Model) -> Settled {
    Settled::of(&words::counters(row))
}

/// Returns the items that a shard settled on the day it last settled any.
pub(super) fn of_last_day(row: &shard_head::Model) -> Settled {
    counted(row).since(settled(row.day_succeeded, row.day_skipped, row.day_failed))
}

/// Returns all days of a task's shards on which something was settled, by shard and day.
pub(crate) fn together(over: &[shard_day::Model], shards: &[shard_head::Model]) -> Vec<ShardDay> {
    let of = |(task, no): (i64, i32), day, items| ShardDay {
        shard: ShardId {
            task: TaskId(task),
            no: no.cast_unsigned(),
        },
        day: UtcDay(day),
        items,
    };
    let over = over.iter().map(|row| {
        let items = settled(row.succeeded, row.skipped, row.failed);
        of((row.task_id, row.shard_no), row.day, items)
    });
    let last = shards
        .iter()
        .map(|row| of((row.task_id, row.shard_no), row.day, of_last_day(row)));
    let mut days: Vec<ShardDay> = over.chain(last).collect();
    days.retain(|day| day.items != Settled::default());
    days.sort_unstable_by_key(|day| (day.shard, day.day));
    days
}

/// Returns the new value of a column whose row exists: its value plus the one to be inserted.
fn sum(transaction: &Transaction, column: business_day::Column) -> Expr {
    let inserted = match transaction.get_database_backend() {
        DbBackend::MySql => Func::cust("VALUES").arg(Expr::col(column)).into(),
        _ => Expr::col((Alias::new("excluded"), column)),
    };
    column.into_expr().add(inserted)
}

/// Moves a task's totals to the days of its business. The task is about to be deleted, and its lock is held.
pub(crate) async fn fold(
    transaction: &Transaction,
    task: &task::Model,
    business: &str,
) -> Result<(), StoreError> {
    use shard_day::Column as C;
    let rows = shard_day::Entity::find()
        .filter(C::TaskId.eq(task.id))
        .rows(transaction)
        .await?;
    let shards = record::shards(transaction, TaskId(task.id)).await?;
    let mut days = ends(task)?;
    for day in together(&rows, &shards) {
        let sum = days.entry(day.day).or_default();
        sum.items = sum.items.plus(day.items);
    }
    add(transaction, business, days).await?;
    let gone = shard_day::Entity::delete_many().filter(C::TaskId.eq(task.id));
    gone.run(transaction).await?;
    Ok(())
}

/// Returns the days on which a task was created and ended.
fn ends(task: &task::Model) -> Result<BTreeMap<UtcDay, Totals>, StoreError> {
    let mut days: BTreeMap<UtcDay, Totals> = BTreeMap::new();
    let day = |at: i64| UtcDay::of(WallMs(at));
    days.entry(day(task.created_at)).or_default().tasks.created += 1;
    if let Some(at) = task.finished_at {
        ended(
            &mut days.entry(day(at)).or_default().tasks,
            words::status(task)?,
            1,
        );
    }
    Ok(days)
}

/// Counts tasks that ended with this status.
pub(super) fn ended(counts: &mut TaskCounts, status: Status, tasks: u64) {
    match status {
        Status::Finished => counts.finished += tasks,
        Status::Cancelled => counts.cancelled += tasks,
        // The task has not ended.
        _ => {}
    }
}

/// Returns the settled items of a row.
pub(super) fn settled(succeeded: i64, skipped: i64, failed: i64) -> Settled {
    Settled {
        succeeded: succeeded.cast_unsigned(),
        skipped: skipped.cast_unsigned(),
        failed: failed.cast_unsigned(),
    }
}

async fn add(
    transaction: &Transaction,
    business: &str,
    days: BTreeMap<UtcDay, Totals>,
) -> Result<(), StoreError> {
    use business_day::Column as C;
    let row = |(day, totals): (UtcDay, Totals)| business_day::ActiveModel {
        business: Set(business.to_owned()),
        day: Set(day.0),
        created: Set(totals.tasks.created.cast_signed()),
        finished: Set(totals.tasks.finished.cast_signed()),
        cancelled: Set(totals.tasks.cancelled.cast_signed()),
        succeeded: Set(totals.items.succeeded.cast_signed()),
        skipped: Set(totals.items.skipped.cast_signed()),
        failed: Set(totals.items.failed.cast_signed()),
    };
    let sums = [
        C::Created,
        C::Finished,
        C::Cancelled,
        C::Succeeded,
        C::Skipped,
        C::Failed,
    ];
    let grown = OnConflict::columns([C::Business, C::Day])
        .values(sums.map(|column| (column, sum(transaction, column))))
        .to_owned();
    business_day::Entity::insert_many(days.into_iter().map(row))
        .on_conflict(grown)
        .run(transaction)
        .await?;
    Ok(())
}

/// Removes days of deleted tasks that were over before a time, one day per call.
pub(crate) async fn expire(store: &Store, before: WallMs) -> Result<u64, StoreError> {
    use business_day::Column as C;
    let oldest: Option<i64> = business_day::Entity::find()
        .filter(C::Day.lt(UtcDay::of(before).0))
        .order_by_asc(C::Day)
        .pluck_one([C::Day], &store.readers)
        .await?;
    let Some(day) = oldest else { return Ok(0) };
    let gone = business_day::Entity::delete_many().filter(C::Day.eq(day));
    gone.run(&store.writer).await?;
    // Another day may be left.
    Ok(SWEEP_MAX)
}
