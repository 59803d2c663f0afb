//! Use of calls that counts against the named limits that a run shares.
//!
//! The meters of named limits are counted here as those of the task are. What may be used of the limits themselves is
//! kept elsewhere, for all runs together: each call asks there at its departure, and its end is told there.

use super::account::Meter;
use super::budget::Budget;
use super::saved::Saved;
use super::{Charge, Charges, Departure};
use crate::execution::Execution;
use crate::execution::types::RunEnd;
use crate::ids::WallMs;
use crate::limit::units::call::{Departing, Estimates, Taken};
use crate::meter::amount::Amount;
use crate::meter::class::Cost;
use crate::meter::metering::Metering;
use crate::task::lifecycle::StopReason;
use windrow_words::execution as say;

/// Limits that a run shares with others, by their places in the run's list.
pub trait Purse {
    /// Takes the estimates of a call from a limit, lowered to what is taken.
    fn take(&mut self, limit: usize, call: Departing<'_>) -> Taken;

    /// Gives back the estimates of a call that didn't depart after all.
    fn give(&mut self, limit: usize, estimates: Estimates<'_>);
}

/// End of a call that a named limit is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedEnd {
    /// Place of the limit in the run's list.
    pub limit: usize,
    /// Estimates that the call took from paces, by meter of the limit.
    pub pace: Vec<Amount>,
    /// Estimates that the call took from totals.
    pub total: Vec<Amount>,
    /// Costs of the call.
    pub costs: Vec<Cost>,
    /// Cost to expect of the next call.
    pub expected: Vec<Amount>,
}

impl SharedEnd {
    /// Returns the estimates that the call took.
    pub fn estimates(&self) -> Estimates<'_> {
        Estimates {
            pace: &self.pace,
            total: &self.total,
        }
    }
}

impl Charges {
    /// Adds the meters of named limits, behind those of the task.
    pub(in crate::execution) fn share(&mut self, named: &[Metering]) {
        for metering in named {
            let first = self.meters.len();
            let mut meters = Meter::all(metering, &Saved::default(), WallMs(0));
            for meter in &mut meters {
                // The limits themselves are kept for all runs together.
                (meter.first, meter.total, meter.allowance) = (first, Budget::total(None, None), None);
            }
            self.meters.extend(meters);
            self.named.push(first..self.meters.len());
        }
    }

    /// Takes the estimates of a call from the named limits, of all or of none.
    pub(in crate::execution) fn take_shared(&self, charge: &mut Charge, purse: &mut dyn Purse) -> Departure {
        for (limit, meters) in self.named.iter().enumerate() {
            let call = Departing {
                own: charge.own.get(meters.clone()).unwrap_or_default(),
                pace: charge.pace.get_mut(meters.clone()).unwrap_or_default(),
                total: charge.total.get_mut(meters.clone()).unwrap_or_default(),
            };
            let refused = match purse.take(limit, call) {
                Taken::Yes(_) => continue,
                Taken::No(_) => Departure::Back,
                Taken::TooLarge(text) => Departure::TooLarge(text),
            };
            (0..limit).for_each(|taken| purse.give(taken, self.estimates(taken, charge)));
            return refused;
        }
        Departure::Go
    }

    fn estimates<'a>(&self, limit: usize, charge: &'a Charge) -> Estimates<'a> {
        let meters = self.named[limit].clone();
        Estimates {
            pace: charge.pace.get(meters.clone()).unwrap_or_default(),
            total: charge.total.get(meters).unwrap_or_default(),
        }
    }

    /// Keeps the end of a call for the named limits.
    pub(super) fn tell_shared(&mut self, charge: &Charge, costs: &[Cost]) {
        for (limit, meters) in self.named.iter().enumerate() {
            let expected = self.meters[meters.clone()].iter().map(Meter::expected);
            let estimates = self.estimates(limit, charge);
            self.shared_ends.push(SharedEnd {
                limit,
                pace: estimates.pace.to_vec(),
                total: estimates.total.to_vec(),
                costs: costs.get(meters.clone()).unwrap_or_default().to_vec(),
                expected: expected.collect(),
            });
        }
    }
}

impl Execution {
    /// Adds the meterings of the named limits that the run shares, in the order of their places. For a new run.
    pub fn share(&mut self, named: &[Metering]) {
        self.charges.share(named);
    }

    /// Returns the ends of calls that the named limits haven't been told of.
    #[inline]
    pub fn take_shared_ends(&mut self) -> Vec<SharedEnd> {
        std::mem::take(&mut self.charges.shared_ends)
    }

    /// Stops the run because a total of a named limit is used up.
    pub fn reach_limit(&mut self, limit: &str) {
        self.stop(RunEnd::stopped(
            StopReason::LimitReached,
            say::limit_reached(limit).to_string(),
        ));
    }
}
