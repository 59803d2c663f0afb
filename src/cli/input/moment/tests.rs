//! Texts and what they are understood as, at one moment of one zone; and where clocks change.

use chrono::{FixedOffset, MappedLocalTime, Utc};

use super::*;

/// A Sunday evening in a zone an hour ahead of UTC.
fn sunday() -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339("2026-11-22T14:05:06.789+01:00").expect("a time")
}

fn ahead(text: &str) -> Result<String, MomentError> {
    read(text, Lean::Ahead, &sunday()).map(|found| found.exact)
}

fn back(text: &str) -> Result<String, MomentError> {
    read(text, Lean::Back, &sunday()).map(|found| found.exact)
}

#[test]
fn people_say_when_something_is_to_be() {
    for (text, exact) in [
        ("22:00", "2026-11-22T22:00:00+01:00"),
        (" 22:00:30 ", "2026-11-22T22:00:30+01:00"),
        ("14:05", "2026-11-23T14:05:00+01:00"),
        ("14:06", "2026-11-22T14:06:00+01:00"),
        ("06:00", "2026-11-23T06:00:00+01:00"),
        ("6:00", "2026-11-23T06:00:00+01:00"),
        ("00:00", "2026-11-23T00:00:00+01:00"),
        ("tonight", "2026-11-22T22:00:00+01:00"),
        ("Tonight 23:30", "2026-11-22T23:30:00+01:00"),
        ("today 18:00", "2026-11-22T18:00:00+01:00"),
        ("tomorrow", "2026-11-23T00:00:00+01:00"),
        ("tomorrow 06:00", "2026-11-23T06:00:00+01:00"),
        ("tomorrow  6:00", "2026-11-23T06:00:00+01:00"),
        ("8h", "2026-11-22T22:05:06+01:00"),
        ("in 8h", "2026-11-22T22:05:06+01:00"),
        ("1h 30m", "2026-11-22T15:35:06+01:00"),
        ("2d", "2026-11-24T14:05:06+01:00"),
        ("3s", "2026-11-22T14:05:09.789+01:00"),
        ("now", "2026-11-22T14:05:06.789+01:00"),
        ("2026-12-24", "2026-12-24T00:00:00+01:00"),
        ("2026-12-24 18:00", "2026-12-24T18:00:00+01:00"),
        ("2026-12-24T18:00:01", "2026-12-24T18:00:01+01:00"),
        ("2026-12-24T18:00:00Z", "2026-12-24T18:00:00+00:00"),
        ("2026-12-24t18:00:00.5-05:30", "2026-12-24T18:00:00.500-05:30"),
        ("2026-11-01", "2026-11-01T00:00:00+01:00"),
    ] {
        assert_eq!(ahead(text).as_deref(), Ok(exact), "{text:?}");
    }
}

#[test]
fn people_say_since_when() {
    for (text, exact) in [
        ("22:00", "2026-11-21T22:00:00+01:00"),
        ("14:05", "2026-11-22T14:05:00+01:00"),
        ("06:00", "2026-11-22T06:00:00+01:00"),
        ("8h", "2026-11-22T06:05:06+01:00"),
        ("8h ago", "2026-11-22T06:05:06+01:00"),
        ("10m", "2026-11-22T13:55:06+01:00"),
        ("yesterday", "2026-11-21T00:00:00+01:00"),
        ("yesterday 18:00", "2026-11-21T18:00:00+01:00"),
        ("today 06:00", "2026-11-22T06:00:00+01:00"),
        ("2026-11-20T17:03:40Z", "2026-11-20T17:03:40+00:00"),
    ] {
        assert_eq!(back(text).as_deref(), Ok(exact), "{text:?}");
    }
}

#[test]
fn what_is_no_time_is_not_guessed_at() {
    for text in [
        "",
        " ",
        "soon",
        "24:00",
        "22:60",
        "22",
        "22h00",
        "22.00",
        "10pm",
        "8",
        "-3m",
        "+8h",
        "8 hours",
        "tonight 8h",
        "tomorrow at 6:00",
        "in",
        "ago",
        "in tomorrow",
        "2026-13-01",
        "2026-02-30",
        "2026-12-24 25:00",
        "26-12-24",
        "24.12.2026",
        "22:00:60",
        "１２:００",
        "2026-12-24T18:00+01",
        "0x16:00",
    ] {
        assert_eq!(ahead(text), Err(MomentError::Unknown), "{text:?}");
        assert_eq!(back(text), Err(MomentError::Unknown), "{text:?}");
    }
    for text in ["99999999999d", "3000000d", "9999-12-31T23:59:59-23:00"] {
        assert_eq!(ahead(text), Err(MomentError::TooFar), "{text:?}");
    }
    assert_eq!(ahead("1969-12-31 23:00"), Err(MomentError::TooFar));
    assert_eq!(back("30000d"), Err(MomentError::TooFar), "before 1970");
}

#[test]
fn what_each_person_reads_otherwise_is_told_with_what_nobody_does() {
    for text in [
        "last week",
        "next month",
        "monday",
        "Fri 22:00",
        "this morning",
        "next Friday",
    ] {
        assert_eq!(back(text), Err(MomentError::Vague), "{text:?}");
        assert_eq!(ahead(text), Err(MomentError::Vague), "{text:?}");
    }
    let fault = told("--from", "last week", Lean::Back, &sunday()).expect_err("which day?");
    assert!(
        fault
            .to_string()
            .contains("a date, a time of day, or a span such as 7d"),
        "{fault}"
    );
    assert!(
        fault
            .hint
            .is_some_and(|hint| hint.starts_with("10m or 7d (that long ago), "))
    );
}

#[test]
fn a_time_of_today_that_is_over_is_told() {
    let over = |at: &str| Err(MomentError::Over(format!("2026-11-22T{at}+01:00")));
    assert_eq!(ahead("today 13:00"), over("13:00:00"));
    let late = DateTime::parse_from_rfc3339("2026-11-22T23:00:00+01:00").expect("a time");
    let tonight = read("tonight", Lean::Ahead, &late).map(|found| found.exact);
    assert_eq!(tonight, over("22:00:00"));
    assert!(
        tonight
            .expect_err("it is over")
            .to_string()
            .contains("is in the past")
    );
    let hint = told("--start-at", "tonight", Lean::Ahead, &late)
        .expect_err("it is over")
        .hint
        .expect("a hint");
    assert!(
        !hint.contains("tonight") && hint.contains("tomorrow 06:00"),
        "{hint}"
    );
}

#[test]
fn what_was_understood_is_said_unless_it_was_exact() {
    let line = |text| {
        told("--deadline", text, Lean::Ahead, &sunday())
            .expect("a time")
            .1
    };
    assert_eq!(
        line("22:00").as_deref(),
        Some("--deadline 22:00 → 2026-11-22T22:00:00+01:00")
    );
    assert_eq!(line("2026-12-24T18:00:00Z"), None);
    let since = told("--since", "10m", Lean::Back, &sunday()).expect("a time").1;
    assert_eq!(since.as_deref(), Some("--since 10m → 2026-11-22T13:55:06+01:00"));
    let fault = told("--deadline", "soon", Lean::Ahead, &sunday()).expect_err("no time");
    let hint = "22:00, tonight, 8h, tomorrow 06:00, 2026-11-23 22:00, 2026-11-23 22:00 Europe/Berlin, \
                2026-11-23T22:00:00Z";
    assert_eq!(
        (fault.exit, fault.hint.as_deref()),
        (Exit::Usage, Some(hint)),
        "a date that is to come"
    );
    let back = told("--since", "soon", Lean::Back, &sunday())
        .expect_err("no time")
        .hint;
    assert!(
        back.is_some_and(|hint| hint.contains("2026-11-21 22:00")),
        "a date that was"
    );
}

#[test]
fn a_time_that_is_over_is_refused_where_one_to_come_is_meant() {
    let start = |text| told("--start-at", text, Lean::Ahead, &sunday());
    for (text, at) in [
        ("yesterday", "2026-11-21T00:00:00+01:00"),
        ("5m ago", "2026-11-22T14:00:06+01:00"),
        ("2026-11-22", "2026-11-22T00:00:00+01:00"),
        ("2026-11-22T13:00:00Z", "2026-11-22T13:00:00+00:00"),
    ] {
        let fault = start(text).expect_err("it is over");
        let because = format!("--start-at {text:?}: {at} is in the past");
        assert_eq!(
            (fault.exit, fault.what.as_str(), fault.because[0].as_str()),
            (Exit::Usage, "the time has passed", because.as_str())
        );
        assert!(fault.hint.is_some_and(|hint| hint.contains("tomorrow 06:00")));
    }
    for just_now in ["now", "2026-11-22T14:05:06+01:00", "10s ago"] {
        assert!(
            start(just_now).is_ok(),
            "{just_now}: clocks differ, and a call takes its time"
        );
    }
    assert!(told("--since", "yesterday", Lean::Back, &sunday()).is_ok());
}

/// A zone like Berlin's in 2026: an hour ahead of UTC, two from 29 March to 25 October, changing at 01:00 UTC.
#[derive(Clone, Debug)]
struct Berlin;

fn offset(hours: i32) -> FixedOffset {
    FixedOffset::east_opt(hours * 3600).expect("an offset")
}

impl TimeZone for Berlin {
    type Offset = FixedOffset;

    fn from_offset(_: &FixedOffset) -> Berlin {
        Berlin
    }

    fn offset_from_local_date(&self, date: &NaiveDate) -> MappedLocalTime<FixedOffset> {
        self.offset_from_local_datetime(&date.and_time(NaiveTime::MIN))
    }

    fn offset_from_local_datetime(&self, local: &NaiveDateTime) -> MappedLocalTime<FixedOffset> {
        let fits = |hours| {
            let offset = offset(hours);
            (self.offset_from_utc_datetime(&(*local - offset)) == offset).then_some(offset)
        };
        match (fits(2), fits(1)) {
            (Some(first), Some(second)) => MappedLocalTime::Ambiguous(first, second),
            (Some(one), None) | (None, Some(one)) => MappedLocalTime::Single(one),
            (None, None) => MappedLocalTime::None,
        }
    }

    fn offset_from_utc_date(&self, utc: &NaiveDate) -> FixedOffset {
        self.offset_from_utc_datetime(&utc.and_time(NaiveTime::MIN))
    }

    fn offset_from_utc_datetime(&self, utc: &NaiveDateTime) -> FixedOffset {
        let at = |month, day| {
            NaiveDate::from_ymd_opt(2026, month, day)
                .and_then(|date| date.and_hms_opt(1, 0, 0))
                .expect("a time")
        };
        offset(if (at(3, 29)..at(10, 25)).contains(utc) {
            2
        } else {
            1
        })
    }
}

#[test]
fn a_time_has_the_offset_of_its_own_day() {
    let at = |now: &str, text: &str| {
        let now = DateTime::parse_from_rfc3339(now)
            .expect("a time")
            .with_timezone(&Utc);
        read(text, Lean::Ahead, &Berlin.from_utc_datetime(&now.naive_utc())).map(|found| found.exact)
    };
    // The night in which clocks are put back: a day of 25 hours.
    let saturday = "2026-10-24T20:00:00Z";
    assert_eq!(at(saturday, "23:00").as_deref(), Ok("2026-10-24T23:00:00+02:00"));
    assert_eq!(
        at(saturday, "tomorrow 06:00").as_deref(),
        Ok("2026-10-25T06:00:00+01:00")
    );
    assert_eq!(
        at(saturday, "9h").as_deref(),
        Ok("2026-10-25T06:00:00+01:00"),
        "a span is one of time, not of clocks"
    );
    assert_eq!(
        at(saturday, "02:30").as_deref(),
        Ok("2026-10-25T02:30:00+02:00"),
        "of two the first"
    );
    // The night in which they are put forward: there is no half past two.
    let spring = at("2026-03-28T20:00:00Z", "02:30");
    assert_eq!(
        spring,
        Err(MomentError::Skipped("2026-03-29 02:30:00".to_owned()))
    );
    assert_eq!(
        at("2026-03-28T20:00:00Z", "03:00").as_deref(),
        Ok("2026-03-29T03:00:00+02:00")
    );
}
