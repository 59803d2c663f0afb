//! Use of a run's calls in the units of its task, and the limits that hold them back.
//!
//! Each call takes its estimate when it is sent, and its cost when it ends. A pace may owe; a total, and the allowance of
//! a period, are kept with the store, so that a crash never spends more than was written down before; a limit of what is
//! out at once needs neither.

mod account;
mod budget;
mod ends;
mod picture;
mod saved;
mod shared;
#[cfg(test)]
mod tests;
mod window;

use std::time::Duration;

use windrow_words::execution as say;

use crate::execution::Execution;
use crate::execution::types::{Now, Restored, RunEnd};
use crate::ids::{Moment, WallMs};
use crate::meter::amount::Amount;
use crate::meter::expr::{CostFault, Expr, Values};
use crate::meter::limit::Limit;
pub use crate::meter::metering::HeldBy;
use crate::meter::metering::Metering;
use crate::meter::total::Room;
use crate::meter::unit::Unit;
use crate::task::lifecycle::StopReason;
use account::{Account, Counted, Meter};
use budget::Budget;
use picture::Held;
pub use picture::{AllowancePicture, MeterPicture};
pub use saved::{AllowanceSaved, MeterSaved, Saved};
pub use shared::{Purse, SharedEnd};
use window::TokenWindow;

/// Longest wait for the next period of an allowance before the clock is looked at again.
const CLOCK_LOOK: Duration = Duration::from_secs(60);

/// Use of a call by meter, in the order of [`Metering::meters`]; `None` where nothing says it.
pub type Usage = Vec<Option<Amount>>;

/// Answer to the question whether a call may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Departure {
    /// The call is charged and may be sent.
    Go,
    /// The call and the rest of its grant go back.
    Back,
    /// No limit ever allows a call of this cost; the limit is named.
    TooLarge(String),
}

/// Cost that a call has taken, until it ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Charge {
    /// Estimates as they were computed.
    raw: Usage,
    /// Estimates of the call by itself, whatever others cost; nothing where it says none.
    own: Vec<Amount>,
    /// Estimates taken from paces, and reserved in totals, by meter.
    pace: Vec<Amount>,
    total: Vec<Amount>,
    /// Beginnings of the periods in which it departed, by meter.
    periods: Vec<WallMs>,
}

/// Meters of a run with the limits in their units; empty if its task has none.
#[derive(Debug, Default)]
pub(super) struct Charges {
    meters: Vec<Meter>,
    /// Places of the meters of each named limit, behind those of the task.
    named: Vec<std::ops::Range<usize>>,
    /// Ends of calls that the named limits are yet to be told of.
    shared_ends: Vec<SharedEnd>,
    accounts: Vec<Account>,
    out: u32,
    /// Tokens that the service says are left.
    window: TokenWindow,
    /// Total of a unit that no longer held a call while others were out.
    full: Option<usize>,
    /// True once people were alerted that answers don't say the use.
    has_alerted: bool,
    /// Number of the checkpoint that holds the last drafts.
    drafted: Option<u64>,
    /// Limit that allowed the fewest calls when they were last asked for, or that sent a call back since.
    held: Option<Held>,
}

/// Calls that limits allow now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leave {
    pub(super) calls: u32,
    /// Time at which more are allowed, if time alone does it.
    pub(super) until: Option<Moment>,
    /// True if a checkpoint allows more.
    pub(super) wants_draft: bool,
}

impl Charges {
    /// Creates the meters of a task, from what was saved.
    pub(super) fn new(metering: &Metering, restored: &Restored, now: Now) -> Charges {
        let mut meters = Meter::all(metering, &restored.meters, now.wall);
        if restored.is_use_unknown {
            meters.iter_mut().for_each(Meter::forget);
        }
        let accounts = metering.limits.iter();
        let accounts = accounts
            .filter_map(|limit| Account::new(limit, &meters, &restored.meters, now.moment))
            .collect();
        Charges {
            meters,
            named: Vec::new(),
            shared_ends: Vec::new(),
            accounts,
            out: 0,
            window: TokenWindow::default(),
            full: None,
            has_alerted: false,
            drafted: None,
            held: None,
        }
    }

    /// True if anything is counted.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        !self.meters.is_empty()
    }

    /// Returns the calls that limits allow now.
    pub(super) fn leave(&mut self, now: Now) -> Leave {
        let mut leave = Leave {
            calls: u32::MAX,
            until: None,
            wants_draft: false,
        };
        self.held = None;
        for at in 0..self.meters.len() {
            self.leave_of_meter(at, now, &mut leave);
        }
        for (at, account) in self.accounts.iter_mut().enumerate() {
            let mean = self.meters[account.meter()].expected();
            let calls = account.leave(mean, self.out, now.moment);
            if calls == 0 {
                leave.until = leave.until.max(account.until(mean));
            }
            if calls < leave.calls {
                (leave.calls, self.held) = (calls, Some(Held::Account(at)));
            }
        }
        self.leave_of_window(now.moment, &mut leave);
        if let Some(at) = self.full.filter(|_| self.out > 0) {
            (leave.calls, self.held) = (0, Some(Held::Total(at)));
        }
        leave
    }

    fn leave_of_meter(&mut self, at: usize, now: Now, leave: &mut Leave) {
        let meter = &mut self.meters[at];
        let (expected, unknown) = (meter.expected(), meter.until_known(self.out));
        let mut bound = |calls, held| {
            if calls < leave.calls {
                (leave.calls, self.held) = (calls, Some(held));
            }
        };
        bound(unknown, Held::Learning(at));
        let (calls, mut wants_draft) = meter.total.leave(expected);
        bound(calls, Held::Total(at));
        if let Some(budget) = &mut meter.allowance {
            budget.turn(now.wall);
            let (calls, wants) = budget.leave(expected);
            bound(calls, Held::Allowance(at));
            wants_draft |= wants;
            if let (true, Some((_, next))) = (budget.is_closed(), budget.next_period()) {
                // A clock that is set meanwhile is noticed.
                let wait = next.since(now.wall).min(CLOCK_LOOK);
                leave.until = leave.until.max(Some(now.moment.plus(wait)));
            }
        }
        leave.wants_draft |= wants_draft;
    }

    /// Takes the estimates of a call of so many items that is about to be sent.
    pub(super) fn depart(&mut self, raw: Usage, items: u32, now: Now) -> (Departure, Charge) {
        let mut charge = self.charge(raw, items);
        if let Some(limit) = self.too_large(&charge) {
            return (Departure::TooLarge(limit), Charge::default());
        }
        let mut accounts = self.accounts.iter_mut();
        let over = accounts.position(|account| !account.fits(charge.pace[account.meter()], now.moment));
        let mut held = over.map(Held::Account);
        held = held.or_else(|| self.held_by_window(&charge, now.moment));
        for (at, meter) in self.meters.iter_mut().enumerate() {
            match meter.total.room(charge.total[at]) {
                Room::Free => {}
                Room::AfterCheckpoint | Room::AfterEnd => held = Some(Held::Total(at)),
                Room::Full => {
                    (self.full, held) = (Some(at), Some(Held::Total(at)));
                }
            }
            if let Some(budget) = &mut meter.allowance {
                budget.turn(now.wall);
                if budget.room(charge.total[at]) != Room::Free {
                    held = Some(Held::Allowance(at));
                }
            }
        }
        if held.is_some() {
            self.held = held;
            return (Departure::Back, Charge::default());
        }
        for account in &mut self.accounts {
            account.take(charge.pace[account.meter()], now.moment);
        }
        for (meter, total) in self.meters.iter_mut().zip(&charge.total) {
            meter.budgets_mut().for_each(|budget| budget.depart(*total));
        }
        self.take_from_window(&charge);
        let period = |meter: &Meter| meter.allowance.as_ref().map_or(WallMs(0), Budget::period);
        charge.periods = self.meters.iter().map(period).collect();
        self.out += 1;
        self.full = None;
        (Departure::Go, charge)
    }

    fn charge(&self, raw: Usage, items: u32) -> Charge {
        let mut charge = Charge {
            raw,
            own: Vec::with_capacity(self.meters.len()),
            pace: Vec::with_capacity(self.meters.len()),
            total: Vec::with_capacity(self.meters.len()),
            periods: Vec::new(),
        };
        for (at, meter) in self.meters.iter().enumerate() {
            let raw = charge.raw.get(at).copied().flatten();
            let [own, pace, total] = match &meter.counted {
                Counted::Calls => [Amount::ONE; 3],
                Counted::Items => [Amount::units(u64::from(items)); 3],
                Counted::Use => meter.estimate(raw),
                Counted::Price(price) => [&charge.own, &charge.pace, &charge.total]
                    .map(|amounts| self.price(price, meter.first, amounts)),
            };
            charge.own.push(own);
            charge.pace.push(pace);
            // Others that cost more than there is at all must not keep a call back that may cost less.
            charge.total.push(total.min(meter.most().max(own)));
        }
        charge
    }

    /// Applies a price to the amounts of the meters before it, from the first of its metering on; one that can't be
    /// computed is nothing.
    fn price(&self, price: &Expr, first: usize, amounts: &[Amount]) -> Amount {
        let values = Amounts {
            meters: &self.meters[first..],
            amounts: &amounts[first.min(amounts.len())..],
        };
        price.cost(&values).unwrap_or_default()
    }

    /// Returns the limit that never allows a call with such estimates of its own.
    fn too_large(&self, charge: &Charge) -> Option<String> {
        let of_accounts = self.accounts.iter().find_map(|account| {
            let is_over = charge.own[account.meter()] > account.amount();
            is_over.then(|| account.text().to_owned())
        });
        of_accounts.or_else(|| {
            let meters = self.meters.iter().zip(&charge.own);
            let limits = meters.flat_map(|(meter, own)| {
                let limits = meter.budgets().filter_map(|budget| budget.limit.as_ref());
                limits.map(|limit| (limit, *own))
            });
            let mut over = limits.filter(|(limit, own)| limit.is_too_large(*own));
            over.next().map(|(limit, _)| limit.to_string())
        })
    }

    /// Returns the limit that is used up, once no call is out that may have used less.
    pub(super) fn used_up(&self) -> Option<&Limit> {
        let at = self.full.filter(|_| self.out == 0)?;
        self.meters[at].total.limit.as_ref()
    }

    /// Returns the unit of a meter whose actuals no answer says.
    pub(super) fn unknown(&self) -> Option<&Unit> {
        let is_unknown =
            |meter: &&Meter| meter.is_limited && meter.wants_actual && meter.actuals.are_unknown();
        self.meters.iter().find(is_unknown).map(|meter| &meter.unit)
    }

    /// True if a checkpoint is due, because more may be spent once it is stored.
    #[inline]
    pub(super) fn is_draft_due(&self) -> bool {
        self.meters
            .iter()
            .flat_map(Meter::budgets)
            .any(Budget::is_draft_due)
    }

    /// Drafts what checkpoint `no` saves. The last one of a run allows nothing more, so that its stop costs nothing.
    pub(super) fn draft(&mut self, no: u64, is_last: bool) -> Saved {
        if !self.is_on() {
            return Saved::default();
        }
        self.drafted = Some(no);
        let accounts = &self.accounts;
        let save = |(at, meter): (usize, &mut Meter)| {
            let owed = accounts
                .iter()
                .filter(|account| account.meter() == at)
                .map(Account::debt);
            meter.draft(owed.max().unwrap_or_default(), is_last)
        };
        let own = self.own().len();
        Saved(self.meters.iter_mut().take(own).enumerate().map(save).collect())
    }

    /// Returns the meters of the task.
    fn own(&self) -> &[Meter] {
        let own = self.named.first().map_or(self.meters.len(), |named| named.start);
        &self.meters[..own]
    }

    /// Lets calls spend what the acknowledged checkpoint holds.
    pub(super) fn on_stored(&mut self, no: u64) {
        if self.drafted == Some(no) {
            let budgets = self.meters.iter_mut().flat_map(Meter::budgets_mut);
            budgets.for_each(Budget::on_stored);
        }
    }
}

/// Amounts of the meters that come first, for a price.
struct Amounts<'a> {
    meters: &'a [Meter],
    amounts: &'a [Amount],
}

impl Values for Amounts<'_> {
    fn meter(&self, unit: &Unit) -> Option<Amount> {
        let at = self.meters.iter().position(|meter| meter.unit == *unit)?;
        self.amounts.get(at).copied()
    }
}

/// Computes what a call uses, by expressions in the order of the meters; the values are those of one item.
pub fn usage<V: Values>(exprs: &[Option<Expr>], values: &[V]) -> Result<Usage, CostFault> {
    let of = |expr: &Option<Expr>| {
        let Some(expr) = expr else { return Ok(None) };
        let sum = values.iter().try_fold(Amount::ZERO, |sum, values| {
            expr.cost(values).map(|cost| sum.plus(cost))
        })?;
        Ok(Some(sum))
    };
    exprs.iter().map(of).collect()
}

impl Execution {
    /// Stops the run if a total is used up, or if no answer says what calls cost.
    pub(super) fn judge_charges(&mut self) {
        if !self.charges.is_on() {
            return;
        }
        let end = match (self.charges.used_up(), self.charges.unknown()) {
            (Some(limit), _) => {
                let text = say::limit_reached(limit.to_string()).to_string();
                RunEnd::stopped(StopReason::LimitReached, text)
            }
            (None, Some(unit)) => {
                let text = say::cost_unknown(unit.as_str()).to_string();
                RunEnd::stopped(StopReason::CostUnknown, text)
            }
            (None, None) => return,
        };
        self.stop(end);
    }
}
