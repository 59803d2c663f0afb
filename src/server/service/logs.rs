//! The data log: what a business appends, and what people search.

use super::{Service, ServiceError};
use windrow_config::DataLogLevel;
use windrow_core::ids::{ShardId, TaskId, WallMs};
use windrow_engine::ports::handling::data_log::{
    DataLogLine, DropReason, LogOrigin, LogPage, LogQuery, LogRetention, NumberedLine,
};
use windrow_engine::ports::handling::handler::{LogLevel, LogLine};

/// Lines of one request.
pub const LINES_MAX: usize = 1_000;

/// What came of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Lines that are stored.
    pub stored: u64,
    /// Lines below `data_log.min_level`, which are not.
    pub below_min_level: u64,
}

impl Service {
    /// Appends lines of a business to a task's log; they carry this moment as their time.
    ///
    /// # Errors
    /// When the store can't be written; then none is stored.
    pub async fn append_log(&self, task: TaskId, lines: Vec<LogLine>) -> Result<Appended, ServiceError> {
        let (at, shard) = (self.now(), ShardId { task, no: 0 });
        let min = level(self.config().data_log.min_level);
        let all = lines.len() as u64;
        let kept = lines.into_iter().filter(|line| line.level >= min);
        let lines: Vec<DataLogLine> = kept
            .map(|line| DataLogLine {
                shard,
                at,
                origin: LogOrigin::Business,
                code: None,
                line,
            })
            .collect();
        if !lines.is_empty() {
            self.parts.data_log.append(&lines).await?;
        }
        let stored = lines.len() as u64;
        Ok(Appended {
            stored,
            below_min_level: all - stored,
        })
    }

    /// A page of lines, newest first.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn search_log(&self, query: &LogQuery) -> Result<LogPage, ServiceError> {
        Ok(self.parts.data_log.search(query).await?)
    }

    /// A task's lines after the line of a number, oldest first.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn lines_after(
        &self,
        task: TaskId,
        number: i64,
        limit: u32,
    ) -> Result<Vec<NumberedLine>, ServiceError> {
        Ok(self.parts.data_log.after(task, number, limit).await?)
    }

    /// How many lines of a task were not kept, by reason.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn dropped_lines(&self, task: TaskId) -> Result<Vec<(DropReason, u64)>, ServiceError> {
        Ok(self.parts.data_log.dropped(task).await?)
    }

    /// Removes lines that are not to be kept any more, in short transactions, at most `rounds` of them; says how many.
    ///
    /// # Errors
    /// When the store can't be written.
    pub async fn expire_log(&self, rounds: u32) -> Result<u64, ServiceError> {
        let config = self.config();
        let kept_ms = i64::try_from(config.data_log.retention.as_millis()).unwrap_or(i64::MAX);
        let keep_from = WallMs(self.now().0.saturating_sub(kept_ms));
        let retention = LogRetention {
            keep_from,
            max_per_task: config.data_log.max_per_task,
        };
        let mut removed = 0;
        for _ in 0..rounds {
            let lines = self.parts.data_log.expire(retention).await?;
            if lines == 0 {
                break;
            }
            removed += lines;
        }
        Ok(removed)
    }
}

fn level(level: DataLogLevel) -> LogLevel {
    match level {
        DataLogLevel::Debug => LogLevel::Debug,
        DataLogLevel::Info => LogLevel::Info,
        DataLogLevel::Warn => LogLevel::Warn,
        DataLogLevel::Error => LogLevel::Error,
    }
}
