//! Appending items to an open task, and the seal that ends it.
//!
//! An open task has one shard, whose end grows under the task's lock, in the transaction that stores the items. A run
//! that reports it as done is believed only once the task is sealed and its end is the run's own, so items added
//! meanwhile are never passed over.

use windrow_words::life as say;

use super::run_end::RunClose;
use super::{CommandRefusal, Desired, Life};
use crate::ids::{INDEX_MAX, ItemCount, ItemIndex, WallMs};
use crate::task::lifecycle::{Refusal, ShardState, Status, Verb, decide};
use crate::task::meaning::{FieldRefusal, MeaningChange};
use crate::task::supply::{Addition, AppendRefusal, Intake, Supply};

impl Life {
    /// Returns the end of the items and if they are sealed, or `None` if the items were fixed when the task was
    /// created.
    pub fn supply(&self) -> Option<Supply> {
        self.intake.map(|intake| Supply {
            end: ItemIndex(self.total.0),
            is_sealed: intake == Intake::Sealed,
        })
    }

    /// Appends items and returns the index of the first.
    ///
    /// # Errors
    /// Returns an [`AppendRefusal`]; the caller must then store nothing.
    pub fn append(&mut self, addition: &Addition, now: WallMs) -> Result<ItemIndex, AppendRefusal> {
        self.check_append()?;
        let waiting = ItemCount(self.total.0.saturating_sub(self.lowest_open().0));
        addition.check(self.id, waiting)?;
        let first = ItemIndex(self.total.0);
        let total = first.0.saturating_add(addition.items);
        if total > INDEX_MAX {
            return Err(AppendRefusal::Sealed(self.id));
        }
        self.total = ItemCount(total);
        self.lengthen(now);
        self.bump_control();
        Ok(first)
    }

    fn check_append(&self) -> Result<(), AppendRefusal> {
        match self.intake {
            None => return Err(AppendRefusal::NotOpen(self.id)),
            Some(Intake::Sealed) => return Err(AppendRefusal::Sealed(self.id)),
            Some(Intake::Open) => {}
        }
        decide(Verb::Append, self.standing())?;
        if self.desired == Desired::Cancel {
            let (verb, status) = (Verb::Append.as_str(), self.status);
            let allowed = Vec::new();
            return Err(AppendRefusal::Status(Refusal {
                verb,
                status,
                allowed,
            }));
        }
        Ok(())
    }

    /// Returns the lowest index that isn't done.
    fn lowest_open(&self) -> ItemIndex {
        let open = self.shards.iter().filter(|shard| !shard.is_done());
        let lowest = open.map(|shard| shard.watermark).min();
        lowest.unwrap_or(ItemIndex(self.total.0))
    }

    /// Extends the shard to the end of the items. A running owner reads it from its control.
    fn lengthen(&mut self, now: WallMs) {
        let end = ItemIndex(self.total.0);
        for shard in self.shards.iter_mut().filter(|shard| !shard.is_publication()) {
            (shard.end, shard.range_end) = (end, end);
            if !shard.is_running() {
                // A shard that was idle for long may run by itself again, because it has work.
                shard.updated_at = now;
            }
        }
    }

    /// Accepts no more items. Settles the shard if nobody runs it and nothing is left.
    pub(super) fn seal(&mut self, now: WallMs) -> Result<(), CommandRefusal> {
        if self.intake.is_none() {
            return Err(CommandRefusal::NotOpen(self.id));
        }
        decide(Verb::Seal, self.standing())?;
        self.intake = Some(Intake::Sealed);
        self.bump_control();
        let rests = matches!(
            self.status,
            Status::Queued | Status::Recovering | Status::Stopped | Status::Stopping
        );
        let is_over =
            |shard: &super::ShardLife| !shard.is_publication() && !shard.is_running() && shard.is_settled();
        for shard in self.shards.iter_mut().filter(|shard| rests && is_over(shard)) {
            (shard.state, shard.updated_at) = (ShardState::Done, now);
        }
        Ok(())
    }

    /// Seals an open task that ends early.
    pub(super) fn seal_early(&mut self) {
        self.intake = self.intake.map(|_| Intake::Sealed);
    }

    /// Seals the task because a run finished its shard early at the request of the business. The shard makes the cut
    /// itself.
    pub fn cut_short(&mut self) {
        if self.intake == Some(Intake::Open) {
            self.seal_early();
            self.bump_control();
        }
    }

    /// Returns the effective close of a run. An open task is done only if it is sealed and all its items are settled;
    /// otherwise a run that reports it as done only releases the shard.
    pub(super) fn believed<'a>(&self, no: u32, close: &'a RunClose) -> &'a RunClose {
        let is_whole = |intake: Intake| {
            let shard = self.shards.iter().find(|shard| shard.no == no);
            intake == Intake::Sealed && shard.is_some_and(super::ShardLife::is_settled)
        };
        match (close, self.intake) {
            (RunClose::Done, Some(intake)) if !self.is_publication(no) && !is_whole(intake) => {
                &RunClose::Released
            }
            _ => close,
        }
    }

    fn is_publication(&self, no: u32) -> bool {
        self.publication().is_some_and(|shard| shard.no == no)
    }

    /// Refuses changes to the meaning of an open task, because its items are appended.
    pub(super) fn refuse_new_meaning(&self, change: &MeaningChange) -> Result<(), CommandRefusal> {
        let named = [
            ("total", change.total.is_some()),
            ("skip_first", change.skip_first.is_some()),
            ("source", change.source.is_some()),
            ("shards", change.shards.is_some()),
        ];
        let named = named.into_iter().filter(|(_, is_named)| *is_named);
        let refusals: Vec<FieldRefusal> = named
            .map(|(field, _)| FieldRefusal::new(field, say::open_items().to_string()))
            .collect();
        match self.intake.is_some() && !refusals.is_empty() {
            true => Err(CommandRefusal::Fields(refusals)),
            false => Ok(()),
        }
    }
}
