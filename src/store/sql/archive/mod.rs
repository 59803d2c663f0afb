//! Archive of tasks, written to a folder before they are deleted: `BUSINESS/t42.ndjson.zst`, one object per line.
//!
//! A file shows one snapshot of the store, taken before any of the task is deleted. It appears under its name only
//! once it is complete and on disk. A task whose file cannot be written is not deleted.

mod lines;

use std::path::Path;

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::folder::{ARCHIVE, Folder, PackedFile};
use crate::sql::entity::{business, failure_group, item, run, shard_day, shard_head, task};
use crate::sql::run::items;
use crate::sql::statistics::days;
use crate::sql::task::delete::DELETING;
use crate::sql::{Fetch, Store, Transaction, damaged};
use windrow_core::ids::{TaskId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::store::CommandError;

/// Rows fetched per query.
const ROWS_AT_ONCE: u64 = 1_000;

impl Store {
    /// Archives tasks in this folder before they are deleted, from now on.
    ///
    /// # Errors
    /// `Refused` if it is not the folder that the store's other nodes use.
    pub async fn archive_in(&mut self, folder: &Path) -> Result<(), StoreError> {
        self.archive = Some(self.place(ARCHIVE, folder).await?);
        Ok(())
    }
}

/// Archives a task that is about to be deleted, if an archive is configured. A task whose deletion has begun was
/// archived before.
///
/// # Errors
/// `NotArchived` if the folder cannot be written.
pub(crate) async fn keep(store: &Store, id: TaskId, now: WallMs) -> Result<(), CommandError> {
    let Some(folder) = &store.archive else {
        return Ok(());
    };
    let kept = write(store, folder, id, now).await;
    store.meters.archived(kept.is_ok());
    kept
}

/// Removes partial files left by processes that died.
pub(crate) async fn sweep(store: &Store, before: WallMs) -> Result<u64, StoreError> {
    match &store.archive {
        Some(folder) => folder.remove_halves(before).await,
        None => Ok(0),
    }
}

async fn write(store: &Store, folder: &Folder, id: TaskId, now: WallMs) -> Result<(), CommandError> {
    let snapshot = store.snapshot().await?;
    let row = task::Entity::find_by_id(id.0).row(&snapshot).await?;
    let Some(row) = row.filter(|row| row.status_reason.as_deref() != Some(DELETING)) else {
        return Ok(());
    };
    let owner = business::Entity::find_by_id(row.business_id)
        .row(&snapshot)
        .await?;
    let owner = owner.ok_or_else(|| damaged("task.business_id", &row.business_id.to_string()))?;
    let file = folder
        .begin(format!("{}/{id}.ndjson.zst", owner.slug))
        .await
        .map_err(CommandError::NotArchived)?;
    let shards = shard_head::Entity::find()
        .filter(shard_head::Column::TaskId.eq(id.0))
        .order_by_asc(shard_head::Column::FirstIndex)
        .rows(&snapshot)
        .await?;
    let head = lines::task(&row, (&store.id, &owner.slug), &shards, now)?;
    let file = file.add(head).await.map_err(CommandError::NotArchived)?;
    let small = small(&snapshot, id, &shards).await?;
    let file = file.add(small).await.map_err(CommandError::NotArchived)?;
    let file = failures(&snapshot, id, file).await?;
    file.finish().await.map_err(CommandError::NotArchived)
}

/// Formats the shards, runs, days and failure groups.
async fn small(
    snapshot: &Transaction,
    id: TaskId,
    shards: &[shard_head::Model],
) -> Result<String, StoreError> {
    let runs = run::Entity::find()
        .filter(run::Column::TaskId.eq(id.0))
        .order_by_asc(run::Column::ShardNo)
        .order_by_asc(run::Column::RunNo)
        .rows(snapshot)
        .await?;
    let days = shard_day::Entity::find()
        .filter(shard_day::Column::TaskId.eq(id.0))
        .rows(snapshot)
        .await?;
    let groups = failure_group::Entity::find()
        .filter(failure_group::Column::TaskId.eq(id.0))
        .order_by_asc(failure_group::Column::Code)
        .rows(snapshot)
        .await?;
    let lines = shards.iter().map(lines::shard);
    let lines = lines.chain(runs.iter().map(lines::run));
    let days = days::together(&days, shards);
    let lines = lines.chain(days.iter().map(lines::day));
    Ok(lines.chain(groups.iter().map(lines::failures)).collect())
}

/// Adds the failed items that are still stored, in batches.
async fn failures(
    snapshot: &Transaction,
    id: TaskId,
    mut file: PackedFile,
) -> Result<PackedFile, CommandError> {
    use item::Column as C;
    let mut after = -1;
    loop {
        let rows = item::Entity::find()
            .filter(C::TaskId.eq(id.0))
            .filter(C::State.eq(items::FAILED))
            .filter(C::Idx.gt(after))
            .order_by_asc(C::Idx)
            .limit(ROWS_AT_ONCE)
            .rows(snapshot)
            .await?;
        let Some(last) = rows.last() else { return Ok(file) };
        after = last.idx;
        let lines = rows.iter().map(lines::failure).collect();
        file = file.add(lines).await.map_err(CommandError::NotArchived)?;
    }
}
