//! The data log: what a business appends, and what people search.

use std::sync::Arc;

use super::ServiceError;
use crate::service::node::ThisNode;
use windrow_config::DataLogLevel;
use windrow_core::ids::{ShardId, TaskId, WallMs};
use windrow_engine::ports::handling::data_log::{DataLog, DataLogLine, LogOrigin, LogRetention};
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

/// The data log of all tasks.
pub struct Logs {
    pub(super) node: Arc<ThisNode>,
    /// Where lines are kept.
    pub store: Arc<dyn DataLog>,
}

impl Logs {
    /// Appends lines of a business to a task's log; they carry this moment as their time.
    ///
    /// # Errors
    /// When the store can't be written; then none is stored.
    pub async fn append(&self, task: TaskId, lines: Vec<LogLine>) -> Result<Appended, ServiceError> {
        let (at, shard) = (self.node.now(), ShardId { task, no: 0 });
        let min = level(self.node.config().data_log.min_level);
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
            self.store.append(&lines).await?;
        }
        let stored = lines.len() as u64;
        Ok(Appended {
            stored,
            below_min_level: all - stored,
        })
    }

    /// Removes lines that are not to be kept any more, in short transactions, at most `rounds` of them; says how many.
    pub async fn expire(&self, rounds: u32) -> Result<u64, ServiceError> {
        let config = self.node.config();
        let kept_ms = i64::try_from(config.data_log.retention.as_millis()).unwrap_or(i64::MAX);
        let keep_from = WallMs(self.node.now().0.saturating_sub(kept_ms));
        let retention = LogRetention {
            keep_from,
            max_per_task: config.data_log.max_per_task,
        };
        let mut removed = 0;
        for _ in 0..rounds {
            let lines = self.store.expire(retention).await?;
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
