//! The data log.

use async_trait::async_trait;

use super::{Call, MemoryStore};
use crate::domain::ids::TaskId;
use crate::ports::StoreError;
use crate::ports::data_log::{DataLog, DataLogLine};
use crate::ports::handler::LogLevel;

#[async_trait]
impl DataLog for MemoryStore {
    async fn append(&self, lines: &[DataLogLine]) -> Result<(), StoreError> {
        self.act(Call::DataLog, |state| {
            state.log.extend_from_slice(lines);
            Ok(())
        })
        .await
    }

    async fn tail(&self, task: TaskId, level: LogLevel, limit: u32) -> Result<Vec<DataLogLine>, StoreError> {
        self.act(Call::Read, |state| {
            let wanted = |line: &&DataLogLine| line.shard.task == task && line.line.level >= level;
            Ok(state.log.iter().rev().filter(wanted).take(limit as usize).cloned().collect())
        })
        .await
    }
}
