//! State of the items that are tried with no others to compare them with.

use std::time::Duration;

use crate::ids::Moment;

/// Answers make that longer, up to so many times.
pub(super) const ANSWERED_FACTOR: u32 = 3;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alone {
    pub(super) state: State,
    pub(super) bare: Option<Bare>,
    pub(super) looked: Moment,
    pub(super) in_order: InOrder,
}

/// The moment from which on only items that were called are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bare {
    /// Calls answered by then.
    pub(super) answered: u64,
    /// The circuit was closed.
    pub(super) is_closed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Others can leave.
    #[default]
    No,
    /// The items are tried.
    Tried(Trial),
    /// Their time is over: attempts count, until something is answered.
    Over(Trial),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trial {
    pub(super) since: Moment,
    /// When something was answered last since then.
    pub(super) answered: Moment,
    pub(super) is_tail: bool,
}

/// Fate of the items that were given up without a verdict where calls leave in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum InOrder {
    /// There was none.
    #[default]
    Unknown,
    /// Nothing was answered since.
    Failed,
    /// The next call was answered: it was the item.
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

    /// Tells whether an answered call would change anything.
    #[inline]
    pub(super) fn is_stirred(&self) -> bool {
        self.state != State::No || self.in_order == InOrder::Failed
    }

    /// Nothing but items that failed can leave.
    pub(super) fn is_on(&self) -> bool {
        self.state != State::No
    }

    /// They are the last ones, and their time is bounded.
    pub(super) fn is_tail(&self) -> bool {
        self.trial().is_some_and(|trial| trial.is_tail)
    }

    /// Nothing excuses a failed attempt any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    /// A call couldn't be made at all: that is an outage, and the wait begins anew after it, but in the tail.
    pub(super) fn on_unreachable(&mut self, now: Moment) {
        if let Some(trial) = self.trial().filter(|trial| !trial.is_tail) {
            let since = now;
            self.state = State::Tried(Trial { since, ..trial });
        }
    }

    /// The handler answers: the last items are tried for longer, others have somebody to be compared with.
    pub(super) fn on_answered(&mut self, now: Moment) {
        match &mut self.state {
            State::Tried(trial) | State::Over(trial) if trial.is_tail => trial.answered = now,
            state => *state = State::No,
        }
        if self.in_order == InOrder::Failed {
            self.in_order = InOrder::Confirmed;
        }
    }

    /// An item was given up where calls leave in order: the next one is tried anew.
    pub(super) fn on_failed_in_order(&mut self) {
        self.state = State::No;
        if self.in_order == InOrder::Unknown {
            self.in_order = InOrder::Failed;
        }
    }
}
