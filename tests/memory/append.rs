//! Items that are added to open tasks.

use async_trait::async_trait;

use super::state::{Block, State, Task};
use super::tasks::on;
use super::{Call, MemoryStore, life};
use windrow_core::ids::{ItemIndex, TaskId, WallMs};
use windrow_core::task::lifecycle::ShardState;
use windrow_core::task::supply::Addition;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::actor::Write;
use windrow_engine::ports::sources::append::{AppendError, AppendStore, Appended, NewBlock, StoredBlock};

#[async_trait]
impl AppendStore for MemoryStore {
    async fn append_items(
        &self,
        task: TaskId,
        block: &NewBlock,
        write: &Write,
        now: WallMs,
    ) -> Result<Appended, AppendError> {
        let add = |state: &mut State| append(state, task, block, now);
        self.act(Call::Append, |state| on(state, write, add)).await
    }

    async fn blocks(
        &self,
        task: TaskId,
        at: ItemIndex,
        bytes_max: usize,
    ) -> Result<Vec<StoredBlock>, StoreError> {
        self.act(Call::Read, |state| {
            Ok(state
                .tasks
                .get(&task)
                .map(|task| blocks(task, at, bytes_max))
                .unwrap_or_default())
        })
        .await
    }

    async fn bytes_waiting(&self, task: TaskId) -> Result<u64, StoreError> {
        self.act(Call::Read, |state| {
            Ok(state.tasks.get(&task).map_or(0, bytes_waiting))
        })
        .await
    }
}

/// The rows of blocks of which an item is open.
fn bytes_waiting(task: &Task) -> u64 {
    let low = watermark(task);
    let is_open = |(first, known): &(&ItemIndex, &Block)| first.plus(known.block.items()) > low;
    task.appended
        .iter()
        .filter(is_open)
        .map(|(_, known)| known.block.bytes())
        .sum()
}

fn append(state: &mut State, id: TaskId, block: &NewBlock, now: WallMs) -> Result<Appended, AppendError> {
    let task = state.tasks.get(&id).ok_or(AppendError::NotFound(id))?;
    let is_same = |known: &&Block| block.key.is_some() && known.block.key == block.key;
    let known = task.appended.iter().find(|(_, known)| is_same(known));
    if let Some((first, known)) = known {
        if known.block != *block {
            return Err(AppendError::KeyReused(id));
        }
        return Ok(Appended {
            first: *first,
            items: block.items(),
            is_repeat: true,
            total: task.new.total,
        });
    }
    let addition = Addition {
        items: block.items(),
        bytes: block.bytes(),
        bytes_waiting: bytes_waiting(task),
    };
    let mut first = ItemIndex(0);
    life::change(state, id, None, now, |life, _| {
        first = life.append(&addition, now)?;
        Ok::<_, AppendError>(Vec::new())
    })?;
    let task = state.tasks.get_mut(&id).ok_or(AppendError::NotFound(id))?;
    let kept = Block {
        block: block.clone(),
        at: now,
        is_forgotten: false,
    };
    task.appended.insert(first, kept);
    Ok(Appended {
        first,
        items: block.items(),
        is_repeat: false,
        total: task.new.total,
    })
}

/// Below it every item of a task is settled or parked.
fn watermark(task: &Task) -> ItemIndex {
    let open = task.shards.iter().filter(|shard| shard.state != ShardState::Done);
    let lowest = open.map(|shard| shard.watermark).min();
    lowest.unwrap_or(ItemIndex(u64::MAX))
}

fn blocks(task: &Task, at: ItemIndex, bytes_max: usize) -> Vec<StoredBlock> {
    let holder = task.appended.range(..=at).next_back();
    let holder = holder.filter(|(first, known)| at < first.plus(known.block.items()));
    let Some((first, _)) = holder else {
        return Vec::new();
    };
    let (mut next, mut bytes, mut found) = (*first, 0, Vec::new());
    for (first, known) in task.appended.range(*first..) {
        if *first != next || known.is_forgotten || (bytes > 0 && bytes >= bytes_max) {
            break;
        }
        (next, bytes) = (first.plus(known.block.items()), bytes + known.block.rows().len());
        found.push(StoredBlock {
            first: *first,
            rows: known.block.rows().to_owned(),
        });
    }
    found
}

/// Forgets the rows of old blocks of which no item is needed any more; their keys stay.
pub(super) fn sweep(state: &mut State, before: WallMs) -> u64 {
    state.tasks.values_mut().map(|task| forget(task, before)).sum()
}

fn forget(task: &mut Task, before: WallMs) -> u64 {
    let (low, items, mut gone) = (watermark(task), &task.items, 0);
    for (first, known) in &mut task.appended {
        let end = first.plus(known.block.items());
        let has_failed = items.range(*first..end).next().is_some();
        if known.at < before && end <= low && !has_failed && !known.is_forgotten {
            (known.is_forgotten, gone) = (true, gone + 1);
        }
    }
    task.appended
        .retain(|_, known| !known.is_forgotten || known.block.key.is_some());
    gone
}

/// Forgets old keys of blocks whose rows are forgotten.
pub(super) fn sweep_keys(state: &mut State, before: WallMs) -> u64 {
    let mut gone = 0;
    for task in state.tasks.values_mut() {
        let count = task.appended.len();
        let is_over = |known: &Block| known.is_forgotten && known.at < before;
        task.appended.retain(|_, known| !is_over(known));
        gone += (count - task.appended.len()) as u64;
    }
    gone
}
