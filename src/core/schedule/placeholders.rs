//! What a schedule's task is told of its fire: `{fire_time}` and `{previous_fire_time}` in its texts.
//!
//! | placeholder | becomes |
//! |---|---|
//! | `{fire_time}` | `2026-11-20T17:00:00Z`: the time at which it was to fire, not when it did |
//! | `{fire_time:date}` | `2026-11-20`, in the schedule's zone |
//! | `{fire_time:time}` | `2026-11-20T18-00`, in the schedule's zone: sorts, and fits into names |
//! | `{fire_time:unix}`, `{fire_time:ms}` | seconds or milliseconds since 1970 |
//!
//! `{previous_fire_time}` is the newest fire before it that made a task; of the first one it is empty. All other braces stay
//! what they are: they are for the handler. What looks like one of these and isn't is refused.

use chrono::{DateTime, TimeZone, Utc};
use chrono_tz::Tz;

use crate::ids::WallMs;

const FIRE: &str = "fire_time";
const PREVIOUS: &str = "previous_fire_time";
/// The forms, with one example each.
const FORMS: &str = "fire_time, fire_time:date, fire_time:time, fire_time:unix, fire_time:ms, and the same of previous_fire_time";

/// What placeholders stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FireTimes<'a> {
    /// The fire's time.
    pub fire: WallMs,
    /// That of the newest one before it that made a task.
    pub previous: Option<WallMs>,
    /// The name of the schedule's zone; UTC where it has none.
    pub zone: &'a str,
}

/// A placeholder that there isn't.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no placeholder {{{0}}}; there are {FORMS}")]
pub struct UnknownPlaceholder(pub String);

/// A text with its placeholders filled in. No value has a quote, a backslash or a control character in it, so JSON stays
/// JSON.
///
/// # Errors
/// The first placeholder that looks like one of these and isn't.
pub fn filled(text: &str, times: &FireTimes<'_>) -> Result<String, UnknownPlaceholder> {
    let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(begin) = rest.find('{') {
        let (before, tail) = rest.split_at(begin);
        filled.push_str(before);
        match inside(tail) {
            Some((name, after)) => {
                filled.push_str(&value(name, times)?);
                rest = after;
            }
            None => {
                filled.push('{');
                rest = &tail[1..];
            }
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The placeholder that a text begins with, if it is one of ours, and what follows it.
fn inside(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('{')?;
    let end = text.find(['{', '}', '"', '\\'])?;
    let (name, after) = text.split_at(end);
    let is_ours = name.starts_with(FIRE) || name.starts_with(PREVIOUS);
    let after = after.strip_prefix('}')?;
    is_ours.then_some((name, after))
}

fn value(name: &str, times: &FireTimes<'_>) -> Result<String, UnknownPlaceholder> {
    let unknown = || UnknownPlaceholder(name.to_owned());
    let (which, form) = match name.split_once(':') {
        Some((which, form)) => (which, Some(form)),
        None => (name, None),
    };
    let time = match which {
        FIRE => Some(times.fire),
        PREVIOUS => times.previous,
        _ => return Err(unknown()),
    };
    let text =
        |write: fn(WallMs, &str) -> String| time.map(|time| write(time, times.zone)).unwrap_or_default();
    Ok(match form {
        None => text(|time, _| short(time)),
        Some("date") => text(|time, zone| local(time, zone, "%Y-%m-%d")),
        Some("time") => text(|time, zone| local(time, zone, "%Y-%m-%dT%H-%M")),
        Some("unix") => text(|time, _| time.0.div_euclid(1000).to_string()),
        Some("ms") => text(|time, _| time.0.to_string()),
        Some(_) => return Err(unknown()),
    })
}

/// As RFC 3339, without milliseconds where there are none.
fn short(time: WallMs) -> String {
    time.to_rfc3339().replace(".000Z", "Z")
}

fn local(time: WallMs, zone: &str, format: &str) -> String {
    let zone = zone.parse::<Tz>().unwrap_or(Tz::UTC);
    let utc = DateTime::<Utc>::from_timestamp_millis(time.0).unwrap_or_default();
    zone.from_utc_datetime(&utc.naive_utc())
        .format(format)
        .to_string()
}
