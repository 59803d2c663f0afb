//! Data log: lines that a business, or the system, writes about a task or an item.

use async_trait::async_trait;
use windrow_words::engine as say;

pub use windrow_core::handler::log::LogOrigin;

use crate::ports::StoreError;
use crate::ports::handling::handler::{LogLevel, LogLine};
use windrow_core::handler::journal::Entry;
use windrow_core::ids::{ItemIndex, ShardId, TaskId, WallMs};
use windrow_core::items::verdict::FailingItem;
use windrow_core::life::succession::left;

/// Log line with its shard, time and origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataLogLine {
    /// Shard whose run wrote it.
    pub shard: ShardId,
    /// Time at which it was written.
    pub at: WallMs,
    /// Origin of the line: the business or the system.
    pub origin: LogOrigin,
    /// Stable code of system lines, such as `BACK_PRESSURE`.
    pub code: Option<String>,
    /// Level, item and text of the line.
    pub line: LogLine,
}

/// Approximate size of a line in addition to its texts, in bytes.
const LINE_OVERHEAD: u64 = 128;
/// Code of the line about a takeover.
const TAKEN_OVER: &str = "TAKEN_OVER";

impl DataLogLine {
    /// Returns the approximate size in memory, or in a statement, in bytes.
    pub fn bytes(&self) -> u64 {
        let extra = self.line.extra.as_ref().map_or(0, String::len);
        LINE_OVERHEAD + (self.line.message.len() + extra) as u64
    }

    /// Returns the system's line about a failed item.
    pub fn failed(shard: ShardId, retrying: &FailingItem) -> DataLogLine {
        let (code, message) = match &retrying.failure {
            Some(failure) => (Some(failure.code.clone().into_owned()), failure.message.clone()),
            None => (None, say::failed_in_flight().to_string()),
        };
        let line = LogLine {
            index: Some(retrying.index),
            level: LogLevel::Error,
            message,
            extra: None,
        };
        DataLogLine::of_system(shard, retrying.at, code, line)
    }

    /// Returns the system's line about the state of the handler.
    pub fn of_handler(shard: ShardId, at: WallMs, entry: Entry) -> DataLogLine {
        let line = LogLine {
            index: entry.index,
            level: if entry.is_good {
                LogLevel::Info
            } else {
                LogLevel::Warn
            },
            message: entry.message.to_string(),
            extra: None,
        };
        DataLogLine::of_system(shard, at, Some(entry.code), line)
    }

    /// Returns the system's line about a shard taken over from another node: `from` is that node, with the time it
    /// was silent.
    pub fn taken_over(shard: ShardId, at: WallMs, from: &str, may_repeat: u64) -> DataLogLine {
        let line = LogLine {
            index: None,
            level: LogLevel::Warn,
            message: left(shard.no, from, may_repeat).to_string(),
            extra: None,
        };
        DataLogLine::of_system(shard, at, Some(TAKEN_OVER.to_owned()), line)
    }

    fn of_system(shard: ShardId, at: WallMs, code: Option<String>, line: LogLine) -> DataLogLine {
        DataLogLine {
            shard,
            at,
            origin: LogOrigin::System,
            code,
            line,
        }
    }
}

/// Filter for log lines; `None` matches all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogQuery {
    /// Lines of one task; `None` for all tasks.
    pub task: Option<TaskId>,
    /// Lines of the tasks of a business, by its slug.
    pub business: Option<String>,
    /// Lines of this level or above.
    pub level: LogLevel,
    /// Lines about this item.
    pub index: Option<ItemIndex>,
    /// Lines with this text in their message, ignoring case.
    pub text: Option<String>,
    /// Lines of this origin.
    pub origin: Option<LogOrigin>,
    /// Lines with this code.
    pub code: Option<String>,
    /// Lines written at or after this time.
    pub from: Option<WallMs>,
    /// Lines written before this time.
    pub to: Option<WallMs>,
    /// Lines stored before the line of this number, where an earlier page ended.
    pub before: Option<i64>,
    /// Maximum number of lines to return.
    pub limit: u32,
}

impl LogQuery {
    /// Returns a query for the newest lines of a task, or of all.
    pub fn newest(task: Option<TaskId>, limit: u32) -> LogQuery {
        LogQuery {
            task,
            business: None,
            level: LogLevel::Debug,
            index: None,
            text: None,
            origin: None,
            code: None,
            from: None,
            to: None,
            before: None,
            limit,
        }
    }
}

/// Line with its number. In one task, a line that is seen later has a higher number; across tasks it may have a lower
/// one.
pub type NumberedLine = (i64, DataLogLine);

/// Page of lines, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPage {
    /// Lines of the page.
    pub lines: Vec<NumberedLine>,
    /// Number to continue from; `None` at the end. A short page may still have one, since the search reads a limited
    /// number of lines at a time.
    pub next: Option<i64>,
}

/// Reason why lines are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The line was older than the retention.
    Age,
    /// The task had more lines than are kept of one.
    MaxPerTask,
    /// Lines came faster than they could be written.
    Queue,
}

impl DropReason {
    /// All reasons, in the order of the enum.
    pub const ALL: [DropReason; 3] = [DropReason::Age, DropReason::MaxPerTask, DropReason::Queue];

    /// Returns the word in the store and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            DropReason::Age => "age",
            DropReason::MaxPerTask => "max_per_task",
            DropReason::Queue => "queue",
        }
    }
}

/// Retention of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRetention {
    /// Lines written before this time are removed.
    pub keep_from: WallMs,
    /// Maximum number of lines of one task; the oldest of `debug` and `info` go first.
    pub max_per_task: u64,
}

/// Maximum number of lines that one transaction removes; a full one is followed by another.
pub const EXPIRE_MAX: u64 = 2_000;

/// Store of data log lines. Those of replies come with checkpoints (`ports::run_store::ReplyLines`).
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait DataLog: Send + Sync {
    /// True if lines of this level are kept; only a log that drops some levels overrides it.
    fn keeps(&self, _level: LogLevel) -> bool {
        true
    }

    /// Appends lines in order.
    ///
    /// # Errors
    /// `Unavailable` leaves nothing of the batch behind.
    async fn append(&self, lines: &[DataLogLine]) -> Result<(), StoreError>;

    /// Returns the newest `limit` lines of a task at or above a level, newest first.
    async fn tail(&self, task: TaskId, level: LogLevel, limit: u32) -> Result<Vec<DataLogLine>, StoreError>;

    /// Returns a page of the matching lines, newest first.
    async fn search(&self, query: &LogQuery) -> Result<LogPage, StoreError>;

    /// Returns a task's lines after the line of a number, oldest first. Nothing is added before a line that was once
    /// seen, so a reader that continues with the last number misses none.
    async fn after(&self, task: TaskId, number: i64, limit: u32) -> Result<Vec<NumberedLine>, StoreError>;

    /// Removes at most about [`EXPIRE_MAX`] lines beyond the retention, counts them as dropped, and returns their
    /// number; repeat until it is 0.
    ///
    /// # Errors
    /// If the store can't be written; lines and counts go together or not at all.
    async fn expire(&self, retention: LogRetention) -> Result<u64, StoreError>;

    /// Counts lines of a task that were not kept.
    async fn count_dropped(&self, task: TaskId, reason: DropReason, lines: u64) -> Result<(), StoreError>;

    /// Returns the number of lines of a task that were not kept, by reason; reasons without any are left out.
    async fn dropped(&self, task: TaskId) -> Result<Vec<(DropReason, u64)>, StoreError>;
}
