//! The windows of a task: of each shard that runs here what every index in it is doing, else where it stands.

use std::num::NonZeroU32;

use super::{Service, ServiceError};
use crate::domain::ids::{ItemIndex, ShardId, TaskId};

pub use crate::domain::execution::{Cell, Head};

/// Items that were given up and are marked as such; more of them are shown as settled.
const ABANDONED_MAX: u32 = 2_000;

/// The window of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardWindow {
    /// The shard.
    pub shard: ShardId,
    /// The lowest index that is neither settled nor parked.
    pub low_water: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// What is known of it while it runs here.
    pub live: Option<LiveWindow>,
}

/// A window in motion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveWindow {
    /// How many items wide it is.
    pub size: u32,
    /// Indexes of a cell.
    pub per_cell: u64,
    /// From low water on; the last one may stand for fewer indexes.
    pub cells: Vec<Cell>,
    /// What low water waits for.
    pub head: Option<Head>,
}

impl Service {
    /// The windows of a task's shards, each in at most `cells_max` cells. Of what doesn't run here, low and high water
    /// as they are stored.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn task_windows(
        &self,
        task: TaskId,
        cells_max: NonZeroU32,
    ) -> Result<Vec<ShardWindow>, ServiceError> {
        let pictures = self.supervisor().windows(task, cells_max);
        let mut windows = Vec::new();
        for (shard, picture) in pictures {
            let abandoned = self.abandoned(task, picture.low_water, picture.high_water).await?;
            let live = LiveWindow {
                size: picture.size,
                per_cell: picture.per_cell,
                cells: picture.cells(&abandoned),
                head: picture.head,
            };
            let (low_water, high_water) = (picture.low_water, picture.high_water);
            windows.push(ShardWindow { shard, low_water, high_water, live: Some(live) });
        }
        for stored in self.parts.reports.shard_facts(task).await? {
            if windows.iter().all(|window| window.shard != stored.shard) {
                let (low_water, high_water) = (stored.low_water, stored.high_water);
                windows.push(ShardWindow { shard: stored.shard, low_water, high_water, live: None });
            }
        }
        windows.sort_by_key(|window| window.shard);
        Ok(windows)
    }

    /// Who was given up in a window, as far as it is stored.
    async fn abandoned(
        &self,
        task: TaskId,
        low_water: ItemIndex,
        high_water: ItemIndex,
    ) -> Result<Vec<ItemIndex>, ServiceError> {
        if low_water >= high_water {
            return Ok(Vec::new());
        }
        // The item at low water is open.
        let found = self.parts.tasks.failures(task, Some(low_water), ABANDONED_MAX).await?;
        Ok(found.into_iter().map(|item| item.index).filter(|index| *index < high_water).collect())
    }
}
