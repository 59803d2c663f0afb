//! Settings of a task as checked values. [`table`] declares them, [`text`] defines their text form, [`json`] their
//! serde form.

pub mod check;
pub mod json;
pub mod table;
pub mod text;
pub mod value;

use std::num::NonZeroU32;
use std::time::Duration;

/// Items per period, exact: `500/s` is 500 items in 1 s, `1/h` one item in an hour. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    items: u64,
    period_ns: u64,
}

/// Highest rate that a task may ask for: 1 item per nanosecond. Unit: items per second.
pub const RATE_PER_SECOND_MAX: u64 = 1_000_000_000;

impl Rate {
    /// Creates a rate of `items` in each `period`. Returns `None` if either is zero or the rate exceeds
    /// [`RATE_PER_SECOND_MAX`].
    pub fn new(items: u64, period: Duration) -> Option<Rate> {
        let period_ns = u64::try_from(period.as_nanos()).ok()?;
        let fits = items > 0 && period_ns > 0 && items <= period_ns;
        fits.then_some(Rate { items, period_ns })
    }

    /// Creates a rate of `items` per second.
    pub fn per_second(items: u64) -> Option<Rate> {
        Rate::new(items, Duration::from_secs(1))
    }

    /// Returns the items of one period, at least 1.
    pub fn items(self) -> u64 {
        self.items
    }

    /// Returns the period. Unit: nanoseconds, at least 1.
    pub fn period_ns(self) -> u64 {
        self.period_ns
    }

    /// Returns the items per second, for display and estimates only.
    pub fn as_per_second(self) -> f64 {
        self.items as f64 * 1e9 / self.period_ns as f64
    }

    /// Returns the rate in millionths of an item per second, for display.
    pub fn micros_per_second(self) -> u64 {
        let micros = u128::from(self.items) * 1_000_000_000_000_000 / u128::from(self.period_ns);
        u64::try_from(micros).unwrap_or(u64::MAX)
    }

    /// Returns true if it is higher than `other`.
    pub fn is_faster_than(self, other: Rate) -> bool {
        u128::from(self.items) * u128::from(other.period_ns)
            > u128::from(other.items) * u128::from(self.period_ns)
    }

    /// Returns a rate of `items` in `times` periods, as far as it can be represented.
    pub(super) fn stretched(self, items: u64, times: u64) -> Rate {
        let period_ns = self.period_ns.saturating_mul(times.max(1));
        Rate {
            items: items.clamp(1, self.items),
            period_ns,
        }
    }

    /// Returns the time that `items` take at this rate.
    pub fn time_of(self, items: u64) -> Duration {
        let nanos = u128::from(items).saturating_mul(u128::from(self.period_ns)) / u128::from(self.items);
        let seconds = u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX);
        Duration::new(seconds, (nanos % 1_000_000_000) as u32)
    }

    /// Returns the number of items that the rate allows in `span`, rounded up.
    pub fn items_in(self, span: Duration) -> u64 {
        let items = (span.as_nanos() * u128::from(self.items)).div_ceil(u128::from(self.period_ns));
        u64::try_from(items).unwrap_or(u64::MAX)
    }
}

/// Rate limit of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimit {
    /// As fast as the handler answers.
    Unlimited,
    /// At most this rate, measured at the dispatch gate, retries included.
    Limited(Rate),
    /// The rate that the autopilot finds (`pilot`), at most this one if there is one.
    Auto(Option<Rate>),
}

impl RateLimit {
    /// Returns true if it allows more items than `other`.
    pub fn is_faster_than(self, other: RateLimit) -> bool {
        match (self.most(), other.most()) {
            (Some(one), Some(other)) => one.is_faster_than(other),
            (None, Some(_)) => true,
            (_, None) => false,
        }
    }

    /// Returns the rate that is never exceeded, if one is given.
    pub fn most(self) -> Option<Rate> {
        match self {
            RateLimit::Unlimited => None,
            RateLimit::Limited(rate) => Some(rate),
            RateLimit::Auto(most) => most,
        }
    }

    /// Returns true if the autopilot finds the rate.
    pub fn is_auto(self) -> bool {
        matches!(self, RateLimit::Auto(_))
    }

    /// Returns the same kind of limit with `change` applied to the rate that is never exceeded.
    #[must_use]
    pub fn map(self, change: impl FnOnce(Rate) -> Rate) -> RateLimit {
        match self {
            RateLimit::Unlimited => RateLimit::Unlimited,
            RateLimit::Limited(rate) => RateLimit::Limited(change(rate)),
            RateLimit::Auto(most) => RateLimit::Auto(most.map(change)),
        }
    }
}

/// Number of items that may be sent at once above the steady rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burst {
    /// Span of the rate; the default is 100 ms, never below max(2 × batch, 4) items.
    Span(Duration),
    /// Fixed number of items.
    Items(NonZeroU32),
}

/// Value that is either fixed or derived from other settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Auto<T> {
    /// Derived, as documented at the setting.
    #[default]
    Auto,
    /// Fixed value, chosen by a person.
    Fixed(T),
}

/// Wait before the next attempt: exponential from `first` to `max`, spread by `jitter_percent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Wait after the first failed attempt.
    pub first: Duration,
    /// Upper bound of the wait before jitter.
    pub max: Duration,
    /// Factor from one wait to the next, at least 1.
    pub factor: u32,
    /// Range in percent by which each wait is lengthened or shortened, 0 to 100.
    pub jitter_percent: u32,
}

/// Action for an item that has used all its attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExhausted {
    /// Mark the item failed and continue the task.
    Fail,
    /// Stop the task (`item_exhausted`); the item stays pending.
    Stop,
}

/// Handling of the outputs of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Results {
    /// Keep nothing of a success but its status.
    Off,
    /// Keep the output of each success, readable in index order.
    Keep,
}

/// Share of all, written as a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Parts per million, at most 1,000,000.
    pub ppm: u32,
}

/// Maximum number of failed items in a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedLimit {
    /// Absolute number of items.
    Count(u64),
    /// Share of the total. Unit: parts per million.
    RatioPpm(u32),
}

/// Number of attempts that may fail within `error_window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedAttempts {
    /// At most this rate.
    Rate(Rate),
    /// As many as succeed; and more, as long as they fail at no more than this rate.
    Most(Rate),
}

impl FailedAttempts {
    /// Meaning of `auto`. Ten per second, because a few failures of a slow task would otherwise be most of its
    /// attempts.
    pub const AUTO: FailedAttempts = FailedAttempts::Most(Rate {
        items: 10,
        period_ns: 1_000_000_000,
    });

    /// Returns the rate that may fail whatever succeeds.
    pub fn rate(self) -> Rate {
        match self {
            FailedAttempts::Rate(rate) | FailedAttempts::Most(rate) => rate,
        }
    }

    /// Returns the same kind of limit with another rate.
    #[must_use]
    pub fn with_rate(self, rate: Rate) -> FailedAttempts {
        match self {
            FailedAttempts::Rate(_) => FailedAttempts::Rate(rate),
            FailedAttempts::Most(_) => FailedAttempts::Most(rate),
        }
    }
}

/// Tolerated errors of a task. More failed attempts than `failed_attempts` over `error_window` make it `recovering`;
/// more failed items than `failed` stop it. Both may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorBudget {
    /// Limit of failed attempts, if any.
    pub failed_attempts: Option<FailedAttempts>,
    /// Limit of failed items, as a number or a share, if any.
    pub failed: Option<FailedLimit>,
}
