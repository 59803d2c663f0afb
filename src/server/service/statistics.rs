//! What was done in each day, over years: by day, by business, by task.

use std::sync::Arc;
use std::time::Duration;

use super::ServiceError;
use crate::service::node::ThisNode;
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::stats::daily::{Settled, TaskCounts, Totals, UtcDay, grouped};
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::tasks::statistics::{Period, StatisticsStore};

/// How far back statistics go where nobody says since when.
const SINCE_DEFAULT: Duration = Duration::from_secs(30 * 24 * 3600);

windrow_core::slugs! {
    /// What a row of statistics is about.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum By {
        /// A day, newest first.
        Day = "day",
        /// A business, by name.
        Business = "business",
        /// A task that is still kept, newest first.
        Task = "task",
    }
}

/// What a row is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// A day.
    Day(UtcDay),
    /// A business.
    Business(String),
    /// A task.
    Task {
        /// Its number.
        id: TaskId,
        /// Its name.
        name: Option<String>,
        /// Its business.
        business: String,
        /// Where it stands now.
        status: Status,
    },
}

/// The place of a row among those of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowKey {
    /// A day's or a task's.
    Number(i64),
    /// A business's.
    Name(String),
}

/// What was done in a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// By what.
    pub about: About,
    /// The tasks that were made and that ended; none of a single task.
    pub tasks: Option<TaskCounts>,
    /// The items.
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

    /// Where it stands.
    pub fn key(&self) -> RowKey {
        match &self.about {
            About::Day(day) => RowKey::Number(day.0),
            About::Business(name) => RowKey::Name(name.clone()),
            About::Task { id, .. } => RowKey::Number(id.0),
        }
    }
}

/// Statistics.
pub struct Statistics {
    node: Arc<ThisNode>,
    store: Arc<dyn StatisticsStore>,
}

impl Statistics {
    pub(super) fn new(node: Arc<ThisNode>, store: Arc<dyn StatisticsStore>) -> Statistics {
        Statistics { node, store }
    }

    /// The days that a span of time touches; without a beginning the last 30 days.
    ///
    /// # Errors
    /// `Invalid` where it ends before it begins.
    pub fn period(
        &self,
        (since, until): (Option<WallMs>, Option<WallMs>),
        business: Option<String>,
    ) -> Result<Period, ServiceError> {
        let until = until.unwrap_or_else(|| self.node.now());
        let since = since.unwrap_or_else(|| until.minus(SINCE_DEFAULT));
        if since > until {
            return Err(ServiceError::invalid("until", "it is before since"));
        }
        // A day that begins where the span ends isn't touched.
        let last = UtcDay::of(WallMs(until.0.saturating_sub(1).max(since.0)));
        Ok(Period {
            from: UtcDay::of(since),
            until: last.next(),
            business,
        })
    }

    /// Rows after one, at most `limit`.
    ///
    /// # Errors
    /// `Invalid` for a place that such rows don't have.
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
                "not a cursor of this list; begin without one",
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
