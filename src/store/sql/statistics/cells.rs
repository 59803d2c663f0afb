//! Cells of the statistics: from shard days and task rows for tasks that are kept, from business days for deleted
//! tasks.

use std::collections::HashMap;

use sea_orm::sea_query::{Expr, ExprTrait as _};
use sea_orm::{
    ColumnTrait, ConnectionTrait as _, EntityTrait, FromQueryResult, QueryFilter, QuerySelect, QueryTrait,
};

use super::days::{ended, settled};
use super::shard_days::{BUSINESS, DAY, days_of_tasks, sums, tuples};
use super::{only, slug, slugs};
use crate::sql::entity::{business_day, task};
use crate::sql::{Fetch, Transaction, damaged, error};
use windrow_core::ids::WallMs;
use windrow_core::stats::daily::{Cells, TaskCounts, Totals, UtcDay};
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::statistics::Period;

/// Milliseconds in a day, as text in the query: passed twice as a parameter, the value would make two different
/// expressions.
const DAY_MS: &str = "86400000";

/// Number of tasks of a business with one status and a time within one day.
#[derive(FromQueryResult)]
struct Count {
    business_id: i64,
    day_start: i64,
    status: String,
    tasks: i64,
}

/// Statistics of a period, collected step by step in one snapshot.
pub(super) struct Found {
    slugs: HashMap<i64, String>,
    pub(super) cells: Cells,
}

impl Found {
    pub(super) async fn of(snapshot: &Transaction, period: &Period) -> Result<Found, StoreError> {
        Ok(Found {
            slugs: slugs(snapshot, period).await?,
            cells: Cells::new(),
        })
    }

    fn add(&mut self, business: i64, day: UtcDay, totals: Totals) -> Result<(), StoreError> {
        let slug = slug(&self.slugs, business)?;
        let cell = self.cells.entry((slug, day)).or_default();
        *cell = cell.plus(totals);
        Ok(())
    }

    /// Adds the items that kept tasks settled.
    pub(super) async fn items(&mut self, snapshot: &Transaction, period: &Period) -> Result<(), StoreError> {
        let mut query = sums(snapshot, days_of_tasks(period, &self.slugs));
        query.columns([BUSINESS, DAY]).group_by_columns([BUSINESS, DAY]);
        let rows = snapshot.query_all(&query).await.map_err(error)?;
        let sums: Vec<(i64, i64, i64, i64, i64)> = tuples(&rows)?;
        for (succeeded, skipped, failed, business, day) in sums {
            let items = settled(succeeded, skipped, failed);
            let totals = Totals {
                items,
                ..Totals::default()
            };
            self.add(business, UtcDay(day), totals)?;
        }
        Ok(())
    }

    /// Adds the kept tasks, by the days they were created and ended.
    pub(super) async fn tasks(&mut self, snapshot: &Transaction, period: &Period) -> Result<(), StoreError> {
        for (business, day, _, tasks) in self.counts(snapshot, task::Column::CreatedAt, period).await? {
            let counts = TaskCounts {
                created: tasks,
                ..TaskCounts::default()
            };
            self.add_tasks(business, day, counts)?;
        }
        for (business, day, status, tasks) in self.counts(snapshot, task::Column::FinishedAt, period).await? {
            let mut counts = TaskCounts::default();
            ended(&mut counts, status, tasks);
            self.add_tasks(business, day, counts)?;
        }
        Ok(())
    }

    fn add_tasks(&mut self, business: i64, day: UtcDay, tasks: TaskCounts) -> Result<(), StoreError> {
        let totals = Totals {
            tasks,
            ..Totals::default()
        };
        self.add(business, day, totals)
    }

    /// Counts tasks by business, by the day of a time column, and by status.
    async fn counts(
        &self,
        snapshot: &Transaction,
        time: task::Column,
        period: &Period,
    ) -> Result<Vec<(i64, UtcDay, Status, u64)>, StoreError> {
        use task::Column as C;
        let start = Expr::col(time).sub(Expr::col(time).modulo(Expr::cust(DAY_MS)));
        let counts = task::Entity::find()
            .select_only()
            .column(C::BusinessId)
            .column_as(start.clone(), "day_start")
            .column(C::Status)
            .column_as(C::Id.count(), "tasks")
            .filter(time.gte(period.from.start().0))
            .filter(time.lt(period.until.start().0))
            .apply_if(only(period, &self.slugs), |query, ids| {
                query.filter(C::BusinessId.is_in(ids))
            })
            .group_by(C::BusinessId)
            .group_by(start)
            .group_by(C::Status)
            .into_model::<Count>()
            .rows(snapshot)
            .await?;
        let known = |row: Count| {
            let status = Status::parse(&row.status).ok_or_else(|| damaged("task.status", &row.status))?;
            let day = UtcDay::of(WallMs(row.day_start));
            Ok((row.business_id, day, status, row.tasks.cast_unsigned()))
        };
        counts.into_iter().map(known).collect()
    }

    /// Adds the totals of tasks that were deleted since.
    pub(super) async fn deleted(
        &mut self,
        snapshot: &Transaction,
        period: &Period,
    ) -> Result<(), StoreError> {
        use business_day::Column as C;
        let query = business_day::Entity::find().apply_if(period.business.as_ref(), |query, slug| {
            query.filter(C::Business.eq(slug))
        });
        let query = query
            .filter(C::Day.gte(period.from.0))
            .filter(C::Day.lt(period.until.0));
        let rows = query.rows(snapshot).await?;
        for row in rows {
            let totals = Totals {
                tasks: TaskCounts {
                    created: row.created.cast_unsigned(),
                    finished: row.finished.cast_unsigned(),
                    cancelled: row.cancelled.cast_unsigned(),
                },
                items: settled(row.succeeded, row.skipped, row.failed),
            };
            let cell = self.cells.entry((row.business, UtcDay(row.day))).or_default();
            *cell = cell.plus(totals);
        }
        Ok(())
    }
}
