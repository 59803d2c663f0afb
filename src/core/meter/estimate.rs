//! Worth of estimates, learned from the last calls.
//!
//! An estimate says the proportion between items, the last [`KEPT`] actuals the size: for a pace it is scaled by
//! Σ actual ÷ Σ estimate. For a total or an allowance the larger of the two counts, since more than the amount must not
//! be spent. Without an estimate the mean of the last actuals stands for each call.

use std::collections::VecDeque;

use super::amount::Amount;

/// Number of calls that are remembered.
pub const KEPT: usize = 256;
/// Number of actuals from which on a size counts as known.
pub const KNOWN_FROM: usize = 8;
/// Maximum number of calls out before that.
pub const OUT_UNKNOWN: u32 = 4;
/// Share of successes without an actual that is an alert, as its reciprocal.
const ALERT_ONE_IN: u64 = 100;

/// Last calls of a meter with what was estimated and what they cost.
#[derive(Clone, Debug, Default)]
pub struct Estimates {
    calls: VecDeque<(Amount, Amount)>,
    estimated: Amount,
    actual: Amount,
}

impl Estimates {
    /// Accounts for a call whose actual is known. `estimate` is the unscaled one; nothing if there is no expression.
    pub fn learn(&mut self, estimate: Option<Amount>, actual: Amount) {
        let call = (estimate.unwrap_or_default(), actual);
        if self.calls.len() == KEPT
            && let Some((estimate, actual)) = self.calls.pop_front()
        {
            self.estimated = self.estimated.minus(estimate);
            self.actual = self.actual.minus(actual);
        }
        self.estimated = self.estimated.plus(call.0);
        self.actual = self.actual.plus(call.1);
        self.calls.push_back(call);
    }

    /// Returns the mean of the last actuals, rounded up; `None` before the first.
    pub fn mean(&self) -> Option<Amount> {
        let calls = u64::try_from(self.calls.len()).ok().filter(|calls| *calls > 0)?;
        Some(Amount(self.actual.0.div_ceil(u128::from(calls))))
    }

    /// Returns the cost to expect of a call: its estimate, scaled, or the mean. `None` without an estimate before the
    /// first actual.
    pub fn for_pace(&self, estimate: Option<Amount>) -> Option<Amount> {
        match estimate {
            Some(estimate) => Some(self.scaled(estimate)),
            None => self.mean(),
        }
    }

    /// Returns the cost to reserve in a total or an allowance: the larger of estimate and scaled estimate.
    pub fn for_total(&self, estimate: Option<Amount>) -> Option<Amount> {
        self.for_pace(estimate).max(estimate)
    }

    /// Returns the maximum number of calls out; `None` once enough actuals are known.
    pub fn out_max(&self) -> Option<u32> {
        (self.calls.len() < KNOWN_FROM).then_some(OUT_UNKNOWN)
    }

    /// Scales an estimate by what the last ones came to; before the first actual it stays.
    fn scaled(&self, estimate: Amount) -> Amount {
        estimate.scaled(self.actual, self.estimated)
    }
}

/// Successes with and without an actual, of a meter that answers should fill.
#[derive(Clone, Copy, Debug, Default)]
pub struct Actuals {
    with: u64,
    without: u64,
}

impl Actuals {
    /// Accounts for a success.
    pub fn on_success(&mut self, has_actual: bool) {
        let count = if has_actual {
            &mut self.with
        } else {
            &mut self.without
        };
        *count += 1;
    }

    /// Returns true if the first successes had no actual: the run stops, since the answer doesn't say the cost.
    pub fn are_unknown(&self) -> bool {
        self.with == 0 && self.without >= KNOWN_FROM as u64
    }

    /// Returns true if more than one success in a hundred has no actual, after the first ones.
    pub fn are_sparse(&self) -> bool {
        let all = self.with + self.without;
        all >= KNOWN_FROM as u64 && self.without.saturating_mul(ALERT_ONE_IN) > all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_estimate_is_scaled_by_what_the_last_ones_came_to() {
        let units = Amount::units;
        let mut estimates = Estimates::default();
        assert_eq!(estimates.for_pace(Some(units(100))), Some(units(100)));
        assert_eq!(
            (estimates.for_pace(None), estimates.for_total(None)),
            (None, None)
        );
        estimates.learn(Some(units(100)), units(30));
        estimates.learn(Some(units(100)), units(20));
        assert_eq!(estimates.for_pace(Some(units(400))), Some(units(100)));
        assert_eq!(
            estimates.for_total(Some(units(400))),
            Some(units(400)),
            "the larger"
        );
        assert_eq!(estimates.for_pace(None), Some(units(25)));
        estimates.learn(Some(units(100)), units(550));
        assert_eq!(
            estimates.for_total(Some(units(400))),
            Some(units(800)),
            "the larger"
        );
    }

    #[test]
    fn few_calls_are_out_until_eight_actuals_are_known() {
        let mut estimates = Estimates::default();
        for _ in 0..8 {
            assert_eq!(estimates.out_max(), Some(4));
            estimates.learn(None, Amount::ONE);
        }
        assert_eq!(estimates.out_max(), None);
    }

    #[test]
    fn eight_successes_without_an_actual_are_unknown_and_later_one_in_a_hundred_is_told() {
        let mut actuals = Actuals::default();
        (0..7).for_each(|_| actuals.on_success(false));
        assert!(!actuals.are_unknown());
        actuals.on_success(false);
        assert!(actuals.are_unknown());
        let mut actuals = Actuals::default();
        (0..198).for_each(|_| actuals.on_success(true));
        (0..2).for_each(|_| actuals.on_success(false));
        assert!(!actuals.are_unknown() && !actuals.are_sparse());
        actuals.on_success(false);
        assert!(actuals.are_sparse());
    }

    proptest! {
        #[test]
        fn the_last_256_calls_are_summed_as_a_naive_sum_of_them(
            calls in proptest::collection::vec((0..1_000_000_u128, 0..1_000_000_u128), 1..600),
            estimate in 0..1_000_000_u128,
        ) {
            let mut estimates = Estimates::default();
            for (at, (guess, actual)) in calls.iter().enumerate() {
                estimates.learn(Some(Amount(*guess)), Amount(*actual));
                let last = &calls[(at + 1).saturating_sub(KEPT)..=at];
                let guessed: u128 = last.iter().map(|call| call.0).sum();
                let cost: u128 = last.iter().map(|call| call.1).sum();
                prop_assert_eq!(estimates.mean(), Some(Amount(cost.div_ceil(last.len() as u128))));
                let scaled = if guessed == 0 { estimate } else { (estimate * cost).div_ceil(guessed) };
                prop_assert_eq!(estimates.for_pace(Some(Amount(estimate))), Some(Amount(scaled)));
                prop_assert_eq!(estimates.for_total(Some(Amount(estimate))), Some(Amount(scaled.max(estimate))));
            }
        }
    }
}
