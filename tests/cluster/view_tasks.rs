//! The rest of the ports over the link: tasks, what time makes due, the data log.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::handler::elsewhere::Reaching;
use windrow_core::ids::{SessionId, ShardId, StoreId, TaskId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::handling::data_log::{
    DataLog, DataLogLine, DropReason, LogPage, LogQuery, LogRetention, NumberedLine,
};
use windrow_engine::ports::handling::handler::LogLevel;
use windrow_engine::ports::tasks::store::{
    AuditEntry, CommandError, CreateError, Making, NewTask, TaskCommand, TaskStore, TaskView, TokenStart,
    WaitNote, Write,
};
use windrow_engine::ports::tasks::upkeep::{Sweep, UpkeepStore};

use crate::link::Peer;
use crate::view::View;

/// What actors never call goes to the store itself.
#[async_trait]
impl TaskStore for View {
    async fn store_id(&self) -> Result<StoreId, StoreError> {
        self.store.store_id().await
    }

    async fn ensure_business(&self, slug: &str, write: &Write, now: WallMs) -> Result<(), StoreError> {
        self.store.ensure_business(slug, write, now).await
    }

    async fn make(
        &self,
        task: &NewTask,
        how: Making<'_>,
        write: &Write,
        now: WallMs,
    ) -> Result<TaskView, CreateError> {
        self.store.make(task, how, write, now).await
    }

    async fn get(&self, id: TaskId) -> Result<Option<TaskView>, StoreError> {
        let view = self.clone();
        self.link
            .call(Peer::Database, "get", move || {
                let view = view.clone();
                async move { view.store.get(id).await }
            })
            .await
    }

    async fn find(&self, business: &str, name: &str) -> Result<Option<TaskView>, StoreError> {
        self.store.find(business, name).await
    }

    async fn release_name(&self, id: TaskId, write: &Write, now: WallMs) -> Result<(), CommandError> {
        self.store.release_name(id, write, now).await
    }

    async fn move_shards(
        &self,
        task: TaskId,
        shard: Option<u32>,
        to: &str,
        write: &Write,
        now: WallMs,
    ) -> Result<u32, CommandError> {
        self.store.move_shards(task, shard, to, write, now).await
    }

    async fn command_if(
        &self,
        id: TaskId,
        expected: Option<u64>,
        command: &TaskCommand,
        write: &Write,
        now: WallMs,
    ) -> Result<TaskView, CommandError> {
        let (view, command, write) = (self.clone(), command.clone(), write.clone());
        self.link
            .call(Peer::Database, "command", move || {
                let (view, command, write) = (view.clone(), command.clone(), write.clone());
                async move {
                    let done = view.store.command_if(id, expected, &command, &write, now).await;
                    view.link
                        .judge(|judge| judge.on_command(id, &command, done.is_ok()));
                    view.look().await;
                    done
                }
            })
            .await
    }

    async fn explain_waits(&self, notes: &[WaitNote], now: WallMs) -> Result<BTreeSet<TaskId>, StoreError> {
        let (view, notes) = (self.clone(), Arc::new(notes.to_vec()));
        self.link
            .call(Peer::Database, "explain", move || {
                let (view, notes) = (view.clone(), notes.clone());
                async move { view.store.explain_waits(&notes, now).await }
            })
            .await
    }

    async fn delete(&self, id: TaskId, write: &Write, now: WallMs) -> Result<(), CommandError> {
        self.store.delete(id, write, now).await
    }

    async fn start_of_token(&self, token: &str) -> Result<Option<TokenStart>, StoreError> {
        self.store.start_of_token(token).await
    }

    async fn audit(&self, id: TaskId) -> Result<Vec<AuditEntry>, StoreError> {
        self.store.audit(id).await
    }
}

#[async_trait]
impl UpkeepStore for View {
    async fn past_deadline(&self, now: WallMs, limit: u32) -> Result<Vec<TaskId>, StoreError> {
        let view = self.clone();
        self.link
            .call(Peer::Database, "past deadline", move || {
                let view = view.clone();
                async move { view.store.past_deadline(now, limit).await }
            })
            .await
    }

    async fn unanswered(&self, now: WallMs, limit: u32) -> Result<Vec<(TaskId, u32)>, StoreError> {
        self.store.unanswered(now, limit).await
    }

    async fn is_start_due(&self, after: WallMs, upto: WallMs) -> Result<bool, StoreError> {
        self.store.is_start_due(after, upto).await
    }

    async fn dormant(&self, before: WallMs, limit: u32) -> Result<Vec<TaskId>, StoreError> {
        self.store.dormant(before, limit).await
    }

    async fn unserved(
        &self,
        served: &[String],
        now: WallMs,
        limit: u32,
    ) -> Result<Vec<(TaskId, String)>, StoreError> {
        self.store.unserved(served, now, limit).await
    }

    async fn orphans(
        &self,
        silent: &[SessionId],
        limit: u32,
    ) -> Result<Vec<(ShardId, SessionId)>, StoreError> {
        let (view, silent) = (self.clone(), silent.to_vec());
        self.link
            .call(Peer::Database, "orphans", move || {
                let (view, silent) = (view.clone(), silent.clone());
                async move { view.store.orphans(&silent, limit).await }
            })
            .await
    }

    async fn reaching(
        &self,
        business: &str,
        besides: SessionId,
        limit: u32,
    ) -> Result<Vec<Reaching>, StoreError> {
        self.store.reaching(business, besides, limit).await
    }

    async fn disown(&self, shards: &[ShardId], now: WallMs) -> Result<Vec<TaskId>, StoreError> {
        let (view, shards) = (self.clone(), shards.to_vec());
        self.link
            .call(Peer::Database, "disown", move || {
                let (view, shards) = (view.clone(), shards.clone());
                async move {
                    let tasks = view.store.disown(&shards, now).await?;
                    view.link.judge(|judge| judge.on_disowned(&shards));
                    view.look().await;
                    Ok(tasks)
                }
            })
            .await
    }

    async fn sweep(&self, what: Sweep, before: WallMs) -> Result<u64, StoreError> {
        self.store.sweep(what, before).await
    }

    async fn ended_before(&self, before: WallMs, limit: u32) -> Result<Vec<TaskId>, StoreError> {
        self.store.ended_before(before, limit).await
    }
}

#[async_trait]
impl DataLog for View {
    async fn append(&self, lines: &[DataLogLine]) -> Result<(), StoreError> {
        let (view, lines) = (self.clone(), Arc::new(lines.to_vec()));
        self.link
            .call(Peer::Database, "append", move || {
                let (view, lines) = (view.clone(), lines.clone());
                async move { view.store.append(&lines).await }
            })
            .await
    }

    async fn tail(&self, task: TaskId, level: LogLevel, limit: u32) -> Result<Vec<DataLogLine>, StoreError> {
        self.store.tail(task, level, limit).await
    }

    async fn search(&self, query: &LogQuery) -> Result<LogPage, StoreError> {
        self.store.search(query).await
    }

    async fn after(&self, task: TaskId, number: i64, limit: u32) -> Result<Vec<NumberedLine>, StoreError> {
        self.store.after(task, number, limit).await
    }

    async fn expire(&self, retention: LogRetention) -> Result<u64, StoreError> {
        self.store.expire(retention).await
    }

    async fn count_dropped(&self, task: TaskId, reason: DropReason, lines: u64) -> Result<(), StoreError> {
        self.store.count_dropped(task, reason, lines).await
    }

    async fn dropped(&self, task: TaskId) -> Result<Vec<(DropReason, u64)>, StoreError> {
        self.store.dropped(task).await
    }
}
