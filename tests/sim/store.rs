//! What a store keeps of a shard: the columns, the bitmap and a table of item rows.

use std::collections::BTreeMap;

use windrow_core::execution::{CheckpointDraft, REACH_OF_CLAIM, Reach, Restored};
use windrow_core::ids::{ItemIndex, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::items::verdict::{ItemTrouble, ParkedItem, SideRecord};
use windrow_core::task::Canary;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Row {
    Retrying(ItemTrouble),
    Parked(ItemTrouble, WallMs),
    Failed(ItemTrouble),
}

impl Row {
    pub(crate) fn trouble(&self) -> &ItemTrouble {
        match self {
            Row::Retrying(trouble) | Row::Parked(trouble, _) | Row::Failed(trouble) => trouble,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    pub(crate) low: u64,
    pub(crate) high: u64,
    reach: Reach,
    pub(crate) counters: Counters,
    pub(crate) above: Vec<u64>,
    pub(crate) rows: BTreeMap<u64, Row>,
    pub(crate) finish_at: Option<ItemIndex>,
    /// The task's, until it has passed.
    pub(crate) canary: Option<Canary>,
    stalls: u32,
    seen_at_claim: Option<u64>,
}

impl Store {
    pub(crate) fn new(start: u64, canary: Option<Canary>) -> Store {
        Store {
            low: start,
            high: start,
            reach: beginning(start),
            canary,
            ..Store::default()
        }
    }

    pub(crate) fn apply(&mut self, draft: &CheckpointDraft) {
        (self.low, self.high) = (draft.watermark.0, draft.high_water.0);
        (self.counters, self.above) = (draft.counters, draft.above.clone());
        self.reach.may_leave = draft.reach;
        self.finish_at = draft.finish_at.or(self.finish_at);
        if draft.canary_passed {
            self.canary = None;
        }
        for record in &draft.side {
            let index = record.index().0;
            match record {
                SideRecord::Retrying(trouble) => self.rows.insert(index, Row::Retrying(trouble.clone())),
                SideRecord::Parked { trouble, due_at } => {
                    self.rows.insert(index, Row::Parked(trouble.clone(), *due_at))
                }
                SideRecord::Failed(trouble) => self.rows.insert(index, Row::Failed(trouble.clone())),
                SideRecord::Cleared(_) => self.rows.remove(&index),
            };
        }
    }

    /// Whether the index is below watermark or its bit is set.
    pub(crate) fn is_passed(&self, index: u64) -> bool {
        let bit = |distance: u64| {
            self.above
                .get((distance / 64) as usize)
                .is_some_and(|word| word >> (distance % 64) & 1 == 1)
        };
        index < self.low || index > self.low && bit(index - self.low - 1)
    }

    pub(crate) fn is_settled(&self, index: u64) -> bool {
        self.is_passed(index) && !matches!(self.rows.get(&index), Some(Row::Parked(..)))
    }

    /// Counts the claim as one without progress unless watermark moved since the last.
    pub(crate) fn claim(&mut self) -> u32 {
        let progressed = self.seen_at_claim.replace(self.low) != Some(self.low);
        let before = self.reach.may_leave;
        let may_leave = before.max(ItemIndex(self.high + REACH_OF_CLAIM));
        self.reach = Reach {
            may_leave,
            may_have_left: before,
        };
        self.stalls = if progressed { 1 } else { self.stalls + 1 };
        self.stalls
    }

    pub(crate) fn restored(&self) -> Restored {
        let mut restored = Restored {
            watermark: ItemIndex(self.low),
            high_water: ItemIndex(self.high),
            reach: self.reach,
            counters: self.counters,
            above: self.above.clone(),
            excluded: self.finish_at,
            ..Restored::default()
        };
        for (index, row) in &self.rows {
            match row {
                Row::Retrying(trouble) => restored.retrying.push(trouble.clone()),
                Row::Parked(trouble, due_at) => restored.parked.push(ParkedItem {
                    index: ItemIndex(*index),
                    attempts: trouble.attempts,
                    charged: trouble.charged,
                    failure: trouble.failure.clone(),
                    at: trouble.at,
                    due_at: *due_at,
                    history: trouble.history.clone(),
                }),
                Row::Failed(_) => {}
            }
        }
        restored
    }
}

fn beginning(start: u64) -> Reach {
    Reach {
        may_leave: ItemIndex(start),
        may_have_left: ItemIndex(start),
    }
}
