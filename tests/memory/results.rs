//! What items came to.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::state::{ItemState, State};
use super::{Call, MemoryStore};
use windrow_core::ids::{ItemIndex, ShardId, TaskId};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::ShardCheckpoint;
use windrow_engine::ports::tasks::results::{
    ResultShard, ResultStore, ResultSum, SegmentPlace, StoredSegment,
};

/// Keeps the segments of a checkpoint that was believed; one that is there is replaced by what it has become.
pub(super) fn keep(state: &mut State, checkpoint: &ShardCheckpoint) {
    let Some(task) = state.tasks.get_mut(&checkpoint.shard.task) else {
        return;
    };
    for segment in &checkpoint.results {
        let key = (checkpoint.shard.no, checkpoint.epoch, segment.no);
        task.results.insert(key, segment.outputs.to_vec());
    }
}

#[async_trait]
impl ResultStore for MemoryStore {
    async fn result_shards(&self, task: TaskId) -> Result<Vec<ResultShard>, StoreError> {
        self.act(Call::Read, |state| {
            let Some(of_task) = state.tasks.get(&task) else {
                return Ok(Vec::new());
            };
            let mut shards: Vec<_> = of_task.shards.iter().collect();
            shards.sort_by_key(|shard| shard.first);
            let shown = shards.into_iter().map(|shard| {
                let parked = of_task
                    .items
                    .iter()
                    .filter(|(_, item)| item.shard == shard.no && matches!(item.state, ItemState::Parked(_)));
                let lowest = parked.map(|(index, _)| *index).min();
                ResultShard {
                    shard: ShardId { task, no: shard.no },
                    end: shard.end,
                    frontier: lowest.map_or(shard.watermark, |lowest| lowest.min(shard.watermark)),
                    kept: shard.results,
                }
            });
            Ok(shown.collect())
        })
        .await
    }

    async fn result_sums(&self, task: TaskId) -> Result<Vec<ResultSum>, StoreError> {
        self.act(Call::Read, |state| {
            let Some(of_task) = state.tasks.get(&task) else {
                return Ok(Vec::new());
            };
            let mut sums: BTreeMap<u32, ResultSum> = BTreeMap::new();
            for ((no, _, _), outputs) in &of_task.results {
                let shard = ShardId { task, no: *no };
                let none = ResultSum {
                    shard,
                    items: 0,
                    bytes: 0,
                };
                let sum = sums.entry(*no).or_insert(none);
                sum.items += outputs.len() as u64;
                sum.bytes += outputs.iter().map(|output| output.json.len() as u64).sum::<u64>();
            }
            Ok(sums.into_values().collect())
        })
        .await
    }

    async fn segments(
        &self,
        shard: ShardId,
        from: ItemIndex,
        after: Option<SegmentPlace>,
        limit: u32,
    ) -> Result<Vec<StoredSegment>, StoreError> {
        self.act(Call::Read, |state| {
            let mut found = stored(state, shard);
            found.retain(|segment| {
                let reaches = segment.outputs.last().is_some_and(|last| last.index >= from);
                reaches && after.is_none_or(|after| segment.place > after)
            });
            found.sort_by_key(|segment| segment.place);
            found.truncate(limit as usize);
            Ok(found)
        })
        .await
    }

    async fn output(&self, shard: ShardId, index: ItemIndex) -> Result<Option<Box<str>>, StoreError> {
        self.act(Call::Read, |state| {
            let segments = stored(state, shard).into_iter();
            let mut outputs = segments.flat_map(|segment| segment.outputs);
            Ok(outputs
                .find(|output| output.index == index)
                .map(|output| output.json))
        })
        .await
    }
}

fn stored(state: &State, shard: ShardId) -> Vec<StoredSegment> {
    let of_task = state.tasks.get(&shard.task).map(|task| &task.results);
    let all = of_task
        .or_else(|| state.owned.get(&shard.task))
        .into_iter()
        .flatten();
    let of_shard = all.filter(|((no, _, _), _)| *no == shard.no);
    let segment = |((_, epoch, no), outputs): (&(u32, _, u32), &Vec<_>)| StoredSegment {
        place: SegmentPlace {
            first: first(outputs),
            epoch: *epoch,
            no: *no,
        },
        outputs: outputs.clone(),
    };
    of_shard.map(segment).collect()
}

fn first(outputs: &[windrow_engine::ports::tasks::results::ItemOutput]) -> ItemIndex {
    outputs.first().map_or(ItemIndex(0), |output| output.index)
}
