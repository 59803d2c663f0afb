//! Results of items in index order.
//!
//! Segments overlap by about one window. They are merged while they are read, so that a reader holds only a few,
//! whatever their number. Reading stops at the first unsettled item; what was returned never changes later.

mod joined;
mod merge;
mod room;

use std::sync::Arc;

pub use joined::Joined;
pub use merge::Reader;
pub use room::{ADVICE as SHORTAGE_ADVICE, Room};

use crate::service::ServiceError;
use windrow_core::ids::{ItemIndex, StoreId, TaskId};
use windrow_core::items::trace::Traces;
use windrow_engine::ports::tasks::results::{ResultShard, ResultStore};
use windrow_engine::ports::tasks::store::TaskView;

/// Builder for the idempotency keys of a task's items.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Id of the store.
    pub store: StoreId,
    /// Task whose keys the items carry.
    pub task: TaskId,
}

impl Keys {
    /// Returns the key of an item; `origin` is the item in the original task of a redrive.
    pub fn of(&self, index: ItemIndex, origin: Option<(TaskId, ItemIndex)>) -> String {
        self.store.item_key(self.task, seen(index, origin))
    }

    /// Returns the trace id of an item, in which each attempt is a span; `origin` is the item in the original task of
    /// a redrive.
    pub fn trace(&self, index: ItemIndex, origin: Option<(TaskId, ItemIndex)>) -> String {
        let traces = Traces::of(&self.store, self.task);
        traces.id(seen(index, origin)).to_string()
    }
}

/// Returns the index that handlers see.
fn seen(index: ItemIndex, origin: Option<(TaskId, ItemIndex)>) -> ItemIndex {
    origin.map_or(index, |(_, index)| index)
}

/// Service for the results of tasks.
pub struct Results {
    store: Arc<dyn ResultStore>,
}

impl Results {
    /// Creates the service for the results in this store.
    pub fn new(store: Arc<dyn ResultStore>) -> Results {
        Results { store }
    }

    /// Reads the results of a task from an index on, as far as they are available in order. For a task that has
    /// ended, that is all results, because no more can arrive in between.
    pub async fn read(&self, task: &TaskView, from: ItemIndex) -> Result<Reader, ServiceError> {
        let shards = self.shards(task).await?;
        Ok(Reader::new(self.store.clone(), shards.into(), from))
    }

    /// Returns the shards of a task in index order, each with the end of its readable results.
    async fn shards(&self, task: &TaskView) -> Result<Vec<ResultShard>, ServiceError> {
        let mut shards = self.store.result_shards(task.id).await?;
        if task.status.is_terminal() && self.is_expired(task.id, &shards).await? {
            let detail = format!("the results of {} are no longer kept", task.id);
            return Err(ServiceError::conflict(
                detail,
                "see `retention.results` for how long they are kept",
            ));
        }
        if task.status.is_terminal() {
            shards.iter_mut().for_each(|shard| shard.frontier = shard.end);
        }
        Ok(shards)
    }

    /// Returns true if some of the task's results are no longer kept.
    async fn is_expired(&self, task: TaskId, shards: &[ResultShard]) -> Result<bool, ServiceError> {
        let kept: u64 = shards.iter().map(|shard| shard.kept).sum();
        let sums = self.store.result_sums(task).await?;
        Ok(kept > sums.iter().map(|sum| sum.items).sum())
    }

    /// Returns the output of one item as JSON text.
    pub async fn output(&self, task: &TaskView, index: ItemIndex) -> Result<Option<Box<str>>, ServiceError> {
        let holds = |shard: &&windrow_engine::ports::tasks::store::ShardLife| {
            shard.first <= index && index < shard.range_end
        };
        let Some(shard) = task.shards.iter().find(holds) else {
            return Ok(None);
        };
        let shard = windrow_core::ids::ShardId {
            task: task.id,
            no: shard.no,
        };
        Ok(self.store.output(shard, index).await?)
    }
}
