//! The data log.

use async_trait::async_trait;

use super::state::State;
use super::{Call, MemoryStore};
use windrow_core::ids::TaskId;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::handling::data_log::{
    DataLog, DataLogLine, DropReason, EXPIRE_MAX, LogPage, LogQuery, LogRetention, NumberedLine,
};
use windrow_engine::ports::handling::handler::LogLevel;

#[async_trait]
impl DataLog for MemoryStore {
    async fn append(&self, lines: &[DataLogLine]) -> Result<(), StoreError> {
        self.act(Call::DataLog, |state| {
            state.write_lines(lines.iter().cloned());
            Ok(())
        })
        .await
    }

    async fn tail(&self, task: TaskId, level: LogLevel, limit: u32) -> Result<Vec<DataLogLine>, StoreError> {
        let query = LogQuery {
            level,
            ..LogQuery::newest(Some(task), limit)
        };
        let page = self.search(&query).await?;
        Ok(page.lines.into_iter().map(|(_, line)| line).collect())
    }

    async fn search(&self, query: &LogQuery) -> Result<LogPage, StoreError> {
        self.act(Call::Read, |state| {
            let wanted = |(number, line): &&NumberedLine| {
                query.before.is_none_or(|before| *number < before) && is_wanted(state, query, line)
            };
            let lines = state.log.iter().rev().filter(wanted).take(query.limit as usize);
            let lines: Vec<NumberedLine> = lines.cloned().collect();
            let is_full = lines.len() == query.limit as usize;
            let next = lines.last().map(|(number, _)| *number).filter(|_| is_full);
            Ok(LogPage { lines, next })
        })
        .await
    }

    async fn after(&self, task: TaskId, number: i64, limit: u32) -> Result<Vec<NumberedLine>, StoreError> {
        self.act(Call::Read, |state| {
            let wanted = |(at, line): &&NumberedLine| *at > number && line.shard.task == task;
            Ok(state
                .log
                .iter()
                .filter(wanted)
                .take(limit as usize)
                .cloned()
                .collect())
        })
        .await
    }

    async fn expire(&self, retention: LogRetention) -> Result<u64, StoreError> {
        self.act(Call::DataLog, |state| {
            let oldest = state.log.iter().take(EXPIRE_MAX as usize);
            let old = oldest
                .filter(|(_, line)| line.at < retention.keep_from)
                .map(|(number, _)| *number);
            let old: Vec<i64> = old.collect();
            if !old.is_empty() {
                return Ok(forget(state, &old, DropReason::Age));
            }
            let excess = excess(state, retention.max_per_task);
            Ok(forget(state, &excess, DropReason::MaxPerTask))
        })
        .await
    }

    async fn count_dropped(&self, task: TaskId, reason: DropReason, lines: u64) -> Result<(), StoreError> {
        self.act(Call::DataLog, |state| {
            state.count_dropped(task, reason, lines);
            Ok(())
        })
        .await
    }

    async fn dropped(&self, task: TaskId) -> Result<Vec<(DropReason, u64)>, StoreError> {
        self.act(Call::Read, |state| {
            let of_task = state.lines_dropped.iter().filter(|((id, _), _)| *id == task);
            Ok(of_task.map(|((_, reason), lines)| (*reason, *lines)).collect())
        })
        .await
    }
}

fn is_wanted(state: &State, query: &LogQuery, line: &DataLogLine) -> bool {
    let business = state
        .tasks
        .get(&line.shard.task)
        .map(|task| task.new.business.as_str());
    let has_text = |text: &String| line.line.message.to_lowercase().contains(&text.to_lowercase());
    query.task.is_none_or(|task| line.shard.task == task)
        && query
            .business
            .as_deref()
            .is_none_or(|slug| business == Some(slug))
        && line.line.level >= query.level
        && query.index.is_none_or(|index| line.line.index == Some(index))
        && query.text.as_ref().is_none_or(has_text)
        && query.origin.is_none_or(|origin| line.origin == origin)
        && query
            .code
            .as_ref()
            .is_none_or(|code| line.code.as_ref() == Some(code))
        && query.from.is_none_or(|from| line.at >= from)
        && query.to.is_none_or(|to| line.at < to)
}

/// The lines that the fullest task has too many: the oldest of `debug` and `info` first.
fn excess(state: &State, max: u64) -> Vec<i64> {
    let lines_of = |task: TaskId| state.log.iter().filter(move |(_, line)| line.shard.task == task);
    let tasks: std::collections::BTreeSet<TaskId> =
        state.log.iter().map(|(_, line)| line.shard.task).collect();
    let Some(fullest) = tasks.into_iter().max_by_key(|task| lines_of(*task).count()) else {
        return Vec::new();
    };
    let excess = (lines_of(fullest).count() as u64)
        .saturating_sub(max)
        .min(EXPIRE_MAX);
    let mut lines: Vec<&NumberedLine> = lines_of(fullest).collect();
    lines.sort_by_key(|(number, line)| (line.line.level >= LogLevel::Warn, *number));
    lines
        .into_iter()
        .take(excess as usize)
        .map(|(number, _)| *number)
        .collect()
}

fn forget(state: &mut State, numbers: &[i64], reason: DropReason) -> u64 {
    let gone: std::collections::HashSet<i64> = numbers.iter().copied().collect();
    for (_, line) in state.log.iter().filter(|(number, _)| gone.contains(number)) {
        *state.lines_dropped.entry((line.shard.task, reason)).or_default() += 1;
    }
    state.log.retain(|(number, _)| !gone.contains(number));
    numbers.len() as u64
}
