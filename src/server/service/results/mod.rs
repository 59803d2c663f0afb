//! What items came to, in the order of their indexes.
//!
//! Segments overlap by about a window: they are merged as they are read, so that a reader holds a few of them however
//! many there are. It stops at the first item that is not settled yet; what it gave never changes afterwards.

mod merge;

use std::collections::VecDeque;
use std::sync::Arc;

pub use merge::Reader;

use crate::service::ServiceError;
use windrow_core::ids::{ItemIndex, StoreId, TaskId};
use windrow_engine::ports::tasks::results::{ResultShard, ResultStore};
use windrow_engine::ports::tasks::store::TaskView;

/// How many results a task has, and how large they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResultCount {
    /// Results.
    pub items: u64,
    /// Bytes of JSON, before they were packed.
    pub bytes: u64,
    /// They can be read in order below this index.
    pub frontier: ItemIndex,
}

/// What the keys of a task's items begin with.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The store.
    pub store: StoreId,
    /// The task whose keys its items have.
    pub task: TaskId,
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
        let mut shards: VecDeque<ResultShard> = self.store.result_shards(task.id).await?.into();
        if task.status.is_terminal() {
            shards.iter_mut().for_each(|shard| shard.frontier = shard.end);
        }
        Ok(Reader::new(self.store.clone(), shards, from))
    }

    /// How many results a task has.
    pub async fn count(&self, task: TaskId) -> Result<ResultCount, ServiceError> {
        let (shards, sums) = (
            self.store.result_shards(task).await?,
            self.store.result_sums(task).await?,
        );
        let open = shards.iter().find(|shard| shard.frontier < shard.end);
        let whole = shards.last().map_or(ItemIndex(0), |shard| shard.end);
        Ok(ResultCount {
            items: sums.iter().map(|sum| sum.items).sum(),
            bytes: sums.iter().map(|sum| sum.bytes).sum(),
            frontier: open.map_or(whole, |shard| shard.frontier),
        })
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
