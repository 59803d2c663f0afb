//! Reasons why less was sent than there was room for, and the time to ask again.

use crate::execution::Execution;
use crate::execution::items::Items;
use crate::execution::settings::Settings;
use crate::execution::types::{Effects, Now, Wait};
use crate::ids::Moment;
use crate::items::waiting::Place;
use crate::stats::stall::StallReason;

impl Execution {
    /// Returns the earliest time at which something changes without an event; completions and events wake the lanes
    /// anyway.
    pub(in crate::execution) fn when_to_ask_again(&mut self, room: u32, now: Now) -> Wait {
        let mut earliest: Option<Moment> = None;
        let mut consider = |moment: Moment| {
            if moment > now.moment {
                earliest = Some(earliest.map_or(moment, |e| e.min(moment)));
            }
        };
        if room == 0 && self.pace.is_limited() {
            let batch = self.batches.size();
            consider(self.pace.next_at(batch));
            if batch > 1 && self.batches.is_whole() {
                // A batch that never fills is sent anyway.
                consider(self.pace.next_at(1).plus(self.settings.tuning.batch_linger));
            }
        }
        self.pace.paused(now.moment).into_iter().for_each(&mut consider);
        self.autopilot.until().into_iter().for_each(&mut consider);
        self.charged_until.into_iter().for_each(&mut consider);
        if let Some(until) = self
            .batches
            .lingers_until(self.settings.tuning.batch_linger, &self.pace)
        {
            consider(until);
        }
        if let Some(since) = self.stragglers.full_since() {
            consider(since.plus(self.settings.tuning.straggler_after));
        }
        for place in [Place::Window, Place::Outside] {
            if let Some(due) = self.items.retrying_items.next_due(place) {
                consider(due.max(self.pace.next_at(1)));
            }
        }
        earliest.map_or(Wait::Completion, Wait::Until)
    }
}

impl Items {
    /// Returns the reason why less was sent than there was room for.
    pub(in crate::execution) fn why_nothing_is_left(&mut self, settings: &Settings) -> Option<StallReason> {
        if self.cursor >= self.end {
            let waits = self
                .retrying_items
                .next_due(Place::Window)
                .or_else(|| self.retrying_items.next_due(Place::Outside));
            return Some(match waits {
                Some(_) => StallReason::RetryWait,
                None if self.supply.is_open() => StallReason::Items,
                None => StallReason::Tail,
            });
        }
        if self.cursor >= self.fresh_end() {
            return Some(StallReason::Canary);
        }
        if settings.tuning.ordered && !self.retrying_items.is_empty() {
            return Some(StallReason::RetryWait);
        }
        // Checked before the source: rows are read only a little beyond what the window allows.
        if self.cursor >= self.window.limit() {
            let can_park = self.has_room_to_park(settings);
            return Some(if can_park {
                StallReason::WindowFull
            } else {
                StallReason::ParkedFull
            });
        }
        if self.cursor >= self.source_ready {
            return Some(StallReason::SourceWait);
        }
        self.is_out_of_reach().then_some(StallReason::Checkpoint)
    }
}

/// Sets the wait to end at this time at the latest.
pub(super) fn wake_by(fx: &mut Effects, moment: Option<Moment>) {
    let Some(moment) = moment else { return };
    fx.wait = match std::mem::take(&mut fx.wait) {
        Wait::Until(earlier) => Wait::Until(earlier.min(moment)),
        Wait::Completion => Wait::Until(moment),
        wait @ (Wait::Now | Wait::Ended) => wait,
    };
}
