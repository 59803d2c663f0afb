//! Amount of a unit that is kept with the store: a total of the task, or an allowance of each calendar period.

use super::saved::{AllowanceSaved, MeterSaved};
use crate::ids::WallMs;
use crate::meter::allowance::Periods;
use crate::meter::amount::Amount;
use crate::meter::class::Cost;
use crate::meter::limit::Limit;
use crate::meter::period::Calendar;
use crate::meter::total::{Draft, Room, Stored, Total};

/// Amount that may be spent, in all or in each period.
#[derive(Debug)]
pub(super) struct Budget {
    /// Limit that sets the amount; `None` if the use is only counted.
    pub(super) limit: Option<Limit>,
    total: Total,
    /// Periods of an allowance.
    periods: Option<Periods>,
    /// Set when a call didn't fit the period although no other was out; reset by the next period.
    is_closed: bool,
    /// Largest cost of a call that waits for a checkpoint, or for others to end.
    waiting: Amount,
    draft: Option<Draft>,
}

impl Budget {
    /// Creates the total of a task; without a limit its use is counted.
    pub(super) fn total(limit: Option<Limit>, saved: Option<&MeterSaved>) -> Budget {
        let amount = limit.as_ref().and_then(Limit::amount);
        let amount = amount.map_or(Amount::MAX, |(amount, _)| amount);
        let stored = saved.map(MeterSaved::stored).unwrap_or_default();
        Budget::new(limit, Total::restore(amount, stored), None)
    }

    /// Creates an allowance; `None` for another limit.
    pub(super) fn allowance(limit: &Limit, saved: Option<&MeterSaved>, wall: WallMs) -> Option<Budget> {
        let (calendar, (amount, _)) = (limit.calendar()?, limit.amount()?);
        let stored = saved.and_then(|saved| saved.allowance.as_ref());
        let use_of = stored.map(AllowanceSaved::stored).unwrap_or_default();
        let periods = Periods::restore(calendar, stored.map(|stored| stored.period.clone()), wall);
        let mut budget = Budget::new(Some(limit.clone()), Total::restore(amount, use_of), Some(periods));
        budget.turn(wall);
        Some(budget)
    }

    fn new(limit: Option<Limit>, total: Total, periods: Option<Periods>) -> Budget {
        Budget {
            limit,
            total,
            periods,
            is_closed: false,
            waiting: Amount::ZERO,
            draft: None,
        }
    }

    /// Begins the period of `wall`, if it is another one. Nothing departs before the store knows of it.
    pub(super) fn turn(&mut self, wall: WallMs) {
        let Some(periods) = &mut self.periods else { return };
        let used = self
            .total
            .spent()
            .plus(self.total.unsure())
            .plus(self.total.out());
        let Some(spent) = periods.turn(used, wall) else {
            return;
        };
        let amount = self.limit.as_ref().and_then(Limit::amount);
        let amount = amount.map_or(Amount::ZERO, |(amount, _)| amount);
        let stored = Stored {
            spent,
            ..Stored::default()
        };
        // A draft of the old period allows nothing in the new one.
        (self.total, self.draft) = (Total::restore(amount, stored), None);
        (self.is_closed, self.waiting) = (false, Amount::ZERO);
    }

    /// Returns the first moment of the period in force.
    pub(super) fn period(&self) -> WallMs {
        self.periods
            .as_ref()
            .map_or(WallMs(0), |periods| periods.current().start)
    }

    /// Returns the calendar, and the time at which the next period begins.
    pub(super) fn next_period(&self) -> Option<(Calendar, WallMs)> {
        let periods = self.periods.as_ref()?;
        Some((periods.calendar(), periods.current().end))
    }

    /// Returns the counts of the total, or of the period in force.
    pub(super) fn counts(&self) -> &Total {
        &self.total
    }

    /// Returns true if nothing more departs in this period.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns the calls that the amount allows, if the next one costs `expected`, and whether a checkpoint allows more.
    pub(super) fn leave(&self, expected: Amount) -> (u32, bool) {
        if self.limit.is_none() {
            return (u32::MAX, false);
        }
        match self.total.room(expected.max(self.waiting)) {
            _ if self.is_closed => (0, false),
            Room::Free => (u32::MAX, false),
            Room::AfterCheckpoint => (0, true),
            Room::AfterEnd => (0, false),
            // A call that fits may still come; the one that doesn't says so itself.
            Room::Full => (1_u32.saturating_sub(self.total.calls()), false),
        }
    }

    /// Decides whether a call fits, and remembers one that waits.
    pub(super) fn room(&mut self, estimate: Amount) -> Room {
        if self.limit.is_none() {
            return Room::Free;
        }
        let room = self.total.room(estimate);
        if room != Room::Free {
            self.waiting = self.waiting.max(estimate);
            self.is_closed |= room == Room::Full && self.periods.is_some() && self.total.calls() == 0;
        }
        room
    }

    pub(super) fn depart(&mut self, estimate: Amount) {
        self.total.depart(estimate);
        self.waiting = Amount::ZERO;
    }

    /// Settles a call that departed in the period which began at `period`.
    pub(super) fn end(&mut self, period: WallMs, estimate: Amount, cost: Cost) {
        let current = self.period();
        match &mut self.periods {
            Some(periods) if period != current => periods.settle(period, estimate, cost),
            _ => self.total.end(estimate, cost),
        }
    }

    pub(super) fn is_draft_due(&self) -> bool {
        let waits = !self.waiting.is_zero() && self.total.room(self.waiting) == Room::AfterCheckpoint;
        self.limit.is_some() && (self.total.is_draft_due() || waits)
    }

    /// Drafts what a checkpoint saves. The last one of a run holds only what calls that are out may spend.
    pub(super) fn draft(&mut self, expected: Amount, is_last: bool) -> Stored {
        let batch = expected.max(self.waiting);
        let batch = Amount(batch.0.saturating_mul(2));
        let draft = match is_last {
            true => self.total.draft(Some(Amount::ZERO), Amount::ZERO),
            false => self.total.draft(None, batch),
        };
        self.draft = Some(draft);
        draft.state
    }

    /// Drafts what a checkpoint saves of an allowance.
    pub(super) fn draft_period(&mut self, expected: Amount, is_last: bool) -> Option<AllowanceSaved> {
        let state = self.draft(expected, is_last);
        let period = self.periods.as_ref()?.stored();
        Some(AllowanceSaved {
            period,
            spent: state.spent,
            unsure: state.unsure,
            may_spend: state.may_spend,
        })
    }

    pub(super) fn on_stored(&mut self) {
        if let Some(draft) = self.draft.take() {
            self.total.stored(draft);
        }
    }

    /// Counts all that is left as used: a restored database doesn't know what was spent since its backup.
    pub(super) fn forget(&mut self) {
        let Some((amount, _)) = self.limit.as_ref().and_then(Limit::amount) else {
            return;
        };
        let stored = Stored {
            spent: self.total.spent(),
            unsure: self.total.unsure().plus(self.total.left()),
            may_spend: Amount::ZERO,
        };
        self.total = Total::restore(amount, stored);
    }
}
