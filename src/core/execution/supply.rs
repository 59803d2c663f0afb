//! Items that are added to an open task while it runs.
//!
//! The range of an open task's shard grows at its end, and never shrinks. Until the task is sealed, a run that has
//! nothing left waits instead of ending: only a run that has seen the seal, and with it the last end, may say that
//! everything is settled.

use super::types::Phase;
use super::{Execution, ItemIndex, ShardRange};
use crate::execution::items::Items;
use crate::task::supply::Supply;

/// State of the supply, apart from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stock {
    /// The range is complete, or was when the task was sealed.
    Whole,
    /// More items may come.
    Open,
    /// The task was finished early, so items added since are left out.
    Cut,
}

impl Stock {
    pub(super) fn of(supply: Option<Supply>) -> Stock {
        match supply {
            Some(supply) if !supply.is_sealed => Stock::Open,
            Some(_) | None => Stock::Whole,
        }
    }

    /// True if more items may come.
    #[inline]
    pub(super) fn is_open(self) -> bool {
        self == Stock::Open
    }

    /// Closes the supply at an early finish; returns true if more could have come until then.
    pub(super) fn close(&mut self) -> bool {
        std::mem::replace(self, Stock::Cut) == Stock::Open
    }
}

/// Returns the range of known indexes, of which a claim may have seen fewer.
pub(super) fn known(range: ShardRange, supply: Option<Supply>) -> ShardRange {
    let end = supply.map_or(range.end, |supply| supply.end.max(range.end));
    ShardRange { end, ..range }
}

impl Execution {
    /// True if nothing is left to do until items are added: the run needs none of its node's capacity.
    pub fn awaits_items(&self) -> bool {
        self.phase == Phase::Running && self.items.supply.is_open() && self.items.is_out_of_items()
    }

    /// True if items may still be added.
    pub fn is_open(&self) -> bool {
        self.items.supply.is_open()
    }

    /// Returns one past the last known index, even if the end was lowered.
    pub fn known_end(&self) -> ItemIndex {
        self.items.range.end
    }
}

impl Items {
    /// Handles added items, or the seal. Updates that arrive late change nothing.
    pub(in crate::execution) fn on_supply(&mut self, supply: Supply) {
        self.grow(supply.end);
        if supply.is_sealed && self.supply.is_open() {
            self.supply = Stock::Whole;
        }
    }

    pub(in crate::execution) fn grow(&mut self, end: ItemIndex) {
        let Some(more) = end.0.checked_sub(self.range.end.0) else {
            return;
        };
        self.range.end = end;
        match self.supply {
            Stock::Cut => self.counters.excluded += more,
            Stock::Whole | Stock::Open => self.end = end,
        }
    }

    /// True if none of the known items are left.
    pub(in crate::execution) fn is_out_of_items(&self) -> bool {
        self.window.watermark() >= self.end && self.retrying_items.is_empty()
    }
}
