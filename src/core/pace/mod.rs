//! The permitted departure times of item attempts: an exact token bucket.
//!
//! Promise: in every interval, attempts ≤ ∫ rate dt + burst, across live changes, pauses and runs (a run starts
//! empty). No floats and no lost fractions: one item costs `period_ns` units and each nanosecond earns `items`
//! units, so the rate is met exactly in the long run.
//!
//! A credit is drawn at `now` but the call departs later, at most [`STALE_AFTER`] later (older grants are given
//! back). So the bucket's cap leaves that much of the burst free; `tests/twins/pace.rs` checks the promise over
//! all intervals, and would fail with the cap at the full burst.
//!
//! It also knows what became of each permit (`ledger`). What the cap doesn't hold is lost, and booked to the reason
//! that was in force when it was: a pause, else what [`Pace::blame`] named, else it is late. Late is also what a
//! change of the bucket forgets (a part of an item, what a smaller cap doesn't hold, the grace after a raise) and what
//! [`Pace::empty`] drops: nobody asked for it, and each is at most a burst.

mod ledger;

use std::time::Duration;

use super::ids::Moment;
use super::settings::{Burst, Rate, RateLimit};
use crate::stats::permits::Permits;
use crate::stats::stall::StallReason;
use ledger::{Ledger, femto};

/// A grant that has not departed after this long goes back, its credit lost.
pub const STALE_AFTER: Duration = Duration::from_millis(2);
/// The cap must cover what a late timer costs: tokio's timers round up to 1 ms, and 3 ms lost nothing measurable.
const TIMER_SLACK: Duration = Duration::from_millis(3);
/// What a task may catch up after a stall, within its burst; longer ones are lost. Of the gaps that a busy node leaves between
/// departures hardly one is longer (`scripts/attack.py`: 178 over 20 ms in 40 s, 5 over 50 ms).
const CATCH_UP: Duration = Duration::from_millis(50);
/// The smallest default burst. Unit: items. (`config.toml`, `burst`.)
const BURST_ITEMS_DEFAULT_MIN: u64 = 4;

/// How many items the task may send at once above its rate.
pub fn burst_items(burst: Burst, rate: Rate, batch: u32) -> u64 {
    match burst {
        Burst::Items(items) => u64::from(items.get()),
        Burst::Span(span) => rate
            .items_in(span)
            .max(2 * u64::from(batch))
            .max(BURST_ITEMS_DEFAULT_MIN),
    }
}

/// The smallest burst that lets a batch leave at this rate; a smaller one is refused at the border.
pub fn burst_items_min(rate: Rate, batch: u32) -> u64 {
    u64::from(batch) + rate.items_in(STALE_AFTER)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    rate: Rate,
    cap_items: u64,
    /// Unit: `1 / period_ns` items.
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

    /// Adds what a span earns as far as it fits; returns what it earned, and how much of that didn't fit.
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

/// A lower rate for a while, asked for by the business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SlowDown {
    rate: Rate,
    until: Moment,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Pace {
    limit: RateLimit,
    burst: Burst,
    batch: u32,
    slow: Option<SlowDown>,
    bucket: Option<Bucket>,
    /// Up to here the bucket has earned; in the future after a raise.
    filled_at: Moment,
    /// Up to here permits are accounted for.
    booked_at: Moment,
    paused_until: Moment,
    blamed: Option<StallReason>,
    halted: bool,
    ledger: Ledger,
}

impl Pace {
    /// An empty bucket at `now`.
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

    /// Changes the settings from `now` on: what the old rate earned until now is kept as far as it fits.
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

    /// From `now` on nothing departs before `until`; never shortens an earlier pause.
    pub fn pause_until(&mut self, until: Moment, now: Moment) {
        self.refill(now);
        self.paused_until = self.paused_until.max(until);
    }

    /// From `now` on what is lost is lost for this reason; none: nothing is in the way.
    pub fn blame(&mut self, reason: Option<StallReason>, now: Moment) {
        self.refill(now);
        self.blamed = reason;
    }

    /// Nothing more is due: the run ends.
    pub fn halt(&mut self) {
        self.halted = true;
    }

    /// What became of the permits until `now`: all terms but those of items that left or came back.
    pub fn permits(&self, now: Moment) -> Permits {
        let mut then = self.clone();
        then.refill(now);
        then.ledger.permits()
    }

    /// Whether the pace holds everything back at `now`, and until when.
    pub fn paused(&self, now: Moment) -> Option<Moment> {
        (now < self.paused_until).then_some(self.paused_until)
    }

    /// Forgets all credit: a new run, or lanes that were lost with their grants.
    pub fn empty(&mut self, now: Moment) {
        self.refill(now);
        if let Some(bucket) = &mut self.bucket {
            self.ledger.lose(bucket.credit, None);
            bucket.credit = 0;
        }
    }

    /// How many items may depart at `now`, at most `want`. Time that goes backwards earns nothing.
    pub fn available(&mut self, want: u32, now: Moment) -> u32 {
        if self.paused(now).is_some() {
            return 0;
        }
        self.refill(now);
        let items = self.bucket.map_or(u64::MAX, |bucket| bucket.items());
        u32::try_from(items.min(u64::from(want))).unwrap_or(want)
    }

    /// How long ago the rate allowed the first and the last of `items` that are about to be paid for; none where no
    /// rate limits the task. What was earned longer ago than the cap holds is lost, and no delay of what leaves now.
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

    /// When `items` (or as many as fit the cap) may depart, if nothing else changes; or an earlier end of a
    /// slow-down, since the rate changes then.
    pub fn next_at(&self, items: u32) -> Moment {
        let earned_at = self.bucket.map_or(self.filled_at, |b| {
            self.filled_at.plus(b.time_until(u64::from(items)))
        });
        let changes_at = self.slow.map_or(earned_at, |slow| slow.until.max(self.filled_at));
        earned_at.min(changes_at).max(self.paused_until)
    }

    /// Whether a rate limits the task now.
    pub fn is_limited(&self) -> bool {
        self.bucket.is_some()
    }

    /// The rate in force, a slow-down included.
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
            // A pause that is over holds nothing back any more.
            let blamed = self.blamed.filter(|reason| *reason != StallReason::BackPressure);
            self.ledger.lose(over, blamed);
        }
    }

    /// Books what the rate of the task gives above a slow-down.
    #[inline]
    fn book_slow_down(&mut self, span: Duration) {
        let (Some(_), Some(bucket), RateLimit::Limited(full)) = (self.slow, &self.bucket, self.limit) else {
            return;
        };
        let due = span.as_nanos().saturating_mul(u128::from(full.items()));
        let given = femto(bucket.earnings(span), bucket.cost());
        self.ledger
            .slow(femto(due, u128::from(full.period_ns())).saturating_sub(given));
    }

    /// Makes the bucket of the rate in force from `now` on; whole items of credit survive as far as they fit.
    /// A raised rate earns only once everything drawn at the old one has departed: else what was drawn just
    /// before and what is earned just after could leave together, more than either burst.
    fn rebuild(&mut self, now: Moment) {
        let old = self.bucket.take();
        let kept = old.map_or(0, |bucket| bucket.items());
        let limit = match self.limit {
            RateLimit::Unlimited => None,
            RateLimit::Limited(rate) => Some(rate),
        };
        let rate = match (limit, self.slow.map(|slow| slow.rate)) {
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

/// Whether `a` is the lower rate.
fn slower(a: Rate, b: Rate) -> bool {
    u128::from(a.items()) * u128::from(b.period_ns()) < u128::from(b.items()) * u128::from(a.period_ns())
}
