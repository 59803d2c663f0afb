//! Items that people want skipped (`Life::skips`): settled as skipped without a call, each when its turn comes.
//!
//! Like failing items by code, this is a rule over the current items, not a one-time message: it holds for a run that
//! starts from a state saved before the decision as well as for the current one. A waiting item is settled with the
//! next exchange; the cursor passes over a fresh one like over a settled one, so a billion of them are never tracked
//! individually. An item that is with the handler keeps its call: if that succeeds the item has succeeded, if it
//! fails the item is skipped, whatever the handler asks for. A skip is no failure, and no answer of the handler.

use crate::execution::items::Items;
use std::collections::VecDeque;

use super::Execution;
use super::types::{Effects, Phase};
use crate::ids::ItemIndex;
use crate::invariants::Invariant;
use crate::items::run::IndexRun;
use crate::items::stretches::Stretches;
use crate::items::verdict::SideRecord;
use crate::items::waiting::{Doing, Place, RetryingItem};

#[derive(Debug, Default)]
pub(super) struct Skips {
    wanted: Stretches,
    /// Wanted items that wait, or did when they were noted.
    due: VecDeque<ItemIndex>,
    /// Set if wanted items may have come back unsent.
    is_again_due: bool,
    /// Items skipped by this run on request.
    passed: u64,
    /// Items skipped by earlier runs, for either reason.
    before: u64,
}

impl Skips {
    pub(super) fn new(skipped_before: u64) -> Skips {
        Skips {
            before: skipped_before,
            ..Skips::default()
        }
    }

    /// True if the item is to be skipped.
    #[inline]
    pub(super) fn has(&self, index: ItemIndex) -> bool {
        !self.wanted.is_empty() && self.wanted.contains(index)
    }

    /// True if any item is to be skipped.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// True if items must be settled before anything is sent.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Returns the number of items in `[from, to)` that are to be skipped.
    #[inline]
    pub(super) fn among(&self, from: ItemIndex, to: ItemIndex) -> u64 {
        if self.wanted.is_empty() {
            0
        } else {
            self.wanted.count(from, to)
        }
    }

    /// Returns the lowest index from `from` on that is to be skipped, but at most `limit`.
    #[inline]
    pub(super) fn limit(&self, from: ItemIndex, limit: ItemIndex) -> ItemIndex {
        if self.wanted.is_empty() {
            return limit;
        }
        self.wanted.next(from).map_or(limit, |next| next.min(limit))
    }

    /// Returns the highest index below `end` that isn't to be skipped.
    pub(super) fn last_below(&self, end: ItemIndex) -> Option<ItemIndex> {
        let last = ItemIndex(end.0.checked_sub(1)?);
        match self.wanted.first_at(last) {
            Some(first) => Some(ItemIndex(first.0.checked_sub(1)?)),
            None => Some(last),
        }
    }

    /// Returns how many of `skipped` items the handler is known to have skipped: the reason for those before this run
    /// is unknown.
    pub(super) fn of_handler(&self, skipped: u64) -> u64 {
        let others = if self.wanted.is_empty() {
            0
        } else {
            self.before + self.passed
        };
        skipped.saturating_sub(others)
    }

    /// Returns the number of items that this run settled without a call.
    #[inline]
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    /// Notes an item that waits from now on, to be settled unless it already is by then.
    #[inline]
    pub(super) fn on_waits(&mut self, index: ItemIndex) {
        if self.has(index) {
            self.due.push_back(index);
        }
    }

    /// Notes that items came back unsent.
    #[inline]
    pub(super) fn on_returned(&mut self) {
        self.is_again_due = !self.wanted.is_empty();
    }
}

impl Execution {
    /// Returns the number of items that this run skipped on request: no permit was used for them.
    pub fn skipped_unasked(&self) -> u64 {
        self.items.skips.passed
    }

    /// Sets the items that people want skipped.
    pub(super) fn set_skips(&mut self, wanted: Stretches) {
        self.items.skips.wanted = wanted;
        self.items.skips.on_returned();
        self.items.look_for_skipped();
        if self.items.counters.succeeded + self.items.counters.failed == 0 && self.judge.others.answered == 0
        {
            // Skipped items may never have been called.
            self.judge.doubt_contact();
        }
    }

    /// Settles the items to skip that are not with the handler.
    #[inline]
    pub(super) fn skip_wanted(&mut self, fx: &mut Effects) {
        if self.items.skips.wanted.is_empty() || matches!(self.phase, Phase::Ended(_)) {
            return;
        }
        let before = self.items.skips.passed;
        self.items.skip_waiting(fx);
        self.items.skip_returned(fx);
        if self.phase == Phase::Running {
            self.items.pass_over(fx);
        }
        if self.items.skips.passed > before {
            fx.wake_lanes |= std::mem::take(&mut self.starved);
        }
    }
}

impl Items {
    /// Looks for items to skip that wait now and didn't before.
    pub(in crate::execution) fn look_for_skipped(&mut self) {
        if self.skips.wanted.is_empty() {
            return;
        }
        let waits = |(_, retrying): &(ItemIndex, &RetryingItem)| retrying.doing != Doing::InFlight;
        let found = self.retrying_items.iter().filter(waits).map(|(index, _)| index);
        self.skips.due = found.filter(|index| self.skips.has(*index)).collect();
    }

    /// Skips as many waiting items as a checkpoint has room for; the others wait, and everything else with them.
    pub(in crate::execution) fn skip_waiting(&mut self, fx: &mut Effects) {
        while self.skips.is_due() && self.drafts.side_room() > 0 {
            let Some(index) = self.skips.due.pop_front() else {
                return;
            };
            let waits = self.retrying_items.get(index).map(|retrying| retrying.doing);
            if waits.is_none_or(|doing| doing == Doing::InFlight) {
                continue;
            }
            if let Some(retrying) = self.retrying_items.take(index) {
                self.skip_known(index, &retrying, fx);
            }
        }
    }

    /// Skips an item that was taken out of the retrying items.
    pub(in crate::execution) fn skip_known(
        &mut self,
        index: ItemIndex,
        retrying: &RetryingItem,
        fx: &mut Effects,
    ) {
        self.leave_trouble(index, retrying, fx);
        self.solo.on_answered(index);
        self.count_skipped(1);
    }

    pub(in crate::execution) fn skip_returned(&mut self, fx: &mut Effects) {
        if !std::mem::take(&mut self.skips.is_again_due) {
            return;
        }
        let mut left = VecDeque::with_capacity(self.again.len());
        for run in std::mem::take(&mut self.again) {
            let mut at = run.first();
            while at < run.end() {
                let wanted = self.skips.wanted.end_at(at);
                let end = wanted.unwrap_or_else(|| self.skips.limit(at, run.end()));
                let Some(part) = between(at, end.min(run.end())) else {
                    break;
                };
                match wanted {
                    Some(_) => self.skip_fresh(part, fx),
                    None => left.push_back(part),
                }
                at = part.end();
            }
        }
        self.again = left;
    }

    /// Moves the cursor over items that are settled, tracked individually, or to be skipped, to the next one that may
    /// be sent.
    pub(in crate::execution) fn pass_over(&mut self, fx: &mut Effects) {
        while let Some(open) = self.next_fresh() {
            let Some(end) = self.skips.wanted.end_at(open.first()) else {
                return;
            };
            if !self.jump_over(end.min(self.fresh_end())) {
                let Some(part) = between(open.first(), end.min(open.end())) else {
                    return;
                };
                self.cursor = part.end();
                self.raise_high(part.end());
                self.skip_fresh(part, fx);
            }
        }
    }

    /// Returns the next fresh items in the window, and moves the cursor to the first of them.
    pub(in crate::execution) fn next_fresh(&mut self) -> Option<IndexRun> {
        loop {
            let to = self.window.limit().min(self.fresh_end());
            let Some(run) = self.window.unsettled(self.cursor, to, u32::MAX) else {
                self.cursor = self.cursor.max(to.min(self.high));
                return None;
            };
            match self.before_retrying(run) {
                Ok(run) => {
                    self.cursor = run.first();
                    return Some(run);
                }
                Err(retrying) => self.cursor = retrying.plus(1),
            }
        }
    }

    /// Skips everything up to `end` at once, however much it is, if nothing was ever dispatched from the watermark
    /// on.
    pub(in crate::execution) fn jump_over(&mut self, end: ItemIndex) -> bool {
        let low = self.window.watermark();
        let is_untouched = low == self.cursor && low >= self.high && self.window.jump(end).is_ok();
        if is_untouched {
            self.cursor = end;
            self.raise_high(end);
            self.count_skipped(end.0 - low.0);
        }
        is_untouched
    }

    pub(in crate::execution) fn raise_high(&mut self, high: ItemIndex) {
        let more = high.0.saturating_sub(self.high.0);
        self.high = self.high.plus(more);
        // Items that were never called say nothing about the dispatch speed.
        self.ahead.on_passed(more);
    }

    pub(in crate::execution) fn skip_fresh(&mut self, run: IndexRun, fx: &mut Effects) {
        match self.window.settle(run) == Ok(run.len()) {
            true => self.count_skipped(u64::from(run.len())),
            false => fx.violations.push(Invariant::CountersMatchWindow),
        }
    }

    pub(in crate::execution) fn count_skipped(&mut self, items: u64) {
        self.counters.skipped += items;
        self.skips.passed += items;
        self.drafts.on_passed(items);
    }

    /// Removes the row of a retrying item that is settled well or skipped.
    pub(in crate::execution) fn leave_trouble(
        &mut self,
        index: ItemIndex,
        retrying: &RetryingItem,
        fx: &mut Effects,
    ) {
        self.close_place(index, retrying, fx);
        if retrying.has_row || retrying.place == Place::Outside {
            self.drafts.record(SideRecord::Cleared(index));
        } else {
            self.drafts.forget(index);
        }
    }
}

/// Returns the run between two indexes, up to the maximum length of a run; `None` if it is empty.
fn between(first: ItemIndex, end: ItemIndex) -> Option<IndexRun> {
    let len = u32::try_from(end.0.saturating_sub(first.0)).unwrap_or(u32::MAX);
    IndexRun::new(first, len)
}
