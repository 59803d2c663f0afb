//! The data log: lines that a business, or the system, writes about a task or an item.

use async_trait::async_trait;

pub use windrow_core::handler::log::LogOrigin;

use crate::ports::StoreError;
use crate::ports::handling::handler::{LogLevel, LogLine};
use windrow_core::handler::journal::Entry;
use windrow_core::ids::{ItemIndex, ShardId, TaskId, WallMs};
use windrow_core::items::verdict::ItemTrouble;
use windrow_core::life::succession::left;

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

/// What a line takes beside its texts, about. Unit: bytes.
const LINE_OVERHEAD: u64 = 128;
/// The code of the line about a take-over.
const TAKEN_OVER: &str = "TAKEN_OVER";

impl DataLogLine {
    /// About how much memory, or how much of a statement, it takes.
    pub fn bytes(&self) -> u64 {
        let extra = self.line.extra.as_ref().map_or(0, String::len);
        LINE_OVERHEAD + (self.line.message.len() + extra) as u64
    }

    /// The system's line about an item that was given up.
    pub fn failed(shard: ShardId, trouble: &ItemTrouble) -> DataLogLine {
        let (code, message) = match &trouble.failure {
            Some(failure) => (Some(failure.code.clone().into_owned()), failure.message.clone()),
            None => (
                None,
                "the item was given up while its call was still out".to_owned(),
            ),
        };
        let line = LogLine {
            index: Some(trouble.index),
            level: LogLevel::Error,
            message,
            extra: None,
        };
        DataLogLine::of_system(shard, trouble.at, code, line)
    }

    /// The system's line about how the handler fares.
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

    /// The system's line about a shard whose run another node left: `from` is that node, and how long it was silent.
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

/// Which lines are wanted; what is none doesn't matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogQuery {
    /// Of one task; none of all.
    pub task: Option<TaskId>,
    /// Of the tasks of a business, by its slug.
    pub business: Option<String>,
    /// This level or above.
    pub level: LogLevel,
    /// About one item.
    pub index: Option<ItemIndex>,
    /// That hold this text in their message, whatever the case of its letters.
    pub text: Option<String>,
    /// Written by.
    pub origin: Option<LogOrigin>,
    /// With this code.
    pub code: Option<String>,
    /// Written at or after.
    pub from: Option<WallMs>,
    /// Written before.
    pub to: Option<WallMs>,
    /// Stored before the line of this number: where an earlier page ended.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: u32,
}

impl LogQuery {
    /// The newest lines of a task, or of all.
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

/// A line with its number. Of a task, a line that is seen later has a higher one; of different tasks it may have a lower
/// one.
pub type NumberedLine = (i64, DataLogLine);

/// A page of lines, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPage {
    /// The lines.
    pub lines: Vec<NumberedLine>,
    /// Where to go on; none at the end. A page may be short and still have one: the search looks at so many lines at
    /// a time.
    pub next: Option<i64>,
}

/// Why lines are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// Older than is kept.
    Age,
    /// The task had more than are kept of one.
    MaxPerTask,
    /// They came faster than they could be written.
    Queue,
}

impl DropReason {
    /// All of them.
    pub const ALL: [DropReason; 3] = [DropReason::Age, DropReason::MaxPerTask, DropReason::Queue];

    /// The word in the store and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            DropReason::Age => "age",
            DropReason::MaxPerTask => "max_per_task",
            DropReason::Queue => "queue",
        }
    }
}

/// How long lines are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRetention {
    /// Older ones go.
    pub keep_from: WallMs,
    /// Lines of one task; the oldest of `debug` and `info` go first.
    pub max_per_task: u64,
}

/// Lines that one transaction removes at most; it is asked again while it removed so many.
pub const EXPIRE_MAX: u64 = 2_000;

/// Stores and finds data log lines. Those of replies come with checkpoints (`ports::run_store::ReplyLines`).
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait DataLog: Send + Sync {
    /// Whether lines of this level are kept at all; who keeps some only says so.
    fn keeps(&self, _level: LogLevel) -> bool {
        true
    }

    /// Appends lines in order.
    ///
    /// # Errors
    /// `Unavailable` leaves nothing of the batch behind.
    async fn append(&self, lines: &[DataLogLine]) -> Result<(), StoreError>;

    /// The newest `limit` lines of a task at or above a level, newest first.
    async fn tail(&self, task: TaskId, level: LogLevel, limit: u32) -> Result<Vec<DataLogLine>, StoreError>;

    /// A page of the lines that are wanted, newest first.
    async fn search(&self, query: &LogQuery) -> Result<LogPage, StoreError>;

    /// A task's lines after the line of a number, oldest first. Nothing is added before a line that was once seen, so
    /// whoever goes on with the last number misses none.
    async fn after(&self, task: TaskId, number: i64, limit: u32) -> Result<Vec<NumberedLine>, StoreError>;

    /// Removes at most about [`EXPIRE_MAX`] lines that are not to be kept, counts them as dropped, and says how many
    /// they were; ask again until there are none.
    ///
    /// # Errors
    /// When the store can't be written; lines and counts go together or not at all.
    async fn expire(&self, retention: LogRetention) -> Result<u64, StoreError>;

    /// Counts lines of a task that were not kept.
    async fn count_dropped(&self, task: TaskId, reason: DropReason, lines: u64) -> Result<(), StoreError>;

    /// How many lines of a task were not kept, by reason; reasons without any are left out.
    async fn dropped(&self, task: TaskId) -> Result<Vec<(DropReason, u64)>, StoreError>;
}
