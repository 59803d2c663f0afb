//! Meters and limits, each by itself.

use std::time::Duration;

use super::budget::Budget;
use super::picture::{AllowancePicture, MeterPicture};
use super::saved::{MeterSaved, Saved};
use crate::ids::{Moment, WallMs};
use crate::meter::amount::Amount;
use crate::meter::class::{Cost, End};
use crate::meter::estimate::{Actuals, Estimates};
use crate::meter::expr::Expr;
use crate::meter::limit::Limit;
use crate::meter::metering::Metering;
use crate::meter::owing::Owing;
use crate::meter::unit::Unit;

/// Span of a pace that may be spent at once, and the least number of calls that it holds.
const BURST: Duration = Duration::from_millis(100);

/// Way in which a meter is counted.
#[derive(Clone, Debug)]
pub(super) enum Counted {
    Calls,
    Items,
    Use,
    Price(Expr),
}

/// Meter of a unit, with the amounts of it that are kept with the store.
#[derive(Debug)]
pub(super) struct Meter {
    pub(super) unit: Unit,
    pub(super) counted: Counted,
    /// Place of the first meter of its metering.
    pub(super) first: usize,
    pub(super) total: Budget,
    pub(super) allowance: Option<Budget>,
    /// True if any limit is in this unit, or in one that has a price made of it.
    pub(super) is_limited: bool,
    /// True if answers are to say the use; false if only an estimate is given.
    pub(super) wants_actual: bool,
    pub(super) actuals: Actuals,
    estimates: Estimates,
}

impl Meter {
    /// Returns the meters of a task at the time `wall`: prices last, since they are made of the others.
    pub(super) fn all(metering: &Metering, saved: &Saved, wall: WallMs) -> Vec<Meter> {
        let counted = |unit: &Unit| match Metering::find(&metering.price, unit) {
            Some(price) => Counted::Price(price.clone()),
            None if unit.is_calls() => Counted::Calls,
            None if unit.is_built_in() => Counted::Items,
            None => Counted::Use,
        };
        let meter = |unit: Unit| {
            let saved = saved.of(&unit);
            let is_own = |limit: &&Limit| limit.amount().is_some_and(|(_, of)| *of == unit);
            let mut limits = metering.limits.iter().filter(is_own);
            let total = limits.clone().find(|limit| matches!(limit, Limit::Total { .. }));
            Meter {
                is_limited: metering.is_limited(&unit),
                wants_actual: metering.wants_actual(&unit),
                total: Budget::total(total.cloned(), saved),
                allowance: limits.find_map(|limit| Budget::allowance(limit, saved, wall)),
                counted: counted(&unit),
                first: 0,
                actuals: Actuals::default(),
                estimates: Estimates::default(),
                unit,
            }
        };
        metering.meters().into_iter().map(meter).collect()
    }

    /// Counts all that is left as used, since nobody knows what was used.
    pub(super) fn forget(&mut self) {
        self.budgets_mut().for_each(Budget::forget);
    }

    /// Returns the cost to expect of the next call; nothing before one is known.
    pub(super) fn expected(&self) -> Amount {
        match self.counted {
            Counted::Calls | Counted::Items => Amount::ONE,
            Counted::Use | Counted::Price(_) => self.estimates.mean().unwrap_or_default(),
        }
    }

    /// Returns the estimates of a call: by itself, for paces, and for totals and allowances.
    pub(super) fn estimate(&self, raw: Option<Amount>) -> [Amount; 3] {
        let estimates = [raw, self.estimates.for_pace(raw), self.estimates.for_total(raw)];
        estimates.map(Option::unwrap_or_default)
    }

    /// Returns the largest amount that may ever be spent of the unit at once.
    pub(super) fn most(&self) -> Amount {
        let limits = self
            .budgets()
            .filter_map(|budget| budget.limit.as_ref()?.amount());
        limits.map(|(amount, _)| amount).min().unwrap_or(Amount::MAX)
    }

    /// Accounts for a call whose cost is known.
    #[cfg(test)]
    pub(super) fn learn(&mut self, own: Option<Amount>, actual: Amount) {
        self.estimates.learn(own, actual);
    }

    /// Returns the calls that may depart with `out` calls out until costs are known.
    pub(super) fn until_known(&self, out: u32) -> u32 {
        let is_used = matches!(self.counted, Counted::Use) && self.is_limited && self.wants_actual;
        let unknown = self.estimates.out_max().filter(|_| is_used);
        unknown.map_or(u32::MAX, |most| most.saturating_sub(out))
    }

    /// Returns true if so many answers don't say the use that people are alerted.
    pub(super) fn is_sparse(&self) -> bool {
        self.is_limited && self.wants_actual && self.actuals.are_sparse()
    }

    /// Returns the amounts that are kept with the store.
    pub(super) fn budgets(&self) -> impl Iterator<Item = &Budget> {
        std::iter::once(&self.total).chain(&self.allowance)
    }

    pub(super) fn budgets_mut(&mut self) -> impl Iterator<Item = &mut Budget> {
        std::iter::once(&mut self.total).chain(&mut self.allowance)
    }

    /// Settles a call with its estimates, unscaled and reserved, that departed in the period which began at `period`.
    pub(super) fn end(
        &mut self,
        (raw, reserved, period): (Option<Amount>, Amount, WallMs),
        end: End,
        actual: Option<Amount>,
        cost: Cost,
    ) {
        for budget in self.budgets_mut() {
            budget.end(period, reserved, cost);
        }
        match (&self.counted, actual, cost) {
            (Counted::Use, Some(actual), Cost::Known(_)) if end == End::Succeeded => {
                self.estimates.learn(raw, actual);
            }
            (Counted::Price(_), _, Cost::Known(cost)) if end == End::Succeeded => {
                self.estimates.learn(None, cost);
            }
            _ => {}
        }
        if end == End::Succeeded && matches!(self.counted, Counted::Use) {
            self.actuals.on_success(actual.is_some());
        }
    }

    /// Drafts what a checkpoint saves.
    pub(super) fn draft(&mut self, owed: Amount, is_last: bool) -> MeterSaved {
        let expected = self.expected();
        let state = self.total.draft(expected, is_last);
        let allowance = self.allowance.as_mut();
        let allowance = allowance.and_then(|budget| budget.draft_period(expected, is_last));
        let may_spend = match (&self.total.limit, &allowance) {
            (Some(_), _) => state.may_spend,
            (None, Some(allowance)) => allowance.may_spend,
            (None, None) => Amount::ZERO,
        };
        MeterSaved {
            unit: self.unit.to_string(),
            spent: state.spent,
            unsure: state.unsure,
            may_spend,
            owed,
            allowance,
        }
    }

    pub(super) fn picture(&self) -> MeterPicture {
        let (total, limit) = (self.total.counts(), self.total.limit.as_ref());
        MeterPicture {
            unit: self.unit.clone(),
            actual: total.spent(),
            unsure: total.unsure(),
            out: total.out(),
            total: limit.and_then(Limit::amount).map(|(amount, _)| amount),
            is_nearly_used: limit.is_some() && total.is_nearly_used(),
            allowance: self.allowance.as_ref().and_then(AllowancePicture::of),
            is_sparse: self.is_sparse(),
        }
    }
}

/// Limit that isn't kept with the store.
#[derive(Debug)]
pub(super) struct Account {
    meter: usize,
    amount: Amount,
    text: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Pace(Owing),
    /// Amount that is out, and the cost of a call that didn't fit beside it.
    AtOnce {
        out: Amount,
        waiting: Amount,
    },
}

impl Account {
    /// Creates the account of a limit; totals and allowances are kept by their meters.
    pub(super) fn new(limit: &Limit, meters: &[Meter], saved: &Saved, now: Moment) -> Option<Account> {
        let (amount, unit) = limit.amount()?;
        let meter = meters.iter().position(|meter| meter.unit == *unit)?;
        let kind = match limit {
            Limit::Pace { span, .. } => {
                let burst = burst(amount, *span, unit);
                let mut bucket = Owing::new(amount, *span, burst, now);
                bucket.inherit(saved.of(unit).map(|saved| saved.owed).unwrap_or_default());
                Kind::Pace(bucket)
            }
            Limit::AtOnce { .. } => Kind::AtOnce {
                out: Amount::ZERO,
                waiting: Amount::ZERO,
            },
            Limit::Total { .. } | Limit::Allowance { .. } | Limit::Named(_) => return None,
        };
        Some(Account {
            meter,
            amount,
            text: limit.to_string(),
            kind,
        })
    }

    pub(super) fn meter(&self) -> usize {
        self.meter
    }

    pub(super) fn amount(&self) -> Amount {
        self.amount
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the calls of this mean that the limit allows now, with `out` calls out.
    pub(super) fn leave(&mut self, mean: Amount, out: u32, now: Moment) -> u32 {
        match &mut self.kind {
            Kind::Pace(bucket) => {
                let calls = bucket.reserve(u32::MAX, mean, now);
                bucket.release(calls, mean);
                calls
            }
            Kind::AtOnce { out: used, waiting } => match self.amount.minus(*used).steps(mean.max(*waiting)) {
                Some(0) => u32::from(out == 0),
                steps => steps.map_or(u32::MAX, |steps| u32::try_from(steps).unwrap_or(u32::MAX)),
            },
        }
    }

    /// Returns the time at which a call of this mean is allowed, if time alone does it.
    pub(super) fn until(&self, mean: Amount) -> Option<Moment> {
        match &self.kind {
            Kind::Pace(bucket) => bucket.next_at(mean),
            Kind::AtOnce { .. } => None,
        }
    }

    pub(super) fn fits(&mut self, estimate: Amount, now: Moment) -> bool {
        match &mut self.kind {
            Kind::Pace(bucket) => bucket.reserve(1, Amount::ZERO, now) > 0,
            Kind::AtOnce { out, waiting } => {
                let fits = out.is_zero() || out.plus(estimate) <= self.amount;
                *waiting = if fits { Amount::ZERO } else { estimate };
                fits
            }
        }
    }

    pub(super) fn take(&mut self, estimate: Amount, now: Moment) {
        match &mut self.kind {
            Kind::Pace(bucket) => {
                let has_credit = bucket.take(Amount::ZERO, estimate, now);
                debug_assert!(has_credit, "`fits` was asked at the same moment");
            }
            Kind::AtOnce { out, .. } => *out = out.plus(estimate),
        }
    }

    pub(super) fn end(&mut self, estimate: Amount, cost: Amount, now: Moment) {
        match &mut self.kind {
            Kind::Pace(bucket) => bucket.true_up(estimate, cost, now),
            Kind::AtOnce { out, .. } => *out = out.minus(estimate),
        }
    }

    pub(super) fn debt(&self) -> Amount {
        match &self.kind {
            Kind::Pace(bucket) => bucket.debt(),
            Kind::AtOnce { .. } => Amount::ZERO,
        }
    }
}

/// Returns what a pace may spend at once: a tenth of a second of it, and at least one call or item.
fn burst(amount: Amount, span: Duration, unit: &Unit) -> Amount {
    let part = Amount(amount.0.saturating_mul(BURST.as_nanos()) / span.as_nanos().max(1));
    match unit.is_built_in() {
        true => part.max(Amount::units(4)),
        false => part,
    }
}
