//! Single-file mode after a crash loop: finds the item that crashes the node, and fails it.
//!
//! A shard that was claimed [`STALLS_MAX`] times without progress sends its suspects one at a time: the items that
//! may have been in flight when the node ended. Before each dispatch a durable mark says that this item is started (a
//! row of one attempt more, with the code [`NODE_CRASH`]). If the node ends again the mark remains, and an item with
//! the maximum number of marks fails without being sent. An item that answers replaces or clears its mark, so it is
//! charged nothing for it.
//!
//! Single-file mode lasts until every suspect is behind the watermark, not only until the watermark moves once:
//! progress of one item would end the crash loop's count, and three crashes for each neighbour of the killer would
//! follow.

use windrow_words::execution as say;

use crate::execution::items::Items;
use crate::execution::settings::Settings;
use std::collections::BTreeSet;

use super::Execution;
use super::types::{Effects, Now, Wait};
use crate::ids::{Attempt, ItemIndex, Moment};
use crate::items::run::IndexRun;
use crate::items::verdict::{Dispatch, Failure, SideRecord};
use crate::items::waiting::{Doing, Place, RetryingItem};
use crate::settings::OnExhausted;
use crate::stats::stall::StallReason;

/// Claims in a row without progress after which a shard runs in single file.
pub(super) const STALLS_MAX: u32 = 3;
/// Codes of the first, second and last mark of an item in a row, so that a mark also counts them: an item that was
/// started three times, and whose node ended each time, fails. (As often as the shard; earlier if the task allows
/// fewer attempts.)
const MARK_CODES: [&str; 3] = [NODE_CRASH, "NODE_CRASH_2", "NODE_CRASH_3"];
/// Code of an item that failed because of its marks.
const NODE_CRASH: &str = "NODE_CRASH";

/// State of the mark of the suspect at the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// Waits for a draft.
    Wanted,
    /// Recorded in the draft of this number.
    Drafted(u64),
    /// Durable: the item may be sent.
    Durable,
}

/// Single-file mode; empty in an ordinary run.
#[derive(Debug, Default)]
pub(super) struct Solo(Option<Suspects>);

#[derive(Debug)]
struct Suspects {
    /// One past the last suspect in the window.
    until: ItemIndex,
    /// Suspects outside the window: parked in flight, or due, when the node ended.
    parked: BTreeSet<ItemIndex>,
    mark: Option<(ItemIndex, Mark)>,
}

impl Solo {
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the next suspect: the marked item until it answers, then the one that holds the watermark, then parked
    /// ones.
    fn next(&self, low: ItemIndex, end: ItemIndex) -> Option<ItemIndex> {
        let suspects = self.0.as_ref()?;
        let marked = suspects.mark.map(|(index, _)| index);
        let low = Some(low).filter(|low| *low < suspects.until.min(end));
        marked.or(low).or_else(|| suspects.parked.first().copied())
    }

    /// Drops the mark of an item that answered: its row is now correct, or is removed.
    #[inline]
    pub(super) fn on_answered(&mut self, index: ItemIndex) {
        if let Some(suspects) = &mut self.0 {
            suspects.mark = suspects.mark.filter(|(marked, _)| *marked != index);
            suspects.parked.remove(&index);
        }
    }

    fn mark(&self) -> Option<Mark> {
        self.0.as_ref()?.mark.map(|(_, mark)| mark)
    }

    /// Notes that the side records, including the mark, are in this draft.
    pub(super) fn on_drafted(&mut self, no: u64) {
        self.change(Mark::Wanted, Mark::Drafted(no));
    }

    /// Notes that the draft is durable, with the mark if it contains it.
    pub(super) fn on_stored(&mut self, no: u64) {
        self.change(Mark::Drafted(no), Mark::Durable);
    }

    /// Notes that the records of the lost draft, with the mark if it is among them, wait for the next one.
    pub(super) fn on_lost(&mut self, no: u64) {
        self.change(Mark::Drafted(no), Mark::Wanted);
    }

    fn change(&mut self, from: Mark, to: Mark) {
        let mark = self.0.as_mut().and_then(|suspects| suspects.mark.as_mut());
        if let Some((_, mark)) = mark.filter(|(_, mark)| *mark == from) {
            *mark = to;
        }
    }
}

impl Execution {
    /// Sends the next suspect if it may go; returns false when none is left and the run continues as usual.
    pub(super) fn grant_solo(&mut self, now: Now, fx: &mut Effects) -> bool {
        let (wait, reason) = if self.items.counters.in_flight > 0 {
            (Wait::Completion, Some(StallReason::SingleFile))
        } else {
            self.fail_killers(now, fx);
            // The watermark may now stand at an item that people want skipped.
            self.skip_wanted(fx);
            if self.end_if_over(fx) {
                return true;
            }
            let Some(index) = self.items.next_suspect() else {
                return self.leave_solo(now, fx);
            };
            let Some(blocked) = self.why_suspect_waits(index, now) else {
                self.send_suspect(index, now.moment, fx);
                self.stall(None, now.moment);
                return true;
            };
            blocked
        };
        self.starved = true;
        fx.wait = wait;
        self.stall(reason, now.moment);
        true
    }

    /// Leaves single-file mode once the last answers are saved: otherwise a crash right after would leave their
    /// marks.
    fn leave_solo(&mut self, now: Now, fx: &mut Effects) -> bool {
        if self.items.drafts.has_items() {
            self.starved = true;
            fx.wait = Wait::Completion;
            self.stall(Some(StallReason::Checkpoint), now.moment);
            return true;
        }
        self.items.solo.0 = None;
        false
    }

    fn fail_killers(&mut self, now: Now, fx: &mut Effects) {
        while let Some(index) = self
            .items
            .next_suspect()
            .filter(|index| self.items.is_killer(&self.settings, *index))
        {
            let Some(mut retrying) = self.items.retrying_items.take(index) else {
                return;
            };
            retrying.failure = Some(Failure::new(NODE_CRASH, say::node_crash().to_string()));
            retrying.at = now.wall;
            self.judge.fail(&mut scope!(self, now, fx), index, &retrying);
            self.obey_judge();
            self.items.solo.on_answered(index);
        }
    }

    /// Returns the reason why the suspect waits; requests its mark if there is no other.
    fn why_suspect_waits(&mut self, index: ItemIndex, now: Now) -> Option<(Wait, Option<StallReason>)> {
        let known = self.items.retrying_items.get(index).map(|t| (t.place, t.doing));
        if let Some((_, Doing::Waiting(due))) = known
            && due > now.moment
        {
            return Some((Wait::Until(due), Some(StallReason::RetryWait)));
        }
        if let Some((_, Doing::Held(_))) = known {
            return Some((Wait::Completion, Some(StallReason::RetryWait)));
        }
        if index >= self.items.source_ready && known.is_none_or(|(place, _)| place == Place::Window) {
            return Some((Wait::Completion, Some(StallReason::SourceWait)));
        }
        if !self.items.mark_suspect(index, now) {
            return Some((Wait::Completion, Some(StallReason::Checkpoint)));
        }
        if let Some(until) = self.pace.paused(now.moment) {
            return Some((Wait::Until(until), Some(StallReason::BackPressure)));
        }
        if self.handler_slots == Some(0) {
            return Some((Wait::Completion, Some(StallReason::HandlerSlots)));
        }
        let credit = self.pace.available(1, now.moment);
        (credit == 0).then(|| (Wait::Until(self.pace.next_at(1)), None))
    }

    fn send_suspect(&mut self, index: ItemIndex, now: Moment, fx: &mut Effects) {
        if let Some(mut retrying) = self.items.retrying_items.take(index) {
            retrying.doing = Doing::InFlight;
            let attempt = Attempt::new(retrying.attempts.saturating_add(1));
            if retrying.attempts > 0 {
                self.meters.on_repeat();
            }
            self.items.retrying_items.put(index, retrying);
            fx.dispatch.push(Dispatch {
                run: IndexRun::one(index),
                attempt,
            });
            self.depart(1, now);
        }
    }
}

impl Items {
    /// Enters single-file mode when a run begins after a crash loop.
    pub(super) fn begin_solo(&mut self, settings: &Settings, now: Now) {
        let due = |t: &RetryingItem| t.place == Place::Outside && t.doing == Doing::Waiting(now.moment);
        let parked = self.retrying_items.which(due).into_iter().collect();
        // An earlier careful run may have had as many unsaved as in flight.
        let horizon = 2 * u64::from(settings.limits.concurrency);
        let until = self
            .high
            .max(self.window.watermark().plus(horizon))
            .min(self.fresh_end());
        let mark = None;
        self.solo.0 = Some(Suspects { until, parked, mark });
    }

    pub(in crate::execution) fn next_suspect(&self) -> Option<ItemIndex> {
        self.solo.next(self.window.watermark(), self.fresh_end())
    }

    /// True if the marks of earlier runs show that the item crashes its node. Only marks count: the number of calls
    /// says nothing.
    pub(in crate::execution) fn is_killer(&self, settings: &Settings, index: ItemIndex) -> bool {
        let attempts_max = match settings.tuning.on_exhausted {
            OnExhausted::Fail => settings.tuning.max_attempts.get(),
            OnExhausted::Stop => settings
                .tuning
                .max_attempts
                .get()
                .saturating_add(MARK_CODES.len() as u32),
        };
        self.retrying_items.get(index).is_some_and(|t| {
            let marks = t.failure.as_ref().map_or(0, marks);
            // Each mark stands for an attempt that the item never answered.
            marks == MARK_CODES.len() || marks > 0 && t.charged + marks as u32 >= attempts_max
        })
    }

    /// Marks the item if it has no mark; returns true if the mark is durable.
    pub(in crate::execution) fn mark_suspect(&mut self, index: ItemIndex, now: Now) -> bool {
        let Some(suspects) = self.solo.0.as_mut() else {
            return false;
        };
        if let Some((_, mark)) = suspects.mark {
            return mark == Mark::Durable;
        }
        suspects.mark = Some((index, Mark::Wanted));
        let retrying = self
            .retrying_items
            .take(index)
            .unwrap_or_else(|| RetryingItem::fresh(now.wall));
        let marks = retrying.failure.as_ref().map_or(0, marks);
        let begun = RetryingItem {
            attempts: retrying.attempts.saturating_add(1),
            failure: Some(Failure::new(
                MARK_CODES[marks.min(MARK_CODES.len() - 1)],
                say::node_crash().to_string(),
            )),
            at: now.wall,
            ..retrying.clone()
        };
        self.record(index, &begun);
        self.high = self.high.max(index.plus(1));
        self.retrying_items.put(index, retrying);
        false
    }

    /// Removes the mark of an item that is not with the handler when the run ends: it is charged nothing.
    pub(in crate::execution) fn unmark(&mut self) {
        let mark = self.solo.0.as_mut().and_then(|suspects| suspects.mark.take());
        let Some((index, _)) = mark else { return };
        let Some(retrying) = self.retrying_items.take(index) else {
            return;
        };
        if retrying.attempts == 0 && retrying.place == Place::Window {
            self.drafts.record(SideRecord::Cleared(index));
            return;
        }
        self.record(index, &retrying);
        self.retrying_items.put(index, retrying);
    }

    /// True if single-file mode waits for a checkpoint: with a mark, or with the last answers.
    pub(in crate::execution) fn is_mark_due(&self) -> bool {
        self.solo.is_on()
            && match self.solo.mark() {
                Some(mark) => mark == Mark::Wanted,
                None => self.counters.in_flight == 0 && self.drafts.has_items(),
            }
    }
}

/// Returns the number of marks in a row that a failure stands for; 0 if it is the handler's.
fn marks(failure: &Failure) -> usize {
    MARK_CODES
        .iter()
        .position(|code| *code == failure.code)
        .map_or(0, |at| at + 1)
}
