//! Exit codes of item programs: evidence about the item, or of an outage of whatever the program calls.
//!
//! As a rule the code is about the item, and charged as a verdict. But in an outage `curl` ends with the same code
//! for any item. If, after a success, so many different items in a row end with one code that the share of items that
//! fail beside others doesn't explain it, the charges of the row are taken back, and all codes that follow are read
//! like a 503, until one call succeeds.

use crate::execution::items::Items;
use crate::execution::judge::Judge;
use std::borrow::Cow;

use super::attempts::CHANCE;
use super::refused::row_beyond;
use crate::ids::ItemIndex;
use crate::items::verdict::{AnsweredCalls, FailedCall, FailureClass, Outage};

/// Minimum number of different items in the row, and the number that always suffices.
const ITEMS: (usize, usize) = (5, 1000);

/// Exit codes in a row, and the items whose programs ended with them.
#[derive(Debug, Default)]
pub(super) struct Exits {
    code: Cow<'static, str>,
    items: Vec<ItemIndex>,
    /// Set while the row is beyond chance.
    is_outage: bool,
    /// Number of items that ended with such a code before others succeeded.
    among: u64,
}

impl Exits {
    /// Creates the state for a run; in an outage if the previous run ended in one.
    pub(super) fn of(outage: Option<Outage>) -> Exits {
        Exits {
            is_outage: outage.is_some(),
            ..Exits::default()
        }
    }

    /// True if a row has begun: a fresh item shows the cause sooner than one that failed before.
    #[inline]
    pub(super) fn wants_fresh(&self) -> bool {
        !self.items.is_empty() && !self.is_outage
    }

    /// Ends the row after a call succeeded or brought a verdict of another kind: it was chance, or the outage is
    /// over.
    #[inline]
    fn on_answered(&mut self) {
        if self.is_outage || !self.items.is_empty() {
            self.end();
        }
    }

    fn end(&mut self) {
        if !self.is_outage {
            self.among += self.items.len() as u64;
        }
        self.items.clear();
        self.is_outage = false;
    }

    /// Adds an exit code; returns true if that makes the row longer than chance explains, given `answered` calls.
    fn add(&mut self, call: &FailedCall, answered: u64) -> bool {
        if self.is_outage {
            return false;
        }
        if self.code != call.failure.code {
            self.end();
            self.code = call.failure.code.clone();
        }
        if !self.items.contains(&call.index) {
            self.items.push(call.index);
        }
        // By the rule of succession: few calls prove little.
        let share = (self.among + 1) as f64 / (self.among + answered + 2) as f64;
        self.is_outage = self.items.len() >= row_beyond(CHANCE, share).clamp(ITEMS.0, ITEMS.1);
        self.is_outage
    }
}

impl Judge {
    /// Handles calls that succeeded, or whose program reported the outcome of the item.
    #[inline]
    pub(in crate::execution) fn on_programs_answered(&mut self, answered: AnsweredCalls) {
        if answered.calls > 0 {
            self.exits.on_answered();
        }
    }

    /// Counts the exit code of a call, and takes back the charges of the row once it is an outage.
    pub(in crate::execution) fn count_exit(&mut self, items: &mut Items, call: &FailedCall) {
        if call.class != FailureClass::Exited || call.items > 1 || !items.has_succeeded() {
            return;
        }
        if self.exits.add(call, items.counters.succeeded) {
            let row = std::mem::take(&mut self.exits.items);
            row.iter().for_each(|index| self.take_back_charge(items, *index));
            self.exits.items = row;
        }
    }

    pub(in crate::execution) fn take_back_charge(&mut self, items: &mut Items, index: ItemIndex) {
        let is_like = |code: &str| code == self.exits.code;
        if let Some(mut retrying) = items.retrying_items.take(index) {
            if retrying
                .failure
                .as_ref()
                .is_some_and(|failure| is_like(&failure.code))
            {
                retrying.charged = retrying.charged.saturating_sub(1);
                items.record(index, &retrying);
            }
            items.retrying_items.put(index, retrying);
        }
    }

    /// Returns the class of a failed attempt, with an exit code mapped to its current meaning.
    #[inline]
    pub(in crate::execution) fn class_now(&self, class: FailureClass) -> FailureClass {
        match class {
            FailureClass::Exited if self.exits.is_outage => FailureClass::Unavailable,
            FailureClass::Exited => FailureClass::Answered,
            class => class,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Moment;
    use crate::items::verdict::Failure;

    fn call(index: u64, code: &'static str) -> FailedCall {
        FailedCall {
            before: AnsweredCalls::default(),
            class: FailureClass::Exited,
            index: ItemIndex(index),
            items: 1,
            departed: Moment(0),
            failure: Failure::new(code, ""),
            after: None,
        }
    }

    /// How many different items make an outage, after so many that succeeded and that failed among them.
    fn items_of_outage(succeeded: u64, among: u64) -> Option<u64> {
        let mut exits = Exits {
            among,
            ..Exits::default()
        };
        (1..2000).find(|index| exits.add(&call(*index, "EXIT_7"), succeeded))
    }

    #[test]
    fn a_row_is_the_longer_the_more_items_fail_beside_others() {
        assert_eq!(items_of_outage(1_000_000, 0), Some(5));
        assert_eq!(items_of_outage(100, 0), Some(5));
        assert_eq!(items_of_outage(2, 0), Some(15));
        assert_eq!(items_of_outage(1000, 1000), Some(30));
        assert_eq!(items_of_outage(10, 10_000), Some(1000));
    }

    #[test]
    fn one_item_or_another_code_makes_no_row() {
        let mut exits = Exits::default();
        assert!((0..100).all(|_| !exits.add(&call(1, "EXIT_7"), 1000)));
        assert!(
            (0..100).all(|index| !exits.add(&call(index, ["EXIT_1", "EXIT_2"][index as usize % 2]), 1000))
        );
    }
}
