//! Due fires: found by the database's clock, and decided once. The outcomes of a schedule's due fires and its next
//! fire are written in one transaction under the lock of its row, which first checks that nobody else decided.

use sea_orm::ActiveValue::Unchanged;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
    QuerySelect,
};
use windrow_words::store as say;

use super::{change, in_the_way, lock, rows, standing, told, view};
use crate::sql::entity::{fire, schedule, task};
use crate::sql::{Fetch, Pluck, Run, Store, Transaction, dialect, error, words};
use windrow_core::ids::{ScheduleId, TaskId, WallMs};
use windrow_core::schedule::Spec;
use windrow_core::schedule::plan::{Gap, Outcome, Plan, plan};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::actor::Actor;
use windrow_engine::ports::schedules::store::{
    Agenda, CLOCK_SLACK, Due, FireKind, FireOutcome, Fired, skipped_for,
};

/// Implements [`windrow_engine::ports::schedules::store::ScheduleStore::agenda`]; schedules armed by a clock that was
/// ahead are due too.
pub(super) async fn agenda(store: &Store, limit: u32) -> Result<Agenda, StoreError> {
    use schedule::Column as C;
    let now = dialect::time(&store.readers).await?;
    let is_due = Condition::any()
        .add(C::NextDue.lte(now.0))
        .add(C::ArmedAt.gt(now.plus(CLOCK_SLACK).0));
    let due: Vec<(i64, i64)> = schedule::Entity::find()
        .filter(C::NextFire.is_not_null())
        .filter(is_due)
        .order_by_asc(C::NextDue)
        .order_by_asc(C::Id)
        .limit(u64::from(limit))
        .pluck([C::Id, C::NextFire], &store.readers)
        .await?;
    let nearest: Option<i64> = schedule::Entity::find()
        .filter(C::NextDue.gt(now.0))
        .order_by_asc(C::NextDue)
        .pluck_one([C::NextDue], &store.readers)
        .await?;
    Ok(Agenda {
        now,
        due: due
            .into_iter()
            .map(|(id, next)| Due {
                id: ScheduleId(id),
                next_fire: WallMs(next),
            })
            .collect(),
        has_open: super::open::is_any(store, now).await?,
        nearest: nearest.map(WallMs),
    })
}

/// Implements [`windrow_engine::ports::schedules::store::ScheduleStore::fire_due`] under the lock of the schedule's
/// row.
pub(super) async fn fire(store: &Store, due: Due) -> Result<Fired, StoreError> {
    let transaction = store.write().await?;
    let row = lock(&transaction, due.id).await?;
    // Another node was first, or someone changed it: the next agenda shows what is due.
    let Some(row) = row.filter(|row| row.next_fire == Some(due.next_fire.0)) else {
        return Ok(Fired::default());
    };
    let (spec, now) = (rows::spec(&row)?, dialect::time(&transaction).await?);
    if WallMs(row.armed_at) > now.plus(CLOCK_SLACK) {
        return mend(transaction, row, &spec, now).await;
    }
    let standing = standing(&transaction, due.id, due.next_fire).await?;
    let plan = plan(&spec, &standing, now);
    let late = newest_late(&spec, due.id, &plan, now);
    let fires = write(&transaction, (due.id, &spec), &plan, now).await?;
    for fire in &fires {
        told::tell(&transaction, fire, now).await?;
    }
    arm(&transaction, due.id, &spec, plan.next, now).await?;
    transaction.commit().await?;
    let fires: Result<Vec<_>, _> = fires.into_iter().map(rows::fire_view).collect();
    Ok(Fired {
        fires: fires?,
        late,
        is_mended: false,
    })
}

fn newest_late(spec: &Spec, id: ScheduleId, plan: &Plan, now: WallMs) -> Option<std::time::Duration> {
    let goes = |fire: &&(WallMs, Outcome)| !matches!(fire.1, Outcome::SkipOverlap | Outcome::SkipCrowded);
    let newest = plan.fires.iter().rev().find(goes)?;
    Some(now.since(spec.due(id, newest.0)))
}

/// Recomputes a next fire that was set by a clock running ahead. The times it fired too early have their rows and
/// don't fire again.
async fn mend(
    transaction: Transaction,
    row: schedule::Model,
    spec: &Spec,
    now: WallMs,
) -> Result<Fired, StoreError> {
    let id = ScheduleId(row.id);
    let before = view(&transaction, &row).await?;
    let next = spec.next_after(now);
    arm(&transaction, id, spec, next, now).await?;
    let is_other = next != before.next_fire;
    if is_other {
        let after = windrow_engine::ports::schedules::store::Schedule {
            next_fire: next,
            ..before.clone()
        };
        let actor = Actor::windrow(Some(say::rearmed().to_string()));
        change::record(
            &transaction,
            ("schedule.rearm", &after),
            (Some(&before), Some(&after)),
            &actor,
            now,
        )
        .await?;
    }
    transaction.commit().await?;
    Ok(Fired {
        is_mended: is_other,
        ..Fired::default()
    })
}

/// Sets the next fire of a schedule.
pub(super) async fn arm(
    transaction: &Transaction,
    id: ScheduleId,
    spec: &Spec,
    next: Option<WallMs>,
    now: WallMs,
) -> Result<schedule::Model, StoreError> {
    let row = schedule::ActiveModel {
        id: Unchanged(id.0),
        ..rows::armed(
            <schedule::ActiveModel as Default>::default(),
            spec,
            (id, next),
            now,
        )
    };
    row.update(transaction).await.map_err(error)
}

/// Writes the rows of a plan. A time that has a row has fired already, and is left as it is.
async fn write(
    transaction: &Transaction,
    (id, spec): (ScheduleId, &Spec),
    plan: &Plan,
    now: WallMs,
) -> Result<Vec<fire::Model>, StoreError> {
    let mut new = Vec::new();
    if let Some(gap) = plan.missed
        && let Some(gap) = free_part(transaction, (id, spec), gap).await?
    {
        new.push(rows::missed(id, gap, now));
    }
    for (time, outcome) in &plan.fires {
        if is_there(transaction, id, *time).await? {
            continue;
        }
        if *outcome == Outcome::Supersede {
            supersede(transaction, id, now).await?;
            // Also those of the same plan.
            for earlier in new
                .iter_mut()
                .filter(|row| row.outcome == FireOutcome::Queued.as_str())
            {
                *earlier = skipped(earlier, say::superseded().english(), now);
            }
        }
        let mut fire = row(id, *time, FireKind::Scheduled, *outcome, now);
        if *outcome == Outcome::SkipOverlap {
            fire.note = Some(way(transaction, id).await?);
        }
        new.push(fire);
    }
    for row in &new {
        fire::Entity::insert(row.clone().into_active_model().reset_all())
            .run(transaction)
            .await?;
    }
    Ok(new)
}

/// Returns the note of a fire that is skipped because a task of its schedule blocks it.
async fn way(transaction: &Transaction, id: ScheduleId) -> Result<String, StoreError> {
    let found = in_the_way(id)
        .order_by_asc(task::Column::Id)
        .row(transaction)
        .await;
    let row = found?;
    let status = row.as_ref().map(words::status).transpose()?;
    let task = row.as_ref().zip(status);
    let task = task.map(|(row, status)| (TaskId(row.id), status, row.status_text.as_deref()));
    Ok(skipped_for(task))
}

/// Returns the row of a fire with this outcome.
pub(super) fn row(
    id: ScheduleId,
    time: WallMs,
    kind: FireKind,
    outcome: Outcome,
    now: WallMs,
) -> fire::Model {
    let (outcome, note) = match outcome {
        Outcome::Make => (FireOutcome::Pending, None),
        Outcome::Queue | Outcome::Supersede => (FireOutcome::Queued, None),
        Outcome::SkipOverlap => (FireOutcome::Skipped, None),
        Outcome::SkipCrowded => (FireOutcome::Skipped, Some(say::crowded().english())),
    };
    rows::decided(id, time, (kind, outcome), note, now)
}

fn skipped(row: &fire::Model, note: &str, now: WallMs) -> fire::Model {
    fire::Model {
        outcome: FireOutcome::Skipped.as_str().to_owned(),
        settled_at: Some(now.0),
        note: Some(note.to_owned()),
        ..row.clone()
    }
}

/// Skips queued fires in favor of a newer one, except backfilled ones.
pub(super) async fn supersede(
    transaction: &Transaction,
    id: ScheduleId,
    now: WallMs,
) -> Result<(), StoreError> {
    use fire::Column as C;
    fire::Entity::update_many()
        .col_expr(C::Outcome, Expr::value(FireOutcome::Skipped.as_str()))
        .col_expr(C::SettledAt, Expr::value(now.0))
        .col_expr(C::Note, Expr::value(say::superseded().english()))
        .filter(C::ScheduleId.eq(id.0))
        .filter(C::Outcome.eq(FireOutcome::Queued.as_str()))
        .filter(C::Kind.ne(FireKind::Backfilled.as_str()))
        .run(transaction)
        .await?;
    Ok(())
}

pub(super) async fn is_there(
    transaction: &Transaction,
    id: ScheduleId,
    time: WallMs,
) -> Result<bool, StoreError> {
    let found = fire::Entity::find_by_id((id.0, time.0)).row(transaction).await;
    Ok(found?.is_some())
}

/// Returns the missed fires after those that have a row; `None` if nothing is left.
pub(super) async fn free_part(
    transaction: &Transaction,
    (id, spec): (ScheduleId, &Spec),
    mut gap: Gap,
) -> Result<Option<Gap>, StoreError> {
    while is_there(transaction, id, gap.first).await? {
        let next = spec.next_after(gap.first).filter(|next| *next <= gap.last);
        let (Some(next), true) = (next, gap.count > 1) else {
            return Ok(None);
        };
        gap = Gap {
            first: next,
            count: gap.count - 1,
            ..gap
        };
    }
    Ok(Some(gap))
}
