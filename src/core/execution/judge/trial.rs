//! State of the items that are tried with no others to compare them with.

use std::time::Duration;

use crate::ids::Moment;

/// Maximum factor by which answers extend the time of a trial.
pub(super) const ANSWERED_FACTOR: u32 = 3;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alone {
    pub(super) state: State,
    pub(super) bare: Option<Bare>,
    pub(super) looked: Moment,
    pub(super) in_order: InOrder,
}

/// Moment from which on only items that were called are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bare {
    /// Number of calls answered by then.
    pub(super) answered: u64,
    /// True if the circuit was closed.
    pub(super) is_closed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Other items can be sent.
    #[default]
    No,
    /// The items are being tried.
    Tried(Trial),
    /// Their time is over: attempts count until something is answered.
    Over(Trial),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trial {
    pub(super) since: Moment,
    /// Time of the last answer since then.
    pub(super) answered: Moment,
    pub(super) is_tail: bool,
}

/// Evidence from items that failed without a verdict while calls are sent in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum InOrder {
    /// No such item has failed yet.
    #[default]
    Unknown,
    /// Nothing was answered since one failed.
    Failed,
    /// The next call was answered: the item was at fault.
    Confirmed,
}

impl Trial {
    pub(super) fn end(self, span: Duration) -> Moment {
        let end = self.since.max(self.answered).plus(span);
        end.min(self.since.plus(span.saturating_mul(ANSWERED_FACTOR)))
    }
}

impl Alone {
    pub(super) fn trial(&self) -> Option<Trial> {
        match self.state {
            State::No => None,
            State::Tried(trial) | State::Over(trial) => Some(trial),
        }
    }

    /// True if an answered call would change anything.
    #[inline]
    pub(super) fn is_stirred(&self) -> bool {
        self.state != State::No || self.in_order == InOrder::Failed
    }

    /// True if only items that failed can be sent.
    pub(super) fn is_on(&self) -> bool {
        self.state != State::No
    }

    /// True if these are the last items, and their time is bounded.
    pub(super) fn is_tail(&self) -> bool {
        self.trial().is_some_and(|trial| trial.is_tail)
    }

    /// True if failed attempts are no longer excused.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    /// Restarts the wait, except in the tail, after a call that couldn't be made at all: that is an outage.
    pub(super) fn on_unreachable(&mut self, now: Moment) {
        if let Some(trial) = self.trial().filter(|trial| !trial.is_tail) {
            let since = now;
            self.state = State::Tried(Trial { since, ..trial });
        }
    }

    /// Handles an answer of the handler: the last items are tried for longer, others can be compared again.
    pub(super) fn on_answered(&mut self, now: Moment) {
        match &mut self.state {
            State::Tried(trial) | State::Over(trial) if trial.is_tail => trial.answered = now,
            state => *state = State::No,
        }
        if self.in_order == InOrder::Failed {
            self.in_order = InOrder::Confirmed;
        }
    }

    /// Handles an item that failed while calls are sent in order: the next one is tried anew.
    pub(super) fn on_failed_in_order(&mut self) {
        self.state = State::No;
        if self.in_order == InOrder::Unknown {
            self.in_order = InOrder::Failed;
        }
    }
}
