//! Expiry of data log lines, a bounded number at a time, with a count of the dropped ones.

use std::collections::BTreeMap;
use windrow_words::store as say;

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait as _, OnConflict};
use sea_orm::{ColumnTrait, DerivePartialModel, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect};

use crate::sql::entity::{data_log, data_log_drop};
use crate::sql::{Fetch, Pluck, Run, Store, Transaction, damaged};
use windrow_core::ids::TaskId;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::handling::data_log::{DropReason, EXPIRE_MAX, LogRetention};
use windrow_engine::ports::handling::handler::LogLevel;

/// Implements [`windrow_engine::ports::handling::data_log::DataLog::expire`]: first lines that are too old, then
/// excess lines of the fullest task.
pub(crate) async fn expire(store: &Store, retention: LogRetention) -> Result<u64, StoreError> {
    let old = drop_old(store, retention).await?;
    if old > 0 {
        return Ok(old);
    }
    match fullest(store, retention.max_per_task).await? {
        Some((task, excess)) => drop_excess(store, task, Ord::min(excess, EXPIRE_MAX)).await,
        None => Ok(0),
    }
}

/// Columns of a line that decide when it expires.
#[derive(DerivePartialModel)]
#[sea_orm(entity = "data_log::Entity")]
struct Line {
    id: i64,
    task_id: i64,
    at_ms: i64,
}

/// Drops old lines among those with the lowest numbers. Numbers grow with time, except for the seconds that a line
/// may wait to be written.
async fn drop_old(store: &Store, retention: LogRetention) -> Result<u64, StoreError> {
    let transaction = store.write().await?;
    let oldest: Vec<Line> = data_log::Entity::find()
        .order_by_asc(data_log::Column::Id)
        .limit(EXPIRE_MAX)
        // Another node's maintenance may be deleting the same lines.
        .lock_exclusive()
        .parts(&transaction)
        .await?;
    let old = oldest
        .into_iter()
        .filter(|line| line.at_ms < retention.keep_from.0);
    let old: Vec<Line> = old.collect();
    let mut by_task: BTreeMap<i64, u64> = BTreeMap::new();
    for line in &old {
        *by_task.entry(line.task_id).or_default() += 1;
    }
    delete(&transaction, old.iter().map(|line| line.id).collect()).await?;
    for (task, lines) in by_task {
        count(&transaction, task, DropReason::Age, lines).await?;
    }
    transaction.commit().await?;
    Ok(old.len() as u64)
}

/// Returns the task with the most lines above the limit, and the excess. Reads only the index and holds no lock;
/// skips even that while all tasks together have fewer lines than one task may have.
async fn fullest(store: &Store, max: u64) -> Result<Option<(i64, u64)>, StoreError> {
    let at_most = (number(store, Order::Desc).await? - number(store, Order::Asc).await? + 1).cast_unsigned();
    if at_most <= max {
        return Ok(None);
    }
    let lines = data_log::Column::Id.count();
    let most: Option<(i64, i64)> = data_log::Entity::find()
        .select_only()
        .column(data_log::Column::TaskId)
        .column_as(lines.clone(), "n")
        .group_by(data_log::Column::TaskId)
        .having(lines.clone().gt(Ord::min(max, i64::MAX as u64).cast_signed()))
        .order_by_desc(lines)
        .into_tuple()
        .row(&store.readers)
        .await?;
    Ok(most.map(|(task, n)| (task, n.cast_unsigned() - max)))
}

/// Returns the lowest or the highest number of a line, or 0 if there are no lines.
async fn number(store: &Store, order: Order) -> Result<i64, StoreError> {
    let found = data_log::Entity::find()
        .order_by(data_log::Column::Id, order)
        .pluck_one([data_log::Column::Id], &store.readers)
        .await?;
    Ok(found.unwrap_or(0))
}

async fn drop_excess(store: &Store, task: i64, excess: u64) -> Result<u64, StoreError> {
    let transaction = store.write().await?;
    let mut ids = oldest_of(&transaction, task, excess, true).await?;
    let rest = excess - ids.len() as u64;
    if rest > 0 {
        ids.extend(oldest_of(&transaction, task, rest, false).await?);
    }
    let dropped = ids.len() as u64;
    delete(&transaction, ids).await?;
    count(&transaction, task, DropReason::MaxPerTask, dropped).await?;
    transaction.commit().await?;
    Ok(dropped)
}

/// Returns the oldest lines of a task, either below `warn` or at `warn` and above.
async fn oldest_of(
    transaction: &Transaction,
    task: i64,
    lines: u64,
    is_minor: bool,
) -> Result<Vec<i64>, StoreError> {
    let warn = LogLevel::Warn as i32;
    let level = data_log::Column::Level;
    data_log::Entity::find()
        .filter(data_log::Column::TaskId.eq(task))
        .filter(if is_minor { level.lt(warn) } else { level.gte(warn) })
        .order_by_asc(data_log::Column::Id)
        .limit(lines)
        .lock_exclusive()
        .pluck([data_log::Column::Id], transaction)
        .await
}

async fn delete(transaction: &Transaction, ids: Vec<i64>) -> Result<(), StoreError> {
    if ids.is_empty() {
        return Ok(());
    }
    let wanted = ids.len() as u64;
    let deleted = data_log::Entity::delete_many()
        .filter(data_log::Column::Id.is_in(ids))
        .run(transaction);
    let deleted = deleted.await?;
    if deleted == wanted {
        return Ok(());
    }
    Err(StoreError::Unavailable(
        say::lines_kept(deleted, wanted).to_string(),
    ))
}

/// Adds to the number of a task's lines that were dropped.
pub(crate) async fn count(
    transaction: &Transaction,
    task: i64,
    reason: DropReason,
    lines: u64,
) -> Result<(), StoreError> {
    use data_log_drop::Column as C;
    let lines = lines.cast_signed();
    let row = data_log_drop::ActiveModel {
        task_id: Set(task),
        reason: Set(reason.as_str().to_owned()),
        n: Set(lines),
    };
    let sum = Expr::col((data_log_drop::Entity, C::N)).add(lines);
    let conflict = OnConflict::columns([C::TaskId, C::Reason])
        .value(C::N, sum)
        .to_owned();
    data_log_drop::Entity::insert(row)
        .on_conflict(conflict)
        .run(transaction)
        .await?;
    Ok(())
}

/// Implements [`windrow_engine::ports::handling::data_log::DataLog::dropped`]; the counts are sorted by reason.
pub(crate) async fn dropped(store: &Store, task: TaskId) -> Result<Vec<(DropReason, u64)>, StoreError> {
    let rows = data_log_drop::Entity::find()
        .filter(data_log_drop::Column::TaskId.eq(task.0))
        .rows(&store.readers)
        .await?;
    let mut found = Vec::new();
    for row in rows {
        let reason = DropReason::ALL
            .into_iter()
            .find(|reason| reason.as_str() == row.reason);
        let reason = reason.ok_or_else(|| damaged("data_log_gap.reason", &row.reason))?;
        found.push((reason, row.n.cast_unsigned()));
    }
    found.sort_unstable();
    Ok(found)
}
