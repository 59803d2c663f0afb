//! Pace in a unit: a bucket that may owe.
//!
//! The cost of a call is known only after it. A grant reserves the mean for each call as leave to look; each row takes
//! its own estimate at its departure, if there is any credit; the true-up adds or takes the rest when the call ends. So
//! the bucket can go below nothing, and while it owes, nothing leaves.
//!
//! Guarantee: in every interval of length T, the actual costs of the calls that departed in it are at most
//! rate × T + burst + the largest estimate + Σ (actual − estimate)⁺ of those that are out at its end, plus what comes
//! back in it from calls that departed before: at most what was out too much, and at most rate × (T + 1 s). In the long
//! run they keep the rate, as long as estimates are scaled. Calls that all cost what their grant reserved, within the
//! burst, never owe.
//!
//! Credit that comes back waits, if it is more than the rate earns in a second: many estimates that were too high and end
//! together are no burst.

use std::time::Duration;

use super::amount::{Amount, Credit};
use crate::ids::Moment;

/// Time in which as much may come back as the rate earns in it.
const BACK_SPAN: Duration = Duration::from_secs(1);
/// Smallest burst and smallest wish; with none of either nothing would ever leave.
const LEAST: Amount = Amount(1);

/// Bucket of a pace in a unit. Exact: no fraction of 10⁻⁹ is lost while the pace stays.
#[derive(Clone, Debug)]
pub struct Owing {
    /// Amount that each span earns.
    amount: Amount,
    /// Span in nanoseconds, at least 1.
    span: u128,
    burst: Amount,
    credit: Credit,
    /// Part of the credit that grants reserve.
    reserved: Amount,
    /// Amount that comes back as soon as `room` allows.
    back: Amount,
    /// Amount that may come back at once; earned as credit is, up to a second of the rate.
    room: Amount,
    /// Earnings below 10⁻⁹ of a unit, times `span`.
    rest: u128,
    earned_at: Moment,
}

impl Owing {
    /// Creates an empty bucket of so much a span, at most `burst` at once.
    pub fn new(amount: Amount, span: Duration, burst: Amount, now: Moment) -> Owing {
        Owing {
            amount,
            span: span.as_nanos().max(1),
            burst: burst.max(LEAST),
            credit: Credit::default(),
            reserved: Amount::ZERO,
            back: Amount::ZERO,
            room: Amount::ZERO,
            rest: 0,
            earned_at: now,
        }
    }

    /// Sets another pace from `now` on. Credit is kept as far as it fits; what is owed stays owed.
    pub fn set(&mut self, amount: Amount, span: Duration, burst: Amount, now: Moment) {
        self.earn(now);
        (self.amount, self.span, self.burst) = (amount, span.as_nanos().max(1), burst.max(LEAST));
        self.rest = 0;
        self.credit = self.credit.at_most(self.burst);
        self.room = self.room.min(self.second());
    }

    /// Reserves `mean` for each of at most `want` calls, and returns their number. A mean above the burst needs a full
    /// bucket; without a mean any credit lets all of them look, so the caller bounds what is out until one is known.
    pub fn reserve(&mut self, want: u32, mean: Amount, now: Moment) -> u32 {
        self.earn(now);
        let free = self.free();
        let calls = match free.there().steps(mean) {
            _ if free.there().is_zero() => 0,
            None => want,
            Some(0) if free.there() >= self.burst => want.min(1),
            Some(steps) => u32::try_from(steps).unwrap_or(u32::MAX).min(want),
        };
        self.reserved = self.reserved.plus(times(mean, calls));
        calls
    }

    /// Returns what was reserved for calls that don't depart.
    pub fn release(&mut self, calls: u32, mean: Amount) {
        self.reserved = self.reserved.minus(times(mean, calls));
    }

    /// Takes the estimate of a call that departs, in place of the mean that was reserved for it. Returns false, and takes
    /// nothing, without credit: the call and the rest of its grant go back.
    #[must_use]
    pub fn take(&mut self, mean: Amount, estimate: Amount, now: Moment) -> bool {
        self.earn(now);
        if self.credit.there().is_zero() {
            return false;
        }
        self.reserved = self.reserved.minus(mean);
        self.credit = self.credit.minus(estimate);
        true
    }

    /// Undoes [`Owing::take`] for a call that doesn't depart after all.
    pub fn give(&mut self, estimate: Amount, now: Moment) {
        self.earn(now);
        self.credit = self.credit.plus(estimate).at_most(self.burst);
    }

    /// Settles a call that departed: takes what it cost above its estimate, or lets the rest come back.
    pub fn true_up(&mut self, estimate: Amount, actual: Amount, now: Moment) {
        self.earn(now);
        self.credit = self.credit.minus(actual.minus(estimate));
        self.back = self.back.plus(estimate.minus(actual));
        self.come_back();
    }

    /// Returns when a call of this mean can be reserved, if nothing else changes; `None` if the pace never earns
    /// that much.
    pub fn next_at(&self, mean: Amount) -> Option<Moment> {
        let wanted = mean.min(self.burst).max(LEAST);
        let missing = self.free().missing_to(wanted);
        if missing.is_zero() {
            return Some(self.earned_at);
        }
        // While something waits to come back, each part that is earned brings another one.
        let earned = missing.minus(self.back).0.max(missing.0.div_ceil(2));
        let wait = self.time_to_earn(earned)?;
        Some(Moment(self.earned_at.0.saturating_add(wait)))
    }

    /// Returns what is owed, to be stored with a checkpoint or a round. What calls that are out will cost above their
    /// estimates is not in it.
    pub fn debt(&self) -> Amount {
        self.credit.owed()
    }

    /// Takes over what an earlier owner owed.
    pub fn inherit(&mut self, debt: Amount) {
        self.credit = self.credit.minus(debt);
    }

    /// Drops the credit earned until `now`, and what would come back; what is owed stays.
    pub fn void(&mut self, now: Moment) {
        self.earn(now);
        self.credit = self.credit.minus(self.credit.there());
        self.back = Amount::ZERO;
    }

    /// Returns the credit that no grant reserves.
    fn free(&self) -> Credit {
        self.credit.minus(self.reserved)
    }

    /// Returns what the rate earns in a second.
    fn second(&self) -> Amount {
        let earned = self.amount.0.saturating_mul(BACK_SPAN.as_nanos());
        Amount(earned.div_ceil(self.span))
    }

    /// Earns until `now`; time that goes backwards earns nothing.
    fn earn(&mut self, now: Moment) {
        let nanos = now.since(self.earned_at).as_nanos();
        self.earned_at = self.earned_at.max(now);
        // Whole spans apart, since the product of a long time and a large amount doesn't fit.
        let (spans, part) = (nanos / self.span, nanos % self.span);
        let parts = part.saturating_mul(self.amount.0).saturating_add(self.rest);
        self.rest = parts % self.span;
        let earned = Amount(spans.saturating_mul(self.amount.0)).plus(Amount(parts / self.span));
        self.credit = self.credit.plus(earned);
        self.room = self.room.plus(earned);
        self.come_back();
        self.room = self.room.min(self.second());
        if self.credit.missing_to(self.burst).is_zero() {
            // A full bucket keeps no fraction, or it would hold more than the burst.
            self.rest = 0;
        }
    }

    fn come_back(&mut self) {
        let now = self.back.min(self.room);
        self.back = self.back.minus(now);
        self.room = self.room.minus(now);
        self.credit = self.credit.plus(now).at_most(self.burst);
    }

    /// Returns the nanoseconds in which so many parts are earned.
    fn time_to_earn(&self, parts: u128) -> Option<u64> {
        if self.amount.is_zero() {
            return None;
        }
        let wanted = parts.saturating_mul(self.span).saturating_sub(self.rest);
        let wait = wanted.div_ceil(self.amount.0);
        u64::try_from(wait).ok()
    }
}

fn times(mean: Amount, calls: u32) -> Amount {
    Amount(mean.0.saturating_mul(calls.into()))
}
