//! Tasks as they are written to a folder before they are deleted: `BUSINESS/t42.ndjson.zst`, an object a line.
//!
//! What is written is one moment of the store, of a task that nothing of was deleted yet; the file is there under its name
//! only when it is whole and on the disk. A task whose file can't be written is not deleted.

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

/// Rows of one question.
const ROWS_AT_ONCE: u64 = 1_000;

impl Store {
    /// Writes tasks to this folder before they are deleted, from now on.
    ///
    /// # Errors
    /// `Refused` when it is not the folder that this store's other nodes use.
    pub async fn archive_in(&mut self, folder: &Path) -> Result<(), StoreError> {
        self.archive = Some(self.place(ARCHIVE, folder).await?);
        Ok(())
    }
}

/// Writes a task that is about to be deleted, if tasks are archived. One whose deletion has begun was written before.
///
/// # Errors
/// `NotArchived` when the folder can't be written.
pub(crate) async fn keep(store: &Store, id: TaskId, now: WallMs) -> Result<(), CommandError> {
    let Some(folder) = &store.archive else {
        return Ok(());
    };
    let kept = write(store, folder, id, now).await;
    store.meters.archived(kept.is_ok());
    kept
}

/// Removes what processes that died left half written.
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
    let owner = owner.ok_or_else(|| damaged("the business of a task", &row.business_id.to_string()))?;
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

/// Shards, runs, days and failures by code.
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

/// Adds the items that were given up and are still known, some at a time.
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
