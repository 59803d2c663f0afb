//! Permitted dispatch times of item attempts: an exact token bucket.
//!
//! Guarantee: in every interval, attempts ≤ ∫ rate dt + burst, across live changes, pauses and runs (a run starts
//! empty). No floats and no lost fractions: one item costs `period_ns` units and each nanosecond earns `items` units,
//! so the rate is met exactly in the long run.
//!
//! A credit is drawn at `now` but the call is dispatched later, at most [`STALE_AFTER`] later (older grants are given
//! back). So the bucket's cap leaves that much of the burst free; `tests/twins/pace.rs` checks the guarantee over all
//! intervals, and would fail with the cap at the full burst.
//!
//! The pace also accounts for each permit (`ledger`). What exceeds the cap is lost, and booked to the reason in force
//! at that time: a pause, else the reason given to [`Pace::blame`], else it is late. Permits are also late if a
//! change of the bucket drops them (a fraction of an item, what a smaller cap doesn't hold, the grace after a raise)
//! or [`Pace::empty`] does: nobody asked for them, and each is at most a burst.

mod ledger;

use std::time::Duration;

use super::ids::Moment;
use super::settings::{Burst, Rate, RateLimit};
use crate::stats::permits::Permits;
use crate::stats::stall::StallReason;
use ledger::{Ledger, femto};

/// Age at which a grant that has not been dispatched goes back; its credit is lost.
pub const STALE_AFTER: Duration = Duration::from_millis(2);
/// Timer delay that the cap must cover: tokio's timers round up to 1 ms, and 3 ms lost nothing measurable.
const TIMER_SLACK: Duration = Duration::from_millis(3);
/// Longest stall that a task may catch up, within its burst; the rest of longer ones is lost. On a busy node hardly
/// any gap between dispatches is longer (`scripts/attack.py`: 178 over 20 ms in 40 s, 5 over 50 ms).
const CATCH_UP: Duration = Duration::from_millis(50);
/// Minimum of the default burst. Unit: items. (`config.toml`, `burst`.)
const BURST_ITEMS_DEFAULT_MIN: u64 = 4;

/// Returns the number of items that the task may send at once above its rate.
pub fn burst_items(burst: Burst, rate: Rate, batch: u32) -> u64 {
    match burst {
        Burst::Items(items) => u64::from(items.get()),
        Burst::Span(span) => rate
            .items_in(span)
            .max(2 * u64::from(batch))
            .max(BURST_ITEMS_DEFAULT_MIN),
    }
}

/// Returns the smallest burst that lets a batch be sent at this rate; a smaller one is refused on input.
pub fn burst_items_min(rate: Rate, batch: u32) -> u64 {
    u64::from(batch) + rate.items_in(STALE_AFTER)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    rate: Rate,
    cap_items: u64,
    /// Credit of the bucket. Unit: `1 / period_ns` items.
    credit: u128,
}

impl Bucket {
    fn new(rate: Rate, burst: u64, batch: u32) -> Bucket {
        let batch = u64::from(batch);
        let wanted = (batch + rate.items_in(TIMER_SLACK))
            .max(rate.items_in(CATCH_UP))
            .max(2);
        let room = burst.saturating_sub(rate.items_in(STALE_AFTER));
        Bucket {
            rate,
            cap_items: wanted.min(room).max(1),
            credit: 0,
        }
    }

    fn cost(&self) -> u128 {
        u128::from(self.rate.period_ns())
    }

    /// Adds the earnings of a span as far as they fit. Returns the earnings, and the part that didn't fit.
    #[inline]
    fn earn(&mut self, span: Duration) -> (u128, u128) {
        let earned = self.earnings(span);
        let all = self.credit.saturating_add(earned);
        self.credit = all.min(self.cost() * u128::from(self.cap_items));
        (earned, all - self.credit)
    }

    fn earnings(&self, span: Duration) -> u128 {
        span.as_nanos().saturating_mul(u128::from(self.rate.items()))
    }

    fn items(&self) -> u64 {
        u64::try_from(self.credit / self.cost()).unwrap_or(u64::MAX)
    }

    fn time_until(&self, items: u64) -> Duration {
        let wanted = self.cost() * u128::from(items.clamp(1, self.cap_items));
        let missing = wanted.saturating_sub(self.credit);
        let nanos = missing.div_ceil(u128::from(self.rate.items()));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Temporary lower rate that the business asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SlowDown {
    rate: Rate,
    until: Moment,
}

/// Exact token bucket of a task, with an account of its permits.
#[derive(Clone, Debug)]
pub struct Pace {
    limit: RateLimit,
    burst: Burst,
    batch: u32,
    slow: Option<SlowDown>,
    bucket: Option<Bucket>,
    /// Time up to which the bucket has earned; in the future after a raise.
    filled_at: Moment,
    /// Time up to which permits are accounted for.
    booked_at: Moment,
    paused_until: Moment,
    blamed: Option<StallReason>,
    halted: bool,
    ledger: Ledger,
}

impl Pace {
    /// Creates an empty bucket at `now`.
    pub fn new(limit: RateLimit, burst: Burst, batch: u32, now: Moment) -> Pace {
        let mut pace = Pace {
            limit,
            burst,
            batch: batch.max(1),
            slow: None,
            bucket: None,
            filled_at: now,
            booked_at: now,
            paused_until: Moment(0),
            blamed: None,
            halted: false,
            ledger: Ledger::new(),
        };
        pace.rebuild(now);
        pace
    }

    /// Changes the settings from `now` on; what the old rate earned until now is kept as far as it fits.
    pub fn set(&mut self, limit: RateLimit, burst: Burst, batch: u32, now: Moment) {
        self.refill(now);
        (self.limit, self.burst, self.batch) = (limit, burst, batch.max(1));
        self.rebuild(now);
    }

    /// Lowers the rate to at most `rate` until `until`.
    pub fn slow_down(&mut self, rate: Rate, until: Moment, now: Moment) {
        self.refill(now);
        self.slow = Some(SlowDown { rate, until });
        self.rebuild(now);
    }

    /// Lets nothing be dispatched from `now` until `until`; never shortens an earlier pause.
    pub fn pause_until(&mut self, until: Moment, now: Moment) {
        self.refill(now);
        self.paused_until = self.paused_until.max(until);
    }

    /// Sets the reason to which losses from `now` on are booked; `None` if nothing is in the way.
    pub fn blame(&mut self, reason: Option<StallReason>, now: Moment) {
        self.refill(now);
        self.blamed = reason;
    }

    /// Stops earning permits, because the run ends.
    pub fn halt(&mut self) {
        self.halted = true;
    }

    /// Returns the account of the permits until `now`: all terms but those of items dispatched or given back.
    pub fn permits(&self, now: Moment) -> Permits {
        let mut then = self.clone();
        then.refill(now);
        then.ledger.permits()
    }

    /// Returns the end of the pause if the pace holds everything back at `now`.
    pub fn paused(&self, now: Moment) -> Option<Moment> {
        (now < self.paused_until).then_some(self.paused_until)
    }

    /// Drops all credit, for a new run or for lanes that were lost with their grants.
    pub fn empty(&mut self, now: Moment) {
        self.refill(now);
        if let Some(bucket) = &mut self.bucket {
            self.ledger.lose(bucket.credit, None);
            bucket.credit = 0;
        }
    }

    /// Returns the number of items that may be dispatched at `now`, at most `want`. Time that goes backwards earns
    /// nothing.
    pub fn available(&mut self, want: u32, now: Moment) -> u32 {
        if self.paused(now).is_some() {
            return 0;
        }
        self.refill(now);
        let items = self.bucket.map_or(u64::MAX, |bucket| bucket.items());
        u32::try_from(items.min(u64::from(want))).unwrap_or(want)
    }

    /// Returns how long ago the rate allowed the first and the last of `items` that are about to be paid for; `None`
    /// if no rate limits the task. What was earned longer ago than the cap holds is lost, and doesn't count as delay.
    pub fn lateness(&self, items: u32) -> Option<(Duration, Duration)> {
        let bucket = self.bucket.as_ref().filter(|_| items > 0)?;
        let ago = |paid: u64| {
            let left = bucket.credit.saturating_sub(bucket.cost() * u128::from(paid));
            Duration::from_nanos(u64::try_from(left / u128::from(bucket.rate.items())).unwrap_or(u64::MAX))
        };
        Some((ago(1), ago(u64::from(items))))
    }

    /// Pays for `items` that were available at this moment.
    pub fn take(&mut self, items: u32) {
        match &mut self.bucket {
            Some(bucket) => {
                bucket.credit = bucket.credit.saturating_sub(bucket.cost() * u128::from(items));
            }
            None => self.ledger.leave_unpaced(items),
        }
    }

    /// Returns when `items` (or as many as fit the cap) may be dispatched if nothing else changes; or an earlier end
    /// of a slow-down, since the rate changes then.
    pub fn next_at(&self, items: u32) -> Moment {
        let earned_at = self.bucket.map_or(self.filled_at, |b| {
            self.filled_at.plus(b.time_until(u64::from(items)))
        });
        let changes_at = self.slow.map_or(earned_at, |slow| slow.until.max(self.filled_at));
        earned_at.min(changes_at).max(self.paused_until)
    }

    /// Returns true if a rate limits the task now.
    pub fn is_limited(&self) -> bool {
        self.bucket.is_some()
    }

    /// Returns the rate in force, including a slow-down.
    pub fn rate(&self) -> Option<Rate> {
        self.bucket.map(|bucket| bucket.rate)
    }

    fn refill(&mut self, now: Moment) {
        if let Some(slow) = self.slow.filter(|slow| now >= slow.until) {
            self.earn(slow.until);
            self.slow = None;
            self.rebuild(slow.until);
        }
        self.earn(now);
    }

    fn earn(&mut self, now: Moment) {
        let from = self.booked_at;
        if now <= from {
            return;
        }
        self.booked_at = now;
        let starts = self.filled_at.clamp(from, now);
        self.filled_at = self.filled_at.max(now);
        if self.halted {
            return;
        }
        self.book_slow_down(now.since(from));
        let Some(bucket) = &mut self.bucket else { return };
        if starts > from {
            // The grace after a raise: due, but never usable.
            let grace = bucket.earnings(starts.since(from));
            self.ledger.earn(grace);
            self.ledger.lose(grace, None);
        }
        let resumes = self.paused_until.clamp(starts, now);
        if resumes > starts {
            let (earned, over) = bucket.earn(resumes.since(starts));
            self.ledger.earn(earned);
            self.ledger.lose(over, Some(StallReason::BackPressure));
        }
        let (earned, over) = bucket.earn(now.since(resumes));
        self.ledger.earn(earned);
        if over > 0 {
            // A pause that is over no longer holds anything back.
            let blamed = self.blamed.filter(|reason| *reason != StallReason::BackPressure);
            self.ledger.lose(over, blamed);
        }
    }

    /// Books what the task's rate would have given above a slow-down.
    #[inline]
    fn book_slow_down(&mut self, span: Duration) {
        let (Some(_), Some(bucket), Some(full)) = (self.slow, &self.bucket, self.limit.most()) else {
            return;
        };
        let due = span.as_nanos().saturating_mul(u128::from(full.items()));
        let given = femto(bucket.earnings(span), bucket.cost());
        self.ledger
            .slow(femto(due, u128::from(full.period_ns())).saturating_sub(given));
    }

    /// Builds the bucket of the rate in force from `now` on; whole items of credit survive as far as they fit. A
    /// raised rate earns only once everything drawn at the old one has been dispatched: otherwise credit drawn just
    /// before and credit earned just after could be dispatched together, more than either burst.
    fn rebuild(&mut self, now: Moment) {
        let old = self.bucket.take();
        let kept = old.map_or(0, |bucket| bucket.items());
        let rate = match (self.limit.most(), self.slow.map(|slow| slow.rate)) {
            (Some(rate), Some(slow)) if slower(slow, rate) => Some(slow),
            (None, slow) => slow,
            (rate, _) => rate,
        };
        self.bucket = rate.map(|rate| {
            let mut bucket = Bucket::new(rate, burst_items(self.burst, rate, self.batch), self.batch);
            bucket.credit = bucket.cost() * u128::from(kept.min(bucket.cap_items));
            bucket
        });
        if let Some(old) = old {
            let survives = self.bucket.map_or(0, |bucket| kept.min(bucket.cap_items));
            self.ledger
                .lose(old.credit.saturating_sub(old.cost() * u128::from(survives)), None);
        }
        self.ledger.change(self.bucket.map(|bucket| bucket.cost()));
        if let (Some(old), Some(new)) = (old.map(|bucket| bucket.rate), self.rate())
            && slower(old, new)
        {
            self.filled_at = self.filled_at.max(now.plus(STALE_AFTER));
        }
    }
}

/// Returns true if `a` is the lower rate.
fn slower(a: Rate, b: Rate) -> bool {
    u128::from(a.items()) * u128::from(b.period_ns()) < u128::from(b.items()) * u128::from(a.period_ns())
}
