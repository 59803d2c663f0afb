//! Evidence of an outage while the circuit is closed: calls in a row without a verdict, and their items.

use std::collections::VecDeque;

use super::{Alternatives, Unanswered};
use crate::ids::ItemIndex;
use crate::items::verdict::FailureClass;

/// Lower and upper bound on the calls in a row that can't have had an effect and that open the circuit, if chance
/// doesn't explain them.
const UNREACHED_CALLS: (usize, usize) = (5, 20);
/// Minimum number of items in that row, or as many as can be sent: one item behind a gateway may kill what is behind
/// it.
const UNREACHED_ITEMS: usize = 3;
/// Calls in a row without a verdict that open the circuit.
const UNANSWERED_CALLS: usize = 20;
/// Maximum calls of that row that are not unclear, unreachable or unavailable.
const UNANSWERED_CLEAR_MAX: usize = 2;
/// Minimum number of items in that row that hadn't failed before the last answered call, or as many as can be sent.
/// Items that failed before say nothing new: with many bad items, their retries come back in long rows.
const UNANSWERED_ITEMS: usize = 10;
/// Fewer items than this never open the circuit: the last few items of a task may all be bad. If calls are sent in
/// order, one item does, because there is nothing else to see.
const UNANSWERED_ITEMS_MIN: usize = 3;

/// Evidence since the last answered call.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// Calls without a verdict, true if the call counts; at most [`UNANSWERED_CALLS`].
    row: VecDeque<bool>,
    /// New items among them, at most as many as matter.
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
        // A 503 may be caused by its item: for one that failed before it proves nothing, as long as fresh ones can be
        // called.
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

    /// True if single items can't be the cause any more.
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
