//! Fires that are not settled: taken under a lease, kept, failed.

use std::time::Duration;

use sea_orm::sea_query::{Expr, ExprTrait as _, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect, RelationDef,
};

use super::tries;
use super::{OUT_OF_THE_WAY, in_the_way, lock, rows, standing, told, view, with};
use crate::sql::entity::{fire, schedule, task};
use crate::sql::{Fetch, Pluck, Run, Store, dialect, settled};
use windrow_core::ids::{ScheduleId, TaskId, WallMs};
use windrow_core::schedule::Overlap;
use windrow_core::task::lifecycle::{Desired, Status};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::schedules::store::{
    FIRE_LEASE, FIRE_TEXT_MAX, FIRES_KEPT_MAX, FireKind, FireOutcome, NextTry, Schedule, Taken, TakenFire,
};
use windrow_engine::ports::tasks::upkeep::SWEEP_MAX;

/// Maximum number of pending fires of a schedule that allows overlap; further ones stay queued.
const AT_ONCE_MAX: u32 = 10;

pub(super) const PENDING: &str = "pending";
pub(super) const QUEUED: &str = "queued";

/// Returns true if a fire can be taken, or may have become free to be taken.
pub(super) async fn is_any(store: &Store, now: WallMs) -> Result<bool, StoreError> {
    use fire::Column as C;
    let pending = Condition::all()
        .add(C::Outcome.eq(PENDING))
        .add(C::LeaseUntil.lte(now.0));
    let found: Option<i64> = fire::Entity::find()
        .filter(Condition::any().add(C::Outcome.eq(QUEUED)).add(pending))
        .limit(1)
        .pluck_one([C::ScheduleId], &store.readers)
        .await?;
    Ok(found.is_some())
}

/// Implements [`windrow_engine::ports::schedules::store::ScheduleStore::take_fires`]: promotes queued fires that are
/// free, then takes pending ones.
pub(super) async fn take(store: &Store, limit: u32, alone: bool) -> Result<Taken, StoreError> {
    for (id, time) in free_heads(store, limit).await? {
        settled(|| promote(store, id, time)).await?;
    }
    let mut taken = Taken::default();
    for row in loose(store, limit).await? {
        match NextTry::after(row.attempts.cast_unsigned(), alone && taken.fires.is_empty()) {
            NextTry::Wait => {}
            NextTry::GiveUp => taken.given_up.extend(tries::give_up(store, row).await?),
            NextTry::Make => taken.fires.extend(take_one(store, row).await?),
            NextTry::MakeAlone => {
                taken.fires.extend(take_one(store, row).await?);
                break;
            }
        }
    }
    taken.cancels = to_be_cancelled(store, limit).await?;
    Ok(taken)
}

/// Reads pending fires that nobody has taken.
async fn loose(store: &Store, limit: u32) -> Result<Vec<fire::Model>, StoreError> {
    use fire::Column as C;
    let now = dialect::time(&store.readers).await?;
    let found = fire::Entity::find()
        .filter(C::Outcome.eq(PENDING))
        .filter(C::LeaseUntil.lte(now.0))
        // First those without a failed attempt.
        .order_by_asc(C::Attempts)
        .order_by_asc(C::LeaseUntil)
        .order_by_asc(C::FireTime)
        .limit(u64::from(limit));
    found.rows(&store.readers).await
}

async fn take_one(store: &Store, row: fire::Model) -> Result<Option<TakenFire>, StoreError> {
    use fire::Column as C;
    let now = dialect::time(&store.writer).await?;
    let taken = fire::Entity::update_many()
        .col_expr(C::LeaseUntil, Expr::value(now.plus(FIRE_LEASE).0))
        .col_expr(C::Attempts, Expr::col(C::Attempts).add(1))
        .filter(C::ScheduleId.eq(row.schedule_id))
        .filter(C::FireTime.eq(row.fire_time))
        .filter(C::Outcome.eq(PENDING))
        .filter(C::LeaseUntil.eq(row.lease_until))
        .run(&store.writer)
        .await?;
    let of = schedule::Entity::find_by_id(row.schedule_id)
        .row(&store.writer)
        .await;
    let Some(of) = of?.filter(|_| taken == 1) else {
        return Ok(None);
    };
    let of: Schedule = view(&store.writer, &of).await?;
    Ok(Some(TakenFire {
        time: WallMs(row.fire_time),
        kind: rows::kind(&row)?,
        previous: previous(store, of.id, WallMs(row.fire_time)).await?,
        attempts: row.attempts.cast_unsigned(),
        publishes: rows::publishes(&row)?,
        schedule: of,
    }))
}

/// Returns the newest fire before this one that made a task.
async fn previous(store: &Store, id: ScheduleId, time: WallMs) -> Result<Option<WallMs>, StoreError> {
    use fire::Column as C;
    let found: Option<i64> = with(id, FireOutcome::Made)
        .filter(C::FireTime.lt(time.0))
        .order_by_desc(C::FireTime)
        .pluck_one([C::FireTime], &store.writer)
        .await?;
    Ok(found.map(WallMs))
}

/// Returns the relation from `fire` to its schedule.
fn to_schedule() -> RelationDef {
    fire::Entity::belongs_to(schedule::Entity)
        .from(fire::Column::ScheduleId)
        .to(schedule::Column::Id)
        .into()
}

/// Returns the first queued fire of each schedule that seems to be unblocked; `promote` checks again under the lock.
async fn free_heads(store: &Store, limit: u32) -> Result<Vec<(ScheduleId, WallMs)>, StoreError> {
    use fire::Column as C;
    let is_free = Condition::all()
        .add(Expr::exists(tasks_of_schedule()).not())
        .add(Expr::exists(pending_of_schedule()).not());
    let may_go = Condition::any()
        .add(schedule::Column::Overlap.eq(Overlap::Allow.as_str()))
        .add(is_free);
    let is_not_held = Condition::any()
        .add(schedule::Column::Paused.eq(false))
        .add(C::Kind.ne(FireKind::Scheduled.as_str()));
    let found: Vec<(i64, i64)> = fire::Entity::find()
        .select_only()
        .column(C::ScheduleId)
        .column_as(C::FireTime.min(), "first")
        .join(JoinType::InnerJoin, to_schedule())
        .filter(C::Outcome.eq(QUEUED))
        .filter(may_go)
        .filter(is_not_held)
        .group_by(C::ScheduleId)
        .limit(u64::from(limit))
        .into_tuple()
        .rows(&store.readers)
        .await?;
    Ok(found
        .into_iter()
        .map(|(id, time)| (ScheduleId(id), WallMs(time)))
        .collect())
}

/// Builds the subquery for tasks that block the outer query's schedule.
fn tasks_of_schedule() -> SelectStatement {
    Query::select()
        .expr(Expr::value(1))
        .from(task::Entity)
        .and_where(
            Expr::col((task::Entity, task::Column::ScheduleId))
                .equals((schedule::Entity, schedule::Column::Id)),
        )
        .and_where(task::Column::Status.is_not_in(OUT_OF_THE_WAY.map(Status::as_str)))
        .to_owned()
}

/// Builds the subquery for pending fires of the outer query's schedule.
fn pending_of_schedule() -> SelectStatement {
    let other = sea_orm::sea_query::Alias::new("other");
    Query::select()
        .expr(Expr::value(1))
        .from_as(fire::Entity, other.clone())
        .and_where(
            Expr::col((other.clone(), fire::Column::ScheduleId))
                .equals((schedule::Entity, schedule::Column::Id)),
        )
        .and_where(Expr::col((other, fire::Column::Outcome)).eq(PENDING))
        .to_owned()
}

/// Makes a queued fire pending, if nothing blocks it now that its schedule's row is locked.
async fn promote(store: &Store, id: ScheduleId, time: WallMs) -> Result<(), StoreError> {
    use fire::Column as C;
    let transaction = store.write().await?;
    let Some(row) = lock(&transaction, id).await? else {
        return Ok(());
    };
    let (spec, stands) = (rows::spec(&row)?, standing(&transaction, id, time).await?);
    let may_go = match spec.overlap {
        Overlap::Allow => stands.pending < AT_ONCE_MAX,
        Overlap::Skip | Overlap::Queue | Overlap::CancelRunning => !stands.is_busy && stands.pending == 0,
    };
    if !may_go {
        return Ok(());
    }
    fire::Entity::update_many()
        .col_expr(C::Outcome, Expr::value(PENDING))
        .col_expr(C::LeaseUntil, Expr::value(0_i64))
        .filter(C::ScheduleId.eq(id.0))
        .filter(C::FireTime.eq(time.0))
        .filter(C::Outcome.eq(QUEUED))
        .run(&transaction)
        .await?;
    transaction.commit().await
}

/// Returns tasks to cancel: they block a fire that cancels whatever runs, and are not being cancelled yet.
async fn to_be_cancelled(store: &Store, limit: u32) -> Result<Vec<TaskId>, StoreError> {
    use schedule::Column as C;
    let waits = Query::select()
        .expr(Expr::value(1))
        .from(fire::Entity)
        .and_where(Expr::col((fire::Entity, fire::Column::ScheduleId)).equals((schedule::Entity, C::Id)))
        .and_where(fire::Column::Outcome.eq(QUEUED))
        // A backfilled fire cancels nothing.
        .and_where(fire::Column::Kind.ne(FireKind::Backfilled.as_str()))
        .to_owned();
    let schedules: Vec<i64> = schedule::Entity::find()
        .filter(C::Overlap.eq(Overlap::CancelRunning.as_str()))
        .filter(Expr::exists(waits))
        .limit(u64::from(limit))
        .pluck([C::Id], &store.readers)
        .await?;
    let mut cancels = Vec::new();
    for id in schedules {
        let tasks: Vec<i64> = in_the_way(ScheduleId(id))
            .filter(task::Column::Desired.ne(Desired::Cancel.as_str()))
            .limit(u64::from(limit))
            .pluck([task::Column::Id], &store.readers)
            .await?;
        cancels.extend(tasks.into_iter().map(TaskId));
    }
    Ok(cancels)
}

/// Implements [`windrow_engine::ports::schedules::store::ScheduleStore::keep_fire`]; returns false if the fire is no
/// longer pending.
pub(super) async fn keep(store: &Store, id: ScheduleId, time: WallMs) -> Result<bool, StoreError> {
    use fire::Column as C;
    let now = dialect::time(&store.writer).await?;
    let kept = fire::Entity::update_many()
        .col_expr(C::LeaseUntil, Expr::value(now.plus(FIRE_LEASE).0))
        .filter(C::ScheduleId.eq(id.0))
        .filter(C::FireTime.eq(time.0))
        .filter(C::Outcome.eq(PENDING))
        .run(&store.writer)
        .await?;
    Ok(kept == 1)
}

/// Implements [`windrow_engine::ports::schedules::store::ScheduleStore::fail_fire`]; without `again`, the fire fails
/// for good.
pub(super) async fn fail(
    store: &Store,
    (id, time): (ScheduleId, WallMs),
    text: &str,
    again: Option<Duration>,
) -> Result<(), StoreError> {
    use fire::Column as C;
    let transaction = store.write().await?;
    let now = dialect::time(&transaction).await?;
    let text: String = text.chars().take(FIRE_TEXT_MAX).collect();
    let mut failed = fire::Entity::update_many().col_expr(C::Note, Expr::value(text));
    failed = match again {
        Some(wait) => failed.col_expr(C::LeaseUntil, Expr::value(now.plus(wait).0)),
        None => failed
            .col_expr(C::Outcome, Expr::value(FireOutcome::Failed.as_str()))
            .col_expr(C::SettledAt, Expr::value(now.0)),
    };
    let failed = failed
        .filter(C::ScheduleId.eq(id.0))
        .filter(C::FireTime.eq(time.0))
        .filter(C::Outcome.eq(PENDING));
    if failed.run(&transaction).await? == 1
        && let Some(row) = fire::Entity::find_by_id((id.0, time.0)).row(&transaction).await?
    {
        told::tell(&transaction, &row, now).await?;
    }
    transaction.commit().await
}

/// Implements [`windrow_engine::ports::schedules::store::ScheduleStore::expire_fires`]: first old fires, then those
/// above the maximum of a schedule.
pub(super) async fn expire(store: &Store, before: WallMs) -> Result<u64, StoreError> {
    use fire::Column as C;
    let old: Vec<(i64, i64)> = fire::Entity::find()
        .filter(C::DecidedAt.lt(before.0))
        .filter(C::Outcome.is_not_in([PENDING, QUEUED]))
        .order_by_asc(C::DecidedAt)
        .limit(SWEEP_MAX)
        .pluck([C::ScheduleId, C::FireTime], &store.readers)
        .await?;
    if !old.is_empty() {
        let mut times = std::collections::BTreeMap::<i64, Vec<i64>>::new();
        for (id, time) in old {
            times.entry(id).or_default().push(time);
        }
        let mut removed = 0;
        for (id, times) in times {
            removed += remove(store, id, C::FireTime.is_in(times)).await?;
        }
        return Ok(removed);
    }
    excess(store).await
}

/// Removes the fires of one schedule above the number that is kept.
async fn excess(store: &Store) -> Result<u64, StoreError> {
    use fire::Column as C;
    let number = C::FireTime.count();
    let fullest: Option<i64> = fire::Entity::find()
        .group_by(C::ScheduleId)
        .having(number.gt(FIRES_KEPT_MAX.cast_signed()))
        .pluck_one([C::ScheduleId], &store.readers)
        .await?;
    let Some(id) = fullest else { return Ok(0) };
    let oldest_kept: Option<i64> = fire::Entity::find()
        .filter(C::ScheduleId.eq(id))
        .order_by_desc(C::FireTime)
        .offset(FIRES_KEPT_MAX - 1)
        .limit(1)
        .pluck_one([C::FireTime], &store.readers)
        .await?;
    match oldest_kept {
        Some(kept) => remove(store, id, C::FireTime.lt(kept)).await,
        None => Ok(0),
    }
}

async fn remove(store: &Store, id: i64, which: Expr) -> Result<u64, StoreError> {
    use fire::Column as C;
    let gone = fire::Entity::delete_many()
        .filter(C::ScheduleId.eq(id))
        .filter(which)
        .filter(C::Outcome.is_not_in([PENDING, QUEUED]));
    gone.run(&store.writer).await
}
