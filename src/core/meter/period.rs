//! Calendar periods of allowances, by the clocks of a time zone.
//!
//! A period is named by the moment at which it begins, so that it can be stored and compared. A day is as long as its
//! clocks make it: 23 or 25 hours where they change. It begins when they first show midnight or have passed it, so one
//! that they are set back into has begun, and one that they leave out is empty. An hour that occurs twice is two hours.

use chrono::{DateTime, Datelike as _, Days, Duration as Span, Months, NaiveDate, Timelike as _, Utc};

use crate::ids::WallMs;
use crate::zone::{self, Zone};

crate::slugs! {
    /// Calendar period of an allowance.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Period {
        /// Hour of the clock.
        Hour = "hour",
        /// Day from midnight to midnight.
        Day = "day",
        /// Week from Monday on.
        Week = "week",
        /// Month from its first day on.
        Month = "month",
    }
}

/// Shorter spellings of periods.
const SHORT: [(&str, Period); 2] = [("h", Period::Hour), ("d", Period::Day)];

impl Period {
    /// Reads the word of a limit: `day`, or `d`.
    pub(super) fn read(text: &str) -> Option<Period> {
        let short = SHORT.into_iter().find(|(word, _)| *word == text);
        short.map(|(_, period)| period).or_else(|| Period::parse(text))
    }

    /// Returns the first day of the period, a day or longer, that holds `day`.
    fn first_day(self, day: NaiveDate) -> NaiveDate {
        match self {
            Period::Hour | Period::Day => day,
            Period::Week => day - Days::new(day.weekday().num_days_from_monday().into()),
            Period::Month => day - Days::new(day.day0().into()),
        }
    }

    /// Returns the first day of the period after that which begins on `first`.
    fn next_first(self, first: NaiveDate) -> NaiveDate {
        match self {
            Period::Hour | Period::Day => first + Days::new(1),
            Period::Week => first + Days::new(7),
            Period::Month => first + Months::new(1),
        }
    }
}

/// Calendar of an allowance: the length of its periods, and the zone whose clocks begin them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// Length of a period.
    pub period: Period,
    /// Zone of the clocks.
    pub zone: Zone,
}

/// One period of a calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// First moment of the period, which is its identity.
    pub start: WallMs,
    /// First moment of the next period.
    pub end: WallMs,
}

impl Stretch {
    /// Returns true if the moment is in the period.
    pub fn contains(self, at: WallMs) -> bool {
        (self.start..self.end).contains(&at)
    }
}

impl Calendar {
    /// Returns the period that a moment is in. Periods follow each other without gaps. A moment before 1970 or after
    /// the year 9999 is in the first or last of them.
    pub fn at(self, at: WallMs) -> Stretch {
        let at = at.clamp(WallMs(0), WallMs::LAST);
        let moment = DateTime::from_timestamp_millis(at.0).unwrap_or_default();
        let (start, end) = match self.period {
            Period::Hour => self.hour(moment),
            Period::Day | Period::Week | Period::Month => self.days(moment),
        };
        Stretch {
            start: WallMs(start.timestamp_millis()),
            end: WallMs(end.timestamp_millis()),
        }
    }

    fn days(self, moment: DateTime<Utc>) -> (DateTime<Utc>, DateTime<Utc>) {
        let mut first = self.period.first_day(zone::wall(self.zone, moment).date());
        loop {
            let next = self.period.next_first(first);
            let end = self.midnight(next);
            if end > moment {
                return (self.midnight(first), end);
            }
            // The clocks were set back over midnight: the next period has begun.
            first = next;
        }
    }

    /// Returns the moment at which a day begins.
    fn midnight(self, day: NaiveDate) -> DateTime<Utc> {
        let wall = day.and_time(chrono::NaiveTime::MIN);
        zone::first_moment(self.zone, wall).unwrap_or_else(|| wall.and_utc())
    }

    /// Returns the hour of a moment. A change by whole hours leaves hours whole; any other cuts one.
    fn hour(self, moment: DateTime<Utc>) -> (DateTime<Utc>, DateTime<Utc>) {
        let wall = zone::wall(self.zone, moment);
        let into = Span::seconds(i64::from(wall.minute() * 60 + wall.second()));
        let start = moment - into - Span::milliseconds(i64::from(moment.timestamp_subsec_millis()));
        let end = start + Span::hours(1);
        let cut = |from, until| {
            let change = zone::change_between(self.zone, from, until)?;
            let by = zone::offset(self.zone, until) - zone::offset(self.zone, from);
            (by.num_seconds() % 3600 != 0).then_some(change)
        };
        (
            cut(start, moment).unwrap_or(start),
            cut(moment, end).unwrap_or(end),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::cron::in_zone;
    use proptest::prelude::*;
    use std::time::Duration;

    const HOUR: i64 = 3_600_000;

    fn calendar(period: Period, zone: &str) -> Calendar {
        Calendar {
            period,
            zone: zone.parse().expect("a zone"),
        }
    }

    /// Returns the period of a moment as its first moment, by the clocks of the zone, and its hours.
    fn shown(period: Period, zone: &str, at: &str) -> (String, i64) {
        let at = WallMs::from_rfc3339(at).expect("a time");
        let stretch = calendar(period, zone).at(at);
        assert!(stretch.contains(at));
        let start = in_zone(stretch.start, zone).expect("a zone");
        (start, (stretch.end.0 - stretch.start.0) / HOUR)
    }

    #[test]
    fn a_period_begins_by_the_clocks_of_its_zone() {
        for (period, zone, at, start, hours) in [
            (
                Period::Hour,
                "UTC",
                "2026-05-05T10:59:59.999Z",
                "Tue 2026-05-05 10:00:00 UTC",
                1,
            ),
            (
                Period::Hour,
                "Asia/Kolkata",
                "2026-05-05T10:10:00Z",
                "Tue 2026-05-05 15:00:00 IST",
                1,
            ),
            (
                Period::Day,
                "America/Los_Angeles",
                "2026-05-05T06:59:59Z",
                "Mon 2026-05-04 00:00:00 PDT",
                24,
            ),
            (
                Period::Day,
                "Europe/Berlin",
                "2026-03-29T12:00:00Z",
                "Sun 2026-03-29 00:00:00 CET",
                23,
            ),
            (
                Period::Day,
                "Europe/Berlin",
                "2026-10-25T12:00:00Z",
                "Sun 2026-10-25 00:00:00 CEST",
                25,
            ),
            (
                Period::Week,
                "Europe/Berlin",
                "2026-10-25T22:59:59Z",
                "Mon 2026-10-19 00:00:00 CEST",
                169,
            ),
            (
                Period::Week,
                "UTC",
                "2026-10-26T00:00:00Z",
                "Mon 2026-10-26 00:00:00 UTC",
                168,
            ),
            (
                Period::Month,
                "UTC",
                "2028-02-29T12:00:00Z",
                "Tue 2028-02-01 00:00:00 UTC",
                29 * 24,
            ),
            (
                Period::Month,
                "Europe/Berlin",
                "2026-03-01T00:00:00Z",
                "Sun 2026-03-01 00:00:00 CET",
                31 * 24 - 1,
            ),
        ] {
            assert_eq!(shown(period, zone, at), (start.to_owned(), hours), "{zone} {at}");
        }
    }

    #[test]
    fn a_midnight_that_clocks_leave_out_or_show_twice_begins_one_day() {
        // Set forward at midnight.
        let (start, hours) = shown(Period::Day, "Africa/Cairo", "2026-04-24T10:00:00Z");
        assert_eq!((start.as_str(), hours), ("Fri 2026-04-24 01:00:00 EEST", 23));
        // Set back from 1:00 to midnight.
        let (start, hours) = shown(Period::Day, "America/Havana", "2026-11-01T05:30:00Z");
        assert_eq!((start.as_str(), hours), ("Sun 2026-11-01 00:00:00 CDT", 25));
        // Set back over midnight: the day that has begun goes on.
        let (start, hours) = shown(Period::Day, "America/St_Johns", "2006-10-29T03:15:00Z");
        assert_eq!((start.as_str(), hours), ("Sun 2006-10-29 00:00:00 NDT", 25));
        // A day that a zone left out is empty.
        let (start, _) = shown(Period::Day, "Pacific/Apia", "2011-12-30T10:00:00Z");
        assert_eq!(start, "Sat 2011-12-31 00:00:00 +14");
    }

    #[test]
    fn moments_out_of_range_are_in_the_first_or_last_period() {
        for period in Period::ALL {
            let calendar = calendar(period, "Pacific/Kiritimati");
            assert_eq!(calendar.at(WallMs(i64::MIN)), calendar.at(WallMs(0)));
            assert_eq!(calendar.at(WallMs(i64::MAX)), calendar.at(WallMs::LAST));
        }
    }

    /// Returns the moment since which the clocks have shown no later day than now; they are looked at each quarter of an
    /// hour from days before.
    fn naive_day(zone: &str, at: WallMs) -> WallMs {
        let quarter = Duration::from_secs(900);
        let at = WallMs(at.0 - at.0.rem_euclid(900_000));
        let steps = std::iter::successors(Some(at.minus(4 * 96 * quarter)), |time| Some(time.plus(quarter)));
        let days = steps.take_while(|time| *time <= at).map(|time| {
            let text = in_zone(time, zone).expect("a zone");
            (text[4..14].to_owned(), time)
        });
        let latest = days.reduce(|latest, next| if next.0 > latest.0 { next } else { latest });
        latest.expect("there are days").1
    }

    proptest! {
        #[test]
        fn periods_follow_each_other_and_a_day_begins_when_a_naive_look_at_the_clocks_says(
            at in 700_000_000_000..2_500_000_000_000_i64,
            zone in prop_oneof![
                Just("UTC"), Just("Europe/Berlin"), Just("America/Los_Angeles"), Just("Asia/Kathmandu"),
                Just("Australia/Lord_Howe"), Just("America/Havana"), Just("Africa/Cairo"), Just("Asia/Gaza"),
            ],
        ) {
            let at = WallMs(at);
            for period in Period::ALL {
                let calendar = calendar(period, zone);
                let stretch = calendar.at(at);
                prop_assert!(stretch.contains(at), "{:?} {:?}", period, stretch);
                for same in [stretch.start, WallMs(stretch.end.0 - 1)] {
                    prop_assert_eq!(calendar.at(same), stretch, "{:?}", period);
                }
                prop_assert_eq!(calendar.at(stretch.end).start, stretch.end, "{:?}", period);
                prop_assert_eq!(calendar.at(WallMs(stretch.start.0 - 1)).end, stretch.start, "{:?}", period);
            }
            prop_assert_eq!(calendar(Period::Day, zone).at(at).start, naive_day(zone, at));
        }
    }
}
