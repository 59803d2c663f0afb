//! Canary: the first items, all of which must settle before any other is dispatched.
//!
//! Once they are settled, the run stops for approval, or continues automatically if none of them failed. It continues
//! only after a checkpoint records that the canary has passed, so that after a crash nothing sent later can be
//! mistaken for part of it. The first shard holds the whole canary with an item to spare (`shards`), and no other
//! shard is claimed before that checkpoint.

use windrow_words::{Message, execution as say};

use super::Execution;
use super::items::Items;
use super::types::{Phase, RunEnd};
use crate::ids::ItemIndex;
use crate::task::lifecycle::StopReason;
use crate::task::{Canary, CanaryThen};

/// Hold of the canary on all other items; empty without a canary.
#[derive(Debug, Default)]
pub(super) struct CanaryHold(Option<Hold>);

/// Hold on all items at or above `until`.
#[derive(Debug)]
struct Hold {
    until: ItemIndex,
    then: CanaryThen,
    verdict: Verdict,
}

/// Progress of the canary, from unsettled to recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Not all of its items are settled.
    Open,
    /// The canary has passed; waits for a draft.
    Passed,
    /// The draft of this number records that it has passed.
    Drafted(u64),
    /// A checkpoint records that it has passed: nothing is held from now on.
    Durable,
}

impl CanaryHold {
    /// Holds back everything but the first items, or nothing. A canary that has passed is not set again.
    pub(super) fn set(&mut self, canary: Option<Canary>, start: ItemIndex) {
        if self.0.as_ref().is_some_and(|held| held.verdict != Verdict::Open) {
            return;
        }
        self.0 = canary.map(|Canary { items, then }| Hold {
            until: ItemIndex(start.0.saturating_add(items.get())),
            then,
            verdict: Verdict::Open,
        });
    }

    /// Returns one past the last index that may be dispatched, in a range that ends at `end`.
    #[inline]
    pub(super) fn limit(&self, end: ItemIndex) -> ItemIndex {
        match &self.0 {
            Some(held) if held.verdict != Verdict::Durable => end.min(held.until),
            Some(_) | None => end,
        }
    }

    /// Returns the end of the canary and the action after it; `None` if it needs no further judgement.
    #[inline]
    fn open(&self) -> Option<(ItemIndex, CanaryThen)> {
        let held = self.0.as_ref().filter(|held| held.verdict == Verdict::Open);
        held.map(|held| (held.until, held.then))
    }

    /// True if a draft should record that the canary has passed.
    #[inline]
    pub(super) fn is_pass_due(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|held| held.verdict == Verdict::Passed)
    }

    /// Notes that draft `no` was made; returns true if it records that the canary has passed.
    pub(super) fn on_drafted(&mut self, no: u64) -> bool {
        self.change(Verdict::Passed, Verdict::Drafted(no));
        let held = self.0.as_ref();
        held.is_some_and(|held| matches!(held.verdict, Verdict::Drafted(_)))
    }

    pub(super) fn on_stored(&mut self, no: u64) {
        self.change(Verdict::Drafted(no), Verdict::Durable);
    }

    pub(super) fn on_lost(&mut self, no: u64) {
        self.change(Verdict::Drafted(no), Verdict::Passed);
    }

    fn change(&mut self, from: Verdict, to: Verdict) {
        if let Some(held) = self.0.as_mut().filter(|held| held.verdict == from) {
            held.verdict = to;
        }
    }
}

impl Execution {
    /// Ends the hold, or the run, once every item of the canary is settled.
    #[inline]
    pub(super) fn judge_canary(&mut self) {
        let Some((until, then)) = self.items.canary.open() else {
            return;
        };
        let is_open = self.phase == Phase::Running && until < self.items.end;
        let is_done = self.items.window.watermark() >= until
            && self.items.retrying_items.lowest().is_none_or(|low| low >= until);
        if !is_open || !is_done {
            return;
        }
        // Nothing else was dispatched yet, so every failed item belongs to the canary.
        match then {
            CanaryThen::Continue if self.items.counters.failed == 0 => {
                self.items.canary.change(Verdict::Open, Verdict::Passed);
            }
            CanaryThen::Continue | CanaryThen::Stop => {
                let text = canary_text(&self.items, until, then).to_string();
                self.stop(RunEnd::stopped(StopReason::CanaryDone, text));
            }
        }
    }
}

fn canary_text(items: &Items, until: ItemIndex, then: CanaryThen) -> Message {
    let counters = &items.counters;
    let of = match then {
        CanaryThen::Stop => say::canary_done,
        CanaryThen::Continue => say::canary_failed,
    };
    let count = until.0 - items.range.start.0;
    of(count, counters.succeeded, counters.skipped, counters.failed)
}
