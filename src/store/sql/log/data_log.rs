//! Data log: writing lines and reading them back. Searching is in `search`, expiry in `expire`.

use async_trait::async_trait;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::sql::entity::data_log;
use crate::sql::log::expire;
use crate::sql::log::search;
use crate::sql::{Fetch, Run, Store, Transaction, damaged, locks, settled, words};
use windrow_core::ids::{CheckpointSeq, ItemIndex, ShardId, TaskId, WallMs};
use windrow_core::items::verdict::FailingItem;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::handling::data_log::{
    DataLog, DataLogLine, DropReason, LogOrigin, LogPage, LogQuery, LogRetention, NumberedLine,
};
use windrow_engine::ports::handling::handler::{LogLevel, LogLine};
use windrow_engine::ports::ownership::run_store::ShardCheckpoint;

/// Rows per statement: 10 columns each, and SQLite takes 32,766 values.
const ROWS_PER_STATEMENT: usize = 2000;
/// Approximate size of a statement in bytes: MariaDB takes packets of 16 MiB.
const STATEMENT_BYTES_MAX: u64 = 1 << 20;

const LEVELS: [LogLevel; 4] = [LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error];

#[async_trait]
impl DataLog for Store {
    async fn append(&self, lines: &[DataLogLine]) -> Result<(), StoreError> {
        settled(|| append(self, lines)).await
    }

    async fn tail(&self, task: TaskId, level: LogLevel, limit: u32) -> Result<Vec<DataLogLine>, StoreError> {
        let rows = data_log::Entity::find()
            .filter(data_log::Column::TaskId.eq(task.0))
            .filter(data_log::Column::Level.gte(level as i32))
            .order_by_desc(data_log::Column::Id)
            .limit(u64::from(limit))
            .rows(&self.readers)
            .await?;
        rows.into_iter().map(line).collect()
    }

    async fn search(&self, query: &LogQuery) -> Result<LogPage, StoreError> {
        search::search(self, query).await
    }

    async fn after(&self, task: TaskId, number: i64, limit: u32) -> Result<Vec<NumberedLine>, StoreError> {
        let rows = data_log::Entity::find()
            .filter(data_log::Column::TaskId.eq(task.0))
            .filter(data_log::Column::Id.gt(number))
            .order_by_asc(data_log::Column::Id)
            .limit(u64::from(limit))
            .rows(&self.readers)
            .await?;
        rows.into_iter().map(numbered).collect()
    }

    async fn expire(&self, retention: LogRetention) -> Result<u64, StoreError> {
        settled(|| expire::expire(self, retention)).await
    }

    async fn count_dropped(&self, task: TaskId, reason: DropReason, lines: u64) -> Result<(), StoreError> {
        let transaction = self.write().await?;
        expire::count(&transaction, task.0, reason, lines).await?;
        transaction.commit().await
    }

    async fn dropped(&self, task: TaskId) -> Result<Vec<(DropReason, u64)>, StoreError> {
        expire::dropped(self, task).await
    }
}

/// Appends lines under the locks of their tasks.
///
/// A row gets its number when it is written, and becomes visible when it is committed: of two concurrent writers, the
/// one with the lower numbers may become visible last, after a reader has moved on to the higher ones. So a task's
/// lines are written under the task's lock, which is held until the commit. Then its numbers are in the order in
/// which its lines become visible, and a reader that asks for lines after a number misses none. Lines of different
/// tasks are not in order; that needs one lock for all, which a hanging node would hold against everybody's
/// checkpoints. (`crossing`, `a_follower_of_a_log_that_many_write_misses_no_line`.)
async fn append(store: &Store, lines: &[DataLogLine]) -> Result<(), StoreError> {
    let transaction = store.write().await?;
    locks::tasks(&transaction, &lines.iter().map(|line| line.shard.task).collect()).await?;
    insert(&transaction, lines).await?;
    transaction.commit().await
}

/// Writes the log lines of replies in the transaction of the checkpoint that holds those replies. Lines that the
/// checkpoint repeats, stored already under `stored` or earlier, are not written twice. The checkpoint holds the lock
/// of the task; [`append`] explains why.
pub(crate) async fn note_replies(
    transaction: &Transaction,
    checkpoint: &ShardCheckpoint,
    stored: CheckpointSeq,
) -> Result<(), StoreError> {
    for replies in checkpoint.unwritten_lines(stored) {
        insert(transaction, &replies.lines).await?;
        if replies.dropped > 0 {
            let task = checkpoint.shard.task.0;
            expire::count(transaction, task, DropReason::Queue, replies.dropped).await?;
        }
    }
    Ok(())
}

/// Inserts lines in order, limiting the rows and bytes per statement.
async fn insert(transaction: &Transaction, lines: &[DataLogLine]) -> Result<(), StoreError> {
    let mut rest = lines;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(fitting(rest));
        let rows = chunk.iter().map(row);
        data_log::Entity::insert_many(rows).run(transaction).await?;
        rest = after;
    }
    Ok(())
}

/// Returns the number of lines that fit one statement, at least one.
fn fitting(lines: &[DataLogLine]) -> usize {
    let mut bytes = 0;
    let fits = |line: &&DataLogLine| {
        bytes += line.bytes();
        bytes <= STATEMENT_BYTES_MAX
    };
    lines
        .iter()
        .take(ROWS_PER_STATEMENT)
        .take_while(fits)
        .count()
        .max(1)
}

/// Writes a line for each item that fails for good in a checkpoint, in the checkpoint's transaction and therefore
/// exactly once. The checkpoint holds the lock of the task; [`append`] explains why.
pub(crate) async fn note_failed(
    transaction: &Transaction,
    shard: ShardId,
    failed: &[&FailingItem],
) -> Result<(), StoreError> {
    for chunk in failed.chunks(ROWS_PER_STATEMENT) {
        let rows = chunk
            .iter()
            .map(|retrying| row(&DataLogLine::failed(shard, retrying)));
        data_log::Entity::insert_many(rows).run(transaction).await?;
    }
    Ok(())
}

/// Converts a row to a line with its number.
pub(crate) fn numbered(row: data_log::Model) -> Result<NumberedLine, StoreError> {
    Ok((row.id, line(row)?))
}

fn row(line: &DataLogLine) -> data_log::ActiveModel {
    data_log::ActiveModel {
        id: NotSet,
        task_id: Set(line.shard.task.0),
        shard_no: Set(words::shard_no(line.shard)),
        at_ms: Set(line.at.0),
        idx: Set(line.line.index.map(|index| index.0.cast_signed())),
        origin: Set(origin_text(line.origin).to_owned()),
        level: Set(line.line.level as i32),
        code: Set(line.code.clone()),
        message: Set(line.line.message.clone()),
        extra: Set(line.line.extra.clone()),
    }
}

fn line(row: data_log::Model) -> Result<DataLogLine, StoreError> {
    let level = usize::try_from(row.level)
        .ok()
        .and_then(|at| LEVELS.get(at).copied());
    Ok(DataLogLine {
        shard: ShardId {
            task: TaskId(row.task_id),
            no: row.shard_no.cast_unsigned(),
        },
        at: WallMs(row.at_ms),
        origin: origin(&row.origin)?,
        code: row.code,
        line: LogLine {
            index: row.idx.map(|index| ItemIndex(index.cast_unsigned())),
            level: level.ok_or_else(|| damaged("data_log.level", &row.level.to_string()))?,
            message: row.message,
            extra: row.extra,
        },
    })
}

pub(crate) fn origin_text(origin: LogOrigin) -> &'static str {
    match origin {
        LogOrigin::Business => "business",
        LogOrigin::System => "system",
    }
}

fn origin(text: &str) -> Result<LogOrigin, StoreError> {
    match text {
        "business" => Ok(LogOrigin::Business),
        "system" => Ok(LogOrigin::System),
        _ => Err(damaged("data_log.origin", text)),
    }
}
