//! Windows of a task: the state of every index in a shard's window, live or as saved.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::service::ServiceError;
use crate::service::cluster::Cluster;
use crate::service::failures::Failures;
use crate::service::node::ThisNode;
use windrow_core::checkpoint;
use windrow_core::execution::WindowPicture;
use windrow_core::ids::{ItemIndex, ShardId, TaskId};
use windrow_core::task::WINDOW_ITEMS_MAX;
use windrow_engine::ports::ownership::peers::{PeerReply, Question, Unreachable};
use windrow_engine::ports::tasks::failure_list::FailurePage;
use windrow_engine::ports::tasks::report_store::SavedWindow;

pub use windrow_core::execution::{Cell, Head};

/// Most failed items marked as such in a window; more of them are shown as settled.
const FAILED_MAX: u32 = 2_000;

/// Dispatch window of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardWindow {
    /// Id of the shard shown.
    pub shard: ShardId,
    /// Origin of the data.
    pub seen: WindowOrigin,
    /// Node that runs the shard, `None` while nobody does.
    pub node: Option<String>,
    /// Lowest index that is neither settled nor parked.
    pub watermark: ItemIndex,
    /// End of the dispatched indexes, exclusive.
    pub high_water: ItemIndex,
    /// Size of the window in items; `None` while the shard isn't running.
    pub size: Option<u32>,
    /// Number of indexes per cell.
    pub per_cell: u64,
    /// Cells from the watermark on; the last one may cover fewer indexes.
    pub cells: Vec<Cell>,
    /// Item that holds back the watermark.
    pub head: Option<Head>,
}

/// Origin of a window's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowOrigin {
    /// Taken from the current run.
    Live,
    /// Taken from the last checkpoint.
    Saved,
    /// Not available, because the last checkpoint is damaged.
    Damaged,
}

/// Service for the dispatch windows of tasks.
pub struct Windows {
    pub(in crate::service) node: Arc<ThisNode>,
    pub(in crate::service) cluster: Arc<Cluster>,
    pub(in crate::service) failures: Arc<Failures>,
}

impl Windows {
    pub(in crate::service) fn new(
        node: Arc<ThisNode>,
        cluster: Arc<Cluster>,
        failures: Arc<Failures>,
    ) -> Windows {
        Windows {
            node,
            cluster,
            failures,
        }
    }

    /// Returns the windows of a task's shards, each with at most `cells_max` cells, and the nodes with shards that
    /// can't be reached. Shards that aren't running or can't be reached show the saved window.
    pub async fn of_task(
        &self,
        task: TaskId,
        cells_max: NonZeroU32,
    ) -> Result<(Vec<ShardWindow>, Vec<Unreachable>), ServiceError> {
        let here = self.node.name.clone();
        let live = self.node.supervisor.windows(task, cells_max);
        let mut pictures: Vec<Pictured> = live
            .into_iter()
            .map(|(shard, picture)| (shard, WindowOrigin::Live, Some(here.clone()), picture))
            .collect();
        let silent = self.windows_elsewhere(task, cells_max, &mut pictures).await;
        for saved in self.failures.reports.saved_windows(task).await? {
            if pictures.iter().all(|(shard, ..)| *shard != saved.shard) {
                let (shard, seen, picture) = picture_of(saved, cells_max);
                pictures.push((shard, seen, None, picture));
            }
        }
        pictures.sort_by_key(|(shard, ..)| *shard);
        let mut windows = Vec::with_capacity(pictures.len());
        for (shard, seen, node, picture) in pictures {
            let failed = self.failed(task, &picture).await?;
            windows.push(ShardWindow {
                shard,
                seen,
                node,
                watermark: picture.watermark,
                high_water: picture.high_water,
                size: (seen == WindowOrigin::Live).then_some(picture.size),
                per_cell: picture.per_cell,
                cells: if seen == WindowOrigin::Damaged {
                    Vec::new()
                } else {
                    picture.cells(&failed)
                },
                head: picture.head,
            });
        }
        Ok((windows, silent))
    }

    /// Adds the windows of shards on other nodes.
    async fn windows_elsewhere(
        &self,
        task: TaskId,
        cells_max: NonZeroU32,
        pictures: &mut Vec<Pictured>,
    ) -> Vec<Unreachable> {
        let (_, peers, mut silent) = self.cluster.owners(task).await;
        let question = Question::Windows(task, cells_max.get());
        let read = |reply| match reply {
            PeerReply::Windows(found) => Some(found),
            _ => None,
        };
        for (node, found) in self.cluster.gather(peers, &question, read, &mut silent).await {
            for (shard, picture) in found {
                if is_sound(&picture, cells_max) && pictures.iter().all(|(known, ..)| *known != shard) {
                    pictures.push((shard, WindowOrigin::Live, Some(node.clone()), picture));
                }
            }
        }
        silent
    }

    /// Returns the failed items in a window, as far as they are stored.
    async fn failed(&self, task: TaskId, window: &WindowPicture) -> Result<Vec<ItemIndex>, ServiceError> {
        if window.watermark >= window.high_water {
            return Ok(Vec::new());
        }
        // The item at the watermark is never settled.
        let page = FailurePage::ByIndex(Some(window.watermark));
        let found = self.failures.list.page(task, &page, FAILED_MAX).await?;
        Ok(found
            .into_iter()
            .map(|item| item.index)
            .filter(|index| *index < window.high_water)
            .collect())
    }
}

/// Window of a shard with its origin and node.
type Pictured = (ShardId, WindowOrigin, Option<String>, WindowPicture);

/// Returns true if a window from another node has no more cells than requested; cells are built index by index, so
/// the number must be bounded.
fn is_sound(picture: &WindowPicture, cells_max: NonZeroU32) -> bool {
    let indexes = picture.until.0.saturating_sub(picture.watermark.0);
    picture.per_cell > 0
        && indexes <= u64::from(WINDOW_ITEMS_MAX)
        && indexes.div_ceil(picture.per_cell) <= u64::from(cells_max.get())
}

fn picture_of(saved: SavedWindow, cells_max: NonZeroU32) -> (ShardId, WindowOrigin, WindowPicture) {
    let SavedWindow {
        shard,
        watermark,
        high_water,
        blob,
        ..
    } = saved;
    let snapshot = match blob.is_empty() {
        true => Ok(checkpoint::Snapshot::default()),
        false => checkpoint::decode(&blob, watermark),
    };
    let (seen, words) = match snapshot {
        Ok(snapshot) => (WindowOrigin::Saved, snapshot.words),
        Err(error) => {
            tracing::warn!(%shard, %error, "checkpoint can't be read");
            (WindowOrigin::Damaged, Vec::new())
        }
    };
    (
        shard,
        seen,
        WindowPicture::saved(watermark, high_water, words, cells_max),
    )
}
