//! The windows of a task: what every index of a shard's window is doing, or what was saved of it.

use std::num::NonZeroU32;

use super::{Service, ServiceError};
use crate::domain::checkpoint;
use crate::domain::execution::WindowPicture;
use crate::domain::ids::{ItemIndex, ShardId, TaskId};
use crate::ports::report_store::SavedWindow;

pub use crate::domain::execution::{Cell, Head};

/// Items that were given up and are marked as such; more of them are shown as settled.
const ABANDONED_MAX: u32 = 2_000;

/// The window of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardWindow {
    /// The shard.
    pub shard: ShardId,
    /// Where it was seen.
    pub seen: Seen,
    /// The lowest index that is neither settled nor parked.
    pub low_water: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// How many items wide it is; none while the shard doesn't run here.
    pub size: Option<u32>,
    /// Indexes of a cell.
    pub per_cell: u64,
    /// From low water on; the last one may stand for fewer indexes.
    pub cells: Vec<Cell>,
    /// What low water waits for.
    pub head: Option<Head>,
}

/// Where a window was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// In the run that is under way here.
    Live,
    /// In its last checkpoint.
    Saved,
    /// Nowhere: its last checkpoint is damaged.
    Damaged,
}

impl Service {
    /// The windows of a task's shards, each in at most `cells_max` cells. Of what doesn't run here, as it was saved.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn task_windows(
        &self,
        task: TaskId,
        cells_max: NonZeroU32,
    ) -> Result<Vec<ShardWindow>, ServiceError> {
        let live = self.supervisor().windows(task, cells_max);
        let mut pictures: Vec<(ShardId, Seen, WindowPicture)> =
            live.into_iter().map(|(shard, picture)| (shard, Seen::Live, picture)).collect();
        for saved in self.parts.reports.saved_windows(task).await? {
            if pictures.iter().all(|(shard, ..)| *shard != saved.shard) {
                pictures.push(picture_of(saved, cells_max));
            }
        }
        pictures.sort_by_key(|(shard, ..)| *shard);
        let mut windows = Vec::with_capacity(pictures.len());
        for (shard, seen, picture) in pictures {
            let abandoned = self.abandoned(task, &picture).await?;
            windows.push(ShardWindow {
                shard,
                seen,
                low_water: picture.low_water,
                high_water: picture.high_water,
                size: (seen == Seen::Live).then_some(picture.size),
                per_cell: picture.per_cell,
                cells: if seen == Seen::Damaged { Vec::new() } else { picture.cells(&abandoned) },
                head: picture.head,
            });
        }
        Ok(windows)
    }

    /// Who was given up in a window, as far as it is stored.
    async fn abandoned(&self, task: TaskId, window: &WindowPicture) -> Result<Vec<ItemIndex>, ServiceError> {
        if window.low_water >= window.high_water {
            return Ok(Vec::new());
        }
        // The item at low water is open.
        let found = self.parts.tasks.failures(task, Some(window.low_water), ABANDONED_MAX).await?;
        Ok(found.into_iter().map(|item| item.index).filter(|index| *index < window.high_water).collect())
    }
}

fn picture_of(saved: SavedWindow, cells_max: NonZeroU32) -> (ShardId, Seen, WindowPicture) {
    let SavedWindow { shard, low_water, high_water, blob } = saved;
    let snapshot = match blob.is_empty() {
        true => Ok(checkpoint::Snapshot::default()),
        false => checkpoint::decode(&blob, low_water),
    };
    let (seen, words) = match snapshot {
        Ok(snapshot) => (Seen::Saved, snapshot.words),
        Err(error) => {
            tracing::warn!(%shard, %error, "a checkpoint can't be read");
            (Seen::Damaged, Vec::new())
        }
    };
    (shard, seen, WindowPicture::saved(low_water, high_water, words, cells_max))
}
