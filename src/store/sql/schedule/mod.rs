//! Schedules and their fires. Every decision about a schedule's fires is made under the lock of its row, which is
//! taken before any of its fires. Times are the database's.

mod change;
mod due;
mod open;
mod order;
mod rows;
mod settle;
mod skip;
mod told;
mod tries;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, Select,
};

pub(crate) use self::settle::{later_made, refuse_settled, settle};
use crate::sql::entity::{business, fire, schedule, task};
use crate::sql::{Fetch, Pluck, Store, Transaction, damaged, dialect, error, settled};
use windrow_core::ids::{ScheduleId, WallMs};
use windrow_core::schedule::plan::Standing;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::schedules::store::{
    Agenda, Backfill, Due, Fire, FireOutcome, Fired, NewSchedule, OpenFires, Schedule, ScheduleEdit,
    ScheduleError, ScheduleFilter, ScheduleStore, Taken,
};
use windrow_engine::ports::tasks::store::Write;

/// Statuses in which a task doesn't block its schedule.
const OUT_OF_THE_WAY: [Status; 3] = [Status::Finished, Status::Cancelled, Status::Stopped];

#[async_trait]
impl ScheduleStore for Store {
    async fn database_time(&self) -> Result<WallMs, StoreError> {
        dialect::time(&self.readers).await
    }

    async fn create_schedule(&self, new: &NewSchedule, write: &Write) -> Result<Schedule, ScheduleError> {
        settled(|| change::create(self, new, write)).await
    }

    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>, StoreError> {
        match schedule::Entity::find_by_id(id.0).row(&self.readers).await? {
            Some(row) => Ok(Some(view(&self.readers, &row).await?)),
            None => Ok(None),
        }
    }

    async fn schedules(
        &self,
        filter: &ScheduleFilter,
        after: Option<ScheduleId>,
        count: u32,
    ) -> Result<Vec<Schedule>, StoreError> {
        list(self, filter, after, count).await
    }

    async fn change_schedule(
        &self,
        id: ScheduleId,
        expected: u64,
        edit: &ScheduleEdit,
        write: &Write,
    ) -> Result<Schedule, ScheduleError> {
        settled(|| change::change(self, (id, expected), edit, write)).await
    }

    async fn delete_schedule(&self, id: ScheduleId, write: &Write) -> Result<Schedule, ScheduleError> {
        settled(|| change::delete(self, id, write)).await
    }

    async fn trigger(&self, id: ScheduleId, write: &Write) -> Result<Fire, ScheduleError> {
        settled(|| order::trigger(self, id, write)).await
    }

    async fn backfill(
        &self,
        id: ScheduleId,
        wanted: Backfill<'_>,
        write: &Write,
    ) -> Result<Vec<Fire>, ScheduleError> {
        settled(|| order::backfill(self, id, wanted, write)).await
    }

    async fn skip_fires(
        &self,
        id: ScheduleId,
        time: Option<WallMs>,
        write: &Write,
    ) -> Result<Vec<Fire>, ScheduleError> {
        settled(|| skip::skip(self, (id, time), write)).await
    }

    async fn fires(
        &self,
        id: ScheduleId,
        outcome: Option<FireOutcome>,
        before: Option<WallMs>,
        count: u32,
    ) -> Result<Vec<Fire>, StoreError> {
        use fire::Column as C;
        let mut found = fire::Entity::find().filter(C::ScheduleId.eq(id.0));
        if let Some(outcome) = outcome {
            found = found.filter(C::Outcome.eq(outcome.as_str()));
        }
        if let Some(before) = before {
            found = found.filter(C::FireTime.lt(before.0));
        }
        let found = found.order_by_desc(C::FireTime).limit(u64::from(count));
        let rows = found.rows(&self.readers).await?;
        rows.into_iter().map(rows::fire_view).collect()
    }

    async fn open_fires(&self, id: ScheduleId) -> Result<OpenFires, StoreError> {
        Ok(OpenFires {
            pending: count(&self.readers, id, FireOutcome::Pending).await?,
            queued: count(&self.readers, id, FireOutcome::Queued).await?,
        })
    }

    async fn agenda(&self, limit: u32) -> Result<Agenda, StoreError> {
        due::agenda(self, limit).await
    }

    async fn fire_due(&self, due: Due) -> Result<Fired, StoreError> {
        settled(|| due::fire(self, due)).await
    }

    async fn take_fires(&self, limit: u32, alone: bool) -> Result<Taken, StoreError> {
        open::take(self, limit, alone).await
    }

    async fn put_back_fire(&self, id: ScheduleId, time: WallMs) -> Result<(), StoreError> {
        tries::put_back(self, id, time).await
    }

    async fn keep_fire(&self, id: ScheduleId, time: WallMs) -> Result<bool, StoreError> {
        open::keep(self, id, time).await
    }

    async fn fail_fire(
        &self,
        id: ScheduleId,
        time: WallMs,
        text: &str,
        again: Option<Duration>,
    ) -> Result<(), StoreError> {
        open::fail(self, (id, time), text, again).await
    }

    async fn expire_fires(&self, before: WallMs) -> Result<u64, StoreError> {
        open::expire(self, before).await
    }
}

async fn list(
    store: &Store,
    filter: &ScheduleFilter,
    after: Option<ScheduleId>,
    count: u32,
) -> Result<Vec<Schedule>, StoreError> {
    use schedule::Column as C;
    let mut found = schedule::Entity::find().filter(C::Id.gt(after.map_or(0, |after| after.0)));
    if let Some(name) = &filter.name {
        found = found.filter(C::Name.eq(name));
    }
    if let Some(slug) = &filter.business {
        let owner = business::Entity::find().filter(business::Column::Slug.eq(slug));
        let Some(owner) = owner.row(&store.readers).await? else {
            return Ok(Vec::new());
        };
        found = found.filter(C::BusinessId.eq(owner.id));
    }
    let rows = found
        .order_by_asc(C::Id)
        .limit(u64::from(count))
        .rows(&store.readers)
        .await?;
    let owners: Vec<(i64, String)> = business::Entity::find()
        .filter(business::Column::Id.is_in(rows.iter().map(|row| row.business_id)))
        .pluck([business::Column::Id, business::Column::Slug], &store.readers)
        .await?;
    let owners: BTreeMap<i64, String> = owners.into_iter().collect();
    rows.iter()
        .map(|row| rows::view(row, owners.get(&row.business_id).cloned().unwrap_or_default()))
        .collect()
}

async fn view(db: &impl ConnectionTrait, row: &schedule::Model) -> Result<Schedule, StoreError> {
    let owner = business::Entity::find_by_id(row.business_id).row(db).await?;
    let owner = owner.ok_or_else(|| damaged("schedule.business_id", &row.business_id.to_string()))?;
    rows::view(row, owner.slug)
}

/// Locks a schedule and reads it.
async fn lock(transaction: &Transaction, id: ScheduleId) -> Result<Option<schedule::Model>, StoreError> {
    let found = schedule::Entity::find_by_id(id.0).lock_exclusive();
    found.row(transaction).await
}

async fn locked(transaction: &Transaction, id: ScheduleId) -> Result<schedule::Model, ScheduleError> {
    lock(transaction, id).await?.ok_or(ScheduleError::NotFound(id))
}

/// Selects the tasks of a schedule that block its next fires.
fn in_the_way(id: ScheduleId) -> Select<task::Entity> {
    task::Entity::find()
        .filter(task::Column::ScheduleId.eq(id.0))
        .filter(task::Column::Status.is_not_in(OUT_OF_THE_WAY.map(Status::as_str)))
}

/// Selects the fires of a schedule with this outcome.
fn with(id: ScheduleId, outcome: FireOutcome) -> Select<fire::Entity> {
    let condition = Condition::all()
        .add(fire::Column::ScheduleId.eq(id.0))
        .add(fire::Column::Outcome.eq(outcome.as_str()));
    fire::Entity::find().filter(condition)
}

async fn count(db: &impl ConnectionTrait, id: ScheduleId, outcome: FireOutcome) -> Result<u64, StoreError> {
    with(id, outcome).count(db).await.map_err(error)
}

/// Reads the state of a schedule that a plan needs; its row is locked.
async fn standing(transaction: &Transaction, id: ScheduleId, next: WallMs) -> Result<Standing, StoreError> {
    let busy = in_the_way(id).pluck_one::<i64>([task::Column::Id], transaction);
    let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(Standing {
        id,
        next,
        is_busy: busy.await?.is_some(),
        pending: number(count(transaction, id, FireOutcome::Pending).await?),
        queued: number(count(transaction, id, FireOutcome::Queued).await?),
    })
}
