//! The data log: lines that a business, or the system, writes about a task or an item.

use async_trait::async_trait;

use super::StoreError;
use super::handler::{LogLevel, LogLine};
use crate::domain::ids::{ShardId, WallMs};

/// Who wrote a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogOrigin {
    /// The business's handler.
    Business,
    /// Windrow.
    System,
}

/// A line with where and when it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataLogLine {
    /// The shard whose run wrote it.
    pub shard: ShardId,
    /// When.
    pub at: WallMs,
    /// By whom.
    pub origin: LogOrigin,
    /// A stable code of system lines, such as `BACK_PRESSURE`.
    pub code: Option<String>,
    /// Level, item, text.
    pub line: LogLine,
}

/// Stores and finds data log lines.
#[async_trait]
pub trait DataLog: Send + Sync {
    /// Appends lines in order.
    ///
    /// # Errors
    /// `Unavailable` leaves nothing of the batch behind.
    async fn append(&self, lines: &[DataLogLine]) -> Result<(), StoreError>;

    /// The newest `limit` lines of a task at or above a level, newest first.
    ///
    /// # Errors
    /// When the store can't be read.
    async fn tail(
        &self,
        task: crate::domain::ids::TaskId,
        level: LogLevel,
        limit: u32,
    ) -> Result<Vec<DataLogLine>, StoreError>;
}
