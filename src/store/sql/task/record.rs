//! Rows of a task, its shards and the audit, in the transaction of the change.

use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, QueryFilter, QueryOrder, Select, UpdateMany};
use windrow_words::store as say;

use crate::sql::entity::{audit, shard_head, task};
use crate::sql::{Fetch, Run, Transaction, damaged};
use windrow_core::ids::{TaskId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::audit_object::AuditObject;
use windrow_engine::ports::tasks::store::Actor;

/// Loads a task that must exist, because one of its shards does.
pub(crate) async fn load(transaction: &Transaction, id: TaskId) -> Result<task::Model, StoreError> {
    let found = task::Entity::find_by_id(id.0).row(transaction).await?;
    found.ok_or_else(|| damaged("shard.task_id", &id.to_string()))
}

/// Returns the shards of a task in index order.
pub(crate) async fn shards(
    transaction: &Transaction,
    id: TaskId,
) -> Result<Vec<shard_head::Model>, StoreError> {
    all_shards(id).rows(transaction).await
}

/// Builds the query for the shards of a task in index order.
pub(crate) fn all_shards(id: TaskId) -> Select<shard_head::Entity> {
    shard_head::Entity::find()
        .filter(shard_head::Column::TaskId.eq(id.0))
        .order_by_asc(shard_head::Column::FirstIndex)
        .order_by_asc(shard_head::Column::ShardNo)
}

/// Saves a task by compare-and-set on its version, which goes up by one.
pub(crate) async fn save(
    transaction: &Transaction,
    task: &task::Model,
    now: WallMs,
) -> Result<(), StoreError> {
    let saved = saving(task, now).run(transaction).await?;
    match saved {
        1 => Ok(()),
        _ => Err(StoreError::Unavailable(
            say::changed_meanwhile(TaskId(task.id).to_string()).to_string(),
        )),
    }
}

/// Builds the statement that saves a task.
pub(crate) fn saving(task: &task::Model, now: WallMs) -> UpdateMany<task::Entity> {
    let mut row = task::ActiveModel::from(task.clone()).reset_all();
    row.id = NotSet;
    row.version = Set(task.version + 1);
    row.updated_at = Set(now.0);
    task::Entity::update_many()
        .set(row)
        .filter(task::Column::Id.eq(task.id))
        .filter(task::Column::Version.eq(task.version))
}

/// Content of an audit entry, except who and when.
pub(crate) struct Change {
    /// Object that the change concerns.
    pub(crate) object: AuditObject,
    /// Task that the change concerns; its entries are kept as long as the task.
    pub(crate) task: Option<TaskId>,
    /// Row id of the business, if the change is one of a business.
    pub(crate) business: Option<i64>,
    pub(crate) action: String,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

/// Appends an entry to the audit.
pub(crate) async fn audit(
    transaction: &Transaction,
    actor: &Actor,
    change: Change,
    now: WallMs,
) -> Result<(), StoreError> {
    audit::Entity::insert(entry(actor, change, now))
        .run(transaction)
        .await?;
    Ok(())
}

/// Builds the row of an audit entry.
pub(crate) fn entry(actor: &Actor, change: Change, now: WallMs) -> audit::ActiveModel {
    audit::ActiveModel {
        id: NotSet,
        task_id: Set(change.task.map(|id| id.0)),
        at_ms: Set(now.0),
        actor: Set(actor.name.clone()),
        role: Set(actor.role.clone()),
        source: Set(actor.source.to_owned()),
        action: Set(change.action),
        reason: Set(actor.reason.clone()),
        before_json: Set(change.before),
        after_json: Set(change.after),
        request_id: Set(actor.request_id.clone()),
        business_id: Set(change.business),
        object_kind: Set(Some(change.object.kind.as_str().to_owned())),
        object_name: Set(Some(change.object.name)),
    }
}
