//! Formats of numbers for people.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::stats::permits::MICRO;

/// Returns an amount over a span as items per second.
pub(super) fn per_second(micros: i64, span: Duration) -> f64 {
    let seconds = span.as_secs_f64();
    if seconds > 0.0 {
        micros as f64 / MICRO as f64 / seconds
    } else {
        0.0
    }
}

/// Formats items per second for people: `312.4/s`, `0.25/s`, `1.0/h`.
pub fn rate_text(per_second: f64) -> String {
    rate_like(per_second, per_second)
}

/// Formats a rate in the unit of another one, so that people can compare the two.
pub fn rate_like(per_second: f64, like: f64) -> String {
    let text = match like.abs() {
        size if size < 1e-9 => "0.0/s".to_owned(),
        size if size < 0.01 => format!("{:.1}/h", per_second * 3600.0),
        size if size < 1.0 => format!("{}/s", short(per_second)),
        size if size < 1000.0 => format!("{per_second:.1}/s"),
        // Same format as a setting.
        _ => format!("{per_second:.0}/s"),
    };
    // A value rounded to zero has no sign: a task a little ahead of its rate misses nothing.
    match text.strip_prefix('-') {
        Some(rest) if !rest.contains(|digit: char| ('1'..='9').contains(&digit)) => rest.to_owned(),
        _ => text,
    }
}

/// Formats up to three decimals, and at least one: `0.7`, `0.125`.
fn short(number: f64) -> String {
    let text = format!("{number:.3}");
    let digits = text.trim_end_matches('0');
    if digits.ends_with('.') {
        format!("{digits}0")
    } else {
        digits.to_owned()
    }
}

/// Rounds up to two digits and zeros: 1,205 becomes 1,300.
pub(super) fn round_up(number: u64) -> u64 {
    let mut step = 1;
    while number / step >= 100 {
        step *= 10;
    }
    number.div_ceil(step) * step
}

/// Returns the number as a setting; `None` for zero.
pub(super) fn setting(number: u64) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(number).unwrap_or(u32::MAX))
}
