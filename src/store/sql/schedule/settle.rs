//! Settling of a fire, in the transaction that creates its task.

use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::open::PENDING;
use super::{rows, with};
use crate::sql::entity::fire;
use crate::sql::{Fetch, Pluck, Run, Transaction, dialect};
use windrow_core::ids::{TaskId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::schedules::store::{FireKind, FireOutcome};
use windrow_engine::ports::tasks::store::{CreateError, FireKey};

/// Locks a fire whose task is about to be created, and returns its kind. Fails if another node created the task, or
/// if the schedule is gone.
pub(crate) async fn refuse_settled(transaction: &Transaction, key: FireKey) -> Result<FireKind, CreateError> {
    let found = fire::Entity::find_by_id((key.schedule.0, key.time.0))
        .filter(fire::Column::Outcome.eq(PENDING))
        .lock_exclusive()
        .row(transaction)
        .await?;
    match found {
        Some(row) => Ok(rows::kind(&row)?),
        None => Err(CreateError::FireOver(key.schedule, key.time)),
    }
}

/// Returns the newest fire after this one that made a task which may publish.
pub(crate) async fn later_made(
    transaction: &Transaction,
    key: FireKey,
) -> Result<Option<WallMs>, StoreError> {
    use fire::Column as C;
    let may_publish = Condition::any()
        .add(C::Publishes.eq(true))
        .add(C::Kind.ne(FireKind::Backfilled.as_str()));
    let found: Option<i64> = with(key.schedule, FireOutcome::Made)
        .filter(C::FireTime.gt(key.time.0))
        .filter(may_publish)
        .order_by_desc(C::FireTime)
        .limit(1)
        .pluck_one([C::FireTime], transaction)
        .await?;
    Ok(found.map(WallMs))
}

/// Settles a fire with the task that was created in this transaction.
pub(crate) async fn settle(
    transaction: &Transaction,
    (key, note): (FireKey, Option<String>),
    made: TaskId,
) -> Result<(), CreateError> {
    use fire::Column as C;
    let now = dialect::time(transaction).await?;
    let settled = fire::Entity::update_many()
        .col_expr(C::Outcome, Expr::value(FireOutcome::Made.as_str()))
        .col_expr(C::TaskId, Expr::value(made.0))
        .col_expr(C::SettledAt, Expr::value(now.0))
        .col_expr(C::Note, Expr::value(note))
        .filter(C::ScheduleId.eq(key.schedule.0))
        .filter(C::FireTime.eq(key.time.0))
        .filter(C::Outcome.eq(PENDING))
        .run(transaction)
        .await?;
    match settled {
        1 => Ok(()),
        // Another node created the task, or the schedule is gone.
        _ => Err(CreateError::FireOver(key.schedule, key.time)),
    }
}
