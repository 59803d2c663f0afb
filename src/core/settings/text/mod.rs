//! Text forms of settings: `500/s`, `1s..60s x2 jitter 20%`, `10/s 1%`, both read and written.
//!
//! Every text form serves `FromStr`, `Display` and serde, so that a setting looks the same in `config.toml`, on the
//! command line, in JSON and in messages. Displaying a value and parsing it again gives the same value.
//!
//! ```
//! use windrow_core::settings::Rate;
//!
//! let rate: Rate = "10k/s".parse().expect("a rate");
//! assert_eq!(rate.to_string(), "10000/s");
//! assert!("fast".parse::<Rate>().is_err());
//! ```

mod forms;
mod guess;

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

pub use self::forms::TextError;
use self::forms::{
    AUTO, BACKOFF, BUDGET, BURST, BYTES, ON_EXHAUSTED, RATE, RATE_LIMIT, RESULTS, SHARE, SPAN, SPAN_OR_AUTO,
};
use crate::settings::{
    Auto, Backoff, Burst, ErrorBudget, FailedAttempts, FailedLimit, OnExhausted, Rate, RateLimit, Results,
    Share,
};

/// Default factor of a back-off. (`config.toml`, `backoff`.)
const BACKOFF_FACTOR_DEFAULT: u32 = 2;
/// Default jitter of a back-off. (`config.toml`, `backoff`.)
const BACKOFF_JITTER_PERCENT_DEFAULT: u32 = 20;

/// Parses digits, optionally with `_` between them for readability.
fn number<N: FromStr>(text: &str) -> Option<N> {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit())
        && !text.ends_with('_')
        && text.chars().all(|c| c.is_ascii_digit() || c == '_');
    if !is_number {
        return None;
    }
    text.replace('_', "").parse().ok()
}

/// Parses a span of time as people write it: `100ms`, `15s`, `2m`, `1h 30m`, `30d`.
///
/// # Errors
/// Fails if the text isn't a span.
pub fn parse_span(text: &str) -> Result<Duration, TextError> {
    span(text).ok_or_else(|| SPAN.error(text))
}

fn span(text: &str) -> Option<Duration> {
    let (mut rest, mut sum) = (text, Duration::ZERO);
    loop {
        let (count, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, tail) = tail.split_at(tail.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(tail.len()));
        let (_, size, _) = UNITS.iter().find(|(name, ..)| *name == unit)?;
        let nanos = u128::from(count.parse::<u64>().ok()?) * size;
        let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
        let part = Duration::from_secs(seconds) + Duration::from_nanos((nanos % 1_000_000_000) as u64);
        sum = sum.checked_add(part)?;
        if tail.is_empty() {
            return Some(sum);
        }
        rest = tail.strip_prefix(' ').unwrap_or(tail);
    }
}

/// Units of a span with the smallest count for which each is used: a minute is shown as `60s`.
const UNITS: [(&str, u128, u128); 7] = [
    ("d", 86_400_000_000_000, 2),
    ("h", 3_600_000_000_000, 1),
    ("m", 60_000_000_000, 2),
    ("s", 1_000_000_000, 1),
    ("ms", 1_000_000, 1),
    ("us", 1_000, 1),
    ("ns", 1, 1),
];

/// Formats a span in the largest unit in which it is a whole number: `15s`, `1500ms`.
pub fn span_text(span: Duration) -> String {
    let nanos = span.as_nanos();
    let unit = UNITS
        .iter()
        .find(|(_, size, least)| nanos.is_multiple_of(*size) && nanos / size >= *least);
    unit.map_or_else(
        || "0s".to_owned(),
        |(name, size, _)| format!("{}{name}", nanos / size),
    )
}

/// Implements `FromStr` for each type; the form gives the error text.
macro_rules! reads {
    ($($type:ty: $form:ident, $read:expr;)+) => {$(
        impl FromStr for $type {
            type Err = TextError;

            fn from_str(text: &str) -> Result<$type, TextError> {
                let read: fn(&str) -> Option<$type> = $read;
                read(text).ok_or_else(|| $form.error(text))
            }
        }
    )+};
}

reads! {
    Rate: RATE, rate;
    RateLimit: RATE_LIMIT, rate_limit;
    Burst: BURST, burst;
    Auto<NonZeroU32>: AUTO, |text| match text.trim() {
        "auto" => Some(Auto::Auto),
        fixed => number(fixed).map(Auto::Fixed),
    };
    Auto<Duration>: SPAN_OR_AUTO, |text| match text.trim() {
        "auto" => Some(Auto::Auto),
        fixed => span(fixed).map(Auto::Fixed),
    };
    Backoff: BACKOFF, backoff;
    OnExhausted: ON_EXHAUSTED, |text| match text.trim() {
        "fail" => Some(OnExhausted::Fail),
        "stop" => Some(OnExhausted::Stop),
        _ => None,
    };
    Results: RESULTS, |text| match text.trim() {
        "off" => Some(Results::Off),
        "keep" => Some(Results::Keep),
        _ => None,
    };
    ErrorBudget: BUDGET, error_budget;
    ByteSize: BYTES, byte_size;
    Share: SHARE, |text| text.trim().strip_suffix('%').and_then(ratio_ppm).map(|ppm| Share { ppm });
}

fn rate(text: &str) -> Option<Rate> {
    let (items, period) = text.trim().split_once('/')?;
    let items = match items.trim().strip_suffix('k') {
        Some(thousands) => number::<u64>(thousands)?.checked_mul(1000)?,
        None => number(items.trim())?,
    };
    let period = period.trim();
    let period = if period.starts_with(|c: char| c.is_ascii_digit()) {
        span(period)?
    } else {
        span(&format!("1{period}"))?
    };
    Rate::new(items, period)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = Duration::from_nanos(self.period_ns());
        let one = UNITS.iter().find(|(_, size, _)| *size == period.as_nanos());
        match one {
            Some((unit, _, _)) => write!(f, "{}/{unit}", self.items()),
            None => write!(f, "{}/{}", self.items(), span_text(period)),
        }
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateLimit::Unlimited => f.write_str("unlimited"),
            RateLimit::Limited(rate) => rate.fmt(f),
            RateLimit::Auto(None) => f.write_str("auto"),
            RateLimit::Auto(Some(most)) => write!(f, "auto {UP_TO} {most}"),
        }
    }
}

/// Words between `auto` and its ceiling.
const UP_TO: &str = "up to";

fn rate_limit(text: &str) -> Option<RateLimit> {
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["unlimited"] => Some(RateLimit::Unlimited),
        ["auto"] => Some(RateLimit::Auto(None)),
        ["auto", "up", "to", ref most @ ..] => rate(&most.join(" ")).map(|most| RateLimit::Auto(Some(most))),
        _ => rate(text).map(RateLimit::Limited),
    }
}

fn burst(text: &str) -> Option<Burst> {
    let text = text.trim();
    let items = text
        .strip_suffix("items")
        .or_else(|| text.strip_suffix("item"))
        .unwrap_or(text);
    number(items.trim())
        .map(Burst::Items)
        .or_else(|| span(text).map(Burst::Span))
}

impl fmt::Display for Burst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Burst::Span(span) => f.write_str(&span_text(*span)),
            Burst::Items(items) => write!(f, "{items} items"),
        }
    }
}

impl fmt::Display for Auto<NonZeroU32> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Auto::Auto => f.write_str("auto"),
            Auto::Fixed(number) => number.fmt(f),
        }
    }
}

impl fmt::Display for Auto<Duration> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Auto::Auto => f.write_str("auto"),
            Auto::Fixed(span) => f.write_str(&span_text(*span)),
        }
    }
}

/// Parses a back-off. `5s` alone is a constant wait; an omitted factor or jitter has its default.
fn backoff(text: &str) -> Option<Backoff> {
    let mut words = text.split_whitespace().peekable();
    let waits = words.next()?;
    let (first, max) = waits.split_once("..").unwrap_or((waits, waits));
    let (first, max) = (span(first)?, span(max)?);
    let factor = match words.next_if(|word| word.starts_with('x')) {
        Some(word) => number(word.strip_prefix('x')?)?,
        None => BACKOFF_FACTOR_DEFAULT,
    };
    let jitter_percent = match words.next() {
        Some("jitter") => number(words.next()?.strip_suffix('%')?)?,
        Some(_) => return None,
        None => BACKOFF_JITTER_PERCENT_DEFAULT,
    };
    let is_sound = max >= first && factor >= 1 && jitter_percent <= 100 && words.next().is_none();
    is_sound.then_some(Backoff {
        first,
        max,
        factor,
        jitter_percent,
    })
}

impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&span_text(self.first))?;
        if self.max != self.first {
            write!(f, "..{}", span_text(self.max))?;
        }
        if self.max != self.first || self.factor != BACKOFF_FACTOR_DEFAULT {
            write!(f, " x{}", self.factor)?;
        }
        write!(f, " jitter {}%", self.jitter_percent)
    }
}

impl fmt::Display for OnExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OnExhausted::Fail => "fail",
            OnExhausted::Stop => "stop",
        })
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Results::Off => "off",
            Results::Keep => "keep",
        })
    }
}

fn error_budget(text: &str) -> Option<ErrorBudget> {
    let mut budget = ErrorBudget {
        failed_attempts: None,
        failed: None,
    };
    if text.trim() == "none" {
        return Some(budget);
    }
    let mut words = text.split_whitespace().peekable();
    words.peek()?;
    for word in words {
        let is_repeated = match word {
            "auto" => budget.failed_attempts.replace(FailedAttempts::AUTO).is_some(),
            _ if word.contains('/') => budget
                .failed_attempts
                .replace(FailedAttempts::Rate(rate(word)?))
                .is_some(),
            _ => budget.failed.replace(failed(word)?).is_some(),
        };
        if is_repeated {
            return None;
        }
    }
    Some(budget)
}

fn failed(word: &str) -> Option<FailedLimit> {
    match word.strip_suffix('%') {
        Some(percent) => ratio_ppm(percent).map(FailedLimit::RatioPpm),
        None => number(word).map(FailedLimit::Count),
    }
}

/// Parses a percentage: `1` is 10,000 ppm, `0.0001` is 1 ppm; at most 100.
fn ratio_ppm(percent: &str) -> Option<u32> {
    let (whole, fraction) = percent.split_once('.').unwrap_or((percent, "0"));
    if fraction.len() > 4 {
        return None;
    }
    let ppm = number::<u32>(whole)?
        .checked_mul(10_000)?
        .checked_add(number(&format!("{fraction:0<4}"))?)?;
    (ppm <= 1_000_000).then_some(ppm)
}

impl fmt::Display for ErrorBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.failed_attempts, self.failed) {
            (None, None) => f.write_str("none"),
            (Some(attempts), None) => attempts.fmt(f),
            (None, Some(limit)) => limit.fmt(f),
            (Some(attempts), Some(limit)) => write!(f, "{attempts} {limit}"),
        }
    }
}

impl fmt::Display for FailedAttempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailedAttempts::Rate(rate) => rate.fmt(f),
            FailedAttempts::Most(_) => f.write_str("auto"),
        }
    }
}

impl fmt::Display for FailedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            FailedLimit::Count(items) => items.fmt(f),
            FailedLimit::RatioPpm(ppm) if ppm % 10_000 == 0 => write!(f, "{}%", ppm / 10_000),
            FailedLimit::RatioPpm(ppm) => {
                let fraction = format!("{:04}", ppm % 10_000);
                write!(f, "{}.{}%", ppm / 10_000, fraction.trim_end_matches('0'))
            }
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        FailedLimit::RatioPpm(self.ppm).fmt(f)
    }
}

/// Size in bytes, which people write as `64 KiB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

/// Units of sizes. Binary ones come first, largest first, and are used for display; decimal ones are only parsed.
const SIZES: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

fn byte_size(text: &str) -> Option<ByteSize> {
    let text = text.trim();
    let unit = SIZES
        .iter()
        .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
    let (count, bytes) = unit.unwrap_or((text, 1));
    number::<u64>(count.trim())?.checked_mul(bytes).map(ByteSize)
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = SIZES[..4]
            .iter()
            .find(|(_, bytes)| self.0 > 0 && self.0.is_multiple_of(*bytes));
        let (name, bytes) = unit.unwrap_or(&("B", 1));
        write!(f, "{} {name}", self.0 / bytes)
    }
}

#[cfg(test)]
mod tests;
