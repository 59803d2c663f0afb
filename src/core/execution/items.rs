//! Items of the shard: the state of each, and the changes that no checkpoint holds yet.

use std::collections::VecDeque;

use super::types::Start;
use super::{canary, draft, horizon, skips, solo, supply};
use crate::ids::{ItemIndex, RunNo, ShardId};
use crate::items::counters::Counters;
use crate::items::run::IndexRun;
use crate::items::waiting::RetryingItems;
use crate::items::window::Window;
use crate::task::ShardRange;

/// Items of one run of a shard.
#[derive(Debug)]
pub(super) struct Items {
    pub(super) shard: ShardId,
    pub(super) run: RunNo,
    pub(super) range: ShardRange,
    /// One past the last index that will ever be dispatched: `range.end` unless the task was finished early.
    pub(super) end: ItemIndex,
    pub(super) window: Window,
    /// First index to search for fresh items.
    pub(super) cursor: ItemIndex,
    /// One past the highest index ever dispatched.
    pub(super) high: ItemIndex,
    pub(super) ahead: horizon::Ahead,
    /// Fresh items that came back unsent.
    pub(super) again: VecDeque<IndexRun>,
    pub(super) retrying_items: RetryingItems,
    /// Carried-over share of due parked items that may be sent first, in quarters of an item; less than one item.
    pub(super) parked_quarters: u64,
    pub(super) counters: Counters,
    pub(super) skips: skips::Skips,
    pub(super) drafts: draft::Drafts,
    pub(super) solo: solo::Solo,
    pub(super) canary: canary::CanaryHold,
    pub(super) supply: supply::Stock,
    pub(super) source_ready: ItemIndex,
}

/// Returns the first index that isn't settled when a run begins.
pub(super) fn low_of(start: &Start) -> ItemIndex {
    start.restored.watermark.max(start.range.start)
}

impl Items {
    /// Creates the items of a new run, with a window of this size.
    pub(super) fn new(start: &Start, window: u32) -> Items {
        let range = supply::known(start.range, start.supply);
        let (low, saved) = (low_of(start), &start.restored);
        Items {
            shard: start.shard,
            run: start.run,
            range,
            end: range.end,
            window: Window::restore(low, window, &saved.above),
            cursor: low,
            high: saved.high_water.max(low),
            ahead: horizon::Ahead::new(saved, low),
            again: VecDeque::new(),
            retrying_items: RetryingItems::default(),
            parked_quarters: 0,
            counters: saved.counters,
            skips: skips::Skips::new(saved.counters.skipped),
            drafts: draft::Drafts::new(low),
            solo: solo::Solo::default(),
            canary: canary::CanaryHold::default(),
            supply: supply::Stock::of(start.supply),
            source_ready: if start.has_data { low } else { range.end },
        }
    }
}
