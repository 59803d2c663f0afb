//! Number in flight above which a service refuses.

use super::Call;

/// Limit from which one call of slack is left: calls cross each other on the way.
const SLACK_FROM: u32 = 8;
/// Steps by which the limit falls when refusals below one that was held are explained by the calls in flight. After as
/// many, the rate must be it.
const RELAPSES: [u32; 4] = [1, 2, 3, 4];

/// Lowest refused and highest accepted calls in flight since the last change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Above {
    most: Option<u32>,
    lowest_refused: Option<u32>,
    highest_accepted: u32,
    /// True once a call was accepted: what refuses the first calls doesn't count those in flight.
    has_accepted: bool,
    relapses: usize,
    /// Limit that was held until more was asked for.
    proven: Option<u32>,
}

impl Above {
    /// Returns the calls in flight that the service takes, if it refused more.
    pub(super) fn most(&self) -> Option<u32> {
        self.most
    }

    pub(super) fn restore(&mut self, most: Option<u32>) {
        self.most = most;
    }

    pub(super) fn on_accepted(&mut self, call: &Call) {
        self.has_accepted = true;
        self.highest_accepted = self.highest_accepted.max(call.in_flight);
    }

    pub(super) fn on_refused(&mut self, call: &Call) {
        let lowest = self.lowest_refused.unwrap_or(u32::MAX);
        self.lowest_refused = Some(lowest.min(call.in_flight));
    }

    /// Lowers the limit if it explains the refusals; returns true if it does.
    pub(super) fn explains(&mut self, call: &Call) -> bool {
        let Some(lowest) = self.lowest_refused.take() else {
            return false;
        };
        let slack = u32::from(lowest >= SLACK_FROM);
        // Refused above what was held until more was asked for: as expected.
        let is_exact = self.proven.take().is_some_and(|proven| lowest > proven);
        let is_explained = call.by_rate.is_none()
            && lowest > 1
            && self.has_accepted
            && lowest + slack > self.highest_accepted
            && (is_exact || self.relapses < RELAPSES.len());
        self.highest_accepted = 0;
        if is_explained && is_exact {
            self.most = Some(lowest - 1);
        } else if is_explained {
            // The lowest isn't known at once, as answers cross each other.
            self.most = Some(lowest.saturating_sub(RELAPSES[self.relapses]).max(1));
            self.relapses += 1;
        }
        is_explained
    }

    /// The rate explains the refusals: a limit that didn't help is dropped.
    pub(super) fn on_rate(&mut self) {
        if self.relapses > 0 {
            *self = Above {
                has_accepted: true,
                ..Above::default()
            };
        }
    }

    /// Allows a step more.
    pub(super) fn raise(&mut self) {
        self.proven = self.proven.or(self.most);
        self.most = self.most.map(|most| most.saturating_add((most / 16).max(1)));
    }
}
