//! What a store keeps of a shard: the columns, the bitmap and a table of item rows.

use std::collections::BTreeMap;

use windrow_core::execution::{CheckpointDraft, HORIZON_OF_CLAIM, Horizon, Restored};
use windrow_core::ids::{ItemIndex, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::items::verdict::{FailingItem, ParkedItem, SideRecord};
use windrow_core::task::Canary;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Row {
    Retrying(FailingItem),
    Parked(FailingItem, WallMs),
    Failed(FailingItem),
}

impl Row {
    pub(crate) fn retrying(&self) -> &FailingItem {
        match self {
            Row::Retrying(retrying) | Row::Parked(retrying, _) | Row::Failed(retrying) => retrying,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    pub(crate) low: u64,
    pub(crate) high: u64,
    horizon: Horizon,
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
            horizon: beginning(start),
            canary,
            ..Store::default()
        }
    }

    pub(crate) fn apply(&mut self, draft: &CheckpointDraft) {
        (self.low, self.high) = (draft.watermark.0, draft.high_water.0);
        (self.counters, self.above) = (draft.counters, draft.above.clone());
        self.horizon.may_leave = draft.horizon;
        self.finish_at = draft.finish_at.or(self.finish_at);
        if draft.canary_passed {
            self.canary = None;
        }
        for record in &draft.side {
            let index = record.index().0;
            match record {
                SideRecord::Retrying(retrying) => self.rows.insert(index, Row::Retrying(retrying.clone())),
                SideRecord::Parked { retrying, due_at } => {
                    self.rows.insert(index, Row::Parked(retrying.clone(), *due_at))
                }
                SideRecord::Failed(retrying) => self.rows.insert(index, Row::Failed(retrying.clone())),
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
        let before = self.horizon.may_leave;
        let may_leave = before.max(ItemIndex(self.high + HORIZON_OF_CLAIM));
        self.horizon = Horizon {
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
            horizon: self.horizon,
            counters: self.counters,
            above: self.above.clone(),
            excluded: self.finish_at,
            ..Restored::default()
        };
        for (index, row) in &self.rows {
            match row {
                Row::Retrying(retrying) => restored.retrying.push(retrying.clone()),
                Row::Parked(retrying, due_at) => restored.parked.push(ParkedItem {
                    index: ItemIndex(*index),
                    attempts: retrying.attempts,
                    charged: retrying.charged,
                    failure: retrying.failure.clone(),
                    at: retrying.at,
                    due_at: *due_at,
                    history: retrying.history.clone(),
                }),
                Row::Failed(_) => {}
            }
        }
        restored
    }
}

fn beginning(start: u64) -> Horizon {
    Horizon {
        may_leave: ItemIndex(start),
        may_have_left: ItemIndex(start),
    }
}
