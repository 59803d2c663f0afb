//! The one form of counts, sizes, rates, shares and spans of time in text for people.

use std::time::Duration;

/// Largest rate that still is written by the minute, hour or day. Unit: items per second.
const SLOW_RATE: f64 = 0.1;

/// Returns a number with its thousands apart: `1,205`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number with a noun that has a regular plural: `1 item`, `1,205 items`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// Returns a span of time: `0.3ms`, `450ms`, `2.4s`, `12s`, `2m 05s`, `3h 20m`, `4d 6h`.
pub fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 if span.is_zero() => "0s".to_owned(),
        0 if span < Duration::from_micros(9_950) => trimmed(span.as_secs_f64() * 1e3, "ms"),
        0 if span < Duration::from_micros(999_500) => format!("{:.0}ms", span.as_secs_f64() * 1e3),
        0..=9 if span < Duration::from_millis(9_950) => trimmed(span.as_secs_f64(), "s"),
        0..=59 => format!("{seconds}s"),
        60..=3_599 => parts((seconds / 60, "m"), (seconds % 60, "s")),
        3_600..=86_399 => parts((seconds / 3_600, "h"), (seconds % 3_600 / 60, "m")),
        _ => parts((seconds / 86_400, "d"), (seconds % 86_400 / 3_600, "h")),
    }
}

fn trimmed(number: f64, unit: &str) -> String {
    let text = format!("{number:.1}");
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}

fn parts(large: (u64, &str), small: (u64, &str)) -> String {
    match small {
        (0, _) => format!("{}{}", large.0, large.1),
        (rest, unit @ "h") => format!("{}{} {rest}{unit}", large.0, large.1),
        (rest, unit) => format!("{}{} {rest:02}{unit}", large.0, large.1),
    }
}

/// Returns a size in decimal units: `812 B`, `41.2 MB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1000.0;
    let mut unit = 0;
    while size >= 999.95 && unit + 1 < UNITS.len() {
        size /= 1000.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// Returns a rate in items per second: `2,000/s`, `12.5/s`, `0.3/s`; a slow one by the minute, hour or day: `3/m`.
pub fn rate(per_second: f64) -> String {
    let units = [(1.0, "s"), (60.0, "m"), (3_600.0, "h"), (86_400.0, "day")];
    let at = units.iter().find(|(factor, _)| per_second * factor >= SLOW_RATE);
    let (factor, unit) = at
        .copied()
        .unwrap_or(if per_second > 0.0 { units[3] } else { units[0] });
    let number = per_second * factor;
    if number >= 99.95 {
        return format!("{}/{unit}", count(number.round() as u64));
    }
    trimmed(number, &format!("/{unit}"))
}

/// Returns a share of a whole as a percentage without decimals: `42 %`.
pub fn share(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Returns an amount given in 10⁻⁹ of its unit, rounded down to three digits: `0.71`, `812`, `3.1k`, `1.2M`.
pub fn amount(parts: u128) -> String {
    let scales = [(15, "M"), (12, "k"), (9, "")];
    let scale = scales.into_iter().find(|(power, _)| parts >= 10_u128.pow(*power));
    let (power, suffix) = scale.unwrap_or(scales[2]);
    let (whole, rest) = (parts / 10_u128.pow(power), parts % 10_u128.pow(power));
    let decimals = format!("{rest:0>width$}", width = power as usize);
    let zeros = decimals.len() - decimals.trim_start_matches('0').len();
    let places = match whole {
        0 => zeros + 3,
        1..10 => 2,
        10..100 => 1,
        _ => 0,
    };
    let decimals = decimals[..places.min(decimals.len())].trim_end_matches('0');
    let point = if decimals.is_empty() { "" } else { "." };
    let whole = count(u64::try_from(whole).unwrap_or(u64::MAX));
    format!("{whole}{point}{decimals}{suffix}")
}
