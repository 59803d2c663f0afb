//! Reasons for unused permits: the basis of `explain`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::Moment;

crate::slugs! {
    /// Reason why nothing was dispatched although the pace would have allowed it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[repr(u8)]
    pub enum StallReason {
        /// The item at the watermark holds the whole window.
        WindowFull = "window_full",
        /// The number of items in flight is at the task's maximum.
        Concurrency = "concurrency",
        /// The handler has no free slot (workers busy or starting).
        HandlerSlots = "handler_slots",
        /// The handler asked for a pause (429, 503, `pause_for`).
        BackPressure = "back_pressure",
        /// Only items that wait for a retry are left.
        RetryWait = "retry_wait",
        /// The maximum number of items is parked.
        ParkedFull = "parked_full",
        /// Rows of the source are still being read.
        SourceWait = "source_wait",
        /// Too many completions are unsaved.
        Unsaved = "unsaved",
        /// Progress must be saved before more may be dispatched: items far ahead, or too many failures.
        Checkpoint = "checkpoint",
        /// The node has no lease validity, so it may not assume that it owns the shard.
        Lease = "lease",
        /// The first items of the task are not all settled yet.
        Canary = "canary",
        /// Everything has been dispatched; only the last answers are awaited.
        Tail = "tail",
        /// Items go one at a time after a crash loop.
        SingleFile = "single_file",
        /// A limit that is shared with other tasks allows no more.
        Limit = "limit",
        /// The handler is down: only probes are sent.
        HandlerDown = "handler_down",
        /// Too many results wait to be written.
        ResultsUnsaved = "results_unsaved",
        /// The task is open, and every item added so far has been dispatched.
        Items = "items",
        /// The autopilot holds calls back: the service refuses more, or more would make its calls slower.
        Autopilot = "autopilot",
        /// A limit in units, such as tokens or money, allows no more now.
        Usage = "usage",
    }
}

/// Time spent stalled, by reason. Only one reason is in force at a time; O(1) per exchange.
#[derive(Clone, Debug, Default)]
pub struct Stalls {
    current: Option<(StallReason, Moment)>,
    spent: [Duration; StallReason::ALL.len()],
}

impl Stalls {
    /// Sets the reason from `now` on (`None`: nothing is stalled).
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

    /// Returns the reason in force.
    pub fn current(&self) -> Option<StallReason> {
        self.current.map(|(reason, _)| reason)
    }

    /// Returns the time spent for each reason until `now`, in the order of [`StallReason::ALL`].
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
