//! Daily totals of items and tasks: written by the transactions that change what is counted, read in one snapshot.

mod cells;
pub mod days;
mod shard_days;

use std::collections::HashMap;

use async_trait::async_trait;
use sea_orm::sea_query::{Expr, ExprTrait as _, Order};
use sea_orm::{ColumnTrait, ConnectionTrait as _, EntityTrait, QueryFilter, QueryTrait};

use self::cells::Found;
use self::days::settled;
use self::shard_days::{TASK, days_of_tasks, tuples};
use crate::sql::entity::{business, shard_day, task};
use crate::sql::task::record;
use crate::sql::{Fetch, Pluck, Store, Transaction, damaged, error, words};
use windrow_core::ids::TaskId;
use windrow_core::stats::daily::{Cells, Settled};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::statistics::{Period, ShardDay, StatisticsStore, TaskTotals};

#[async_trait]
impl StatisticsStore for Store {
    async fn cells(&self, period: &Period) -> Result<Cells, StoreError> {
        // A task's days move to its business when it is deleted: one snapshot sees them once.
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
        let snapshot = self.snapshot().await?;
        let slugs = slugs(&snapshot, period).await?;
        let mut query = shard_days::sums(&snapshot, days_of_tasks(period, &slugs));
        query.column(TASK).group_by_col(TASK).order_by(TASK, Order::Desc);
        if let Some(id) = after {
            query.and_where(Expr::col(TASK).lt(id.0));
        }
        query.limit(u64::from(limit));
        let found = snapshot.query_all(&query).await.map_err(error)?;
        let sums: Vec<(i64, i64, i64, i64)> = tuples(&found)?;
        let rows = task::Entity::find()
            .filter(task::Column::Id.is_in(sums.iter().map(|(.., id)| *id)))
            .rows(&snapshot)
            .await?;
        let mut rows: HashMap<i64, task::Model> = rows.into_iter().map(|row| (row.id, row)).collect();
        let totals = |(succeeded, skipped, failed, id)| {
            let row = rows
                .remove(&id)
                .ok_or_else(|| damaged("task_day.task_id", &id.to_string()))?;
            totals(row, &slugs, settled(succeeded, skipped, failed))
        };
        sums.into_iter().map(totals).collect()
    }

    async fn shard_days(&self, task: TaskId) -> Result<Vec<ShardDay>, StoreError> {
        let snapshot = self.snapshot().await?;
        let over = shard_day::Entity::find()
            .filter(shard_day::Column::TaskId.eq(task.0))
            .rows(&snapshot)
            .await?;
        let shards = record::shards(&snapshot, task).await?;
        Ok(days::together(&over, &shards))
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

/// Returns the slugs of the businesses in a period, by row id.
async fn slugs(snapshot: &Transaction, period: &Period) -> Result<HashMap<i64, String>, StoreError> {
    use business::Column as C;
    let found: Vec<(i64, String)> = business::Entity::find()
        .apply_if(period.business.as_ref(), |query, slug| {
            query.filter(C::Slug.eq(slug))
        })
        .pluck([C::Id, C::Slug], snapshot)
        .await?;
    Ok(found.into_iter().collect())
}

fn slug(slugs: &HashMap<i64, String>, business: i64) -> Result<String, StoreError> {
    let slug = slugs.get(&business).cloned();
    slug.ok_or_else(|| damaged("task.business_id", &business.to_string()))
}

/// Returns the row ids of the businesses that are asked for; `None` means all.
fn only(period: &Period, slugs: &HashMap<i64, String>) -> Option<Vec<i64>> {
    period.business.as_ref()?;
    Some(slugs.keys().copied().collect())
}
