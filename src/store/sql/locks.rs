//! Row locks of transactions that read and then write. (With SQLite the whole file is locked, and these are plain reads.)
//!
//! The order, for everybody: tasks, then shards, each in ascending order; then uploads and what else hangs on a task. No
//! lock is ever waited for against it, so transactions queue and don't meet crosswise. A task's lock keeps its status, its
//! wish, the states and owners of its shards and the groups of its failures as they are, and the lines of its log in order;
//! the progress of a running shard changes under the lock of the shard alone. Rows of sessions are never locked: `fenced`
//! is never taken back.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};

use crate::sql::entity::{business, shard_head, task};
use crate::sql::{Fetch, Pluck, Transaction, words};
use windrow_core::ids::{ShardId, TaskId};
use windrow_engine::ports::StoreError;

/// Locks a task and reads it.
pub(super) async fn task(transaction: &Transaction, id: TaskId) -> Result<Option<task::Model>, StoreError> {
    find_task(id).row(transaction).await
}

/// The query that does it.
pub(super) fn find_task(id: TaskId) -> Select<task::Entity> {
    task::Entity::find_by_id(id.0).lock_exclusive()
}

/// Locks tasks, lowest first; those that are not there are left out.
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

/// Shards of tasks, by number; none of them is all.
pub(super) type Shards = BTreeMap<TaskId, Option<Vec<i32>>>;

/// Locks shards, lowest first, and reads them; those that are not there are left out.
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
