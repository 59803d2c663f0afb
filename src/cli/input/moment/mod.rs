//! Parser for times as people write them: `22:00`, `tonight`, `8h`, `tomorrow 06:00`, `2026-11-22 22:00`, RFC 3339.
//! All time arguments use it. The current time and zone are parameters, so that tests can choose them.
//!
//! An inexact time is echoed as an exact one (`22:00 → 2026-11-22T22:00:00+01:00`) on standard error.

pub(crate) mod zones;

use std::fmt;

use chrono::{
    DateTime, Days, Local, NaiveDate, NaiveDateTime, NaiveTime, SecondsFormat, SubsecRound, TimeDelta,
    TimeZone, Timelike, Utc,
};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use windrow_core::ids::WallMs;
use windrow_core::life::is_start_over;
use windrow_core::settings::text::parse_span;
use windrow_engine::ports::clock::Clock;
use windrow_node::SystemClock;

/// Hour of day for `tonight`.
const TONIGHT_HOUR: u32 = 22;

/// Direction in which an incomplete time (a time of day or a span) is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lean {
    /// Into the future, for a deadline or a start.
    Ahead,
    /// Into the past, for the beginning of a log.
    Back,
}

impl Lean {
    /// Returns examples of accepted input, with dates in this direction.
    fn examples<Z: TimeZone>(self, now: &DateTime<Z>) -> String {
        let (words, step) = match self {
            // Leave out `tonight`: it has passed and would be refused again.
            Lean::Ahead if now.naive_local().hour() >= TONIGHT_HOUR => {
                ("22:00, 8h, tomorrow 06:00", TimeDelta::days(1))
            }
            Lean::Ahead => ("22:00, tonight, 8h, tomorrow 06:00", TimeDelta::days(1)),
            Lean::Back => (
                "10m or 7d (that long ago), 22:00, yesterday 18:00",
                TimeDelta::days(-1),
            ),
        };
        let day = now
            .naive_local()
            .date()
            .checked_add_signed(step)
            .unwrap_or_default();
        format!("{words}, {day} 22:00, {day} 22:00 Europe/Berlin, {day}T22:00:00Z")
    }
}

/// Result of parsing a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Understood {
    /// Point in time. Unit: milliseconds since 1970.
    pub(crate) at_ms: i64,
    /// Same time in RFC 3339 with the zone's offset.
    pub(crate) exact: String,
    /// True if the input had an explicit offset, so nothing was guessed.
    pub(crate) is_exact: bool,
}

/// Reason why a text isn't accepted as a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MomentError {
    /// Text that matches no known form.
    Unknown,
    /// Ambiguous words that people read differently.
    Vague,
    /// Past time where a future one is required.
    Over(String),
    /// Local time that a change of clocks skips.
    Skipped(String),
    /// Time beyond the range of the calendar.
    TooFar,
}

impl fmt::Display for MomentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MomentError::Unknown => write!(f, "not a valid time"),
            MomentError::Vague => write!(
                f,
                "the word is ambiguous: give a date, a time of day, or a span such as 7d"
            ),
            MomentError::Over(at) => write!(f, "{at} is in the past"),
            MomentError::Skipped(at) => write!(f, "{at} doesn't exist here: clocks are put forward over it"),
            MomentError::TooFar => write!(f, "the time is out of range"),
        }
    }
}

/// Parses a time in the zone of `now`.
///
/// # Errors
/// [`MomentError`] says why the text isn't accepted.
pub(crate) fn read<Z: TimeZone>(text: &str, lean: Lean, now: &DateTime<Z>) -> Result<Understood, MomentError>
where
    Z::Offset: fmt::Display,
{
    let text = text.trim();
    if let Some(at) = exact(text) {
        return understood(&at, true);
    }
    let words = text.to_ascii_lowercase();
    let words: Vec<&str> = words.split_whitespace().collect();
    match words.as_slice() {
        ["now"] => understood(now, false),
        ["in", span @ ..] => moved(now, &span.join(" "), Lean::Ahead),
        [span @ .., "ago"] => moved(now, &span.join(" "), Lean::Back),
        [day] if clock(day).is_some() => at_clock(clock(day), lean, now),
        ["tonight"] => on_day(0, NaiveTime::from_hms_opt(TONIGHT_HOUR, 0, 0), lean, now),
        ["tonight" | "today", at] => on_day(0, clock(at), lean, now),
        ["tomorrow"] => on_day(1, NaiveTime::MIN.into(), lean, now),
        ["tomorrow", at] => on_day(1, clock(at), lean, now),
        ["yesterday"] => on_day(-1, NaiveTime::MIN.into(), lean, now),
        ["yesterday", at] => on_day(-1, clock(at), lean, now),
        _ => match calendar(text) {
            Some(at) => zoned(&at, now).and_then(|at| understood(&at, false)),
            None => moved(now, text, lean).map_err(|error| match words.iter().any(|word| is_vague(word)) {
                true => MomentError::Vague,
                false => error,
            }),
        },
    }
}

/// Ambiguous words: does a week begin on Sunday, is "next Friday" in this week?
const VAGUE: [&str; 7] = ["last", "next", "this", "week", "month", "weekend", "morning"];
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

fn is_vague(word: &str) -> bool {
    let is_weekday = WEEKDAYS
        .iter()
        .any(|day| word.starts_with(day) && (word.len() == day.len() || word.ends_with("day")));
    VAGUE.contains(&word) || is_weekday
}

/// Parses RFC 3339, also with a space instead of the T.
fn exact(text: &str) -> Option<DateTime<chrono::FixedOffset>> {
    DateTime::parse_from_rfc3339(text).ok()
}

/// Parses a time of day such as `22:00` or `22:00:30`.
fn clock(text: &str) -> Option<NaiveTime> {
    let is_clock = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    let parse = |form| NaiveTime::parse_from_str(text, form).ok();
    // A day has 86,400 seconds here, so leap seconds are rejected.
    let at = is_clock
        .then(|| parse("%H:%M").or_else(|| parse("%H:%M:%S")))
        .flatten()?;
    (at.nanosecond() < 1_000_000_000).then_some(at)
}

/// Parses a date, with or without a time of day, as local time.
fn calendar(text: &str) -> Option<NaiveDateTime> {
    let (date, time) = text
        .split_once([' ', 'T', 't'])
        .map_or((text, None), |(date, time)| (date, Some(time)));
    let is_date = date.len() == 10 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let date = is_date
        .then(|| NaiveDate::parse_from_str(date, "%Y-%m-%d").ok())
        .flatten()?;
    Some(date.and_time(time.map_or(Some(NaiveTime::MIN), |time| clock(time.trim()))?))
}

fn moved<Z: TimeZone>(now: &DateTime<Z>, span: &str, lean: Lean) -> Result<Understood, MomentError>
where
    Z::Offset: fmt::Display,
{
    let span = parse_span(span).map_err(|_| MomentError::Unknown)?;
    let span = TimeDelta::from_std(span).map_err(|_| MomentError::TooFar)?;
    let at = match lean {
        Lean::Ahead => now.clone().checked_add_signed(span),
        Lean::Back => now.clone().checked_sub_signed(span),
    };
    let at = at.ok_or(MomentError::TooFar)?;
    // Cut off milliseconds: nobody who types 8h means them.
    let is_long = span >= TimeDelta::minutes(1);
    understood(&if is_long { at.trunc_subsecs(0) } else { at }, false)
}

/// Returns the next or the last moment with this time of day.
fn at_clock<Z: TimeZone>(
    clock: Option<NaiveTime>,
    lean: Lean,
    now: &DateTime<Z>,
) -> Result<Understood, MomentError>
where
    Z::Offset: fmt::Display,
{
    let clock = clock.ok_or(MomentError::Unknown)?;
    let today = now.naive_local().time();
    let day = match lean {
        Lean::Ahead if clock <= today => 1,
        Lean::Back if clock > today => -1,
        Lean::Ahead | Lean::Back => 0,
    };
    on_day(day, Some(clock), lean, now)
}

/// Returns a time of day `day` days after today.
fn on_day<Z: TimeZone>(
    day: i64,
    clock: Option<NaiveTime>,
    lean: Lean,
    now: &DateTime<Z>,
) -> Result<Understood, MomentError>
where
    Z::Offset: fmt::Display,
{
    let clock = clock.ok_or(MomentError::Unknown)?;
    let today = now.naive_local().date();
    let step = Days::new(day.unsigned_abs());
    let date = if day < 0 {
        today.checked_sub_days(step)
    } else {
        today.checked_add_days(step)
    };
    let at = zoned(&date.ok_or(MomentError::TooFar)?.and_time(clock), now)?;
    let found = understood(&at, false)?;
    // "tonight" typed at 23:00 is a mistake: for the past people say yesterday.
    if lean == Lean::Ahead && day == 0 && at <= *now {
        return Err(MomentError::Over(found.exact));
    }
    Ok(found)
}

/// Converts local time to the zone of `now`. If clocks show it twice, the earlier one wins.
fn zoned<Z: TimeZone>(at: &NaiveDateTime, now: &DateTime<Z>) -> Result<DateTime<Z>, MomentError> {
    let skipped = || MomentError::Skipped(at.format("%Y-%m-%d %H:%M:%S").to_string());
    now.timezone()
        .from_local_datetime(at)
        .earliest()
        .ok_or_else(skipped)
}

fn understood<Z: TimeZone>(at: &DateTime<Z>, is_exact: bool) -> Result<Understood, MomentError>
where
    Z::Offset: fmt::Display,
{
    // The API accepts times from 1970 up to the year 9999.
    let is_known = (0..=253_402_300_799_999).contains(&at.timestamp_millis());
    let exact = at.to_rfc3339_opts(SecondsFormat::AutoSi, false);
    let found = Understood {
        at_ms: at.timestamp_millis(),
        exact,
        is_exact,
    };
    if is_known {
        Ok(found)
    } else {
        Err(MomentError::TooFar)
    }
}

/// Parses the time of a flag for the API. An inexact time is echoed as understood.
///
/// # Errors
/// `Usage` if the text isn't a time, or is in the past where a future time is required.
pub(crate) fn given(flag: &str, text: &str, lean: Lean, link: &Link<'_>) -> Result<Understood, Fault> {
    let (text, zone) = zones::split(flag, text)?;
    let (found, line) = match zone {
        Some(zone) => zones::told_in(zone, flag, text, lean)?,
        None => told(flag, text, lean, &now())?,
    };
    if let Some(line) = line {
        link.say(&line);
    }
    Ok(found)
}

/// Parses the time of an optional flag.
///
/// # Errors
/// Same as [`given`].
pub(crate) fn given_option(
    flag: &str,
    text: Option<&String>,
    lean: Lean,
    link: &Link<'_>,
) -> Result<Option<Understood>, Fault> {
    text.map(|text| given(flag, text, lean, link)).transpose()
}

fn now() -> DateTime<Local> {
    utc_now().with_timezone(&Local)
}

fn utc_now() -> DateTime<Utc> {
    let now = SystemClock::new().wall();
    DateTime::from_timestamp_millis(now.0).unwrap_or_default()
}

/// Returns the time and the line that echoes it.
fn told<Z: TimeZone>(
    flag: &str,
    text: &str,
    lean: Lean,
    now: &DateTime<Z>,
) -> Result<(Understood, Option<String>), Fault>
where
    Z::Offset: fmt::Display,
{
    let is_over = |at_ms| is_start_over(WallMs(at_ms), WallMs(now.timestamp_millis()));
    let found = read(text, lean, now).and_then(|found| match lean {
        Lean::Ahead if is_over(found.at_ms) => Err(MomentError::Over(found.exact)),
        Lean::Ahead | Lean::Back => Ok(found),
    });
    let found = found.map_err(|error| {
        let what = match error {
            MomentError::Over(_) => "the time has passed",
            MomentError::Unknown | MomentError::Vague | MomentError::Skipped(_) | MomentError::TooFar => {
                "invalid time"
            }
        };
        Fault::new(Exit::Usage, what, format!("{flag} {text:?}: {error}")).hint(lean.examples(now))
    })?;
    let line = (!found.is_exact).then(|| format!("{flag} {} → {}", text.trim(), found.exact));
    Ok((found, line))
}

#[cfg(test)]
mod tests;
