//! Methods of the task port for businesses and tasks; changes are in `create` and `command`.

use std::collections::BTreeSet;

use async_trait::async_trait;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::sql::entity::{audit, business, start_token, task};
use crate::sql::task::command;
use crate::sql::task::create;
use crate::sql::task::delete;
use crate::sql::task::handover;
use crate::sql::task::view;
use crate::sql::task::wait;
use crate::sql::{Fetch, Store, settled};
use windrow_core::ids::{StoreId, TaskId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::store::{
    AuditEntry, CommandError, CreateError, Making, NewTask, TaskCommand, TaskStore, TaskView, TokenStart,
    WaitNote, Write,
};
use windrow_host::start_token as tokens;

#[async_trait]
impl TaskStore for Store {
    async fn store_id(&self) -> Result<StoreId, StoreError> {
        Ok(self.id.clone())
    }

    async fn ensure_business(&self, slug: &str, write: &Write, now: WallMs) -> Result<(), StoreError> {
        settled(|| create::ensure_business(self, slug, write, now)).await
    }

    async fn make(
        &self,
        new: &NewTask,
        how: Making<'_>,
        write: &Write,
        now: WallMs,
    ) -> Result<TaskView, CreateError> {
        settled(|| create::create(self, (new, how), write, now)).await
    }

    async fn get(&self, id: TaskId) -> Result<Option<TaskView>, StoreError> {
        if let Some(talk) = self.talk().await? {
            return view::read_batch(talk, id).await;
        }
        // A transaction only for its snapshot: the counts of the view have to add up.
        let snapshot = self.snapshot().await?;
        let found = task::Entity::find_by_id(id.0).row(&snapshot).await?;
        let Some(row) = found else { return Ok(None) };
        Ok(Some(view::view_with_owners(&snapshot, row).await?))
    }

    async fn find(&self, slug: &str, name: &str) -> Result<Option<TaskView>, StoreError> {
        let owner = business::Entity::find()
            .filter(business::Column::Slug.eq(slug))
            .row(&self.readers);
        let Some(owner) = owner.await? else {
            return Ok(None);
        };
        let row = task::Entity::find()
            .filter(task::Column::BusinessId.eq(owner.id))
            .filter(task::Column::Name.eq(name))
            .order_by_desc(task::Column::Id)
            .row(&self.readers)
            .await?;
        match row {
            Some(row) => self.get(TaskId(row.id)).await,
            None => Ok(None),
        }
    }

    async fn release_name(&self, id: TaskId, write: &Write, now: WallMs) -> Result<(), CommandError> {
        settled(|| command::release_name(self, id, write, now)).await
    }

    async fn command_if(
        &self,
        id: TaskId,
        expected: Option<u64>,
        command: &TaskCommand,
        write: &Write,
        now: WallMs,
    ) -> Result<TaskView, CommandError> {
        settled(|| command::command(self, (id, expected), command, write, now)).await
    }

    async fn explain_waits(&self, notes: &[WaitNote], now: WallMs) -> Result<BTreeSet<TaskId>, StoreError> {
        settled(|| wait::explain(self, notes, now)).await
    }

    async fn delete(&self, id: TaskId, write: &Write, now: WallMs) -> Result<(), CommandError> {
        settled(|| delete::delete(self, id, write, now)).await
    }

    async fn move_shards(
        &self,
        task: TaskId,
        shard: Option<u32>,
        to: &str,
        write: &Write,
        now: WallMs,
    ) -> Result<u32, CommandError> {
        handover::move_shards(self, (task, shard, to), write, now).await
    }

    async fn start_of_token(&self, token: &str) -> Result<Option<TokenStart>, StoreError> {
        of_token(self, token).await
    }

    async fn audit(&self, id: TaskId) -> Result<Vec<AuditEntry>, StoreError> {
        let rows = audit::Entity::find()
            .filter(audit::Column::TaskId.eq(id.0))
            .order_by_asc(audit::Column::Id)
            .rows(&self.readers)
            .await?;
        Ok(rows.into_iter().map(entry).collect())
    }
}

pub(crate) fn entry(row: audit::Model) -> AuditEntry {
    AuditEntry {
        at: WallMs(row.at_ms),
        actor: row.actor,
        source: row.source,
        action: row.action,
        reason: row.reason,
        before: row.before_json,
        after: row.after_json,
    }
}

async fn of_token(store: &Store, token: &str) -> Result<Option<TokenStart>, StoreError> {
    let hash = tokens::hash(token);
    let found = start_token::Entity::find_by_id(hash.clone())
        .row(&store.readers)
        .await?;
    let Some(found) = found else { return Ok(None) };
    let live = task::Entity::find_by_id(found.task_id)
        .filter(task::Column::StartTokenHash.eq(hash))
        .row(&store.readers)
        .await?;
    let (task, start_no) = (TaskId(found.task_id), found.start_no.cast_unsigned());
    Ok(Some(TokenStart {
        task,
        start_no,
        is_live: live.is_some(),
    }))
}
