//! A reason for every unused permit: the basis of `explain`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::Moment;

/// Why nothing left although the pace would have let it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum StallReason {
    /// Low water holds the whole window.
    WindowFull,
    /// As many items are in flight as the task allows.
    Concurrency,
    /// The handler has no free slot (workers busy or starting).
    HandlerSlots,
    /// The handler asked for a pause (429, 503, `pause_for`).
    BackPressure,
    /// Only items that wait for a retry are left.
    RetryWait,
    /// No more items may be parked.
    ParkedFull,
    /// Rows are still being read.
    SourceWait,
    /// Too many completions are unsaved.
    Unsaved,
    /// Too many failures wait to be written.
    Checkpoint,
    /// The node may not believe that it owns the shard.
    Trust,
    /// The first items of the task are not all settled yet.
    Canary,
    /// Everything has left; only the last answers are awaited.
    Tail,
    /// One at a time, after a crash loop.
    SingleFile,
    /// A limit that is shared with other tasks lets no more leave.
    Limit,
    /// The handler doesn't answer: nothing but probes leaves.
    HandlerDown,
}

impl StallReason {
    /// Every reason, in the order of its number.
    pub const ALL: [StallReason; 15] = [
        StallReason::WindowFull,
        StallReason::Concurrency,
        StallReason::HandlerSlots,
        StallReason::BackPressure,
        StallReason::RetryWait,
        StallReason::ParkedFull,
        StallReason::SourceWait,
        StallReason::Unsaved,
        StallReason::Checkpoint,
        StallReason::Trust,
        StallReason::Canary,
        StallReason::Tail,
        StallReason::SingleFile,
        StallReason::Limit,
        StallReason::HandlerDown,
    ];

    /// The slug in metrics and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            StallReason::WindowFull => "window_full",
            StallReason::Concurrency => "concurrency",
            StallReason::HandlerSlots => "handler_slots",
            StallReason::BackPressure => "back_pressure",
            StallReason::RetryWait => "retry_wait",
            StallReason::ParkedFull => "parked_full",
            StallReason::SourceWait => "source_wait",
            StallReason::Unsaved => "unsaved",
            StallReason::Checkpoint => "checkpoint",
            StallReason::Trust => "trust",
            StallReason::Canary => "canary",
            StallReason::Tail => "tail",
            StallReason::SingleFile => "single_file",
            StallReason::Limit => "limit",
            StallReason::HandlerDown => "handler_down",
        }
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

    #[test]
    fn the_order_of_all_is_the_order_of_the_numbers() {
        for (at, reason) in StallReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
        }
    }
}
