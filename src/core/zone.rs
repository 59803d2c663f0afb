//! Clocks of time zones: the time that they show, and the moment at which they show it.

use chrono::{DateTime, Duration as Span, LocalResult, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;

use crate::ids::WallMs;

/// Upper bound of one clock change. Unit: seconds.
const CHANGE_MAX: i64 = 24 * 3600;

/// IANA time zone; `parse` reads its name.
pub type Zone = Tz;

/// Formats a time by the clocks of a zone: `Mon 2026-01-05 03:00:00 CET`.
pub fn shown(at: WallMs, zone: Zone) -> String {
    let utc = DateTime::<Utc>::from_timestamp_millis(at.0).unwrap_or_default();
    let local = zone.from_utc_datetime(&utc.naive_utc());
    local.format("%a %Y-%m-%d %H:%M:%S %Z").to_string()
}

/// Returns what the clocks of a zone are ahead of UTC.
pub(crate) fn offset(zone: Zone, moment: DateTime<Utc>) -> Span {
    let offset = zone.offset_from_utc_datetime(&moment.naive_utc());
    Span::seconds(i64::from(offset.fix().local_minus_utc()))
}

/// Returns the time that the clocks of a zone show.
pub(crate) fn wall(zone: Zone, moment: DateTime<Utc>) -> NaiveDateTime {
    moment.naive_utc() + offset(zone, moment)
}

/// Returns the first moment at which the clocks of a zone show this time or have passed it.
pub(crate) fn first_moment(zone: Zone, wall: NaiveDateTime) -> Option<DateTime<Utc>> {
    match zone.from_local_datetime(&wall) {
        LocalResult::Single(moment) => Some(moment.to_utc()),
        LocalResult::Ambiguous(first, second) => Some(first.min(second).to_utc()),
        LocalResult::None => {
            // In UTC the gap is a single moment, at which the offset changes.
            let (around, reach) = (wall.and_utc(), Span::seconds(CHANGE_MAX));
            change_between(zone, around - reach, around + reach)
        }
    }
}

/// Returns the first second at which the offset of a zone differs from that of `begin`; `None` if it is the same at
/// both ends.
pub(crate) fn change_between(zone: Zone, begin: DateTime<Utc>, end: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let before = offset(zone, begin);
    let (mut same, mut other) = (begin.timestamp(), end.timestamp());
    if offset(zone, end) == before {
        return None;
    }
    while other - same > 1 {
        let middle = same + (other - same) / 2;
        match offset(zone, DateTime::from_timestamp(middle, 0)?) == before {
            true => same = middle,
            false => other = middle,
        }
    }
    DateTime::from_timestamp(other, 0)
}
