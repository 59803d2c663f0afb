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
//! what they are: they are for the handler. What looks like one of these and isn't is refused, and in a name, which no handler
//! reads, all else.

use chrono::{DateTime, TimeZone, Utc};
use chrono_tz::Tz;

use crate::ids::WallMs;
use crate::text::likeness::is_comparable;
use crate::text::{QUOTE_CHARS_MAX, cut};

const FIRE: &str = "fire_time";
const PREVIOUS: &str = "previous_fire_time";
/// The forms of a time, as they stand behind its name.
const FORMS: [&str; 5] = ["", ":date", ":time", ":unix", ":ms"];
/// The same, for people.
const FORMS_TEXT: &str = "fire_time, fire_time:date, fire_time:time, fire_time:unix, fire_time:ms, and the same of previous_fire_time";
/// Slips of the finger that make another word of a placeholder.
const SLIPS_MAX: usize = 2;

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
#[error("there is no placeholder {{{}}}; there are {FORMS_TEXT}", cut(.name, QUOTE_CHARS_MAX))]
pub struct UnknownPlaceholder {
    /// What stands in the braces.
    pub name: String,
    /// What it was meant to be, as far as that can be guessed.
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

    /// Whether it is one of ours but for a slip of the finger: it is hardly meant for somebody else.
    pub fn is_slip(&self) -> bool {
        nearest(&self.name).is_some_and(|(slips, _)| slips <= SLIPS_MAX)
    }

    /// The question after what it was meant to be.
    pub fn advice(&self) -> Option<String> {
        let meant = self.meant.as_ref()?;
        Some(format!("did you mean {{{meant}}}?"))
    }
}

fn forms() -> impl Iterator<Item = String> {
    let of = |time: &'static str| FORMS.into_iter().map(move |form| format!("{time}{form}"));
    of(FIRE).chain(of(PREVIOUS))
}

/// The placeholder with the fewest slips between, and how many those are; none for a name that is far too long.
fn nearest(name: &str) -> Option<(usize, String)> {
    if !is_comparable(name) {
        return None;
    }
    forms()
        .map(|form| (strsim::osa_distance(name, &form), form))
        .min()
}

/// What stands in braces in a text and isn't a placeholder.
pub fn unknown(text: &str) -> impl Iterator<Item = UnknownPlaceholder> {
    let inside = |tail: &str| tail.split_once('}').map(|(name, _)| name.to_owned());
    let names = text.split('{').skip(1).filter_map(inside);
    names
        .filter(|name| forms().all(|form| form != *name))
        .map(|name| UnknownPlaceholder::new(&name))
}

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

/// As RFC 3339, without milliseconds where there are none.
fn short(time: WallMs) -> String {
    time.to_rfc3339().replace(".000Z", "Z")
}

/// A time by the clocks of a zone.
pub(super) fn local(time: WallMs, zone: &str, format: &str) -> String {
    let zone = zone.parse::<Tz>().unwrap_or(Tz::UTC);
    let utc = DateTime::<Utc>::from_timestamp_millis(time.0).unwrap_or_default();
    zone.from_utc_datetime(&utc.naive_utc())
        .format(format)
        .to_string()
}
