//! After everything was healed: nothing is lost, every wish was obeyed, every change is on record.

use windrow_core::ids::TaskId;
use windrow_core::task::lifecycle::Status;

use super::{Judge, Wanted};

impl Judge {
    /// Whether a task is where its last accepted command wants it.
    pub(crate) fn is_settled(&self, id: TaskId) -> bool {
        let Some(task) = self.tasks.get(&id) else {
            return true;
        };
        match task.wanted {
            Wanted::Nothing => true,
            Wanted::ToRun => matches!(task.status, Status::Finished),
            Wanted::ToStop => matches!(
                task.status,
                Status::Stopped | Status::Finished | Status::Cancelled
            ),
            Wanted::ToEnd => matches!(task.status, Status::Cancelled | Status::Finished),
        }
    }

    /// Every item of a finished task was delivered, and somebody heard of it.
    pub(crate) fn check_finished(&mut self, id: TaskId) {
        let mut lost = Vec::new();
        for (shard, book) in self.shards.iter().filter(|(shard, _)| shard.task == id) {
            for (at, item) in book.items.iter().enumerate() {
                let index = book.first + at as u64;
                let is_due = self
                    .tasks
                    .get(&id)
                    .and_then(|task| task.finish_at)
                    .is_none_or(|end| index < end);
                if is_due && (item.departures == 0 || item.saved.is_none()) {
                    lost.push((*shard, index));
                }
            }
        }
        let Some(task) = self.tasks.get(&id) else { return };
        let due = task.finish_at.map_or(task.total, |end| end.min(task.total));
        let books = self
            .shards
            .iter()
            .filter(|(shard, _)| shard.task == id)
            .map(|(_, book)| book);
        let known: u64 = books
            .map(|book| book.end.min(due).saturating_sub(book.first))
            .sum();
        self.check(known == due, || {
            format!("{id} is finished with {known} of {due} items in its shards")
        });
        self.check(lost.is_empty(), || {
            format!("{id} is finished and these are lost: {lost:?}")
        });
    }

    /// As many changes are on record as commands were accepted.
    pub(crate) fn check_audit(&mut self, id: TaskId, entries: &[String]) {
        let commands = [
            "task.start",
            "task.stop",
            "task.stop_now",
            "task.cancel",
            "task.tune",
            "task.finish",
        ];
        let found = entries
            .iter()
            .filter(|action| commands.contains(&action.as_str()))
            .count() as u64;
        let accepted = self.tasks.get(&id).map_or(0, |task| task.commands);
        self.check(found == accepted, || {
            format!("{id}: {accepted} commands, {found} on record")
        });
    }
}
