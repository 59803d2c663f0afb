//! Data log without lines below `data_log.min_level`, which a reload can change.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use async_trait::async_trait;

use windrow_config::DataLogLevel;
use windrow_core::ids::TaskId;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::handling::data_log::{
    DataLog, DataLogLine, DropReason, LogPage, LogQuery, LogRetention, NumberedLine,
};
use windrow_engine::ports::handling::handler::LogLevel;
use windrow_engine::ports::handling::meters::Meters;

/// Lowest level that is stored, shared with the reload.
#[derive(Clone, Debug)]
pub(super) struct MinLevel(Arc<AtomicU8>);

impl MinLevel {
    pub(super) fn new(level: DataLogLevel) -> MinLevel {
        MinLevel(Arc::new(AtomicU8::new(rank_of(level))))
    }

    /// Sets the lowest level to store.
    pub(super) fn set(&self, level: DataLogLevel) {
        self.0.store(rank_of(level), Ordering::Relaxed);
    }

    fn keeps(&self, level: LogLevel) -> bool {
        level as u8 >= self.0.load(Ordering::Relaxed)
    }
}

/// Converts a level to the engine's rank.
fn rank_of(level: DataLogLevel) -> u8 {
    let level = match level {
        DataLogLevel::Debug => LogLevel::Debug,
        DataLogLevel::Info => LogLevel::Info,
        DataLogLevel::Warn => LogLevel::Warn,
        DataLogLevel::Error => LogLevel::Error,
    };
    level as u8
}

/// Data log that discards lines below the minimum level.
pub(super) struct Sieve {
    pub(super) inner: Arc<dyn DataLog>,
    pub(super) min_level: MinLevel,
    pub(super) meters: Arc<Meters>,
}

impl Sieve {
    async fn keep(&self, lines: &[DataLogLine]) -> Result<(), StoreError> {
        self.inner.append(lines).await?;
        lines
            .iter()
            .for_each(|line| self.meters.stored_lines(line.line.level, 1));
        Ok(())
    }
}

#[async_trait]
impl DataLog for Sieve {
    fn keeps(&self, level: LogLevel) -> bool {
        self.min_level.keeps(level)
    }

    async fn append(&self, lines: &[DataLogLine]) -> Result<(), StoreError> {
        if lines.iter().all(|line| self.min_level.keeps(line.line.level)) {
            return self.keep(lines).await;
        }
        let kept: Vec<DataLogLine> = lines
            .iter()
            .filter(|line| self.min_level.keeps(line.line.level))
            .cloned()
            .collect();
        if kept.is_empty() {
            Ok(())
        } else {
            self.keep(&kept).await
        }
    }

    async fn tail(&self, task: TaskId, level: LogLevel, limit: u32) -> Result<Vec<DataLogLine>, StoreError> {
        self.inner.tail(task, level, limit).await
    }

    async fn search(&self, query: &LogQuery) -> Result<LogPage, StoreError> {
        self.inner.search(query).await
    }

    async fn after(&self, task: TaskId, number: i64, limit: u32) -> Result<Vec<NumberedLine>, StoreError> {
        self.inner.after(task, number, limit).await
    }

    async fn expire(&self, retention: LogRetention) -> Result<u64, StoreError> {
        let gone = self.inner.expire(retention).await?;
        self.meters.dropped_lines(DropReason::Age, gone);
        Ok(gone)
    }

    async fn count_dropped(&self, task: TaskId, reason: DropReason, lines: u64) -> Result<(), StoreError> {
        self.inner.count_dropped(task, reason, lines).await?;
        self.meters.dropped_lines(reason, lines);
        Ok(())
    }

    async fn dropped(&self, task: TaskId) -> Result<Vec<(DropReason, u64)>, StoreError> {
        self.inner.dropped(task).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::ids::{ShardId, WallMs};
    use windrow_engine::ports::handling::data_log::LogOrigin;
    use windrow_engine::ports::handling::handler::LogLine;
    use windrow_memory::MemoryStore;

    #[tokio::test]
    async fn lines_below_the_level_are_not_kept_until_it_is_lowered() {
        let line = |level| DataLogLine {
            shard: ShardId {
                task: TaskId(1),
                no: 0,
            },
            at: WallMs(1),
            origin: LogOrigin::Business,
            code: None,
            line: LogLine {
                index: None,
                level,
                message: "x".to_owned(),
                extra: None,
            },
        };
        let min_level = MinLevel::new(DataLogLevel::Warn);
        let log = Sieve {
            inner: Arc::new(MemoryStore::new()),
            min_level: min_level.clone(),
            meters: Arc::default(),
        };
        let all = [LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error].map(line);
        log.append(&all).await.expect("kept");
        assert!(
            log.keeps(LogLevel::Warn) && !log.keeps(LogLevel::Info),
            "checkpoints ask it"
        );
        assert_eq!(log.after(TaskId(1), 0, 10).await.expect("read").len(), 2);
        log.append(&all[..1]).await.expect("nothing to keep");
        min_level.set(DataLogLevel::Debug);
        log.append(&all).await.expect("kept");
        assert_eq!(log.after(TaskId(1), 0, 10).await.expect("read").len(), 6);
    }
}
