//! Statistics: daily totals of items and tasks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Totals for a day, a business or a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Statistics {
    /// Day in UTC; null if rows aren't per day.
    #[schema(format = Date)]
    pub day: Option<String>,
    /// Business; null if a day's row covers all businesses.
    pub business: Option<String>,
    /// Task; null if rows aren't per task.
    pub task: Option<String>,
    /// Name of the task.
    pub name: Option<String>,
    /// Current status of the task.
    pub status: Option<String>,
    /// Numbers of tasks, including deleted ones; null if the row is about one task.
    pub tasks: Option<StatisticsTasks>,
    /// Settled items, counted on the day of the checkpoint that recorded them.
    pub items: StatisticsItems,
}

/// Numbers of tasks in the period.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct StatisticsTasks {
    /// Tasks created in the period.
    pub created: u64,
    /// Tasks finished in the period.
    pub finished: u64,
    /// Tasks cancelled in the period.
    pub cancelled: u64,
}

/// Numbers of settled items in the period.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct StatisticsItems {
    /// Items settled with a success.
    pub succeeded: u64,
    /// Items with nothing to do.
    pub skipped: u64,
    /// Items that failed permanently.
    pub failed: u64,
}
