//! Use of uploads by tasks: a task's row names the index of the upload that its items come from.
//!
//! An upload is kept as long as a task names it. One that was taken for a task that was never created, or whose tasks
//! were deleted, expires like one that nobody took.

use sea_orm::sea_query::{Expr, ExprTrait as _, Query};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};
use serde_json::Value;

use crate::sql::entity::{task, upload};
use crate::sql::{Fetch, Pluck, Run, Store, Transaction, error};
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;

/// Uploads checked per call.
const LOOKED_AT: u64 = 100;

/// Returns the index of the upload that a stored source names; `None` for other sources.
pub(crate) async fn index_of(transaction: &Transaction, source: &str) -> Result<Option<i64>, StoreError> {
    let source: Value = serde_json::from_str(source).unwrap_or_default();
    let Some(id) = source["upload"].as_i64() else {
        return Ok(None);
    };
    // The lock keeps it from being released while the task that names it is created.
    let row = upload::Entity::find_by_id(id)
        .lock_exclusive()
        .row(transaction)
        .await?;
    Ok(row.and_then(|row| row.source_id))
}

/// Releases an upload on behalf of a task; it expires if no other task names it.
pub(crate) async fn give_up(
    transaction: &Transaction,
    index: Option<i64>,
    task: i64,
) -> Result<(), StoreError> {
    let Some(index) = index else { return Ok(()) };
    let named = upload::Entity::find()
        .filter(upload::Column::SourceId.eq(index))
        .lock_exclusive();
    if named.row(transaction).await?.is_none() {
        return Ok(());
    }
    let others = task::Entity::find()
        .filter(task::Column::SourceId.eq(index))
        .filter(task::Column::Id.ne(task));
    if others.count(transaction).await.map_err(error)? > 0 {
        return Ok(());
    }
    upload::Entity::update_many()
        .col_expr(upload::Column::UsedAt, Expr::value(0_i64))
        .filter(upload::Column::SourceId.eq(index))
        .run(transaction)
        .await?;
    Ok(())
}

/// Releases uploads that were taken before `before` and that no task names, since their task was never created. A
/// concurrent take wins.
pub(crate) async fn give_up_unnamed(store: &Store, before: WallMs) -> Result<(), StoreError> {
    use upload::Column as C;
    let named = Query::select()
        .column(task::Column::SourceId)
        .from(task::Entity)
        .and_where(task::Column::SourceId.is_not_null())
        .to_owned();
    let is_unnamed = C::UsedAt
        .gt(0)
        .and(C::UsedAt.lt(before.0))
        .and(C::SourceId.not_in_subquery(named));
    let unnamed: Vec<i64> = upload::Entity::find()
        .filter(is_unnamed.clone())
        .order_by_asc(C::Id)
        .limit(LOOKED_AT)
        .pluck([C::Id], &store.readers)
        .await?;
    if unnamed.is_empty() {
        return Ok(());
    }
    upload::Entity::update_many()
        .col_expr(C::UsedAt, Expr::value(0_i64))
        .filter(C::Id.is_in(unnamed))
        .filter(is_unnamed)
        .run(&store.writer)
        .await?;
    Ok(())
}
