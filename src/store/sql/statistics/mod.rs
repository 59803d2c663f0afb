//! What was done in each day: written by the transactions that change what is counted, read in one snapshot.

mod cells;
pub mod days;

use std::collections::HashMap;

use async_trait::async_trait;
use sea_orm::{
    ColumnTrait, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect, QueryTrait, RelationDef, Select,
};

use self::cells::Found;
use self::days::settled;
use crate::sql::dialect::whole_sum;
use crate::sql::entity::{business, shard_day, task};
use crate::sql::{Store, Transaction, damaged, error, words};
use windrow_core::ids::{ShardId, TaskId};
use windrow_core::stats::daily::{Cells, Settled, UtcDay};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::statistics::{Period, ShardDay, StatisticsStore, TaskTotals};

#[async_trait]
impl StatisticsStore for Store {
    async fn cells(&self, period: &Period) -> Result<Cells, StoreError> {
        // A task's days move to its business when it is deleted: they are seen once.
        let snapshot = self.snapshot().await?;
        let mut found = Found::of(&snapshot, period).await?;
        found.items(&snapshot, period).await?;
        found.tasks(&snapshot, period).await?;
        found.deleted(&snapshot, period).await?;
        Ok(found.cells)
    }

    async fn task_totals(
        &self,
        period: &Period,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<Vec<TaskTotals>, StoreError> {
        use shard_day::Column as C;
        let snapshot = self.snapshot().await?;
        let slugs = slugs(&snapshot, period).await?;
        let query = days_of_tasks(period, &slugs)
            .column(C::TaskId)
            .apply_if(after, |query, id| query.filter(C::TaskId.lt(id.0)))
            .group_by(C::TaskId)
            .order_by_desc(C::TaskId)
            .limit(u64::from(limit));
        let query = with_sums(&snapshot, query);
        let sums: Vec<(i64, i64, i64, i64)> = query.into_tuple().all(&snapshot).await.map_err(error)?;
        let rows = task::Entity::find()
            .filter(task::Column::Id.is_in(sums.iter().map(|(id, ..)| *id)))
            .all(&snapshot)
            .await
            .map_err(error)?;
        let mut rows: HashMap<i64, task::Model> = rows.into_iter().map(|row| (row.id, row)).collect();
        let totals = |(id, succeeded, skipped, abandoned)| {
            let row = rows
                .remove(&id)
                .ok_or_else(|| damaged("the task of a day", &id.to_string()))?;
            totals(row, &slugs, settled(succeeded, skipped, abandoned))
        };
        sums.into_iter().map(totals).collect()
    }

    async fn shard_days(&self, task: TaskId) -> Result<Vec<ShardDay>, StoreError> {
        use shard_day::Column as C;
        let rows = shard_day::Entity::find()
            .filter(C::TaskId.eq(task.0))
            .order_by_asc(C::ShardNo)
            .order_by_asc(C::Day)
            .all(&self.readers)
            .await
            .map_err(error)?;
        let day = |row: shard_day::Model| ShardDay {
            shard: ShardId {
                task,
                no: row.shard_no.cast_unsigned(),
            },
            day: UtcDay(row.day),
            items: settled(row.succeeded, row.skipped, row.abandoned),
        };
        Ok(rows.into_iter().map(day).collect())
    }
}

fn totals(row: task::Model, slugs: &HashMap<i64, String>, items: Settled) -> Result<TaskTotals, StoreError> {
    Ok(TaskTotals {
        task: TaskId(row.id),
        status: words::status(&row)?,
        business: slug(slugs, row.business_id)?,
        name: row.name,
        items,
    })
}

/// The slugs of the businesses of a period.
async fn slugs(snapshot: &Transaction, period: &Period) -> Result<HashMap<i64, String>, StoreError> {
    use business::Column as C;
    let found: Vec<(i64, String)> = business::Entity::find()
        .select_only()
        .columns([C::Id, C::Slug])
        .apply_if(period.business.as_ref(), |query, slug| {
            query.filter(C::Slug.eq(slug))
        })
        .into_tuple()
        .all(snapshot)
        .await
        .map_err(error)?;
    Ok(found.into_iter().collect())
}

fn slug(slugs: &HashMap<i64, String>, business: i64) -> Result<String, StoreError> {
    let slug = slugs.get(&business).cloned();
    slug.ok_or_else(|| damaged("the business of a task", &business.to_string()))
}

/// The days of a period of tasks that are kept; nothing is selected of them yet.
fn days_of_tasks(period: &Period, slugs: &HashMap<i64, String>) -> Select<shard_day::Entity> {
    let task_of_day: RelationDef = shard_day::Entity::belongs_to(task::Entity)
        .from(shard_day::Column::TaskId)
        .to(task::Column::Id)
        .into();
    let days = shard_day::Entity::find()
        .select_only()
        .join(JoinType::InnerJoin, task_of_day)
        .apply_if(only(period, slugs), |query, ids| {
            query.filter(task::Column::BusinessId.is_in(ids))
        });
    of_days(days, shard_day::Column::Day, period)
}

/// The numbers of the businesses that are asked for; none is all.
fn only(period: &Period, slugs: &HashMap<i64, String>) -> Option<Vec<i64>> {
    period.business.as_ref()?;
    Some(slugs.keys().copied().collect())
}

fn of_days<E: EntityTrait>(query: Select<E>, day: E::Column, period: &Period) -> Select<E> {
    query
        .filter(day.gte(period.from.0))
        .filter(day.lt(period.until.0))
}

/// With the sums of what was settled.
fn with_sums(snapshot: &Transaction, query: Select<shard_day::Entity>) -> Select<shard_day::Entity> {
    use shard_day::Column as C;
    [(C::Succeeded, "s"), (C::Skipped, "k"), (C::Abandoned, "a")]
        .into_iter()
        .fold(query, |query, (column, name)| {
            query.column_as(whole_sum(snapshot, column), name)
        })
}
