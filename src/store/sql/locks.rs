//! Row locks of transactions that read and then write. (SQLite locks the whole file, so these are plain reads there.)
//!
//! The order, for all code: tasks, then shards, each in ascending order; then uploads and everything else that
//! belongs to a task. No lock is ever awaited against this order, so transactions queue and never deadlock. A task's
//! lock protects its status, its desired state, the states and owners of its shards, the groups of its failures, and
//! the order of its log lines. The progress of a running shard changes under the lock of the shard alone. Rows of
//! sessions are never locked, since `fenced` is never reset.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};

use crate::sql::entity::{business, shard_head, task};
use crate::sql::{Fetch, Pluck, Transaction, words};
use windrow_core::ids::{ShardId, TaskId};
use windrow_engine::ports::StoreError;

/// Locks a task and reads it. Returns `None` if it does not exist.
pub(super) async fn task(transaction: &Transaction, id: TaskId) -> Result<Option<task::Model>, StoreError> {
    find_task(id).row(transaction).await
}

/// Builds the query that locks a task.
pub(super) fn find_task(id: TaskId) -> Select<task::Entity> {
    task::Entity::find_by_id(id.0).lock_exclusive()
}

/// Locks tasks in ascending order, skipping those that don't exist.
pub(super) async fn tasks(transaction: &Transaction, ids: &BTreeSet<TaskId>) -> Result<(), StoreError> {
    if ids.is_empty() {
        return Ok(());
    }
    let locked: Vec<i64> = task::Entity::find()
        .filter(task::Column::Id.is_in(ids.iter().map(|id| id.0)))
        .order_by_asc(task::Column::Id)
        .lock_exclusive()
        .pluck([task::Column::Id], transaction)
        .await?;
    tracing::trace!(tasks = locked.len(), "locked");
    Ok(())
}

/// Locks all shards of a task whose lock is held.
pub(super) async fn shards(transaction: &Transaction, id: TaskId) -> Result<(), StoreError> {
    let locked: Vec<i32> = shard_head::Entity::find()
        .filter(shard_head::Column::TaskId.eq(id.0))
        .order_by_asc(shard_head::Column::ShardNo)
        .lock_exclusive()
        .pluck([shard_head::Column::ShardNo], transaction)
        .await?;
    tracing::trace!(shards = locked.len(), "locked");
    Ok(())
}

/// Shard numbers by task; `None` means all shards.
pub(super) type Shards = BTreeMap<TaskId, Option<Vec<i32>>>;

/// Locks shards in ascending order and reads them, skipping those that don't exist.
pub(super) async fn shards_of(
    transaction: &Transaction,
    wanted: &Shards,
) -> Result<BTreeMap<ShardId, shard_head::Model>, StoreError> {
    use shard_head::Column as C;
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut any = Condition::any();
    for (task, numbers) in wanted {
        let of_task = Condition::all().add(C::TaskId.eq(task.0));
        any = any.add(match numbers {
            Some(numbers) => of_task.add(C::ShardNo.is_in(numbers.iter().copied())),
            None => of_task,
        });
    }
    let rows = shard_head::Entity::find()
        .filter(any)
        .order_by_asc(C::TaskId)
        .order_by_asc(C::ShardNo)
        .lock_exclusive()
        .rows(transaction)
        .await?;
    let by_id = |row: shard_head::Model| (words::shard_id(&row), row);
    Ok(rows.into_iter().map(by_id).collect())
}

/// Locks a shard and reads it.
pub(super) async fn shard(
    transaction: &Transaction,
    id: ShardId,
) -> Result<Option<shard_head::Model>, StoreError> {
    let key = (id.task.0, words::shard_no(id));
    shard_head::Entity::find_by_id(key)
        .lock_exclusive()
        .row(transaction)
        .await
}

/// Locks a business and reads it.
pub(super) async fn business(
    transaction: &Transaction,
    slug: &str,
) -> Result<Option<business::Model>, StoreError> {
    let found = business::Entity::find()
        .filter(business::Column::Slug.eq(slug))
        .lock_exclusive();
    found.row(transaction).await
}
