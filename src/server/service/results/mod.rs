//! What items came to, in the order of their indexes.
//!
//! Segments overlap by about a window: they are merged as they are read, so that a reader holds a few of them however
//! many there are. It stops at the first item that is not settled yet; what it gave never changes afterwards.

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

/// What the keys of a task's items begin with.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The store.
    pub store: StoreId,
    /// The task whose keys its items have.
    pub task: TaskId,
}

impl Keys {
    /// The key of an item; `origin` is what it was in the task that failed first.
    pub fn of(&self, index: ItemIndex, origin: Option<(TaskId, ItemIndex)>) -> String {
        self.store.item_key(self.task, seen(index, origin))
    }

    /// The trace of an item, of which each attempt is a span; `origin` as above.
    pub fn trace(&self, index: ItemIndex, origin: Option<(TaskId, ItemIndex)>) -> String {
        let traces = Traces::of(&self.store, self.task);
        traces.id(seen(index, origin)).to_string()
    }
}

/// The index that handlers see.
fn seen(index: ItemIndex, origin: Option<(TaskId, ItemIndex)>) -> ItemIndex {
    origin.map_or(index, |(_, index)| index)
}

/// Results of tasks.
pub struct Results {
    store: Arc<dyn ResultStore>,
}

impl Results {
    /// Results of this store.
    pub fn new(store: Arc<dyn ResultStore>) -> Results {
        Results { store }
    }

    /// Reads the results of a task from an index on, as far as they can be read in order now. Of a task that was cancelled
    /// all there are: nothing comes between them any more.
    pub async fn read(&self, task: &TaskView, from: ItemIndex) -> Result<Reader, ServiceError> {
        let shards = self.shards(task).await?;
        Ok(Reader::new(self.store.clone(), shards.into(), from))
    }

    /// The shards of a task in index order, and how far the results of each can be read now.
    async fn shards(&self, task: &TaskView) -> Result<Vec<ResultShard>, ServiceError> {
        let mut shards = self.store.result_shards(task.id).await?;
        if task.status.is_terminal() && self.is_expired(task.id, &shards).await? {
            let detail = format!("the results of {} are no longer kept", task.id);
            return Err(ServiceError::conflict(
                detail,
                "`retention.results` says how long they are",
            ));
        }
        if task.status.is_terminal() {
            shards.iter_mut().for_each(|shard| shard.frontier = shard.end);
        }
        Ok(shards)
    }

    /// Whether some of a task's results are no longer kept.
    async fn is_expired(&self, task: TaskId, shards: &[ResultShard]) -> Result<bool, ServiceError> {
        let kept: u64 = shards.iter().map(|shard| shard.kept).sum();
        let sums = self.store.result_sums(task).await?;
        Ok(kept > sums.iter().map(|sum| sum.items).sum())
    }

    /// The output of one item, as JSON text.
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
