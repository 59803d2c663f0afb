//! Totals of a day.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What was done: in a day, by a business, or for a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Statistics {
    /// The day, in UTC; null unless rows are about days.
    #[schema(format = Date)]
    pub day: Option<String>,
    /// The business; null where a day has those of all.
    pub business: Option<String>,
    /// The task; null unless rows are about tasks.
    pub task: Option<String>,
    /// The task's name.
    pub name: Option<String>,
    /// Where the task stands now.
    pub status: Option<String>,
    /// Tasks, with those that were deleted since; null where the row is about one.
    pub tasks: Option<StatisticsTasks>,
    /// Items that were settled, by the day of the checkpoint that said so.
    pub items: StatisticsItems,
}

/// Tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct StatisticsTasks {
    /// Made in these days.
    pub created: u64,
    /// Finished in these days.
    pub finished: u64,
    /// Cancelled in these days.
    pub cancelled: u64,
}

/// Items.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct StatisticsItems {
    /// Settled well.
    pub succeeded: u64,
    /// Nothing to do.
    pub skipped: u64,
    /// Failed for good.
    pub failed: u64,
}
