//! Placeholders for the fire of a schedule's task: `{fire_time}` and `{previous_fire_time}` in its texts.
//!
//! | placeholder | becomes |
//! |---|---|
//! | `{fire_time}` | `2026-11-20T17:00:00Z`: the time at which it was to fire, not when it did |
//! | `{fire_time:date}` | `2026-11-20`, in the schedule's zone |
//! | `{fire_time:time}` | `2026-11-20T18-00`, in the schedule's zone: sorts, and fits into names |
//! | `{fire_time:unix}`, `{fire_time:ms}` | seconds or milliseconds since 1970 |
//!
//! `{previous_fire_time}` is the latest earlier fire that made a task; for the first one it is empty. All other
//! braces stay unchanged: they are for the handler. Text that looks like one of these placeholders but isn't one is
//! refused. In a name, which no handler reads, all other braces are refused as well.

use chrono::{DateTime, TimeZone, Utc};
use chrono_tz::Tz;
use windrow_words::{Message, schedule as say};

use crate::ids::WallMs;
use crate::text::likeness::is_comparable;
use crate::text::{QUOTE_CHARS_MAX, cut};

const FIRE: &str = "fire_time";
const PREVIOUS: &str = "previous_fire_time";
/// Formats of a time, as they follow its name.
const FORMS: [&str; 5] = ["", ":date", ":time", ":unix", ":ms"];
/// Maximum number of typing errors for which a name still counts as a misspelled placeholder.
const SLIPS_MAX: usize = 2;

/// Values of the placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FireTimes<'a> {
    /// Time of the fire.
    pub fire: WallMs,
    /// Time of the latest earlier fire that made a task.
    pub previous: Option<WallMs>,
    /// Name of the schedule's zone; UTC if it has none.
    pub zone: &'a str,
}

/// Placeholder that doesn't exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub struct UnknownPlaceholder {
    /// Text between the braces.
    pub name: String,
    /// Placeholder that was probably meant, if there is a close one.
    pub meant: Option<String>,
}

impl UnknownPlaceholder {
    fn new(name: &str) -> UnknownPlaceholder {
        let like = nearest(name).filter(|(slips, _)| *slips <= SLIPS_MAX);
        // `{date}`
        let form = format!(":{name}");
        let short = || FORMS.contains(&form.as_str()).then(|| format!("{FIRE}{form}"));
        UnknownPlaceholder {
            name: name.to_owned(),
            meant: like.map(|(_, form)| form).or_else(short),
        }
    }

    fn message(&self) -> Message {
        let name = format!("{{{}}}", cut(&self.name, QUOTE_CHARS_MAX));
        let names: Vec<String> = FORMS.map(|form| format!("{FIRE}{form}")).into();
        say::no_placeholder(name, names.join(", "), PREVIOUS)
    }

    /// Returns true if it differs from a valid placeholder only by typing errors, so it is hardly meant for the
    /// handler.
    pub fn is_slip(&self) -> bool {
        nearest(&self.name).is_some_and(|(slips, _)| slips <= SLIPS_MAX)
    }

    /// Returns a "did you mean" question, if there is a guess.
    pub fn advice(&self) -> Option<String> {
        let meant = self.meant.as_ref()?;
        Some(say::did_you_mean(format!("{{{meant}}}")).to_string())
    }
}

fn forms() -> impl Iterator<Item = String> {
    let of = |time: &'static str| FORMS.into_iter().map(move |form| format!("{time}{form}"));
    of(FIRE).chain(of(PREVIOUS))
}

/// Returns the placeholder with the fewest typing errors, and their number; `None` for a name that is far too long.
fn nearest(name: &str) -> Option<(usize, String)> {
    if !is_comparable(name) {
        return None;
    }
    forms()
        .map(|form| (strsim::osa_distance(name, &form), form))
        .min()
}

/// Iterates over the texts in braces that aren't placeholders.
pub fn unknown(text: &str) -> impl Iterator<Item = UnknownPlaceholder> {
    let inside = |tail: &str| tail.split_once('}').map(|(name, _)| name.to_owned());
    let names = text.split('{').skip(1).filter_map(inside);
    names
        .filter(|name| forms().all(|form| form != *name))
        .map(|name| UnknownPlaceholder::new(&name))
}

/// Replaces the placeholders in a text. No value contains a quote, a backslash or a control character, so JSON stays
/// valid.
///
/// # Errors
/// Returns the first text in braces that looks like a placeholder but isn't one.
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

/// Splits off the placeholder that a text begins with, if its name begins like one of ours.
fn inside(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('{')?;
    let end = text.find(['{', '}', '"', '\\'])?;
    let (name, after) = text.split_at(end);
    let is_ours = name.starts_with(FIRE) || name.starts_with(PREVIOUS);
    let after = after.strip_prefix('}')?;
    is_ours.then_some((name, after))
}

fn value(name: &str, times: &FireTimes<'_>) -> Result<String, UnknownPlaceholder> {
    let wrong = || UnknownPlaceholder::new(name);
    let (which, form) = match name.split_once(':') {
        Some((which, form)) => (which, Some(form)),
        None => (name, None),
    };
    let time = match which {
        FIRE => Some(times.fire),
        PREVIOUS => times.previous,
        _ => return Err(wrong()),
    };
    let text =
        |write: fn(WallMs, &str) -> String| time.map(|time| write(time, times.zone)).unwrap_or_default();
    Ok(match form {
        None => text(|time, _| short(time)),
        Some("date") => text(|time, zone| local(time, zone, "%Y-%m-%d")),
        Some("time") => text(|time, zone| local(time, zone, "%Y-%m-%dT%H-%M")),
        Some("unix") => text(|time, _| time.0.div_euclid(1000).to_string()),
        Some("ms") => text(|time, _| time.0.to_string()),
        Some(_) => return Err(wrong()),
    })
}

/// Formats a time as RFC 3339, without milliseconds if they are zero.
fn short(time: WallMs) -> String {
    time.to_rfc3339().replace(".000Z", "Z")
}

/// Formats a time by the clocks of a zone.
pub(super) fn local(time: WallMs, zone: &str, format: &str) -> String {
    let zone = zone.parse::<Tz>().unwrap_or(Tz::UTC);
    let utc = DateTime::<Utc>::from_timestamp_millis(time.0).unwrap_or_default();
    zone.from_utc_datetime(&utc.naive_utc())
        .format(format)
        .to_string()
}
