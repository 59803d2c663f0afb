//! Notices about fires that made no task, in the transaction that decides it.

use sea_orm::EntityTrait;

use super::view;
use crate::sql::business::alerts;
use crate::sql::entity::{fire, schedule};
use crate::sql::{Fetch, Transaction};
use windrow_core::alert::{AlertKind, Notice};
use windrow_core::ids::{ScheduleId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::schedules::store::FireOutcome;

/// Tells people of a fire that was missed or failed; nothing of any other.
pub(super) async fn tell(
    transaction: &Transaction,
    fire: &fire::Model,
    now: WallMs,
) -> Result<(), StoreError> {
    let is_missed = fire.outcome == FireOutcome::Missed.as_str();
    let is_trouble = is_missed || fire.outcome == FireOutcome::Failed.as_str();
    if !is_trouble || !alerts::is_any(transaction, AlertKind::ScheduleMissed).await? {
        return Ok(());
    }
    let found = schedule::Entity::find_by_id(fire.schedule_id)
        .row(transaction)
        .await?;
    let Some(row) = found else { return Ok(()) };
    let owner = view(transaction, &row).await?.business;
    let name = format!("{owner}/{}", row.name);
    let of = (ScheduleId(row.id), name.as_str(), owner.as_str());
    let first = WallMs(fire.fire_time);
    let notice = match is_missed {
        true => Notice::missed(
            of,
            (first, WallMs(fire.last_time)),
            fire.fire_count.cast_unsigned(),
        ),
        false => Notice::fire_failed(of, first, fire.note.as_deref().unwrap_or_default()),
    };
    alerts::raise(transaction, &notice, now).await
}
