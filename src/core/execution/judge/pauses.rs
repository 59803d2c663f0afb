//! Pauses after calls that were turned away.
//!
//! A pause counts from the departure of the call that asked for it, and is never shorter than the run's own back-off: a
//! wait of zero, or from a wrong clock, would repeat every call at once. A call that was sent before a pause began
//! extends nothing. Where the service named more than is waited for, one call at a time is sent after the pause, until
//! it takes some.

use std::time::Duration;

use crate::ids::Moment;
use crate::items::retry::doubled;

/// Maximum wait that is obeyed in one piece.
pub(in crate::execution) const RETRY_AFTER_LONGEST: Duration = Duration::from_secs(300);
/// First and longest back-off; doubled each time in a row.
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Answered calls for which one pause of the row is forgotten.
const FORGOTTEN_AFTER: u32 = 8;
/// Answered calls in a row that end the time of one call at a time.
const ANSWERED_UNTIL_TRUSTED: u32 = 3;

/// Pauses of a run, as far as they decide about the next one.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::execution) struct Pauses {
    in_a_row: u32,
    /// Calls answered since the last pause was forgotten.
    answered: u32,
    /// Time at which the last pause began.
    began: Option<Moment>,
    /// Calls answered since a pause that was cut short; `None` while nothing was.
    since_cut: Option<u32>,
}

impl Pauses {
    /// Adds a call that was turned away; returns the end of the pause that it asks for.
    pub(in crate::execution) fn on_turned_away(
        &mut self,
        after: Option<Duration>,
        departed: Moment,
        now: Moment,
    ) -> Option<Moment> {
        if self.is_before_pause(departed) {
            return None;
        }
        let own = doubled(BACK_OFF, self.in_a_row);
        let after = after.unwrap_or_default();
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.answered = 0;
        self.began = Some(now);
        if after > RETRY_AFTER_LONGEST || self.since_cut.is_some() {
            self.since_cut = Some(0);
        }
        Some(departed.plus(after.min(RETRY_AFTER_LONGEST)).max(now.plus(own)))
    }

    /// Adds answered calls, the latest of which was sent at `departed`.
    pub(super) fn on_answered(&mut self, calls: u32, departed: Moment) {
        if self.is_before_pause(departed) {
            return;
        }
        self.answered = self.answered.saturating_add(calls);
        self.in_a_row = self.in_a_row.saturating_sub(self.answered / FORGOTTEN_AFTER);
        self.answered %= FORGOTTEN_AFTER;
        let answered = self.since_cut.map(|answered| answered.saturating_add(calls));
        self.since_cut = answered.filter(|answered| *answered < ANSWERED_UNTIL_TRUSTED);
    }

    /// True for a call that was sent before the last pause began: those that are out together answer together.
    fn is_before_pause(&self, departed: Moment) -> bool {
        self.began.is_some_and(|began| departed <= began)
    }

    /// True if an answered call would change anything.
    #[inline]
    pub(super) fn is_stirred(&self) -> bool {
        self.in_a_row > 0 || self.since_cut.is_some()
    }

    /// True if only one call at a time is sent.
    #[inline]
    pub(in crate::execution) fn is_careful(&self) -> bool {
        self.since_cut.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment(millis * 1_000_000)
    }

    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn a_pause_counts_from_the_departure_and_calls_sent_before_it_extend_nothing() {
        let mut pauses = Pauses::default();
        let end = pauses.on_turned_away(seconds(10), at(1_000), at(3_000));
        assert_eq!(end, Some(at(11_000)));
        assert_eq!(pauses.on_turned_away(seconds(60), at(2_999), at(4_000)), None);
        let end = pauses.on_turned_away(seconds(60), at(11_000), at(11_100));
        assert_eq!(end, Some(at(71_000)));
    }

    #[test]
    fn the_back_off_grows_in_a_row_and_fades_with_answered_calls() {
        let mut pauses = Pauses::default();
        let mut now = 0;
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(
                pauses.on_turned_away(seconds(0), at(now), at(now)),
                Some(at(now + wait * 1000))
            );
            now += wait * 1000;
        }
        pauses.on_answered(8 * FORGOTTEN_AFTER - 1, at(now));
        assert_eq!(
            pauses.on_turned_away(None, at(now), at(now)),
            Some(at(now + 2000))
        );
        pauses.on_answered(1000, at(now - 1));
        assert!(pauses.is_stirred(), "those were sent before");
        pauses.on_answered(2 * FORGOTTEN_AFTER, at(now + 1));
        assert!(!pauses.is_stirred());
    }

    #[test]
    fn after_a_wait_that_was_cut_short_one_call_at_a_time_is_sent_until_three_are_answered() {
        let mut pauses = Pauses::default();
        let end = pauses.on_turned_away(seconds(3600), at(0), at(0));
        assert_eq!(end, Some(at(300_000)));
        pauses.on_answered(2, at(300_000));
        pauses.on_turned_away(None, at(301_000), at(301_000));
        pauses.on_answered(2, at(310_000));
        assert!(pauses.is_careful());
        pauses.on_answered(1, at(311_000));
        assert!(!pauses.is_careful());
    }
}
