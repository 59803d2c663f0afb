//! Daily totals over years, grouped by day, business or task.

use std::sync::Arc;
use std::time::Duration;

use super::ServiceError;
use crate::service::node::ThisNode;
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::stats::daily::{Settled, TaskCounts, Totals, UtcDay, grouped};
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::tasks::statistics::{Period, StatisticsStore};

/// Default period of the statistics: 30 days before the end.
const SINCE_DEFAULT: Duration = Duration::from_secs(30 * 24 * 3600);

windrow_core::slugs! {
    /// Grouping of statistics rows.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum By {
        /// By day, newest first.
        Day = "day",
        /// By business, in name order.
        Business = "business",
        /// By task, newest first; only tasks that still exist.
        Task = "task",
    }
}

/// Subject of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// Calendar day in UTC.
    Day(UtcDay),
    /// Slug of a business.
    Business(String),
    /// Single task that still exists.
    Task {
        /// Id of the task.
        id: TaskId,
        /// Name of the task.
        name: Option<String>,
        /// Business of the task.
        business: String,
        /// Current status of the task.
        status: Status,
    },
}

/// Cursor position of a row within its grouping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowKey {
    /// Number of a day, or id of a task.
    Number(i64),
    /// Name of a business.
    Name(String),
}

/// Totals for one subject in a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Subject of the row.
    pub about: About,
    /// Number of tasks created and ended; `None` in a row about a single task.
    pub tasks: Option<TaskCounts>,
    /// Number of items settled.
    pub items: Settled,
}

impl Row {
    fn of(about: About, totals: Totals) -> Row {
        Row {
            about,
            tasks: Some(totals.tasks),
            items: totals.items,
        }
    }

    /// Returns the cursor position of the row.
    pub fn key(&self) -> RowKey {
        match &self.about {
            About::Day(day) => RowKey::Number(day.0),
            About::Business(name) => RowKey::Name(name.clone()),
            About::Task { id, .. } => RowKey::Number(id.0),
        }
    }
}

/// Service for daily totals.
pub struct Statistics {
    node: Arc<ThisNode>,
    store: Arc<dyn StatisticsStore>,
}

impl Statistics {
    pub(super) fn new(node: Arc<ThisNode>, store: Arc<dyn StatisticsStore>) -> Statistics {
        Statistics { node, store }
    }

    /// Returns the days that a time range touches; default: the last 30 days.
    ///
    /// # Errors
    /// `Invalid` if the end is before the start.
    pub fn period(
        &self,
        (since, until): (Option<WallMs>, Option<WallMs>),
        business: Option<String>,
    ) -> Result<Period, ServiceError> {
        let until = until.unwrap_or_else(|| self.node.now());
        let since = since.unwrap_or_else(|| until.minus(SINCE_DEFAULT));
        if since > until {
            return Err(ServiceError::invalid("until", "must not be before `since`"));
        }
        // A range that ends at midnight doesn't touch the day that begins there.
        let last = UtcDay::of(WallMs(until.0.saturating_sub(1).max(since.0)));
        Ok(Period {
            from: UtcDay::of(since),
            until: last.next(),
            business,
        })
    }

    /// Returns up to `limit` rows after a position.
    ///
    /// # Errors
    /// `Invalid` if the position doesn't belong to this grouping.
    pub async fn rows(
        &self,
        by: By,
        period: &Period,
        after: Option<RowKey>,
        limit: u32,
    ) -> Result<Vec<Row>, ServiceError> {
        match (by, after) {
            (By::Day, None) => self.days(period, None, limit).await,
            (By::Day, Some(RowKey::Number(day))) => self.days(period, Some(UtcDay(day)), limit).await,
            (By::Business, None) => self.businesses(period, None, limit).await,
            (By::Business, Some(RowKey::Name(name))) => self.businesses(period, Some(name), limit).await,
            (By::Task, None) => self.tasks(period, None, limit).await,
            (By::Task, Some(RowKey::Number(id))) => self.tasks(period, Some(TaskId(id)), limit).await,
            _ => Err(ServiceError::invalid(
                "cursor",
                "not a cursor of this list; start without one",
            )),
        }
    }

    async fn days(
        &self,
        period: &Period,
        after: Option<UtcDay>,
        limit: u32,
    ) -> Result<Vec<Row>, ServiceError> {
        let cells = self.store.cells(period).await?;
        let days = grouped(&cells, |_, day| day).into_iter().rev();
        let older = days.filter(|(day, _)| after.is_none_or(|after| *day < after));
        let rows = older.map(|(day, totals)| Row::of(About::Day(day), totals));
        Ok(rows.take(limit as usize).collect())
    }

    async fn businesses(
        &self,
        period: &Period,
        after: Option<String>,
        limit: u32,
    ) -> Result<Vec<Row>, ServiceError> {
        let cells = self.store.cells(period).await?;
        let businesses = grouped(&cells, |business, _| business.to_owned()).into_iter();
        let later = businesses.filter(|(name, _)| after.as_ref().is_none_or(|after| name > after));
        let rows = later.map(|(name, totals)| Row::of(About::Business(name), totals));
        Ok(rows.take(limit as usize).collect())
    }

    async fn tasks(
        &self,
        period: &Period,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<Vec<Row>, ServiceError> {
        let found = self.store.task_totals(period, after, limit).await?;
        let rows = found.into_iter().map(|task| Row {
            about: About::Task {
                id: task.task,
                name: task.name,
                business: task.business,
                status: task.status,
            },
            tasks: None,
            items: task.items,
        });
        Ok(rows.collect())
    }
}
