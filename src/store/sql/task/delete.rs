//! Deletion of a task that has ended, in transactions of bounded size.

use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, PrimaryKeyTrait, QueryFilter, QueryOrder, QuerySelect};
use windrow_words::store as say;

use crate::sql::archive;
use crate::sql::dataset::sweep;
use crate::sql::entity::{
    appended, business, data_log, data_log_drop, failure_group, generation, generation_key, item, outbox,
    result_segment, run, shard, start_token, task,
};
use crate::sql::run::result_place;
use crate::sql::source::upload_use;
use crate::sql::statistics::days;
use crate::sql::task::record::{self, Change};
use crate::sql::{Fetch, Pluck, Run, Store, Transaction, damaged, keep, locks, words};
use windrow_core::dataset::GenerationState;
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::life::{CommandRefusal, status_json};
use windrow_core::task::lifecycle::{Status, decide_delete};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::audit_object::AuditObject;
use windrow_engine::ports::tasks::store::{CommandError, Write};

/// Status reason that a task shows while it is being deleted.
pub(crate) const DELETING: &str = "deleting";

/// Rows deleted per transaction.
const ROWS_AT_ONCE: u64 = 2_000;
/// Rows of results deleted per transaction; each may have 300 KiB.
const SEGMENTS_AT_ONCE: u64 = 100;

/// Implements [`windrow_engine::ports::tasks::store::TaskStore::delete`]: archives the task if there is an archive,
/// marks it, then deletes its rows.
pub(crate) async fn delete(
    store: &Store,
    id: TaskId,
    write: &Write,
    now: WallMs,
) -> Result<(), CommandError> {
    if write.dry_run {
        let transaction = store.write().await?;
        return deletable(&transaction, id).await.map(drop);
    }
    if store.archive.is_some() {
        let transaction = store.write().await?;
        deletable(&transaction, id).await?;
        transaction.rollback().await?;
        archive::keep(store, id, now).await?;
    }
    mark(store, id, now).await?;
    clear_rows(store, id).await?;
    last(store, id, write, now).await
}

/// Deletes the rows of tables that may have many.
async fn clear_rows(store: &Store, id: TaskId) -> Result<(), StoreError> {
    clear(
        store,
        item::Entity,
        (item::Column::TaskId, item::Column::Idx),
        id,
        ROWS_AT_ONCE,
    )
    .await?;
    clear(
        store,
        data_log::Entity,
        (data_log::Column::TaskId, data_log::Column::Id),
        id,
        ROWS_AT_ONCE,
    )
    .await?;
    clear(
        store,
        outbox::Entity,
        (outbox::Column::TaskId, outbox::Column::Id),
        id,
        ROWS_AT_ONCE,
    )
    .await?;
    clear(
        store,
        start_token::Entity,
        (start_token::Column::TaskId, start_token::Column::StartNo),
        id,
        ROWS_AT_ONCE,
    )
    .await?;
    clear(
        store,
        appended::Entity,
        (appended::Column::TaskId, appended::Column::FirstIndex),
        id,
        SEGMENTS_AT_ONCE,
    )
    .await?;
    if sweep::owns_results(store, id).await? {
        return Ok(());
    }
    result_place::forget(store, id).await?;
    clear_results(store, id).await?;
    clear_keys(store, id).await
}

/// Deletes the keys by which a task's results are looked up.
pub(crate) async fn clear_keys(store: &Store, id: TaskId) -> Result<(), StoreError> {
    use generation_key::Column as C;
    let places = (C::TaskId, C::BlockNo);
    clear(store, generation_key::Entity, places, id, SEGMENTS_AT_ONCE).await
}

/// Deletes the rows of a task's results.
pub(crate) async fn clear_results(store: &Store, id: TaskId) -> Result<(), StoreError> {
    clear(
        store,
        result_segment::Entity,
        (result_segment::Column::TaskId, result_segment::Column::FirstIndex),
        id,
        SEGMENTS_AT_ONCE,
    )
    .await
}

/// Checks that the task may be deleted and marks it: until it is gone, it shows only part of its data.
async fn mark(store: &Store, id: TaskId, now: WallMs) -> Result<(), CommandError> {
    use task::Column as C;
    let transaction = store.write().await?;
    let row = deletable(&transaction, id).await?;
    let marked = task::Entity::update_many()
        .col_expr(C::StatusReason, Expr::value(DELETING))
        .col_expr(C::StatusText, Expr::value(say::deleting().english()))
        .col_expr(C::Name, Expr::value(None::<String>))
        .col_expr(C::Version, Expr::value(row.version + 1))
        .col_expr(C::UpdatedAt, Expr::value(now.0))
        .filter(C::Id.eq(id.0))
        .filter(C::Version.eq(row.version))
        .run(&transaction)
        .await?;
    if marked != 1 {
        return Err(StoreError::Unavailable(say::changed_meanwhile(id.to_string()).to_string()).into());
    }
    Ok(transaction.commit().await?)
}

async fn deletable(transaction: &Transaction, id: TaskId) -> Result<task::Model, CommandError> {
    let row = locks::task(transaction, id)
        .await?
        .ok_or(CommandError::NotFound(id))?;
    let status = words::status(&row)?;
    decide_delete(status).map_err(CommandRefusal::from)?;
    let ended = [Status::Finished, Status::Cancelled].map(Status::as_str);
    let child = task::Entity::find()
        .filter(task::Column::ParentId.eq(id.0))
        .filter(task::Column::Status.is_not_in(ended))
        .row(transaction)
        .await?;
    match child {
        Some(child) => Err(CommandError::HasRedrive(TaskId(child.id))),
        None => Ok(row),
    }
}

/// Deletes a task's rows of one table, in batches.
async fn clear<E>(
    store: &Store,
    _table: E,
    (of_task, order): (E::Column, E::Column),
    id: TaskId,
    at_once: u64,
) -> Result<(), StoreError>
where
    E: EntityTrait,
    E::PrimaryKey: PrimaryKeyTrait,
{
    loop {
        let transaction = store.write().await?;
        let beyond: Option<i64> = E::find()
            .filter(of_task.eq(id.0))
            .order_by_asc(order)
            .offset(at_once)
            .limit(1)
            .pluck_one([order], &transaction)
            .await?;
        let some = E::delete_many().filter(of_task.eq(id.0));
        let some = match beyond {
            Some(beyond) => some.filter(order.lt(beyond)),
            None => some,
        };
        some.run(&transaction).await?;
        transaction.commit().await?;
        if beyond.is_none() {
            return Ok(());
        }
    }
}

/// Deletes the small remainder: groups, runs, shards, the task itself. Adds the task's totals to the days of its
/// business.
async fn last(store: &Store, id: TaskId, write: &Write, now: WallMs) -> Result<(), CommandError> {
    let transaction = store.write().await?;
    let row = deletable(&transaction, id).await?;
    let db = &transaction;
    let owner = business::Entity::find_by_id(row.business_id).row(db).await?;
    let owner = owner.ok_or_else(|| damaged("task.business_id", &row.business_id.to_string()))?;
    days::fold(db, &row, &owner.slug).await?;
    clear_rest(db, id).await?;
    task::Entity::delete_by_id(id.0).run(db).await?;
    upload_use::give_up(db, row.source_id, id.0).await?;
    let before = status_json(words::status(&row)?);
    let action = "task.delete".to_owned();
    let change = Change {
        object: AuditObject::task(id),
        task: Some(id),
        business: None,
        action,
        before: Some(before),
        after: None,
    };
    record::audit(db, &write.actor, change, now).await?;
    Ok(keep(transaction, write).await?)
}

async fn clear_rest(db: &Transaction, id: TaskId) -> Result<(), StoreError> {
    failure_group::Entity::delete_many()
        .filter(failure_group::Column::TaskId.eq(id.0))
        .run(db)
        .await?;
    data_log_drop::Entity::delete_many()
        .filter(data_log_drop::Column::TaskId.eq(id.0))
        .run(db)
        .await?;
    run::Entity::delete_many()
        .filter(run::Column::TaskId.eq(id.0))
        .run(db)
        .await?;
    shard::Entity::delete_many()
        .filter(shard::Column::TaskId.eq(id.0))
        .run(db)
        .await?;
    // A published generation stays, since it owns the results.
    generation::Entity::delete_many()
        .filter(generation::Column::TaskId.eq(id.0))
        .filter(generation::Column::State.eq(GenerationState::Withheld.as_str()))
        .run(db)
        .await?;
    Ok(())
}
