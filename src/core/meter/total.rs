//! Totals and allowances: an amount that is spent at most once, whichever moment the process dies.
//!
//! Nobody knows what a dead owner has spent since its last checkpoint. Each checkpoint therefore says in advance how
//! much may be spent until the next one (`may_spend`), as the dispatch horizon does for items, and nothing leaves beyond
//! what the store has acknowledged. After a death all of `may_spend` counts as spent, shown apart as `unsure`.
//!
//! Guarantee: what was really paid is at most the amount, and at most `spent + unsure`, but for what calls cost above
//! their reserved estimates: those out at the last departure for the first, and those that no checkpoint settled, or
//! that ended unsure, for the second.

use super::amount::Amount;
use super::class::Cost;

/// Part of what is left that may be spent between two checkpoints where the use is unknown, as its reciprocal.
const AHEAD_ONE_IN: u128 = 64;
/// Smallest room that a call needs.
const LEAST: Amount = Amount(1);
/// Part of the amount by which calls that are out may exceed it together, as its reciprocal.
const OVERRUN_ONE_IN: u128 = 50;
/// Number of calls after which the largest excess of the ones before is forgotten.
const PEAK_CALLS: u32 = 128;
/// Share of the amount from which on people are warned. Unit: per cent.
const WARN_PERCENT: u128 = 80;

/// State of a total as a checkpoint stores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Costs that are certain.
    pub spent: Amount,
    /// Costs that calls may have had.
    pub unsure: Amount,
    /// Amount that may be spent beyond both before the next checkpoint, also by calls that are out.
    pub may_spend: Amount,
}

/// Draft of a checkpoint's part for a total. Handed back when it is stored; one that is lost is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draft {
    /// State to be stored.
    pub state: Stored,
    number: u64,
    reach: Amount,
}

/// Answer to the question whether a call fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The call may depart.
    Free,
    /// The call fits once another draft is stored, whose batch holds it.
    AfterCheckpoint,
    /// The call fits once one that is out has ended: near the end of the amount, all of them together might exceed it.
    AfterEnd,
    /// The amount doesn't hold it, with what is out.
    Full,
}

/// Largest amounts by which the last calls exceeded their estimates.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    calls: u32,
    now: Amount,
    before: Amount,
}

impl Peak {
    fn note(&mut self, excess: Amount) {
        if self.calls == PEAK_CALLS {
            (self.calls, self.before, self.now) = (0, self.now, Amount::ZERO);
        }
        self.calls += 1;
        self.now = self.now.max(excess);
    }

    fn largest(self) -> Amount {
        self.now.max(self.before)
    }
}

/// Total of one owner.
#[derive(Clone, Copy, Debug)]
pub struct Total {
    amount: Amount,
    spent: Amount,
    unsure: Amount,
    /// Amount that people forgave since the start. It was used, as far as `reach` is concerned.
    forgiven: Amount,
    /// Estimates reserved for calls that are out.
    out: Amount,
    /// Number of these calls.
    calls: u32,
    peak: Peak,
    /// Use up to which calls may depart: that of the last stored draft, or of a lower one since.
    reach: Amount,
    /// Use at which a draft is due.
    due_at: Amount,
    /// Number of the last draft.
    drafts: u64,
}

impl Total {
    /// Creates a total that goes on from what is stored: what may have been spent since counts as unsure, and nothing
    /// departs before the first draft is stored.
    pub fn restore(amount: Amount, stored: Stored) -> Total {
        let unsure = stored.unsure.plus(stored.may_spend);
        let used = stored.spent.plus(unsure);
        Total {
            amount,
            spent: stored.spent,
            unsure,
            forgiven: Amount::ZERO,
            out: Amount::ZERO,
            calls: 0,
            peak: Peak::default(),
            reach: used,
            due_at: used,
            drafts: 0,
        }
    }

    /// Returns the costs that are certain.
    pub fn spent(&self) -> Amount {
        self.spent
    }

    /// Returns the costs that calls may have had.
    pub fn unsure(&self) -> Amount {
        self.unsure
    }

    /// Returns the estimates of calls that are out.
    pub fn out(&self) -> Amount {
        self.out
    }

    /// Returns the number of calls that are out.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// Returns what is neither spent, nor unsure, nor out.
    pub fn left(&self) -> Amount {
        self.amount.minus(self.spent).minus(self.unsure).minus(self.out)
    }

    /// Returns true if so much is used that people are warned.
    pub fn is_nearly_used(&self) -> bool {
        is_nearly_used(self.spent.plus(self.unsure), self.amount)
    }

    /// Decides whether a call with this estimate may depart. A call that is estimated at nothing needs room for
    /// something, too.
    pub fn room(&self, estimate: Amount) -> Room {
        let wanted = estimate.max(LEAST);
        if wanted > self.left() {
            Room::Full
        } else if self.might_exceed(wanted) {
            Room::AfterEnd
        } else if self.reserved().plus(wanted) > self.reach {
            Room::AfterCheckpoint
        } else {
            Room::Free
        }
    }

    /// Returns true if calls are out that, with one more, might exceed the amount by too much: each by as much as the
    /// worst of the last ones.
    fn might_exceed(&self, wanted: Amount) -> bool {
        let calls = u128::from(self.calls) + 1;
        let excess = self.peak.largest().0.saturating_mul(calls);
        let bearable = self
            .left()
            .minus(wanted)
            .plus(Amount(self.amount.0 / OVERRUN_ONE_IN));
        self.calls > 0 && Amount(excess) > bearable
    }

    /// Reserves the estimate of a call that departs.
    pub fn depart(&mut self, estimate: Amount) {
        self.out = self.out.plus(estimate);
        self.calls += 1;
    }

    /// Settles a call that departed with this estimate.
    pub fn end(&mut self, estimate: Amount, cost: Cost) {
        self.out = self.out.minus(estimate);
        self.calls = self.calls.saturating_sub(1);
        match cost {
            Cost::Known(amount) => {
                self.spent = self.spent.plus(amount);
                self.peak.note(amount.minus(estimate));
            }
            Cost::Unsure(amount) => self.unsure = self.unsure.plus(amount),
        }
    }

    /// Returns true if half of what may be spent before the next checkpoint is used.
    pub fn is_draft_due(&self) -> bool {
        self.reserved() >= self.due_at && self.reach < self.limit()
    }

    /// Drafts what the next checkpoint stores. `soon` is what the next 15 seconds are expected to use, if that is known;
    /// else a part of what is left may be spent. In any case `batch` may, as far as it is left: it holds at least the
    /// estimate of a call that waits, or that waits for ever.
    pub fn draft(&mut self, soon: Option<Amount>, batch: Amount) -> Draft {
        let left = self.left();
        let ahead = soon.unwrap_or(Amount(left.0 / AHEAD_ONE_IN)).max(batch).min(left);
        let used = self.used();
        let reach = self.reserved().plus(ahead);
        self.drafts += 1;
        // A lower reach holds at once: once it is stored, nothing more may depart under the higher one.
        self.reach = self.reach.min(reach);
        self.due_at = self.reserved().plus(Amount(ahead.0 / 2));
        Draft {
            state: Stored {
                spent: self.spent,
                unsure: self.unsure,
                may_spend: reach.minus(used),
            },
            number: self.drafts,
            reach,
        }
    }

    /// Lets calls depart as far as a draft allows that the store has acknowledged. A later draft may have a lower reach,
    /// so only the last one raises it.
    pub fn stored(&mut self, draft: Draft) {
        if draft.number == self.drafts {
            self.reach = draft.reach;
        }
    }

    /// Makes the next draft due at once, because the last one was lost.
    pub fn on_lost(&mut self) {
        self.due_at = self.reserved();
    }

    /// Changes the amount. A lower one holds at once.
    pub fn set_amount(&mut self, amount: Amount) {
        self.amount = amount;
        self.due_at = self.due_at.min(self.reserved());
    }

    /// Takes back what people decided was not spent, at most what is unsure; returns how much that was.
    pub fn forgive(&mut self, amount: Amount) -> Amount {
        let forgiven = self.unsure.min(amount);
        self.unsure = self.unsure.minus(forgiven);
        self.forgiven = self.forgiven.plus(forgiven);
        forgiven
    }

    /// Returns the use since the beginning, in which forgiven costs stay.
    fn used(&self) -> Amount {
        self.spent.plus(self.unsure).plus(self.forgiven)
    }

    fn reserved(&self) -> Amount {
        self.used().plus(self.out)
    }

    /// Returns the highest reach that the amount allows.
    fn limit(&self) -> Amount {
        self.reserved().plus(self.left())
    }
}

/// Returns true if so much of an amount is used that people are warned.
pub fn is_nearly_used(used: Amount, amount: Amount) -> bool {
    used.0.saturating_mul(100) >= amount.0.saturating_mul(WARN_PERCENT)
}
