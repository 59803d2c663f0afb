//! Results whose bytes are stored beside the database: written before their rows commit, removed after them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use windrow_words::store as say;

use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::folder::{self, RESULTS};
use crate::sql::entity::result_segment;
use crate::sql::{Pluck, Store};
use windrow_core::ids::{TaskId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::ShardCheckpoint;
use windrow_engine::ports::tasks::result_bytes::ResultBytes;

/// Interval between two scans of the folder, in milliseconds.
const LOOK_EVERY_MS: i64 = 3_600_000;
/// Names checked by one query.
const NAMES_AT_ONCE: usize = 1_000;

impl Store {
    /// Stores the bytes of results in this folder from now on; those in the database stay there.
    ///
    /// # Errors
    /// `Refused` if it is not the folder that the store's other nodes use.
    pub async fn keep_results_in(&mut self, folder: &Path) -> Result<(), StoreError> {
        self.result_bytes = Some(Arc::new(self.place(RESULTS, folder).await?));
        Ok(())
    }

    fn bytes(&self) -> Result<&Arc<dyn ResultBytes>, StoreError> {
        self.result_bytes
            .as_ref()
            .ok_or_else(|| StoreError::Refused(say::results_in_folder().to_string()))
    }
}

/// Moves the bytes of a checkpoint's segments to the folder, if the store has one. Done before the transaction, since
/// a row must never name a missing file.
pub(crate) async fn stow(
    store: &Store,
    checkpoint: &ShardCheckpoint,
    segments: &mut [result_segment::ActiveModel],
) -> Result<(), StoreError> {
    let Some(bytes) = &store.result_bytes else {
        return Ok(());
    };
    for segment in segments {
        let (task, shard) = (checkpoint.shard.task, checkpoint.shard.no);
        let (epoch, seq, no) = (
            checkpoint.epoch.0,
            checkpoint.seq.0,
            segment.seg_no.take().unwrap_or_default(),
        );
        // A segment that grew gets a new name, so that readers of the older row find the older bytes.
        let name = format!("{task}/{shard}-{epoch}-{no}-{seq}");
        bytes
            .put(name.clone(), segment.body.take().unwrap_or_default())
            .await?;
        (segment.body, segment.location) = (Set(Vec::new()), Set(Some(name)));
        segment.seg_no = Set(no);
    }
    Ok(())
}

/// Returns the packed bytes of a row, wherever they are stored.
pub(crate) async fn body(store: &Store, row: &mut result_segment::Model) -> Result<Vec<u8>, StoreError> {
    match row.location.take() {
        None => Ok(std::mem::take(&mut row.body)),
        Some(name) => store.bytes()?.get(name).await,
    }
}

/// Returns the free space where bytes are stored, in bytes; `None` if another machine stores them.
pub(crate) async fn free(store: &Store) -> Option<u64> {
    if let Some(bytes) = &store.result_bytes {
        return bytes.free().await;
    }
    let file = store.file.clone()?;
    let looked = tokio::task::spawn_blocking(move || folder::free(&file)).await;
    looked.ok()?.ok()
}

/// Removes the bytes of a task's results from the folder.
pub(crate) async fn forget(store: &Store, task: TaskId) -> Result<(), StoreError> {
    let names = result_segment::Entity::find()
        .filter(result_segment::Column::TaskId.eq(task.0))
        .filter(result_segment::Column::Location.is_not_null())
        .pluck::<String>([result_segment::Column::Location], &store.readers)
        .await?;
    if names.is_empty() {
        return Ok(());
    }
    store.bytes()?.remove(names).await
}

/// Removes bytes that were written before a time and that no row names: from checkpoints that never committed, and
/// from segments that grew. Returns their number.
pub(crate) async fn sweep(store: &Store, before: WallMs) -> Result<u64, StoreError> {
    let Some(bytes) = &store.result_bytes else {
        return Ok(0);
    };
    // A folder with millions of files is scanned once an hour, whoever asks.
    let last = store.result_bytes_swept.fetch_max(before.0, Ordering::Relaxed);
    if last > 0 && before.0 < last.saturating_add(LOOK_EVERY_MS) {
        store.result_bytes_swept.fetch_min(last, Ordering::Relaxed);
        return Ok(0);
    }
    let found = bytes.written_before(before).await?;
    let mut forgotten = 0;
    for some in found.chunks(NAMES_AT_ONCE) {
        let used = result_segment::Entity::find()
            .filter(result_segment::Column::Location.is_in(some.iter().map(String::as_str)))
            .pluck::<String>([result_segment::Column::Location], &store.readers)
            .await?;
        let unused: Vec<String> = some.iter().filter(|name| !used.contains(name)).cloned().collect();
        forgotten += unused.len() as u64;
        bytes.remove(unused).await?;
    }
    Ok(forgotten)
}
