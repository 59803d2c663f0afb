//! Fires that ran out of attempts, and attempts that don't count.

use sea_orm::sea_query::{Expr, ExprTrait as _};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::open::PENDING;
use super::{rows, told};
use crate::sql::entity::fire;
use crate::sql::{Run, Store, dialect};
use windrow_core::ids::{ScheduleId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::schedules::store::{FIRE_TEXT_MAX, Fire, FireOutcome, given_up};

/// Marks a fire as failed. Returns `None` if another node was first.
pub(super) async fn give_up(store: &Store, row: fire::Model) -> Result<Option<Fire>, StoreError> {
    use fire::Column as C;
    let transaction = store.write().await?;
    let now = dialect::time(&transaction).await?;
    let note = given_up(row.attempts.cast_unsigned(), row.note.as_deref());
    let note: String = note.chars().take(FIRE_TEXT_MAX).collect();
    let failed = fire::Model {
        outcome: FireOutcome::Failed.as_str().to_owned(),
        settled_at: Some(now.0),
        note: Some(note),
        ..row
    };
    let given_up = fire::Entity::update_many()
        .col_expr(C::Outcome, Expr::value(failed.outcome.as_str()))
        .col_expr(C::SettledAt, Expr::value(failed.settled_at))
        .col_expr(C::Note, Expr::value(failed.note.clone()))
        .filter(C::ScheduleId.eq(failed.schedule_id))
        .filter(C::FireTime.eq(failed.fire_time))
        .filter(C::Outcome.eq(PENDING))
        .filter(C::LeaseUntil.eq(failed.lease_until))
        .run(&transaction)
        .await?;
    if given_up != 1 {
        return Ok(None);
    }
    told::tell(&transaction, &failed, now).await?;
    transaction.commit().await?;
    rows::fire_view(failed).map(Some)
}

/// Implements [`windrow_engine::ports::schedules::store::ScheduleStore::put_back_fire`]: the last attempt no longer
/// counts.
pub(super) async fn put_back(store: &Store, id: ScheduleId, time: WallMs) -> Result<(), StoreError> {
    use fire::Column as C;
    fire::Entity::update_many()
        .col_expr(C::Attempts, Expr::col(C::Attempts).sub(1))
        .filter(C::ScheduleId.eq(id.0))
        .filter(C::FireTime.eq(time.0))
        .filter(C::Outcome.eq(PENDING))
        .filter(C::Attempts.gt(0))
        .run(&store.writer)
        .await?;
    Ok(())
}
