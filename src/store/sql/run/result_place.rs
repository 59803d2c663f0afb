//! Results whose bytes lie beside the database: written before their rows commit, forgotten after them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use crate::folder::{self, Folder};
use crate::sql::entity::{meta, result_segment};
use crate::sql::{Store, error};
use windrow_core::ids::{TaskId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::ShardCheckpoint;
use windrow_engine::ports::tasks::result_bytes::ResultBytes;

/// The fact of the store that its folder must know.
const PLACE: &str = "results_place";
/// Between two looks through the folder. Unit: milliseconds.
const LOOK_EVERY_MS: i64 = 3_600_000;
/// Names that one question goes over.
const NAMES_AT_ONCE: usize = 1_000;

impl Store {
    /// Keeps the bytes of results in this folder from now on; those that the database holds stay there.
    ///
    /// # Errors
    /// `Refused` when it is not the folder that this store's other nodes use.
    pub async fn keep_results_in(&mut self, folder: &Path) -> Result<(), StoreError> {
        let known = self.place().await?;
        let fresh = known.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
        let looked_at = folder.to_owned();
        let is_known = known.is_some();
        let opened = tokio::task::spawn_blocking(move || {
            // Whoever isn't the first finds the marker of the first.
            if is_known && !looked_at.is_dir() {
                return Err(other(&looked_at));
            }
            Folder::open(&looked_at, if is_known { "" } else { &fresh })
        });
        let (opened, said) = opened
            .await
            .map_err(|error| StoreError::Unavailable(error.to_string()))??;
        let known = match known {
            Some(known) => known,
            None => self.note_place(&said).await?,
        };
        if said != known {
            return Err(other(folder));
        }
        self.result_bytes = Some(Arc::new(opened));
        Ok(())
    }

    async fn place(&self) -> Result<Option<String>, StoreError> {
        let fact = meta::Entity::find_by_id(PLACE.to_owned())
            .one(&self.writer)
            .await
            .map_err(error)?;
        Ok(fact.map(|fact| fact.val))
    }

    /// Of two nodes that begin at once the first counts.
    async fn note_place(&self, said: &str) -> Result<String, StoreError> {
        let fact = meta::ActiveModel {
            name: Set(PLACE.to_owned()),
            val: Set(said.to_owned()),
        };
        let noted = meta::Entity::insert(fact)
            .exec_without_returning(&self.writer)
            .await;
        match self.place().await? {
            Some(known) => Ok(known),
            None => Err(noted.map_err(error).err().unwrap_or_else(|| {
                StoreError::Unavailable("the place of results could not be noted".to_owned())
            })),
        }
    }

    fn bytes(&self) -> Result<&Arc<dyn ResultBytes>, StoreError> {
        self.result_bytes.as_ref().ok_or_else(|| {
            let text =
                "results of this store lie in a folder; set results.location as its other nodes have it";
            StoreError::Refused(text.to_owned())
        })
    }
}

fn other(folder: &Path) -> StoreError {
    let place = folder.display();
    StoreError::Refused(format!(
        "results.location {place} is not the folder that the results of this store are in: is it mounted, and the same on \
         every node?"
    ))
}

/// Moves the bytes of a checkpoint's segments to their place, if the store has one; done before the transaction, since a
/// row must never name what isn't there.
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
        // A segment that grew has another name than what it was: whoever reads the older row finds the older bytes.
        let name = format!("{task}/{shard}-{epoch}-{no}-{seq}");
        bytes
            .put(name.clone(), segment.body.take().unwrap_or_default())
            .await?;
        (segment.body, segment.location) = (Set(Vec::new()), Set(Some(name)));
        segment.seg_no = Set(no);
    }
    Ok(())
}

/// The packed bytes of a row, wherever they lie.
pub(crate) async fn body(store: &Store, row: &mut result_segment::Model) -> Result<Vec<u8>, StoreError> {
    match row.location.take() {
        None => Ok(std::mem::take(&mut row.body)),
        Some(name) => store.bytes()?.get(name).await,
    }
}

/// What may still be written where bytes are kept; none where another machine keeps them. Unit: bytes.
pub(crate) async fn free(store: &Store) -> Option<u64> {
    if let Some(bytes) = &store.result_bytes {
        return bytes.free().await;
    }
    let file = store.file.clone()?;
    let looked = tokio::task::spawn_blocking(move || folder::free(&file)).await;
    looked.ok()?.ok()
}

/// Forgets the bytes of a task that is gone.
pub(crate) async fn forget(store: &Store, task: TaskId) -> Result<(), StoreError> {
    let names = result_segment::Entity::find()
        .select_only()
        .column(result_segment::Column::Location)
        .filter(result_segment::Column::TaskId.eq(task.0))
        .filter(result_segment::Column::Location.is_not_null())
        .into_tuple::<String>()
        .all(&store.readers)
        .await
        .map_err(error)?;
    if names.is_empty() {
        return Ok(());
    }
    store.bytes()?.remove(names).await
}

/// Forgets bytes that were written before a time and that no row names: of checkpoints that never committed, and of
/// segments that grew. Says how many they were.
pub(crate) async fn sweep(store: &Store, before: WallMs) -> Result<u64, StoreError> {
    let Some(bytes) = &store.result_bytes else {
        return Ok(0);
    };
    // A folder of millions is looked through once an hour, whoever asks.
    let last = store.result_bytes_swept.fetch_max(before.0, Ordering::Relaxed);
    if last > 0 && before.0 < last.saturating_add(LOOK_EVERY_MS) {
        store.result_bytes_swept.fetch_min(last, Ordering::Relaxed);
        return Ok(0);
    }
    let found = bytes.written_before(before).await?;
    let mut forgotten = 0;
    for some in found.chunks(NAMES_AT_ONCE) {
        let used = result_segment::Entity::find()
            .select_only()
            .column(result_segment::Column::Location)
            .filter(result_segment::Column::Location.is_in(some.iter().map(String::as_str)))
            .into_tuple::<String>()
            .all(&store.readers)
            .await
            .map_err(error)?;
        let unused: Vec<String> = some.iter().filter(|name| !used.contains(name)).cloned().collect();
        forgotten += unused.len() as u64;
        bytes.remove(unused).await?;
    }
    Ok(forgotten)
}
