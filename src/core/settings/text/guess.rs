//! Guesses for a rate or a span that can't be read: `500`, `0.5/s`, `500/sec`, `500 rps`; `2sec`, `1.5s`.

/// Units of time: spellings of people and other tools, our own spelling, and the seconds in it.
const UNITS: [(&[&str], &str, f64); 4] = [
    (&["s", "sec", "secs", "second", "seconds"], "s", 1.0),
    (&["m", "min", "mins", "minute", "minutes"], "m", 60.0),
    (&["h", "hr", "hrs", "hour", "hours"], "h", 3600.0),
    (&["d", "day", "days"], "d", 86_400.0),
];
/// Words for "per second" without a unit.
const PER_SECOND: [&str; 4] = ["rps", "qps", "tps", "hz"];
/// Spellings of milliseconds, which no rate has; `ms` itself is valid, unless something else is wrong.
const MILLISECONDS: [&str; 5] = ["ms", "msec", "msecs", "millisecond", "milliseconds"];

/// Guesses a span, with each number in the first unit in which it is whole. A number without a unit counts seconds,
/// as other tools take it.
pub(super) fn span(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let (mut parts, mut rest) = (Vec::new(), text.as_str());
    while !rest.is_empty() {
        let is_amount = |c: char| c.is_ascii_digit() || ['.', ',', '_'].contains(&c);
        let (amount, behind) = rest.split_at(rest.find(|c| !is_amount(c)).unwrap_or(rest.len()));
        let behind = behind.trim_start();
        let (unit, behind) = behind.split_at(
            behind
                .find(|c: char| !c.is_ascii_alphabetic())
                .unwrap_or(behind.len()),
        );
        let is_bare = unit.is_empty() && parts.is_empty() && behind.is_empty();
        parts.push(part(amount, if is_bare { "s" } else { unit })?);
        rest = behind.trim_start();
    }
    let meant = parts.join(" ");
    super::span(&meant).map(|_| meant)
}

/// Converts an amount and a unit: `1.5`, `hours` becomes `90m`.
fn part(amount: &str, unit: &str) -> Option<String> {
    let named = UNITS.iter().find(|(words, ..)| words.contains(&unit));
    let size = match named {
        Some((_, _, seconds)) => *seconds,
        None => MILLISECONDS.contains(&unit).then_some(0.001)?,
    };
    let seconds = number(amount)? * size;
    let units = UNITS.iter().rev().map(|(_, unit, size)| (*unit, *size));
    units
        .chain([("ms", 0.001)])
        .filter(|(_, unit)| *unit <= size)
        .map(|(unit, size)| (unit, seconds / size))
        .find(|(_, count)| *count > 0.5 && (count - count.round()).abs() < 1e-6)
        .map(|(unit, count)| format!("{}{unit}", count.round()))
}

/// Guesses a rate in the first unit in which it is a whole number. A rate without a unit is per second, as many tools
/// take it.
pub(super) fn rate(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let (amount, unit) = halves(&text);
    let at = UNITS.iter().position(|(words, ..)| words.contains(&unit))?;
    let items = number(amount)?;
    UNITS[at..].iter().find_map(|(_, unit, seconds)| {
        let items = items * seconds / UNITS[at].2;
        let is_whole = items > 0.5 && (items - items.round()).abs() < 1e-6;
        let rate = format!("{}/{unit}", items.round());
        (is_whole && super::rate(&rate).is_some()).then_some(rate)
    })
}

fn halves(text: &str) -> (&str, &str) {
    if let Some((amount, unit)) = text.split_once('/').or_else(|| text.split_once(" per ")) {
        return (amount.trim(), unit.trim());
    }
    let amount = PER_SECOND.iter().find_map(|word| text.strip_suffix(word));
    (amount.unwrap_or(text).trim(), "s")
}

/// Parses `0.5`, `1_000`, `1,000`, `1.5k`, `2m`. Refuses a comma that isn't between thousands, because it may be a
/// decimal point.
fn number(text: &str) -> Option<f64> {
    let (digits, factor) = match text.strip_suffix(['k', 'm']) {
        Some(digits) if text.ends_with('k') => (digits, 1e3),
        Some(digits) => (digits, 1e6),
        None => (text, 1.0),
    };
    if digits.trim().split(',').skip(1).any(|group| group.len() != 3) {
        return None;
    }
    let digits = digits.trim().replace(['_', ','], "");
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
        && !digits.contains(|c: char| !c.is_ascii_digit() && c != '.');
    digits
        .parse::<f64>()
        .ok()
        .filter(|_| is_number)
        .map(|number| number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_guessed_as_it_would_be_written_here() {
        for (text, meant) in [
            ("500", "500/s"),
            ("1k", "1000/s"),
            ("0.5/s", "30/m"),
            ("0.01/s", "36/h"),
            ("2.5/sec", "150/m"),
            ("500/sec", "500/s"),
            ("500 / Second", "500/s"),
            ("30/min", "30/m"),
            ("500 per second", "500/s"),
            ("500rps", "500/s"),
            ("1.5k/s", "1500/s"),
            ("1,000/s", "1000/s"),
            ("10hz", "10/s"),
        ] {
            assert_eq!(rate(text).as_deref(), Some(meant), "{text}");
        }
        for text in [
            "",
            "fast",
            "0",
            "-1/s",
            "1/fortnight",
            "1e9/s",
            ".5.5/s",
            "1,5/s",
            "0.0001/d",
        ] {
            assert_eq!(rate(text), None, "{text}");
        }
    }

    #[test]
    fn a_span_is_guessed_as_it_would_be_written_here() {
        for (text, meant) in [
            ("5", "5s"),
            ("2sec", "2s"),
            ("2min", "2m"),
            ("2 s", "2s"),
            ("5S", "5s"),
            ("1.5s", "1500ms"),
            ("1.5 hours", "90m"),
            ("250 msec", "250ms"),
            ("1hour 30 min", "1h 30m"),
            ("1,000ms", "1000ms"),
        ] {
            assert_eq!(span(text).as_deref(), Some(meant), "{text}");
        }
        for text in [
            "",
            "soon",
            "-5s",
            "5 fortnights",
            "1h 30",
            "1,5s",
            "0.0001ms",
            "s",
        ] {
            assert_eq!(span(text), None, "{text}");
        }
    }
}
