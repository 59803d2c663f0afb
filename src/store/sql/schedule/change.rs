//! Creation, change and deletion of schedules, each with its audit entry.

use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, SqlErr};
use serde_json::{Value, json};

use super::{due, locked, rows, view};
use crate::sql::entity::{fire, schedule};
use crate::sql::task::record::{self, Change};
use crate::sql::{Fetch, Run, Store, Transaction, dialect, error, keep, locks};
use windrow_core::ids::{ScheduleId, WallMs};
use windrow_core::schedule::timing::Timing;
use windrow_core::settings::text::span_text;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::actor::Actor;
use windrow_engine::ports::access::audit_object::AuditObject;
use windrow_engine::ports::schedules::store::{
    NewSchedule, PER_BUSINESS_MAX, Schedule, ScheduleEdit, ScheduleError,
};
use windrow_engine::ports::tasks::store::Write;

/// Maximum length of a template in an audit entry, in characters.
const TEMPLATE_SHOWN_MAX: usize = 2_000;

/// Implements [`windrow_engine::ports::schedules::store::ScheduleStore::create_schedule`]: inserts and arms the
/// schedule under the lock of its business.
pub(super) async fn create(
    store: &Store,
    new: &NewSchedule,
    write: &Write,
) -> Result<Schedule, ScheduleError> {
    let transaction = store.write().await?;
    // The lock keeps the number of the business's schedules constant.
    let owner = locks::business(&transaction, &new.business).await?;
    let owner = owner.ok_or_else(|| ScheduleError::NoBusiness(new.business.clone()))?;
    let own = schedule::Entity::find().filter(schedule::Column::BusinessId.eq(owner.id));
    let taken = || ScheduleError::Taken(new.name.clone());
    let same = own.clone().filter(schedule::Column::Name.eq(&new.name));
    if same.row(&transaction).await?.is_some() {
        return Err(taken());
    }
    if own.count(&transaction).await.map_err(error)? >= PER_BUSINESS_MAX {
        return Err(ScheduleError::Full(new.business.clone()));
    }
    let now = dialect::time(&transaction).await?;
    let row = rows::new_row(new, owner.id, &write.actor.name, now);
    let made = schedule::Entity::insert(row).exec(&transaction).await;
    let id = match made {
        Ok(made) => ScheduleId(made.last_insert_id),
        Err(fault) => {
            return Err(match fault.sql_err() {
                Some(SqlErr::UniqueConstraintViolation(_)) => taken(),
                _ => error(fault).into(),
            });
        }
    };
    let next = new.spec.next_after(now).filter(|_| !new.paused);
    let row = due::arm(&transaction, id, &new.spec, next, now).await?;
    let made = view(&transaction, &row).await?;
    record(
        &transaction,
        ("schedule.create", &made),
        (None, Some(&made)),
        &write.actor,
        now,
    )
    .await?;
    keep(transaction, write).await?;
    Ok(made)
}

/// Implements [`windrow_engine::ports::schedules::store::ScheduleStore::change_schedule`]; refused if the revision
/// has changed.
pub(super) async fn change(
    store: &Store,
    (id, expected): (ScheduleId, u64),
    edit: &ScheduleEdit,
    write: &Write,
) -> Result<Schedule, ScheduleError> {
    let transaction = store.write().await?;
    let row = locked(&transaction, id).await?;
    let before = view(&transaction, &row).await?;
    if before.revision != expected {
        let found = before.revision;
        return Err(ScheduleError::Changed { expected, found });
    }
    let wanted = wanted(&before, edit);
    if wanted == before {
        return Ok(before);
    }
    let now = dialect::time(&transaction).await?;
    let mut row = schedule::ActiveModel {
        id: Unchanged(id.0),
        template: Set(wanted.template.clone()),
        is_guarded: Set(wanted.is_guarded),
        paused: Set(wanted.paused),
        revision: Set(before.revision.cast_signed() + 1),
        updated_at: Set(now.0),
        ..rows::said(&wanted.spec)
    };
    // A new template applies to the same fires: what was due a moment ago still is.
    if wanted.spec != before.spec || wanted.paused != before.paused {
        let next = wanted.spec.next_after(now).filter(|_| !wanted.paused);
        row = rows::armed(row, &wanted.spec, (id, next), now);
    }
    let row = row.update(&transaction).await.map_err(error)?;
    let after = view(&transaction, &row).await?;
    record(
        &transaction,
        (action(edit), &after),
        (Some(&before), Some(&after)),
        &write.actor,
        now,
    )
    .await?;
    keep(transaction, write).await?;
    Ok(after)
}

/// Returns the schedule that an edit asks for.
fn wanted(before: &Schedule, edit: &ScheduleEdit) -> Schedule {
    let mut wanted = before.clone();
    wanted.spec = edit.spec.clone().unwrap_or(wanted.spec);
    wanted.paused = edit.paused.unwrap_or(wanted.paused);
    if let Some((template, is_guarded)) = &edit.template {
        (wanted.template, wanted.is_guarded) = (template.clone(), *is_guarded);
    }
    wanted
}

/// Returns the audit action for an edit.
fn action(edit: &ScheduleEdit) -> &'static str {
    let is_more = edit.spec.is_some() || edit.template.is_some();
    match edit.paused.filter(|_| !is_more) {
        Some(true) => "schedule.pause",
        Some(false) => "schedule.resume",
        None => "schedule.edit",
    }
}

/// Implements [`windrow_engine::ports::schedules::store::ScheduleStore::delete_schedule`]; removes its fires too.
pub(super) async fn delete(store: &Store, id: ScheduleId, write: &Write) -> Result<Schedule, ScheduleError> {
    let transaction = store.write().await?;
    let row = locked(&transaction, id).await?;
    let gone = view(&transaction, &row).await?;
    // Bounded by the number of fires kept per schedule.
    fire::Entity::delete_many()
        .filter(fire::Column::ScheduleId.eq(id.0))
        .run(&transaction)
        .await?;
    schedule::Entity::delete_by_id(id.0).run(&transaction).await?;
    let now = dialect::time(&transaction).await?;
    record(
        &transaction,
        ("schedule.delete", &gone),
        (Some(&gone), None),
        &write.actor,
        now,
    )
    .await?;
    keep(transaction, write).await?;
    Ok(gone)
}

/// Writes the audit entry for a change of a schedule.
pub(super) async fn record(
    transaction: &Transaction,
    (action, schedule): (&str, &Schedule),
    (before, after): (Option<&Schedule>, Option<&Schedule>),
    actor: &Actor,
    now: WallMs,
) -> Result<(), StoreError> {
    let change = Change {
        object: AuditObject::schedule(&schedule.business, &schedule.name),
        task: None,
        business: None,
        action: action.to_owned(),
        before: before.map(|schedule| shown(schedule).to_string()),
        after: after.map(|schedule| shown(schedule).to_string()),
    };
    record::audit(transaction, actor, change, now).await
}

/// Formats a schedule for the audit.
fn shown(schedule: &Schedule) -> Value {
    let spec = &schedule.spec;
    let (cron, every) = match &spec.timing {
        Timing::Cron(cron) => (Some(cron.text()), None),
        Timing::Every(period) => (None, Some(span_text(*period))),
    };
    let template: String = schedule.template.chars().take(TEMPLATE_SHOWN_MAX).collect();
    json!({
        "schedule": schedule.id.to_string(), "business": schedule.business, "name": schedule.name,
        "revision": schedule.revision, "cron": cron, "zone": spec.timing.zone(), "every": every,
        "start": spec.start.map(WallMs::to_rfc3339), "end": spec.end.map(WallMs::to_rfc3339),
        "jitter": span_text(spec.jitter), "overlap": spec.overlap.as_str(), "missed": spec.missed.to_string(),
        "paused": schedule.paused, "next_fire": schedule.next_fire.map(WallMs::to_rfc3339), "task": template,
    })
}
