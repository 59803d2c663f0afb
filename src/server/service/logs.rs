//! The data log: appending for businesses, and expiry of old lines.

use std::sync::Arc;

use super::ServiceError;
use crate::service::node::ThisNode;
use windrow_config::DataLogLevel;
use windrow_core::ids::{ShardId, TaskId, WallMs};
use windrow_engine::ports::handling::data_log::{DataLog, DataLogLine, LogOrigin, LogRetention};
use windrow_engine::ports::handling::handler::{LogLevel, LogLine};

/// Most lines per request.
pub const LINES_MAX: usize = 1_000;

/// Outcome of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Number of lines stored.
    pub stored: u64,
    /// Number of lines dropped because they are below `data_log.min_level`.
    pub below_min_level: u64,
}

/// Service for the data log of all tasks.
pub struct Logs {
    pub(super) node: Arc<ThisNode>,
    /// Store that keeps the lines.
    pub store: Arc<dyn DataLog>,
}

impl Logs {
    pub(super) fn new(node: Arc<ThisNode>, store: Arc<dyn DataLog>) -> Logs {
        Logs { node, store }
    }

    /// Appends a business's lines to a task's log, with the current time.
    ///
    /// # Errors
    /// If the store can't be written; no line is stored then.
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

    /// Deletes expired lines in up to `rounds` short transactions, and returns their number.
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
