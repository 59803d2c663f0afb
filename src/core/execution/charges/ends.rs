//! Ends of calls: what each cost, in the meters of the task and of its named limits.

use super::account::Counted;
use super::{Charge, Charges, Usage};
use crate::ids::Moment;
use crate::meter::amount::Amount;
use crate::meter::class::{self, End};

impl Charges {
    /// Settles a call that ended, with what its answer says about its use.
    pub(in crate::execution) fn end(
        &mut self,
        charge: &Charge,
        end: End,
        actuals: &Usage,
        is_closed: bool,
        now: Moment,
    ) {
        let costs = self.end_all(charge, end, actuals, is_closed, now);
        if !self.named.is_empty() {
            self.tell_shared(charge, &costs);
        }
    }

    /// Settles a call that didn't depart after all, of which the named limits know nothing.
    pub(in crate::execution) fn end_own(&mut self, charge: &Charge, end: End, now: Moment) {
        self.end_all(charge, end, &Usage::new(), true, now);
    }

    fn end_all(
        &mut self,
        charge: &Charge,
        end: End,
        actuals: &Usage,
        is_closed: bool,
        now: Moment,
    ) -> Vec<class::Cost> {
        self.out = self.out.saturating_sub(1);
        let mut costs: Vec<Amount> = Vec::with_capacity(self.meters.len());
        let mut ended = Vec::with_capacity(self.meters.len());
        let mut is_unsure = false;
        for at in 0..self.meters.len() {
            is_unsure &= at != self.meters[at].first;
            let actual = actuals.get(at).copied().flatten();
            let cost = match &self.meters[at].counted {
                Counted::Calls => class::cost(class::Counts::Calls, end, None, Amount::ONE, is_closed),
                Counted::Items => class::Cost::Known(match end {
                    End::NeverSent => Amount::ZERO,
                    _ => charge.pace[at],
                }),
                Counted::Use => class::cost(class::Counts::Use, end, actual, charge.total[at], is_closed),
                Counted::Price(price) if is_unsure => {
                    class::Cost::Unsure(self.price(price, self.meters[at].first, &costs))
                }
                Counted::Price(price) => class::Cost::Known(self.price(price, self.meters[at].first, &costs)),
            };
            let cost = match end {
                End::NeverSent => class::Cost::FREE,
                _ => cost,
            };
            let raw = charge.raw.get(at).copied().flatten();
            let period = charge.periods.get(at).copied().unwrap_or_default();
            self.meters[at].end((raw, charge.total[at], period), end, actual, cost);
            is_unsure |= matches!(cost, class::Cost::Unsure(_));
            costs.push(cost.amount());
            ended.push(cost);
        }
        for account in &mut self.accounts {
            let at = account.meter();
            account.end(charge.pace[at], costs[at], now);
        }
        ended
    }
}
