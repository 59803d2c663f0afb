//! The rows of days. A shard's day grows under the shard's lock, with the checkpoint that settles the items; a business's
//! day under the lock of a task that is deleted.

use std::collections::BTreeMap;

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Alias, Expr, ExprTrait as _, Func, OnConflict};
use sea_orm::{ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::sql::entity::{business_day, shard_day, shard_head, task};
use crate::sql::{Store, Transaction, error, words};
use windrow_core::ids::WallMs;
use windrow_core::stats::daily::{Settled, TaskCounts, Totals, UtcDay};
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::ShardCheckpoint;
use windrow_engine::ports::tasks::upkeep::SWEEP_MAX;

/// What several checkpoints settled, by the key of their rows: one statement for all of them.
#[derive(Debug, Default)]
pub(crate) struct Gains(BTreeMap<(i64, i32, UtcDay), Settled>);

impl Gains {
    /// Takes in what a checkpoint settles beyond `row`, the shard as it was.
    pub(crate) fn take(&mut self, checkpoint: &ShardCheckpoint, row: &shard_head::Model) {
        let gain = Settled::of(&checkpoint.counters).since(Settled::of(&words::counters(row)));
        if gain == Settled::default() {
            return;
        }
        let key = (row.task_id, row.shard_no, UtcDay::of(checkpoint.now));
        let sum = self.0.entry(key).or_default();
        *sum = sum.plus(gain);
    }

    /// Adds them to their days.
    pub(crate) async fn write(self, transaction: &Transaction) -> Result<(), StoreError> {
        use shard_day::Column as C;
        if self.0.is_empty() {
            return Ok(());
        }
        let row = |((task, shard, day), gain): ((i64, i32, UtcDay), Settled)| shard_day::ActiveModel {
            task_id: Set(task),
            shard_no: Set(shard),
            day: Set(day.0),
            succeeded: Set(gain.succeeded.cast_signed()),
            skipped: Set(gain.skipped.cast_signed()),
            abandoned: Set(gain.abandoned.cast_signed()),
        };
        let sums = [C::Succeeded, C::Skipped, C::Abandoned];
        let grown = OnConflict::columns([C::TaskId, C::ShardNo, C::Day])
            .values(sums.map(|column| (column, sum(transaction, column))))
            .to_owned();
        shard_day::Entity::insert_many(self.0.into_iter().map(row))
            .on_conflict(grown)
            .exec_without_returning(transaction)
            .await
            .map_err(error)?;
        Ok(())
    }
}

/// What a column becomes where its row is there: its value and the one that was to be inserted.
fn sum<C: ColumnTrait>(transaction: &Transaction, column: C) -> Expr {
    let inserted = match transaction.get_database_backend() {
        DbBackend::MySql => Func::cust("VALUES").arg(Expr::col(column)).into(),
        _ => Expr::col((Alias::new("excluded"), column)),
    };
    column.into_expr().add(inserted)
}

/// Moves what a task did to its business's days: it is about to be deleted, and its lock is held.
pub(crate) async fn fold(
    transaction: &Transaction,
    task: &task::Model,
    business: &str,
) -> Result<(), StoreError> {
    use shard_day::Column as C;
    let rows = shard_day::Entity::find()
        .filter(C::TaskId.eq(task.id))
        .all(transaction)
        .await
        .map_err(error)?;
    let mut days = ends(task)?;
    for row in &rows {
        let day = days.entry(UtcDay(row.day)).or_default();
        day.items = day.items.plus(settled(row.succeeded, row.skipped, row.abandoned));
    }
    add(transaction, business, days).await?;
    let gone = shard_day::Entity::delete_many().filter(C::TaskId.eq(task.id));
    gone.exec(transaction).await.map_err(error)?;
    Ok(())
}

/// The days on which a task was made and ended.
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

/// Counts so many tasks that ended with this status.
pub(super) fn ended(counts: &mut TaskCounts, status: Status, tasks: u64) {
    match status {
        Status::Finished => counts.finished += tasks,
        Status::Cancelled => counts.cancelled += tasks,
        // Not over.
        _ => {}
    }
}

/// The settled items of a row.
pub(super) fn settled(succeeded: i64, skipped: i64, abandoned: i64) -> Settled {
    Settled {
        succeeded: succeeded.cast_unsigned(),
        skipped: skipped.cast_unsigned(),
        abandoned: abandoned.cast_unsigned(),
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
        abandoned: Set(totals.items.abandoned.cast_signed()),
    };
    let sums = [
        C::Created,
        C::Finished,
        C::Cancelled,
        C::Succeeded,
        C::Skipped,
        C::Abandoned,
    ];
    let grown = OnConflict::columns([C::Business, C::Day])
        .values(sums.map(|column| (column, sum(transaction, column))))
        .to_owned();
    business_day::Entity::insert_many(days.into_iter().map(row))
        .on_conflict(grown)
        .exec_without_returning(transaction)
        .await
        .map_err(error)?;
    Ok(())
}

/// Forgets days of deleted tasks that were over before a time, some at a time.
pub(crate) async fn expire(store: &Store, before: WallMs) -> Result<u64, StoreError> {
    use business_day::Column as C;
    let oldest: Option<i64> = business_day::Entity::find()
        .select_only()
        .column(C::Day)
        .filter(C::Day.lt(UtcDay::of(before).0))
        .order_by_asc(C::Day)
        .into_tuple()
        .one(&store.readers)
        .await
        .map_err(error)?;
    let Some(day) = oldest else { return Ok(0) };
    let gone = business_day::Entity::delete_many().filter(C::Day.eq(day));
    gone.exec(&store.writer).await.map_err(error)?;
    // There may be another day.
    Ok(SWEEP_MAX)
}
