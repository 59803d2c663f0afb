//! When schedules fire through changes of clocks, and what becomes of what is due. The tables are written by hand from the
//! published changes of 2026; the properties compare with walks minute by minute.

use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;
use croner::parser::{CronParser, Seconds};
use proptest::prelude::*;

use super::cron::Cron;
use super::placeholders::{FireTimes, filled, unknown};
use super::plan::{Gap, Outcome, PENDING_MAX, Plan, STEPS_MAX, Standing, plan, plan_one};
use super::timing::Timing;
use super::{GRACE, Missed, Overlap, Spec};
use crate::ids::{ScheduleId, WallMs};

fn at(text: &str) -> WallMs {
    let time = DateTime::parse_from_rfc3339(text).expect("RFC 3339");
    WallMs(time.timestamp_millis())
}

fn spec(timing: Timing) -> Spec {
    Spec {
        timing,
        start: None,
        end: None,
        jitter: Duration::ZERO,
        overlap: Overlap::Skip,
        missed: Missed::Latest,
    }
}

fn every(period: &str) -> Spec {
    let period = crate::settings::text::parse_span(period).expect("a span");
    spec(Timing::every(period).expect("a period"))
}

/// The first fires of an expression after a time, in UTC.
fn fires(cron: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let cron = Cron::parse(cron, zone).expect("an expression");
    let first = cron.next_after(at(after));
    let fires = std::iter::successors(first, |last| cron.next_after(*last));
    fires
        .take(count)
        .map(|fire| fire.to_rfc3339().replace(":00.000Z", "Z"))
        .collect()
}

#[test]
fn a_day_field_that_begins_with_a_star_leaves_the_choice_to_the_other() {
    for (cron, expected) in [
        // Mondays with an odd number.
        (
            "0 0 */2 * 1",
            ["2026-06-01T00:00Z", "2026-06-15T00:00Z", "2026-06-29T00:00Z"],
        ),
        // Every second day of the week, as long as it is one of the first ten of the month.
        (
            "0 0 1-10 * */3",
            ["2026-06-03T00:00Z", "2026-06-06T00:00Z", "2026-06-07T00:00Z"],
        ),
        // Neither begins with one: the first of the month, and each Monday.
        (
            "0 0 10 * 1",
            ["2026-06-01T00:00Z", "2026-06-08T00:00Z", "2026-06-10T00:00Z"],
        ),
        (
            "@midnight",
            ["2026-06-01T00:00Z", "2026-06-02T00:00Z", "2026-06-03T00:00Z"],
        ),
    ] {
        assert_eq!(fires(cron, "UTC", "2026-05-31T12:00:00Z", 3), expected, "{cron}");
    }
}

#[test]
fn fixed_hours_fire_once_a_day_where_the_clock_jumps_over_them() {
    for (cron, zone, after, expected) in [
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-27T12:00:00Z",
            ["2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"],
        ),
        (
            "30 2 * * *",
            "America/New_York",
            "2026-03-07T00:00:00Z",
            ["2026-03-07T07:30Z", "2026-03-08T07:00Z", "2026-03-09T06:30Z"],
        ),
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-02T12:00:00Z",
            ["2026-10-02T15:45Z", "2026-10-03T15:30Z", "2026-10-04T15:15Z"],
        ),
    ] {
        assert_eq!(fires(cron, zone, after, 3), expected, "{cron} in {zone}");
    }
}

#[test]
fn fixed_hours_fire_once_a_day_where_an_hour_comes_twice_and_the_first_time() {
    for (cron, zone, after, expected) in [
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-23T12:00:00Z",
            ["2026-10-24T00:30Z", "2026-10-25T00:30Z", "2026-10-26T01:30Z"],
        ),
        (
            "30 1 * * *",
            "America/New_York",
            "2026-10-31T00:00:00Z",
            ["2026-10-31T05:30Z", "2026-11-01T05:30Z", "2026-11-02T06:30Z"],
        ),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-04T12:00:00Z",
            ["2026-04-04T14:45Z", "2026-04-05T15:15Z", "2026-04-06T15:15Z"],
        ),
    ] {
        assert_eq!(fires(cron, zone, after, 3), expected, "{cron} in {zone}");
    }
    // Asked in the second of the two hours, the first of them is over.
    let second = fires("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1);
    assert_eq!(second, ["2026-10-26T01:30Z"]);
}

#[test]
fn any_hour_follows_elapsed_time_through_both_changes() {
    for (cron, zone, after, expected) in [
        (
            "0 * * * *",
            "Europe/Berlin",
            "2026-03-28T23:30:00Z",
            [
                "2026-03-29T00:00Z",
                "2026-03-29T01:00Z",
                "2026-03-29T02:00Z",
                "2026-03-29T03:00Z",
            ],
        ),
        (
            "0 * * * *",
            "Europe/Berlin",
            "2026-10-24T23:30:00Z",
            [
                "2026-10-25T00:00Z",
                "2026-10-25T01:00Z",
                "2026-10-25T02:00Z",
                "2026-10-25T03:00Z",
            ],
        ),
        (
            "30 * * * *",
            "America/New_York",
            "2026-11-01T05:00:00Z",
            [
                "2026-11-01T05:30Z",
                "2026-11-01T06:30Z",
                "2026-11-01T07:30Z",
                "2026-11-01T08:30Z",
            ],
        ),
        (
            "30 * * * *",
            "America/New_York",
            "2026-03-08T06:00:00Z",
            [
                "2026-03-08T06:30Z",
                "2026-03-08T07:30Z",
                "2026-03-08T08:30Z",
                "2026-03-08T09:30Z",
            ],
        ),
        (
            "*/30 * * * *",
            "Australia/Lord_Howe",
            "2026-04-04T14:00:00Z",
            [
                "2026-04-04T14:30Z",
                "2026-04-04T15:00Z",
                "2026-04-04T15:30Z",
                "2026-04-04T16:00Z",
            ],
        ),
        // By half an hour: full hours on the wall are an hour and a half apart, or half an hour.
        (
            "0 * * * *",
            "Australia/Lord_Howe",
            "2026-04-04T13:30:00Z",
            [
                "2026-04-04T14:00Z",
                "2026-04-04T15:30Z",
                "2026-04-04T16:30Z",
                "2026-04-04T17:30Z",
            ],
        ),
        (
            "0 * * * *",
            "Australia/Lord_Howe",
            "2026-10-03T14:00:00Z",
            [
                "2026-10-03T14:30Z",
                "2026-10-03T16:00Z",
                "2026-10-03T17:00Z",
                "2026-10-03T18:00Z",
            ],
        ),
    ] {
        assert_eq!(fires(cron, zone, after, 4), expected, "{cron} in {zone}");
    }
}

#[test]
fn several_hours_of_which_one_is_left_out_fire_once_each_moment() {
    let hours = fires("0 0-4 * * *", "America/New_York", "2026-03-08T04:00:00Z", 5);
    let expected = [
        "2026-03-08T05:00Z",
        "2026-03-08T06:00Z",
        "2026-03-08T07:00Z",
        "2026-03-08T08:00Z",
        "2026-03-09T04:00Z",
    ];
    assert_eq!(hours, expected);
}

#[test]
fn what_can_be_said_is_read_and_what_never_fires_has_no_next_fire() {
    let next = |cron: &str| fires(cron, "UTC", "2026-11-25T07:43:39Z", 1);
    assert_eq!(next("0 9 * * MON-FRI"), ["2026-11-25T09:00Z"]);
    assert_eq!(next("0 0 L * *"), ["2026-11-30T00:00Z"]);
    assert_eq!(next("@daily"), ["2026-11-26T00:00Z"]);
    assert_eq!(next("*/10 * * * * *"), ["2026-11-25T07:43:40.000Z"]);
    assert!(next("0 0 30 2 *").is_empty(), "there is no 30th of February");
    for (cron, zone, member) in [
        ("0 9 * *", "UTC", "cron"),
        ("61 * * * *", "UTC", "cron"),
        ("", "UTC", "cron"),
        ("* * * * *", "Europe/Berlino", "zone"),
        ("* * * * *", "", "zone"),
    ] {
        let fault = Cron::parse(cron, zone).expect_err(cron);
        assert_eq!(fault.member, member, "{cron:?} {zone:?}: {}", fault.what);
    }
    let long = format!("0 {} * * *", vec!["1"; 200].join(","));
    assert_eq!(Cron::parse(&long, "UTC").expect_err("too long").member, "cron");
}

#[test]
fn every_is_at_whole_multiples_of_its_period() {
    let half_hours = every("30m");
    assert_eq!(
        half_hours.next_after(at("2026-11-25T07:43:39Z")),
        Some(at("2026-11-25T08:00:00Z"))
    );
    assert_eq!(
        half_hours.next_after(at("2026-11-25T08:00:00Z")),
        Some(at("2026-11-25T08:30:00Z"))
    );
    let from_start = Spec {
        start: Some(at("2026-11-25T07:50:00Z")),
        end: Some(at("2026-11-25T08:50:00Z")),
        ..every("30m")
    };
    assert_eq!(
        from_start.next_after(at("2020-01-01T00:00:00Z")),
        from_start.start
    );
    assert_eq!(
        from_start.next_after(at("2026-11-25T07:50:00Z")),
        Some(at("2026-11-25T08:20:00Z"))
    );
    assert_eq!(
        from_start.next_after(at("2026-11-25T08:20:00Z")),
        None,
        "its end is no fire"
    );
    for wrong in ["500ms", "1500ms", "0s", "367d"] {
        let period = crate::settings::text::parse_span(wrong).expect("a span");
        assert!(Timing::every(period).is_err(), "{wrong}");
    }
}

#[test]
fn a_cron_expression_that_is_wrong_says_which_field_and_what_it_may_be() {
    for (text, said) in [
        ("99 3 * * *", r#"the minute can't be "99"; it is 0-59"#),
        ("1, 3 * * *", r#"the minute can't be "1,"; it is 0-59"#),
        ("0 3,,4 * * *", r#"the hour can't be "3,,4"; it is 0-23"#),
        ("0 0 * * L", r#"the weekday can't be "L"; it is 0-7, SUN-SAT"#),
        ("0 24 * * *", r#"the hour can't be "24"; it is 0-23"#),
        (
            "0 3 32 * *",
            r#"the day of the month can't be "32"; it is 1-31, L"#,
        ),
        ("61 0 3 * * *", r#"the second can't be "61"; it is 0-59"#),
        ("0 3 * * MUN", r#"the weekday can't be "MUN"; it is 0-7, SUN-SAT"#),
    ] {
        let fault = Cron::parse(text, "UTC").expect_err(text);
        assert_eq!(fault.what, format!("{text:?} can't be read: {said}"));
    }
}

#[test]
fn jitter_is_the_same_everywhere_and_stays_within_its_bound() {
    let jittered = Spec {
        jitter: Duration::from_secs(600),
        ..every("30m")
    };
    let mut lates = std::collections::BTreeSet::new();
    for number in 0..200 {
        let fire = WallMs(number * 1_800_000);
        let due = jittered.due(ScheduleId(7), fire);
        assert_eq!(due, jittered.due(ScheduleId(7), fire));
        assert!(due >= fire && due.since(fire) < Duration::from_secs(600));
        lates.insert(due.since(fire));
    }
    assert!(lates.len() > 190, "they are spread: {}", lates.len());
    assert!(jittered.faults().is_empty());
    let too_much = Spec {
        jitter: Duration::from_secs(1800),
        end: Some(WallMs(5)),
        start: Some(WallMs(5)),
        ..every("30m")
    };
    let members: Vec<&str> = too_much.faults().iter().map(|fault| fault.member).collect();
    assert_eq!(members, ["end", "jitter"]);
}

fn standing(next: WallMs) -> Standing {
    Standing {
        id: ScheduleId(1),
        next,
        is_busy: false,
        pending: 0,
        queued: 0,
    }
}

const SECOND: i64 = 1_000;

fn seconds(seconds: i64) -> WallMs {
    WallMs(seconds * SECOND)
}

#[test]
fn a_fire_that_is_due_makes_a_task_and_the_next_one_follows() {
    let plan = plan(&every("10s"), &standing(seconds(10)), seconds(11));
    let expected = Plan {
        missed: None,
        fires: vec![(seconds(10), Outcome::Make)],
        next: Some(seconds(20)),
    };
    assert_eq!(plan, expected);
    let early = super::plan::plan(&every("10s"), &standing(seconds(10)), WallMs(9_999));
    assert_eq!((early.fires.len(), early.next), (0, Some(seconds(10))));
}

#[test]
fn after_an_outage_the_newest_goes_and_the_others_are_listed() {
    let outage = plan(&every("10s"), &standing(seconds(10)), seconds(55));
    let gap = Gap {
        first: seconds(10),
        last: seconds(40),
        count: 4,
    };
    assert_eq!(outage.missed, Some(gap));
    assert_eq!(outage.fires, [(seconds(50), Outcome::Make)]);
    assert_eq!(outage.next, Some(seconds(60)));
}

#[test]
fn so_many_as_are_caught_up_with_go_in_their_order() {
    let caught_up = Spec {
        missed: Missed::All(3),
        overlap: Overlap::Queue,
        ..every("10s")
    };
    let outage = plan(&caught_up, &standing(seconds(10)), seconds(55));
    assert_eq!(
        outage.missed.map(|gap| (gap.last, gap.count)),
        Some((seconds(20), 2))
    );
    let fires = [
        (seconds(30), Outcome::Make),
        (seconds(40), Outcome::Queue),
        (seconds(50), Outcome::Queue),
    ];
    assert_eq!(outage.fires, fires);
}

#[test]
fn without_catching_up_only_what_is_hardly_late_goes() {
    let none = Spec {
        missed: Missed::None,
        ..every("1h")
    };
    let hour = standing(seconds(3600));
    let grace = WallMs(3_600_000).plus(GRACE);
    assert_eq!(plan(&none, &hour, grace).fires, [(seconds(3600), Outcome::Make)]);
    let late = plan(&none, &hour, grace.plus(Duration::from_millis(1)));
    assert!(late.fires.is_empty());
    assert_eq!(late.missed.map(|gap| gap.count), Some(1));
}

#[test]
fn a_long_outage_is_gone_through_in_bounded_steps_and_ends_as_if_it_were_one() {
    let mut standing = standing(seconds(10));
    let caught_up = Spec {
        missed: Missed::All(5),
        overlap: Overlap::Allow,
        ..every("1s")
    };
    let now = seconds(10 + 3 * STEPS_MAX as i64 + 2);
    let (mut missed, mut fires, mut rounds) = (0, Vec::new(), 0);
    loop {
        let plan = plan(&caught_up, &standing, now);
        missed += plan.missed.map_or(0, |gap| gap.count);
        fires.extend(plan.fires);
        rounds += 1;
        standing.next = plan.next.expect("it goes on");
        if standing.next > now {
            break;
        }
    }
    assert_eq!((rounds, fires.len()), (4, 5));
    assert_eq!(fires.last(), Some(&(now, Outcome::Make)));
    assert_eq!(
        missed as usize + fires.len(),
        3 * STEPS_MAX + 3,
        "each is one or the other"
    );
}

#[test]
fn what_runs_stands_in_the_way_as_the_schedule_says() {
    let busy = Standing {
        is_busy: true,
        ..standing(seconds(10))
    };
    let waiting = Standing { queued: 1, ..busy };
    let outcome = |overlap, standing: &Standing| {
        plan_one(
            &Spec {
                overlap,
                ..every("10s")
            },
            standing,
        )
    };
    assert_eq!(outcome(Overlap::Skip, &busy), Outcome::SkipOverlap);
    assert_eq!(outcome(Overlap::Queue, &busy), Outcome::Queue);
    assert_eq!(outcome(Overlap::Queue, &waiting), Outcome::SkipOverlap);
    assert_eq!(outcome(Overlap::CancelRunning, &busy), Outcome::Supersede);
    assert_eq!(outcome(Overlap::CancelRunning, &waiting), Outcome::Supersede);
    assert_eq!(outcome(Overlap::Allow, &busy), Outcome::Make);
    let about_to = Standing {
        pending: 1,
        ..standing(seconds(10))
    };
    assert_eq!(
        outcome(Overlap::Skip, &about_to),
        Outcome::SkipOverlap,
        "its task is as good as there"
    );
    let crowded = Standing {
        pending: PENDING_MAX,
        ..busy
    };
    assert_eq!(outcome(Overlap::Allow, &crowded), Outcome::SkipCrowded);
}

#[test]
fn policies_for_missed_fires_read_back_as_they_are_written() {
    for text in ["latest", "none", "all 1", "all 100"] {
        assert_eq!(
            text.parse::<Missed>().map(|missed| missed.to_string()),
            Ok(text.to_owned())
        );
    }
    for wrong in ["", "all", "all 0", "all 101", "all -1", "newest"] {
        assert!(wrong.parse::<Missed>().is_err(), "{wrong}");
    }
}

#[test]
fn texts_are_told_the_time_of_their_fire() {
    let times = FireTimes {
        fire: at("2026-11-20T23:30:00Z"),
        previous: None,
        zone: "Europe/Berlin",
    };
    let fill = |text: &str| filled(text, &times).expect("known placeholders");
    assert_eq!(fill("board-{fire_time:date}"), "board-2026-11-21");
    assert_eq!(fill("{fire_time:time}"), "2026-11-21T00-30");
    assert_eq!(
        fill(r#"{"since":"{previous_fire_time}","at":"{fire_time}"}"#),
        r#"{"since":"","at":"2026-11-20T23:30:00Z"}"#
    );
    assert_eq!(
        fill("{fire_time:unix} {fire_time:ms}"),
        "1795217400 1795217400000"
    );
    assert_eq!(
        fill("{name} {{x}} { {fire_time:unix"),
        "{name} {{x}} { {fire_time:unix",
        "other braces stay"
    );
    assert_eq!(fill("{\"{fire_time:unix}"), "{\"1795217400");
    for wrong in ["{fire_time:week}", "{fire_timed}", "{previous_fire_times}"] {
        assert!(filled(wrong, &times).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_no_placeholder_is_told_with_the_one_that_was_meant() {
    let meant = |text: &str| {
        let found: Vec<_> = unknown(text)
            .map(|wrong| (wrong.is_slip(), wrong.meant))
            .collect();
        assert_eq!(found.len(), 1, "{text}");
        found[0].clone()
    };
    for (text, is_slip, form) in [
        ("b-{fire_tme:date}", true, Some("fire_time:date")),
        ("{fire_time:dat}", true, Some("fire_time:date")),
        ("{firetime}", true, Some("fire_time")),
        ("{previous_fire_tine:ms}", true, Some("previous_fire_time:ms")),
        ("{unix}", false, Some("fire_time:unix")),
        ("{item}", false, None),
    ] {
        assert_eq!(meant(text), (is_slip, form.map(str::to_owned)), "{text}");
    }
    for text in [
        "board",
        "{fire_time}-{previous_fire_time:unix}",
        "{",
        "}{",
        "{fire_time",
    ] {
        assert_eq!(unknown(text).count(), 0, "{text}");
    }
}

/// What the clock on the wall shows.
fn wall(zone: Tz, moment: DateTime<Utc>) -> NaiveDateTime {
    let offset = zone.offset_from_utc_datetime(&moment.naive_utc()).fix();
    moment.naive_utc() + chrono::Duration::seconds(i64::from(offset.local_minus_utc()))
}

fn minutes(from: WallMs, count: i64) -> impl Iterator<Item = DateTime<Utc>> {
    (1..=count).filter_map(move |minute| DateTime::from_timestamp_millis(from.0 + minute * 60_000))
}

/// Days before which a clock changes, and some on which none does.
const DAYS: [(&str, &str); 8] = [
    ("Europe/Berlin", "2026-03-28T20:00:00Z"),
    ("Europe/Berlin", "2026-10-24T20:00:00Z"),
    ("America/New_York", "2026-03-08T00:00:00Z"),
    ("America/New_York", "2026-11-01T00:00:00Z"),
    ("Australia/Lord_Howe", "2026-04-04T09:00:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T09:00:00Z"),
    ("America/Havana", "2026-11-01T00:00:00Z"),
    ("Asia/Kathmandu", "2026-06-01T00:00:00Z"),
];

proptest! {
    #[test]
    fn any_hour_fires_whenever_the_wall_shows_it(day in 0..DAYS.len(), minute in 0..60_u32, step in 1..40_u32) {
        let (zone, begin) = DAYS[day];
        let text = format!("{minute}-59/{step} * * * *");
        let (cron, begin) = (Cron::parse(&text, zone).expect("sound"), at(begin));
        let zone: Tz = zone.parse().expect("a zone");
        let expression = CronParser::builder().seconds(Seconds::Optional).build().parse(&text).expect("sound");
        let named = |moment: &DateTime<Utc>| expression.is_time_matching(&wall(zone, *moment).and_utc()).unwrap_or(false);
        let expected: Vec<i64> = minutes(begin, 16 * 60).filter(named).map(|moment| moment.timestamp_millis()).collect();
        let mut found = Vec::new();
        let mut last = begin;
        while let Some(next) = cron.next_after(last).filter(|next| next.0 <= begin.0 + 16 * 3_600_000) {
            found.push(next.0);
            last = next;
        }
        prop_assert_eq!(found, expected, "{} in {}", text, zone);
    }

    #[test]
    fn fixed_hours_fire_when_the_wall_first_shows_them_or_more(
        day in 0..DAYS.len(), minute in 0..60_u32, step in 1..60_u32, hour in 0..24_u32, hours in 0..4_u32,
    ) {
        let (zone, begin) = DAYS[day];
        let text = format!("{minute}-59/{step} {hour}-{} * * *", (hour + hours).min(23));
        let (cron, begin) = (Cron::parse(&text, zone).expect("sound"), at(begin));
        let zone: Tz = zone.parse().expect("a zone");
        let expression = CronParser::builder().seconds(Seconds::Optional).build().parse(&text).expect("sound");
        // Every named minute between what the wall showed before and the most that it shows now.
        let mut most = wall(zone, DateTime::from_timestamp_millis(begin.0).expect("in range"));
        let mut expected = Vec::new();
        for moment in minutes(begin, 16 * 60) {
            let shown = wall(zone, moment);
            let mut is_named = false;
            while most < shown {
                most += chrono::Duration::minutes(1);
                is_named |= expression.is_time_matching(&most.and_utc()).unwrap_or(false);
            }
            if is_named {
                expected.push(moment.timestamp_millis());
            }
        }
        let mut found = Vec::new();
        let mut last = begin;
        while let Some(next) = cron.next_after(last).filter(|next| next.0 <= begin.0 + 16 * 3_600_000) {
            found.push(next.0);
            last = next;
        }
        prop_assert_eq!(found, expected, "{} in {}", text, zone);
    }
}
