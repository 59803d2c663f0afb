//! Fires that people skip before they are settled.

use sea_orm::{
    ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect,
};

use super::open::{PENDING, QUEUED};
use super::{locked, order, rows};
use crate::sql::entity::fire;
use crate::sql::{Fetch, Store, dialect, error, keep};
use windrow_core::ids::{ScheduleId, WallMs};
use windrow_engine::ports::schedules::store::{FIRE_TEXT_MAX, Fire, FireOutcome, ScheduleError, skipped_by};
use windrow_engine::ports::tasks::store::Write;

/// Implements [`windrow_engine::ports::schedules::store::ScheduleStore::skip_fires`]: skips the open fire of one
/// time, or all open fires.
pub(super) async fn skip(
    store: &Store,
    (id, time): (ScheduleId, Option<WallMs>),
    write: &Write,
) -> Result<Vec<Fire>, ScheduleError> {
    use fire::Column as C;
    let transaction = store.write().await?;
    let schedule = locked(&transaction, id).await?;
    let mut open = fire::Entity::find()
        .filter(C::ScheduleId.eq(id.0))
        .filter(C::Outcome.is_in([PENDING, QUEUED]));
    if let Some(time) = time {
        open = open.filter(C::FireTime.eq(time.0));
    }
    // A task created at the same time settles its fire first, or finds it settled.
    let open = open.order_by_asc(C::FireTime).lock_exclusive();
    let open = open.rows(&transaction).await?;
    if let (Some(time), true) = (time, open.is_empty()) {
        return Err(ScheduleError::NotOpen(time));
    }
    let now = dialect::time(&transaction).await?;
    let mut skipped = Vec::with_capacity(open.len());
    for row in open {
        let note = skipped_by(&write.actor.name, row.note.as_deref());
        let row = fire::Model {
            outcome: FireOutcome::Skipped.as_str().to_owned(),
            settled_at: Some(now.0),
            note: Some(note.chars().take(FIRE_TEXT_MAX).collect()),
            ..row
        };
        let changed = row.clone().into_active_model().reset_all();
        changed.update(&transaction).await.map_err(error)?;
        skipped.push(row);
    }
    let times: Vec<WallMs> = skipped.iter().map(|row| WallMs(row.fire_time)).collect();
    order::record(&transaction, "schedule.skip", (&schedule, &times), write, now).await?;
    keep(transaction, write).await?;
    let skipped: Result<Vec<Fire>, _> = skipped.into_iter().map(rows::fire_view).collect();
    Ok(skipped?)
}
