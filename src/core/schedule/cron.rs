//! Cron expressions in a time zone, across the changes of its clocks.
//!
//! The library evaluates the expression and is only asked about clocks that never change; clock changes of the zone
//! are handled here, by two rules. An expression whose hour is `*` follows elapsed time: it fires whenever the wall
//! clock shows a matching time, so twice in an hour that occurs twice, and not in one that is left out. Any other
//! fires once for each time that it names: the first time if that occurs twice, and at the first moment after the gap
//! if it is left out.

use chrono::{DateTime, Duration as Span, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;
use croner::parser::{CronParser, Seconds};
use windrow_words::{Message, schedule as say};

use super::SpecFault;
use crate::ids::WallMs;
use crate::text::quoted;
use crate::zone;

/// Maximum length of an expression. Unit: bytes.
pub const CRON_BYTES_MAX: usize = 200;
/// End of the year 9998, after which nothing fires. Unit: milliseconds since 1970.
const LAST_MS: i64 = 253_370_764_799_000;
/// Span in which a clock change is searched for, and the step of the search: no zone changes twice in one. Unit:
/// seconds.
const LOOK_AHEAD: i64 = 48 * 3600;
const LOOK_STEP: i64 = 6 * 3600;
/// Maximum number of times that fall together in one gap: every second of a day.
const TRIES_MAX: usize = 90_000;

/// Name of a field and its allowed values.
type Field = (fn() -> Message, &'static str);

/// Fields of an expression.
const FIELDS: [Field; 6] = [
    (say::second, "0-59"),
    (say::minute, "0-59"),
    (say::hour, "0-23"),
    (say::day, "1-31, L"),
    (say::month, "1-12, JAN-DEC"),
    (say::weekday, "0-7, SUN-SAT"),
];

/// Names the first field that can't be read and its allowed values, because the library doesn't. Returns `None` if
/// every field can be read.
fn wrong_field(text: &str, parser: &CronParser) -> Option<Message> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let fields = FIELDS.get(FIELDS.len().checked_sub(words.len())?..)?;
    let is_wrong = |at: &usize| {
        if is_passed_over(words[*at], *at + 1 == words.len()) {
            return true;
        }
        let alone = (0..words.len()).map(|no| if no == *at { words[no] } else { "*" });
        parser.parse(&alone.collect::<Vec<_>>().join(" ")).is_err()
    };
    // (A single word is a nickname such as @daily.)
    let at = (0..words.len()).find(is_wrong).filter(|_| words.len() > 1)?;
    let (field, range) = fields[at];
    Some(say::wrong_field(field(), quoted(words[at]), range))
}

/// Returns true if the library accepts a field although a part of it means nothing: `1,`, or an `L` without a
/// weekday.
fn is_passed_over(field: &str, is_weekday: bool) -> bool {
    field
        .split(',')
        .any(|part| part.is_empty() || (is_weekday && part.eq_ignore_ascii_case("L")))
}

fn has_slip(text: &str) -> bool {
    let mut fields = text.split_whitespace().rev().enumerate();
    fields.any(|(from_end, field)| is_passed_over(field, from_end == 0))
}

/// Returns true if the day of the month and the weekday must both match. If both are restricted one is enough, and a
/// field that begins with `*` isn't restricted, whatever its step: cron's rule.
fn needs_both_days(text: &str) -> bool {
    let mut fields = text.split_whitespace().rev();
    let (weekday, day) = (fields.next(), fields.nth(1));
    [weekday, day]
        .into_iter()
        .flatten()
        .any(|field| field.starts_with(['*', '?']))
}

/// Cron expression and the zone whose clocks it refers to.
#[derive(Clone, Debug)]
pub struct Cron {
    text: String,
    zone: Tz,
    expression: Box<croner::Cron>,
    /// True if its hour is `*`.
    is_elapsed: bool,
}

impl PartialEq for Cron {
    fn eq(&self, other: &Cron) -> bool {
        self.text == other.text && self.zone == other.zone
    }
}

fn fault(what: Message) -> SpecFault {
    let advice = say::cron_form("0 3 * * *", "*/15 * * * *", "0 9 * * MON-FRI");
    SpecFault::new("cron", what, advice)
}

impl Cron {
    /// Parses an expression of five fields (minute, hour, day, month, weekday), or six with seconds first, and the
    /// IANA name of a zone.
    ///
    /// # Errors
    /// Names which of the two can't be read, and why.
    pub fn parse(text: &str, zone: &str) -> Result<Cron, SpecFault> {
        let zone = zone.parse::<Tz>().map_err(|_| {
            let advice = say::zone_form("UTC, Europe/Berlin, America/New_York");
            SpecFault::new("zone", say::no_zone(quoted(zone)), advice)
        })?;
        if text.len() > CRON_BYTES_MAX {
            return Err(fault(say::cron_too_long(CRON_BYTES_MAX)));
        }
        let fields = text.split_whitespace().count();
        if ![1, 5, 6].contains(&fields) {
            return Err(fault(say::cron_fields(fields)));
        }
        let parser = CronParser::builder()
            .seconds(Seconds::Optional)
            .dom_and_dow(needs_both_days(text))
            .build();
        let is_midnight = text.trim().eq_ignore_ascii_case("@midnight");
        let parsed = parser.parse(if is_midnight { "@daily" } else { text });
        let expression = parsed
            .map_err(|error| say::parser(error.to_string().trim_end_matches('.')))
            .and_then(|expression| match has_slip(text) {
                true => Err(say::slip()),
                false => Ok(expression),
            })
            .map_err(|why| {
                let why = wrong_field(text, &parser).unwrap_or(why);
                fault(say::unreadable(quoted(text), why))
            })?;
        let cron = Cron {
            text: text.trim().to_owned(),
            zone,
            expression: Box::new(expression),
            is_elapsed: has_any_hour(text),
        };
        Ok(cron)
    }

    /// Returns the expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the IANA name of the zone.
    pub fn zone(&self) -> &'static str {
        self.zone.name()
    }

    /// Returns the first fire after a time, or `None` if the expression names no later time.
    pub fn next_after(&self, after: WallMs) -> Option<WallMs> {
        if after.0 >= LAST_MS {
            return None;
        }
        // Fires are always at full seconds.
        let after = DateTime::<Utc>::from_timestamp(after.0.max(0).div_euclid(1000), 0)?;
        let next = match self.is_elapsed {
            true => self.next_elapsed(after),
            false => self.next_fixed(after),
        };
        next.map(|next| WallMs(next.timestamp_millis()))
    }

    /// Returns the first named time after a wall clock time.
    fn named_after(&self, wall: NaiveDateTime, inclusive: bool) -> Option<NaiveDateTime> {
        let found = self.expression.find_next_occurrence(&wall.and_utc(), inclusive);
        found.ok().map(|found| found.naive_utc())
    }

    /// Returns the next fire if each named time fires once.
    fn next_fixed(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut wall = zone::wall(self.zone, after);
        for _ in 0..TRIES_MAX {
            wall = self.named_after(wall, false)?;
            let moment = zone::first_moment(self.zone, wall)?;
            if moment > after {
                return Some(moment);
            }
        }
        None
    }

    /// Returns the next moment at which the wall clock shows a named time.
    fn next_elapsed(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let (mut from, mut inclusive) = (after, false);
        // Handles one clock change after another: each try ends behind one.
        for _ in 0..8 {
            let wall = self.named_after(zone::wall(self.zone, from), inclusive)?;
            let moment = (wall - zone::offset(self.zone, from)).and_utc();
            match self.changed_from(from, moment) {
                None => return Some(moment),
                Some(nearer) => (from, inclusive) = (nearer, true),
            }
        }
        None
    }

    /// Returns the point to search from again if the clocks may change between `from` and `until`: the first change,
    /// or a time shortly before a change that is far away. (If an hour that occurs twice is named, its first
    /// occurrence is close before.)
    fn changed_from(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let last = until.min(from + seconds(LOOK_AHEAD));
        let mut begin = from;
        while begin < last {
            let end = last.min(begin + seconds(LOOK_STEP));
            if zone::offset(self.zone, begin) != zone::offset(self.zone, end) {
                return zone::change_between(self.zone, begin, end);
            }
            begin = end;
        }
        let near = until - seconds(LOOK_AHEAD);
        (zone::offset(self.zone, until) != zone::offset(self.zone, from)).then_some(near)
    }
}

/// Formats a time by the clocks of a zone: `Mon 2026-01-05 03:00:00 CET`. Returns `None` for an unknown zone.
pub fn in_zone(at: WallMs, zone: &str) -> Option<String> {
    Some(zone::shown(at, zone.parse().ok()?))
}

/// Returns the times at which the clocks of a zone are set back between `from` and `until`, to within an hour.
pub fn falls_back(zone: &str, from: WallMs, until: WallMs) -> Vec<WallMs> {
    let Ok(zone) = zone.parse::<Tz>() else {
        return Vec::new();
    };
    let offset = |at: WallMs| {
        let utc = DateTime::<Utc>::from_timestamp_millis(at.0).unwrap_or_default();
        let offset = zone.offset_from_utc_datetime(&utc.naive_utc());
        offset.fix().local_minus_utc()
    };
    let hour = std::time::Duration::from_secs(3600);
    let hours = std::iter::successors(Some(from), |at| Some(at.plus(hour)));
    let hours: Vec<WallMs> = hours.take_while(|at| *at <= until).collect();
    let backs = hours.windows(2).filter(|pair| offset(pair[1]) < offset(pair[0]));
    backs.map(|pair| pair[1]).collect()
}

/// Returns the names of all time zones.
pub fn zones() -> impl Iterator<Item = &'static str> {
    chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name())
}

fn seconds(seconds: i64) -> Span {
    Span::seconds(seconds)
}

/// Returns true if the hour of an expression, the fourth field from the end, is `*`. `@hourly` counts as well.
fn has_any_hour(text: &str) -> bool {
    let fields: Vec<&str> = text.split_whitespace().collect();
    match fields.len() {
        1 => fields[0].eq_ignore_ascii_case("@hourly"),
        many => many >= 4 && fields[many - 4] == "*",
    }
}
