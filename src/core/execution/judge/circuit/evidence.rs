//! What speaks for an outage while the circuit is closed: calls in a row without a verdict, and their items.

use std::collections::VecDeque;

use super::{Alternatives, Unanswered};
use crate::ids::ItemIndex;
use crate::items::verdict::FailureClass;

/// At least, and at most, so many calls in a row that can't have had an effect open the circuit, if chance doesn't explain them …
const UNREACHED_CALLS: (usize, usize) = (5, 20);
/// … over so many items, or as many as can leave: one item behind a gateway may kill what is behind it.
const UNREACHED_ITEMS: usize = 3;
/// So many calls in a row without a verdict open the circuit …
const UNANSWERED_CALLS: usize = 20;
/// … of which so many must be unclear, unreachable or unavailable …
const UNANSWERED_CLEAR_MAX: usize = 2;
/// … over so many items that hadn't failed before the last answered call, or as many as can leave. Items that failed before
/// say nothing new: with many bad items, their retries come back in long rows.
const UNANSWERED_ITEMS: usize = 10;
/// Fewer than these never open it: the last few items of a task may all be bad. Where calls leave in order one does,
/// since it is all that there is to see.
const UNANSWERED_ITEMS_MIN: usize = 3;

/// Since the last answered call.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// Calls without a verdict: whether it counts, at most [`UNANSWERED_CALLS`].
    row: VecDeque<bool>,
    /// Items that are new among them, at most as many as matter.
    new_items: Vec<ItemIndex>,
    unreached: usize,
    unreached_items: Vec<ItemIndex>,
}

impl Evidence {
    pub(super) fn is_empty(&self) -> bool {
        self.row.is_empty() && self.unreached == 0
    }

    pub(super) fn add(&mut self, call: &Unanswered, alternatives: Alternatives) {
        let is_unreached = call.class.reaches_nobody();
        // A 503 may be about its item: of one that failed before it says nothing, as long as fresh ones can be asked.
        let can_ask = alternatives.is_fresh_left && !alternatives.in_order;
        let is_known = call.class == FailureClass::Unavailable && !call.is_new && can_ask;
        self.row
            .push_back(is_unreached || call.class == FailureClass::Unclear);
        if self.row.len() > UNANSWERED_CALLS {
            self.row.pop_front();
        }
        if call.is_new {
            remember(&mut self.new_items, call.item, UNANSWERED_ITEMS);
        }
        if is_unreached && !is_known {
            self.unreached += 1;
            remember(&mut self.unreached_items, call.item, UNREACHED_ITEMS);
        }
    }

    /// Whether it can't be about single items any more.
    pub(super) fn is_enough(&self, alternatives: Alternatives) -> bool {
        let can_leave = usize::try_from(alternatives.can_leave).unwrap_or(usize::MAX);
        let is_unreached = self.unreached >= alternatives.row.clamp(UNREACHED_CALLS.0, UNREACHED_CALLS.1)
            && self.unreached_items.len() >= UNREACHED_ITEMS.min(can_leave.max(1));
        let least = if alternatives.in_order {
            1
        } else {
            can_leave.clamp(UNANSWERED_ITEMS_MIN, UNANSWERED_ITEMS)
        };
        let unclear = self.row.iter().filter(|counts| **counts).count();
        let is_unanswered = self.row.len() >= UNANSWERED_CALLS
            && unclear >= UNANSWERED_CALLS - UNANSWERED_CLEAR_MAX
            && self.new_items.len() >= least;
        is_unreached || is_unanswered
    }
}

fn remember(items: &mut Vec<ItemIndex>, item: ItemIndex, most: usize) {
    if items.len() < most && !items.contains(&item) {
        items.push(item);
    }
}
