//! The settings of a task: [`table`] declares them; here are their types as checked values. How people write them is
//! [`text`], how serde does [`json`].

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

/// The highest rate that a task may ask for: 1 item a nanosecond. Unit: items per second.
pub const RATE_PER_SECOND_MAX: u64 = 1_000_000_000;

impl Rate {
    /// `items` in each `period`; none when either is zero or the rate exceeds [`RATE_PER_SECOND_MAX`].
    pub fn new(items: u64, period: Duration) -> Option<Rate> {
        let period_ns = u64::try_from(period.as_nanos()).ok()?;
        let fits = items > 0 && period_ns > 0 && items <= period_ns;
        fits.then_some(Rate { items, period_ns })
    }

    /// `items` in each second.
    pub fn per_second(items: u64) -> Option<Rate> {
        Rate::new(items, Duration::from_secs(1))
    }

    /// The items of one period, at least 1.
    pub fn items(self) -> u64 {
        self.items
    }

    /// The period. Unit: nanoseconds, at least 1.
    pub fn period_ns(self) -> u64 {
        self.period_ns
    }

    /// Items per second, for display and estimates only.
    pub fn as_per_second(self) -> f64 {
        self.items as f64 * 1e9 / self.period_ns as f64
    }

    /// Millionths of an item per second, for people who watch.
    pub fn micros_per_second(self) -> u64 {
        let micros = u128::from(self.items) * 1_000_000_000_000_000 / u128::from(self.period_ns);
        u64::try_from(micros).unwrap_or(u64::MAX)
    }

    /// Whether it makes more items than another in the same time.
    pub fn is_faster_than(self, other: Rate) -> bool {
        u128::from(self.items) * u128::from(other.period_ns)
            > u128::from(other.items) * u128::from(self.period_ns)
    }

    /// `items` in so many periods, at most as many as can be written.
    pub(super) fn stretched(self, items: u64, times: u64) -> Rate {
        let period_ns = self.period_ns.saturating_mul(times.max(1));
        Rate {
            items: items.clamp(1, self.items),
            period_ns,
        }
    }

    /// The time that so many items take.
    pub fn time_of(self, items: u64) -> Duration {
        let nanos = u128::from(items).saturating_mul(u128::from(self.period_ns)) / u128::from(self.items);
        let seconds = u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX);
        Duration::new(seconds, (nanos % 1_000_000_000) as u32)
    }

    /// How many items the rate makes in `span`, rounded up.
    pub fn items_in(self, span: Duration) -> u64 {
        let items = (span.as_nanos() * u128::from(self.items)).div_ceil(u128::from(self.period_ns));
        u64::try_from(items).unwrap_or(u64::MAX)
    }
}

/// How fast a task may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimit {
    /// As fast as the handler answers.
    Unlimited,
    /// At most this, measured at the gate, retries included.
    Limited(Rate),
}

impl RateLimit {
    /// Whether it lets more leave than another.
    pub fn is_faster_than(self, other: RateLimit) -> bool {
        match (self, other) {
            (RateLimit::Limited(one), RateLimit::Limited(other)) => one.is_faster_than(other),
            (RateLimit::Unlimited, RateLimit::Limited(_)) => true,
            (_, RateLimit::Unlimited) => false,
        }
    }
}

/// How many items may leave at once above the steady rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burst {
    /// So much time's worth of the rate; the default is 100 ms, never below max(2 × batch, 4) items.
    Span(Duration),
    /// This many items.
    Items(NonZeroU32),
}

/// A number, or one that the platform derives from other settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Auto<T> {
    /// Derived; the setting's documentation says how.
    #[default]
    Auto,
    /// Chosen by a person.
    Fixed(T),
}

/// The wait before another attempt: exponential from `first` to `max`, spread by `jitter_percent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failed attempt.
    pub first: Duration,
    /// The longest wait.
    pub max: Duration,
    /// Each wait is this many times the one before, at least 1.
    pub factor: u32,
    /// Each wait is lengthened or shortened by up to this many percent, 0 to 100.
    pub jitter_percent: u32,
}

/// What happens to an item that has used all its attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExhausted {
    /// It is failed and the task goes on.
    Fail,
    /// The task stops (`item_exhausted`); the item stays pending.
    Stop,
}

/// What becomes of what items came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Results {
    /// Nothing is kept of a success but that it was one.
    Off,
    /// The output of each success is kept, and can be read in index order.
    Keep,
}

/// How many failed items a task may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedLimit {
    /// This many.
    Count(u64),
    /// This share of the total. Unit: parts per million.
    RatioPpm(u32),
}

/// How many attempts may fail, over `error_window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedAttempts {
    /// At this rate at most.
    Rate(Rate),
    /// As many as succeed; and more, while they fail at this rate at most.
    Most(Rate),
}

impl FailedAttempts {
    /// What `auto` means. Ten a second: below that a few failures of a slow task would be most of its attempts.
    pub const AUTO: FailedAttempts = FailedAttempts::Most(Rate {
        items: 10,
        period_ns: 1_000_000_000,
    });

    /// The rate that may fail whatever succeeds.
    pub fn rate(self) -> Rate {
        match self {
            FailedAttempts::Rate(rate) | FailedAttempts::Most(rate) => rate,
        }
    }

    /// The same with another rate.
    #[must_use]
    pub fn with_rate(self, rate: Rate) -> FailedAttempts {
        match self {
            FailedAttempts::Rate(_) => FailedAttempts::Rate(rate),
            FailedAttempts::Most(_) => FailedAttempts::Most(rate),
        }
    }
}

/// The errors that a task may have. More failed attempts than `failed_attempts` over `error_window` make it
/// `recovering`; more failed items than `failed` stop it. Both may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorBudget {
    /// The failed attempts.
    pub failed_attempts: Option<FailedAttempts>,
    /// The number or share of failed items.
    pub failed: Option<FailedLimit>,
}
