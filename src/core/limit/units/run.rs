//! Runs that draw from limits in units: what they used, and what they ask for.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Key;
use super::account::Account;
use super::settle::quantum;
use crate::ids::Moment;
use crate::limit::WEIGHT_MAX;
use crate::limit::demand::{Wishes, rounded};
use crate::limit::local_bucket::SlotNo;
use crate::meter::amount::Amount;
use crate::meter::unit::Unit;

/// Shortest span over which use is measured.
const SPAN_MIN: Duration = Duration::from_millis(100);

/// Run that draws from the limits.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// Units of its meters, in their order.
    pub(super) meters: Vec<Unit>,
    /// Cost to expect of its next call, by meter.
    pub(super) expected: Vec<Amount>,
    pub(super) weight: u128,
    pub(super) uses: BTreeMap<Key, Use>,
    /// Limit that allowed the fewest calls when it last asked.
    pub(super) cut_by: Option<Key>,
    /// True unless it was content in its last exchange, and no call of it waited since.
    pub(super) wants_more: bool,
}

/// Use of one limit by a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Use {
    /// Amount taken since it began, for its weight; raised for a run that was idle so that it can't save up.
    pub(super) served: u128,
    /// Amount taken since demand was last measured.
    pub(super) taken: Amount,
    /// Estimates of its calls that are out.
    pub(super) out: Amount,
    /// Cost of a call for which there was no room when the run last asked.
    pub(super) waiting: Amount,
    /// Estimate of a call that found no room at its departure. Kept until a call departs, or until a report carried it
    /// if the run is content.
    pub(super) asked: Amount,
    pub(super) hungry_until: Moment,
    pub(super) cut: u32,
    pub(super) content: u32,
    /// Fading demand from earlier use.
    quiet: Amount,
}

impl Run {
    pub(super) fn meter(&self, unit: &Unit) -> Option<usize> {
        self.meters.iter().position(|meter| meter == unit)
    }

    pub(super) fn expected(&self, meter: usize) -> Amount {
        self.expected.get(meter).copied().unwrap_or_default()
    }

    /// Scales an amount to a weight of 1.
    pub(super) fn weighed(&self, amount: Amount) -> u128 {
        amount.0.saturating_mul(u128::from(WEIGHT_MAX)) / self.weight
    }
}

/// Returns the demand of all runs for a pace, and the cost of the cheapest call that waits for a total.
pub(super) fn demand(
    account: &Account,
    runs: &mut BTreeMap<SlotNo, Run>,
    span: Duration,
    now: Moment,
) -> (Wishes, Option<Amount>) {
    let mut wishes = Vec::new();
    let mut least: Option<Amount> = None;
    for run in runs.values_mut() {
        let weight = u32::try_from(run.weight).unwrap_or(1);
        let Some(meter) = run.meter(&account.key.unit) else {
            continue;
        };
        let expected = run.expected(meter);
        // A run that never asked most likely wants something.
        let is_new = !run.uses.contains_key(&account.key);
        let used = run.uses.entry(account.key.clone()).or_default();
        let waiting = if is_new {
            expected.max(Amount(1))
        } else {
            used.needs()
        };
        let waiting = waiting.min(account.call_max());
        if !run.wants_more {
            // What doesn't fit is known again once it is tried.
            used.asked = Amount::ZERO;
        }
        if !waiting.is_zero() {
            least = Some(least.map_or(waiting, |least| least.min(waiting)));
        }
        let wish = used.wish(account, is_new, span, now);
        wishes.push((wish, weight));
    }
    (Wishes::weighted(wishes), least)
}

impl Use {
    /// Returns the cost of its call that waits for room.
    pub(super) fn needs(&self) -> Amount {
        self.waiting.max(self.asked)
    }

    /// Returns the demand in the quantum of the pace: all of it if the run was cut short, otherwise a little more than
    /// it used. The weight of earlier use halves each time.
    fn wish(&mut self, account: &Account, is_new: bool, span: Duration, now: Moment) -> u64 {
        if self.hungry_until > now && self.cut == 0 {
            self.cut = 1;
        }
        let used = account.per_span(self.taken, span.max(SPAN_MIN));
        let room = used.plus(Amount(used.0 / 4));
        self.quiet = room.max(Amount(self.quiet.0 / 2)).min(account.whole());
        let is_cut = is_new || self.cut > self.content;
        (self.taken, self.cut, self.content) = (Amount::ZERO, 0, 0);
        let wish = if is_cut { account.whole() } else { self.quiet };
        let quantum = quantum(account.whole());
        rounded(u64::try_from(wish.0 / quantum.0).unwrap_or(u64::MAX))
    }
}
