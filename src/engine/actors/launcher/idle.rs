//! Idle run of an open task: keeps its shard, so that the next item is sent at once, and gives its share of the
//! node's capacity back until then.

use crate::actors::launcher::Launcher;
use crate::actors::launcher::run::Run;
use windrow_core::settings::{Rate, RateLimit};

/// Checks, one a second, that must find the run without items: a pause between two of them is not idle time.
const IDLE_AFTER: u32 = 3;

/// Idle state of a run that waits for items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Idleness {
    /// Consecutive checks that found the run without items.
    seen: u32,
}

impl Idleness {
    fn is_idle(self) -> bool {
        self.seen >= IDLE_AFTER
    }

    /// Returns the rate that the run needs of its full rate: one item a second while it is idle.
    pub(crate) fn rate(self, full: RateLimit) -> RateLimit {
        let least = Rate::per_second(1).map_or(full, RateLimit::Limited);
        match self.is_idle() && full.is_faster_than(least) {
            true => least,
            false => full,
        }
    }
}

impl Run {
    /// Checks whether the run waits for items. Books less capacity once it has waited for some time, and all of it
    /// once it no longer waits.
    pub(crate) fn watch_idleness(&mut self, state: &Launcher) {
        if self.control.supply.is_none() {
            return;
        }
        let before = self.idleness;
        let waits = self.cell.peek(windrow_core::execution::Execution::awaits_items);
        self.idleness.seen = if waits {
            (before.seen + 1).min(IDLE_AFTER)
        } else {
            0
        };
        if self.idleness.is_idle() != before.is_idle() {
            self.book(state);
            self.apply(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_waits_for_some_time_does_with_an_item_a_second() {
        let fast: RateLimit = "500/s".parse().expect("a rate");
        let slow: RateLimit = "10/m".parse().expect("a rate");
        let idle = Idleness { seen: IDLE_AFTER };
        assert_eq!(idle.rate(fast).to_string(), "1/s");
        assert_eq!(idle.rate(RateLimit::Unlimited).to_string(), "1/s");
        assert_eq!(idle.rate(slow), slow);
        assert_eq!(Idleness { seen: 1 }.rate(fast), fast);
    }
}
