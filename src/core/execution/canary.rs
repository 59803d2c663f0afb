//! The canary: the first items are settled, each of them, before any other leaves.
//!
//! When they are, the run stops for a person's yes, or goes on by itself if none of them was abandoned. It goes on only
//! once a checkpoint says that the canary has passed: after a crash nothing that was sent later can be taken for a part
//! of it. The first shard holds all of it, with an item to spare (`domain::shards`), and no other shard is claimed
//! before that checkpoint.

use super::Execution;
use super::types::{Phase, RunEnd};
use crate::ids::ItemIndex;
use crate::task::lifecycle::StopReason;
use crate::task::{Canary, CanaryThen};

/// Nothing at or above `until` leaves.
#[derive(Debug)]
pub(super) struct Held {
    until: ItemIndex,
    then: CanaryThen,
    verdict: Verdict,
}

/// How far the canary is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Not all of its items are settled.
    Open,
    /// It has passed; waits for a draft.
    Passed,
    /// The draft of this number says so.
    Drafted(u64),
    /// A checkpoint says so: nothing is held any more, and nothing will be.
    Durable,
}

impl Execution {
    /// Holds everything but the first items back, or nothing. One that has passed doesn't come back.
    pub(super) fn set_canary(&mut self, canary: Option<Canary>) {
        if self
            .canary
            .as_ref()
            .is_some_and(|held| held.verdict != Verdict::Open)
        {
            return;
        }
        self.canary = canary.map(|Canary { items, then }| Held {
            until: ItemIndex(self.range.start.0.saturating_add(items.get())),
            then,
            verdict: Verdict::Open,
        });
    }

    /// One past the last index that may leave now.
    #[inline]
    pub(super) fn fresh_end(&self) -> ItemIndex {
        match &self.canary {
            Some(held) if held.verdict != Verdict::Durable => self.end.min(held.until),
            Some(_) | None => self.end,
        }
    }

    /// Ends the hold, or the run, when every item of the canary is settled.
    pub(super) fn judge_canary(&mut self) {
        let Some(held) = &self.canary else { return };
        let (until, then) = (held.until, held.then);
        let is_open = held.verdict == Verdict::Open && self.phase == Phase::Running && until < self.end;
        let is_done =
            self.window.low_water() >= until && self.troubles.lowest().is_none_or(|low| low >= until);
        if !is_open || !is_done {
            return;
        }
        // Nothing else has left yet: whatever was abandoned is the canary's.
        match then {
            CanaryThen::Continue if self.counters.abandoned == 0 => self.set_verdict(Verdict::Passed),
            CanaryThen::Continue | CanaryThen::Stop => {
                let text = self.canary_text(until);
                self.stop(RunEnd::stopped(StopReason::CanaryDone, text));
            }
        }
    }

    fn canary_text(&self, until: ItemIndex) -> String {
        let counters = &self.counters;
        format!(
            "the canary of {} items is done: {} succeeded, {} skipped, {} abandoned; start the task to go on with the rest",
            until.0 - self.range.start.0,
            counters.succeeded,
            counters.skipped,
            counters.abandoned
        )
    }

    /// Whether a draft should tell that the canary has passed.
    pub(super) fn is_pass_due(&self) -> bool {
        self.verdict() == Some(Verdict::Passed)
    }

    /// Whether the draft of this number tells that the canary has passed.
    pub(super) fn draft_pass(&mut self, no: u64) -> bool {
        if self.is_pass_due() {
            self.set_verdict(Verdict::Drafted(no));
        }
        matches!(self.verdict(), Some(Verdict::Drafted(_)))
    }

    pub(super) fn on_pass_stored(&mut self, no: u64) {
        if self.verdict() == Some(Verdict::Drafted(no)) {
            self.set_verdict(Verdict::Durable);
        }
    }

    pub(super) fn on_pass_lost(&mut self, no: u64) {
        if self.verdict() == Some(Verdict::Drafted(no)) {
            self.set_verdict(Verdict::Passed);
        }
    }

    fn verdict(&self) -> Option<Verdict> {
        self.canary.as_ref().map(|held| held.verdict)
    }

    fn set_verdict(&mut self, verdict: Verdict) {
        if let Some(held) = &mut self.canary {
            held.verdict = verdict;
        }
    }
}
