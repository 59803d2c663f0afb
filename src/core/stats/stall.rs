//! A reason for every unused permit: the basis of `explain`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::Moment;

crate::slugs! {
    /// Why nothing left although the pace would have let it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[repr(u8)]
    pub enum StallReason {
        /// Watermark holds the whole window.
        WindowFull = "window_full",
        /// As many items are in flight as the task allows.
        Concurrency = "concurrency",
        /// The handler has no free slot (workers busy or starting).
        HandlerSlots = "handler_slots",
        /// The handler asked for a pause (429, 503, `pause_for`).
        BackPressure = "back_pressure",
        /// Only items that wait for a retry are left.
        RetryWait = "retry_wait",
        /// No more items may be parked.
        ParkedFull = "parked_full",
        /// Rows are still being read.
        SourceWait = "source_wait",
        /// Too many completions are unsaved.
        Unsaved = "unsaved",
        /// What was done has to be written before more may leave: items far ahead, or too many failures.
        Checkpoint = "checkpoint",
        /// The node may not believe that it owns the shard.
        Trust = "trust",
        /// The first items of the task are not all settled yet.
        Canary = "canary",
        /// Everything has left; only the last answers are awaited.
        Tail = "tail",
        /// One at a time, after a crash loop.
        SingleFile = "single_file",
        /// A limit that is shared with other tasks lets no more leave.
        Limit = "limit",
        /// The handler doesn't answer: nothing but probes leaves.
        HandlerDown = "handler_down",
        /// Too many results wait to be written.
        ResultsUnsaved = "results_unsaved",
        /// The task is open, and every item that was added so far has left.
        Items = "items",
    }
}

/// Time spent stalled, by reason. One reason at a time; O(1) per exchange.
#[derive(Clone, Debug, Default)]
pub struct Stalls {
    current: Option<(StallReason, Moment)>,
    spent: [Duration; StallReason::ALL.len()],
}

impl Stalls {
    /// From `now` on the reason is `reason` (none: nothing is stalled).
    #[inline]
    pub fn on(&mut self, reason: Option<StallReason>, now: Moment) {
        if self.current.map(|(current, _)| current) == reason {
            return;
        }
        if let Some((current, since)) = self.current {
            self.spent[current as usize] += now.since(since);
        }
        self.current = reason.map(|reason| (reason, now));
    }

    /// The reason in force.
    pub fn current(&self) -> Option<StallReason> {
        self.current.map(|(reason, _)| reason)
    }

    /// The time spent for each reason until `now`, in the order of [`StallReason::ALL`].
    pub fn spent(&self, now: Moment) -> [Duration; StallReason::ALL.len()] {
        let mut spent = self.spent;
        if let Some((current, since)) = self.current {
            spent[current as usize] += now.since(since);
        }
        spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_booked_to_the_reason_that_was_in_force() {
        let mut stalls = Stalls::default();
        stalls.on(Some(StallReason::WindowFull), Moment(10));
        stalls.on(Some(StallReason::WindowFull), Moment(20));
        stalls.on(Some(StallReason::RetryWait), Moment(30));
        stalls.on(None, Moment(35));
        let spent = stalls.spent(Moment(99));
        assert_eq!(spent[StallReason::WindowFull as usize], Duration::from_nanos(20));
        assert_eq!(spent[StallReason::RetryWait as usize], Duration::from_nanos(5));
        assert_eq!(spent.iter().sum::<Duration>(), Duration::from_nanos(25));
    }
}
