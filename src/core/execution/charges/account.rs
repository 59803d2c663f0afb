//! Meters and limits, each by itself.

use std::time::Duration;

use super::picture::{Held, MeterPicture};
use super::saved::{MeterSaved, Saved};
use crate::ids::Moment;
use crate::meter::amount::Amount;
use crate::meter::class::{Cost, End};
use crate::meter::estimate::{Actuals, Estimates};
use crate::meter::expr::Expr;
use crate::meter::limit::Limit;
use crate::meter::metering::Metering;
use crate::meter::owing::Owing;
use crate::meter::total::{Draft, Room, Total};
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

/// Meter of a unit, with its total.
#[derive(Debug)]
pub(super) struct Meter {
    pub(super) unit: Unit,
    pub(super) counted: Counted,
    /// Place of the first meter of its metering.
    pub(super) first: usize,
    /// Total limit of the unit, if there is one.
    pub(super) limit: Option<Limit>,
    /// True if any limit is in this unit, or in one that has a price made of it.
    pub(super) is_limited: bool,
    /// True if answers are to say the use; false if only an estimate is given.
    pub(super) wants_actual: bool,
    pub(super) actuals: Actuals,
    estimates: Estimates,
    total: Total,
    /// Largest cost of a call that waits for a checkpoint.
    waiting: Amount,
    draft: Option<Draft>,
}

impl Meter {
    /// Returns the meters of a task: prices last, since they are made of the others.
    pub(super) fn all(metering: &Metering, saved: &Saved) -> Vec<Meter> {
        let counted = |unit: &Unit| match Metering::find(&metering.price, unit) {
            Some(price) => Counted::Price(price.clone()),
            None if unit.is_calls() => Counted::Calls,
            None if unit.is_built_in() => Counted::Items,
            None => Counted::Use,
        };
        let meters = metering.meters().into_iter();
        meters
            .map(|unit| {
                let counted = counted(&unit);
                let is_total = |limit: &&Limit| matches!(limit, Limit::Total { unit: of, .. } if *of == unit);
                let limit = metering.limits.iter().find(is_total).cloned();
                let most = limit.as_ref().and_then(Limit::amount);
                let stored = saved.of(&unit).map(MeterSaved::stored).unwrap_or_default();
                Meter {
                    is_limited: metering.is_limited(&unit),
                    wants_actual: metering.wants_actual(&unit),
                    total: Total::restore(most.map_or(Amount::MAX, |(amount, _)| amount), stored),
                    unit,
                    counted,
                    first: 0,
                    limit,
                    actuals: Actuals::default(),
                    estimates: Estimates::default(),
                    waiting: Amount::ZERO,
                    draft: None,
                }
            })
            .collect()
    }

    /// Returns the cost to expect of the next call; nothing before one is known.
    pub(super) fn expected(&self) -> Amount {
        match self.counted {
            Counted::Calls | Counted::Items => Amount::ONE,
            Counted::Use | Counted::Price(_) => self.estimates.mean().unwrap_or_default(),
        }
    }

    /// Returns the estimates of a call for paces and for the total.
    pub(super) fn estimate(&self, raw: Option<Amount>) -> (Amount, Amount) {
        let pace = self.estimates.for_pace(raw).unwrap_or_default();
        (pace, self.estimates.for_total(raw).unwrap_or_default())
    }

    /// Returns the calls that the meter allows with `out` calls out, and whether a checkpoint allows more.
    pub(super) fn leave(&self, out: u32) -> (u32, bool) {
        let is_used = matches!(self.counted, Counted::Use) && self.is_limited && self.wants_actual;
        let unknown = self.estimates.out_max().filter(|_| is_used);
        let calls = unknown.map_or(u32::MAX, |most| most.saturating_sub(out));
        if self.limit.is_none() {
            return (calls, false);
        }
        let expected = self.expected().max(self.waiting);
        match self.total.room(expected) {
            Room::Free => (calls, false),
            Room::AfterCheckpoint => (0, true),
            // A call that fits may still come; the one that doesn't says so itself.
            Room::Full => (calls.min(1_u32.saturating_sub(out)), false),
        }
    }

    /// Returns the reason for which the meter, which is the one at `at`, allows no more calls.
    pub(super) fn held(&self, at: usize) -> Held {
        let expected = self.expected().max(self.waiting);
        match self.limit.is_some() && self.total.room(expected) != Room::Free {
            true => Held::Total(at),
            false => Held::Learning(at),
        }
    }

    pub(super) fn room(&mut self, estimate: Amount) -> Room {
        if self.limit.is_none() {
            return Room::Free;
        }
        let room = self.total.room(estimate);
        if room == Room::AfterCheckpoint {
            self.waiting = self.waiting.max(estimate);
        }
        room
    }

    pub(super) fn depart(&mut self, estimate: Amount) {
        self.total.depart(estimate);
        self.waiting = Amount::ZERO;
    }

    /// Settles a call with its estimates, unscaled and reserved.
    pub(super) fn end(
        &mut self,
        (raw, reserved): (Option<Amount>, Amount),
        end: End,
        actual: Option<Amount>,
        cost: Cost,
    ) {
        self.total.end(reserved, cost);
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

    pub(super) fn is_draft_due(&self) -> bool {
        self.limit.is_some() && (self.total.is_draft_due() || !self.waiting.is_zero())
    }

    /// Drafts what a checkpoint saves. The last one of a run holds only what calls that are out may spend.
    pub(super) fn draft(&mut self, owed: Amount, is_last: bool) -> MeterSaved {
        let batch = self.expected().max(self.waiting);
        let batch = Amount(batch.0.saturating_mul(2));
        let draft = match is_last {
            true => self.total.draft(Some(Amount::ZERO), Amount::ZERO),
            false => self.total.draft(None, batch),
        };
        let may_spend = match self.limit {
            Some(_) => draft.state.may_spend,
            None => Amount::ZERO,
        };
        self.draft = Some(draft);
        MeterSaved {
            unit: self.unit.to_string(),
            spent: draft.state.spent,
            unsure: draft.state.unsure,
            may_spend,
            owed,
        }
    }

    pub(super) fn on_stored(&mut self) {
        if let Some(draft) = self.draft.take() {
            self.total.stored(draft);
            self.waiting = Amount::ZERO;
        }
    }

    pub(super) fn picture(&self) -> MeterPicture {
        let amount = self.limit.as_ref().and_then(Limit::amount);
        MeterPicture {
            unit: self.unit.clone(),
            actual: self.total.spent(),
            unsure: self.total.unsure(),
            out: self.total.out(),
            total: amount.map(|(amount, _)| amount),
            is_nearly_used: self.limit.is_some() && self.total.is_nearly_used(),
        }
    }
}

/// Limit that isn't a total.
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
    /// Creates the account of a limit; a total is kept by its meter.
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
