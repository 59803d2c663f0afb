//! What items came to: one result for each that succeeded, in index order, as the handler answered the run that saved it.

use std::collections::BTreeSet;

use windrow_core::ids::{Epoch, ItemIndex, ShardId, TaskId};
use windrow_engine::ports::ownership::run_store::ShardCheckpoint;
use windrow_engine::ports::tasks::results::ItemOutput;

use super::books::Saved;
use super::{Item, Judge, Shard};

impl Judge {
    /// A run heard what an item came to.
    pub(crate) fn on_answer(&mut self, id: ShardId, epoch: Epoch, index: ItemIndex, json: &str) {
        if let Some(item) = self.shards.get_mut(&id).and_then(|shard| shard.item(index.0)) {
            item.answers.push((epoch, json.into()));
        }
    }

    /// A checkpoint that was taken: it counts a result for each item that it calls succeeded, and brings each once.
    pub(super) fn check_kept(&mut self, shard: &Shard, write: &ShardCheckpoint) {
        if !self.keeps(write.shard.task) {
            return;
        }
        let (kept, succeeded) = (write.results_kept, shard.saved().succeeded);
        self.check(kept == succeeded, || {
            format!("{} kept {kept} results of {succeeded} items", write.shard)
        });
        let mut brought = BTreeSet::new();
        let outputs = write.results.iter().flat_map(|segment| segment.outputs.iter());
        let twice: Vec<u64> = outputs
            .map(|output| output.index.0)
            .filter(|index| !brought.insert(*index))
            .collect();
        self.check(twice.is_empty(), || {
            format!("{} brings results twice: {twice:?}", write.shard)
        });
    }

    fn keeps(&self, id: TaskId) -> bool {
        self.tasks.get(&id).is_some_and(|task| task.keeps_results)
    }

    fn item_of(&self, id: TaskId, index: u64) -> Option<&Item> {
        let of_task = self.shards.iter().filter(|(shard, _)| shard.task == id);
        let mut holding = of_task.filter(|(_, book)| book.first <= index && index < book.end);
        let (_, book) = holding.next()?;
        book.items.get((index - book.first) as usize)
    }

    /// All that can be read of a task at rest, from its first item on; `before` is what was read while it ran.
    pub(crate) fn check_results(
        &mut self,
        id: TaskId,
        before: &[ItemOutput],
        found: &[ItemOutput],
        is_over: bool,
    ) {
        self.count(!before.is_empty(), "results read while it ran");
        self.check(found.starts_with(before), || {
            format!("results of {id} that were read are gone or have changed")
        });
        let mut rest = found.iter();
        let mut wrong = Vec::new();
        for index in 0..self.tasks.get(&id).map_or(0, |task| task.total) {
            let item = self.item_of(id, index);
            let saved = item.and_then(|item| item.saved);
            if saved.is_none() && !is_over {
                break;
            }
            if saved != Some(Saved::Succeeded) {
                continue;
            }
            let result = rest.next().filter(|result| result.index.0 == index);
            let is_own = item
                .zip(result)
                .is_some_and(|(item, result)| item.came_to(&result.json));
            if !is_own {
                wrong.push((index, result.map(|result| head(&result.json).to_owned())));
                break;
            }
        }
        let left = rest.next().map(|result| result.index.0);
        self.check(wrong.is_empty(), || {
            format!("{id} has no result, or a wrong one, of {wrong:?}")
        });
        self.check(!wrong.is_empty() || left.is_none(), || {
            format!("{id} has a result of {left:?}, which did not succeed or is not due yet")
        });
    }
}

impl Item {
    /// Whether this is what the handler answered the run that saved it.
    fn came_to(&self, json: &str) -> bool {
        let mut answers = self.answers.iter();
        answers.any(|(epoch, answer)| Some(*epoch) == self.saved_by && **answer == *json)
    }
}

/// Enough of an answer to know it.
fn head(json: &str) -> &str {
    &json[..json.len().min(80)]
}
