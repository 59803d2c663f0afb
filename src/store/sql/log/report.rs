//! Facts for the report of a task, read from one snapshot.

use async_trait::async_trait;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DerivePartialModel, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    Select,
};

use crate::sql::entity::{item, run, shard, shard_head, task};
use crate::sql::log::failure_list;
use crate::sql::run::items;
use crate::sql::task::list;
use crate::sql::task::view;
use crate::sql::{Fetch, Pluck, Store};
use windrow_core::ids::{ItemIndex, ShardId, TaskId};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::list::RunRecord;
use windrow_engine::ports::tasks::report_store::{ReportFacts, ReportStore, SavedWindow};
use windrow_engine::ports::tasks::store::TaskView;

/// Columns of a shard that describe its window.
#[derive(DerivePartialModel)]
#[sea_orm(entity = "shard::Entity")]
struct Saved {
    shard_no: i32,
    watermark: i64,
    high_water: i64,
    horizon: i64,
    ckpt_blob: Vec<u8>,
}

#[async_trait]
impl ReportStore for Store {
    async fn report_facts(&self, id: TaskId, runs: u32) -> Result<Option<ReportFacts>, StoreError> {
        let snapshot = self.snapshot().await?;
        let row = task::Entity::find_by_id(id.0).row(&snapshot).await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(ReportFacts {
            task: view::view(&snapshot, row).await?,
            groups: failure_list::groups(&snapshot, id).await?,
            has_waiting_items: has_waiting(&snapshot, id).await?,
            runs: newest_runs(&snapshot, id, runs).await?,
        }))
    }

    async fn saved_windows(&self, id: TaskId) -> Result<Vec<SavedWindow>, StoreError> {
        let rows = shard::Entity::find()
            .filter(shard::Column::TaskId.eq(id.0))
            .order_by_asc(shard::Column::ShardNo)
            .parts(&self.readers)
            .await?;
        let saved = |row: Saved| SavedWindow {
            shard: ShardId {
                task: id,
                no: row.shard_no.cast_unsigned(),
            },
            watermark: ItemIndex(row.watermark.cast_unsigned()),
            high_water: ItemIndex(row.high_water.cast_unsigned()),
            horizon: ItemIndex(row.horizon.max(row.high_water).cast_unsigned()),
            blob: row.ckpt_blob,
        };
        Ok(rows.into_iter().map(saved).collect())
    }

    async fn waiting_items(&self, id: TaskId) -> Result<Vec<ItemIndex>, StoreError> {
        let mut found = Vec::new();
        for no in shard_numbers(&self.readers, id).await? {
            let indexes = waiting(id, no).pluck::<i64>([item::Column::Idx], &self.readers);
            found.extend(
                indexes
                    .await?
                    .into_iter()
                    .map(|index| ItemIndex(index.cast_unsigned())),
            );
        }
        Ok(found)
    }

    async fn redrives_of(&self, id: TaskId, limit: u32) -> Result<Vec<TaskView>, StoreError> {
        let snapshot = self.snapshot().await?;
        let rows = task::Entity::find()
            .filter(task::Column::ParentId.eq(id.0))
            .order_by_asc(task::Column::Id)
            .limit(u64::from(limit))
            .rows(&snapshot)
            .await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            found.push(view::view(&snapshot, row).await?);
        }
        Ok(found)
    }

    async fn redriven_among(&self, tasks: &[TaskId]) -> Result<Vec<TaskId>, StoreError> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let parents = task::Entity::find()
            .distinct()
            .filter(task::Column::ParentId.is_in(tasks.iter().map(|id| id.0)))
            .order_by_asc(task::Column::ParentId)
            .pluck::<Option<i64>>([task::Column::ParentId], &self.readers)
            .await?;
        Ok(parents.into_iter().flatten().map(TaskId).collect())
    }
}

/// Returns true if any item is retrying; reads one row only.
async fn has_waiting<C: ConnectionTrait>(db: &C, id: TaskId) -> Result<bool, StoreError> {
    for no in shard_numbers(db, id).await? {
        let first = waiting(id, no).pluck_one::<i64>([item::Column::Idx], db);
        if first.await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn shard_numbers<C: ConnectionTrait>(db: &C, id: TaskId) -> Result<Vec<i32>, StoreError> {
    shard_head::Entity::find()
        .filter(shard_head::Column::TaskId.eq(id.0))
        .pluck([shard_head::Column::ShardNo], db)
        .await
}

/// Selects the retrying items of a shard, by the leading columns of an index.
fn waiting(id: TaskId, shard_no: i32) -> Select<item::Entity> {
    use item::Column as C;
    item::Entity::find()
        .filter(C::TaskId.eq(id.0))
        .filter(C::ShardNo.eq(shard_no))
        .filter(C::State.is_in([items::PARKED, items::RETRYING]))
}

async fn newest_runs<C: ConnectionTrait>(
    db: &C,
    id: TaskId,
    limit: u32,
) -> Result<Vec<RunRecord>, StoreError> {
    let rows = run::Entity::find()
        .filter(run::Column::TaskId.eq(id.0))
        .order_by_desc(run::Column::StartedAt)
        .order_by_desc(run::Column::RunNo)
        .limit(u64::from(limit))
        .rows(db)
        .await?;
    Ok(rows.into_iter().map(list::record).collect())
}
