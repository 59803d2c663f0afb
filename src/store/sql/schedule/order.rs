//! Fires that people order, for now or for past times.

use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter};
use serde_json::json;

use super::{count, due, locked, rows, standing};
use crate::sql::entity::{fire, schedule, task};
use crate::sql::task::record::{self, Change};
use crate::sql::{Fetch, Pluck, Run, Store, Transaction, dialect, keep};
use windrow_core::ids::{ScheduleId, TaskId, WallMs};
use windrow_core::schedule::plan::{Gap, Outcome, plan_one};
use windrow_core::schedule::{Overlap, Spec};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::audit_object::AuditObject;
use windrow_engine::ports::schedules::store::{
    BACKFILL_MAX, Backfill, Fire, FireKind, FireOutcome, InTheWay, ScheduleError,
};
use windrow_engine::ports::tasks::store::Write;

/// Implements [`windrow_engine::ports::schedules::store::ScheduleStore::trigger`]; the fire time is the next free
/// millisecond.
pub(super) async fn trigger(store: &Store, id: ScheduleId, write: &Write) -> Result<Fire, ScheduleError> {
    let transaction = store.write().await?;
    let row = locked(&transaction, id).await?;
    let (spec, now) = (rows::spec(&row)?, dialect::time(&transaction).await?);
    let mut time = now;
    while due::is_there(&transaction, id, time).await? {
        time = WallMs(time.0 + 1);
    }
    let stands = standing(&transaction, id, time).await?;
    let outcome = plan_one(&spec, &stands);
    match outcome {
        Outcome::SkipOverlap | Outcome::SkipCrowded => {
            return Err(in_the_way(&transaction, &row, spec.overlap).await?);
        }
        Outcome::Supersede => due::supersede(&transaction, id, now).await?,
        Outcome::Make | Outcome::Queue => {}
    }
    let made = due::row(id, time, FireKind::Triggered, outcome, now);
    insert(&transaction, &made).await?;
    record(&transaction, "schedule.trigger", (&row, &[time]), write, now).await?;
    keep(transaction, write).await?;
    Ok(rows::fire_view(made)?)
}

/// Returns the error for a schedule that is blocked from firing now.
async fn in_the_way(
    transaction: &Transaction,
    row: &schedule::Model,
    overlap: Overlap,
) -> Result<ScheduleError, StoreError> {
    let (id, seen) = (ScheduleId(row.id), super::view(transaction, row).await?);
    let busy = super::in_the_way(id).pluck_one([task::Column::Id], transaction);
    Ok(ScheduleError::Busy(Box::new(InTheWay {
        schedule: format!("{}/{}", seen.business, seen.name),
        overlap,
        task: busy.await?.map(TaskId),
        waiting: count(transaction, id, FireOutcome::Queued).await?,
    })))
}

/// Implements [`windrow_engine::ports::schedules::store::ScheduleStore::backfill`]; times that have fired already are
/// left out.
pub(super) async fn backfill(
    store: &Store,
    id: ScheduleId,
    wanted: Backfill<'_>,
    write: &Write,
) -> Result<Vec<Fire>, ScheduleError> {
    let transaction = store.write().await?;
    let row = locked(&transaction, id).await?;
    let (spec, now) = (rows::spec(&row)?, dialect::time(&transaction).await?);
    let waiting = count(&transaction, id, FireOutcome::Queued).await?;
    if waiting + wanted.times.len() as u64 > BACKFILL_MAX as u64 {
        return Err(ScheduleError::Crowded { waiting });
    }
    let mut ordered = Vec::new();
    for time in wanted.times {
        let row = fire::Model {
            publishes: wanted.publishes,
            ..due::row(id, *time, FireKind::Backfilled, Outcome::Queue, now)
        };
        ordered.extend(order(&transaction, &spec, row).await?);
    }
    let which: Vec<WallMs> = ordered.iter().map(|row| WallMs(row.fire_time)).collect();
    record(&transaction, "schedule.backfill", (&row, &which), write, now).await?;
    keep(transaction, write).await?;
    Ok(ordered
        .into_iter()
        .map(rows::fire_view)
        .collect::<Result<_, _>>()?)
}

/// Orders one fire. Returns `None` if its time has one that is open or made a task.
async fn order(
    transaction: &Transaction,
    spec: &Spec,
    row: fire::Model,
) -> Result<Option<fire::Model>, StoreError> {
    let place = (row.schedule_id, row.fire_time);
    let found = fire::Entity::find_by_id(place).row(transaction).await;
    if let Some(before) = found? {
        let may_go = [FireOutcome::Missed, FireOutcome::Skipped, FireOutcome::Failed];
        if !may_go
            .into_iter()
            .any(|outcome| before.outcome == outcome.as_str())
        {
            return Ok(None);
        }
        keep_rest(transaction, (ScheduleId(place.0), spec), &before).await?;
        fire::Entity::delete_many()
            .filter(fire::Column::ScheduleId.eq(place.0))
            .filter(fire::Column::FireTime.eq(place.1))
            .run(transaction)
            .await?;
    }
    insert(transaction, &row).await?;
    Ok(Some(row))
}

/// Keeps a row that stands for several missed fires, without the first of them.
async fn keep_rest(
    transaction: &Transaction,
    (id, spec): (ScheduleId, &Spec),
    row: &fire::Model,
) -> Result<(), StoreError> {
    let Some(next) = spec
        .next_after(WallMs(row.fire_time))
        .filter(|next| next.0 <= row.last_time)
    else {
        return Ok(());
    };
    let rest = Gap {
        first: next,
        last: WallMs(row.last_time),
        count: row.fire_count.cast_unsigned().saturating_sub(1),
    };
    if let Some(rest) = due::free_part(transaction, (id, spec), rest)
        .await?
        .filter(|rest| rest.count > 0)
    {
        insert(transaction, &rows::missed(id, rest, WallMs(row.decided_at))).await?;
    }
    Ok(())
}

async fn insert(transaction: &Transaction, row: &fire::Model) -> Result<(), StoreError> {
    let row = row.clone().into_active_model().reset_all();
    fire::Entity::insert(row).run(transaction).await?;
    Ok(())
}

/// Writes the audit entry for fires that someone ordered or skipped.
pub(super) async fn record(
    transaction: &Transaction,
    action: &str,
    (row, times): (&schedule::Model, &[WallMs]),
    write: &Write,
    now: WallMs,
) -> Result<(), StoreError> {
    let schedule = super::view(transaction, row).await?;
    let ends = [times.first(), times.last()].map(|time| time.map(|time| time.to_rfc3339()));
    let after = json!({ "schedule": schedule.id.to_string(), "fires": times.len(), "first": ends[0], "last": ends[1] });
    let change = Change {
        object: AuditObject::schedule(&schedule.business, &schedule.name),
        task: None,
        business: None,
        action: action.to_owned(),
        before: None,
        after: Some(after.to_string()),
    };
    record::audit(transaction, &write.actor, change, now).await
}
