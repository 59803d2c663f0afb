//! Headers as services send them, and nonsense.

use std::time::Duration;

use proptest::prelude::*;

use crate::ids::WallMs;
use crate::pilot::headers::{Limits, Told, Unit, read};

/// 2026-11-28T12:00:00Z.
const AT: WallMs = WallMs(1_795_867_200_000);

fn of(headers: &[(&str, &str)]) -> Limits {
    read(headers.iter().copied(), AT)
}

fn told(unit: Unit, left: u64, seconds: f64) -> Told {
    Told {
        unit,
        left,
        reset: Some(Duration::from_secs_f64(seconds)),
    }
}

#[test]
fn waits_are_read_in_each_form() {
    for (name, value, seconds) in [
        ("Retry-After", "120", 120.0),
        ("retry-after", "0", 0.0),
        ("retry-after", "1.5", 1.5),
        ("retry-after-ms", "1250", 1.25),
        ("retry-after", "Sat, 28 Nov 2026 12:01:00 GMT", 60.0),
        ("retry-after", "2026-11-28T12:00:10Z", 10.0),
        ("retry-after", "2026-11-28T13:00:10+01:00", 10.0),
        ("retry-after", "Sat, 28 Nov 2026 11:00:00 GMT", 0.0),
        ("retry-after", "1795867230", 30.0),
        ("retry-after", "1795867230000", 30.0),
        ("retry-after", "6m0s", 360.0),
        ("retry-after", "1h2m3.5s", 3723.5),
        ("retry-after", "250ms", 0.25),
        ("retry-after", " 7 ", 7.0),
        ("retry-after", "301", 301.0),
        ("retry-after", "Saturday, 28-Nov-26 12:00:05 GMT", 5.0),
        ("retry-after", "Sat Nov 28 12:00:05 2026", 5.0),
        ("retry-after", "Sun Nov  8 12:00:05 2026", 0.0),
        ("retry-after", "Saturday, 28-Nov-76 12:00:05 GMT", 0.0),
        ("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("retry-after", "Sat, 28 Nov 2037 12:00:00 GMT", 347_155_200.0),
    ] {
        let wait = Duration::from_secs_f64(seconds);
        assert_eq!(of(&[(name, value)]).retry_after, Some(wait), "{name}: {value}");
    }
    let both = [
        ("retry-after", "2"),
        ("retry-after-ms", "1400"),
        ("retry-after", "3"),
    ];
    assert_eq!(of(&both).retry_after, Some(Duration::from_millis(1400)));
}

#[test]
fn a_wait_beyond_all_measure_is_read_as_a_long_one() {
    let day = Duration::from_secs(86_400);
    let wait = of(&[("retry-after", "99999999999999999999999")]).retry_after;
    assert!(wait.is_some_and(|wait| wait > day), "{wait:?}");
}

#[test]
fn windows_are_read_with_their_units() {
    let openai = [
        ("x-ratelimit-limit-requests", "60"),
        ("x-ratelimit-remaining-requests", "59"),
        ("x-ratelimit-reset-requests", "1s"),
        ("x-ratelimit-remaining-tokens", "149984"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ];
    assert_eq!(
        of(&openai).windows,
        [told(Unit::Calls, 59, 1.0), told(Unit::Tokens, 149_984, 360.0)]
    );
    let anthropic = [
        ("anthropic-ratelimit-requests-limit", "50"),
        ("anthropic-ratelimit-requests-remaining", "0"),
        ("anthropic-ratelimit-requests-reset", "2026-11-28T12:00:30Z"),
        ("anthropic-ratelimit-input-tokens-remaining", "7000"),
        ("anthropic-ratelimit-input-tokens-reset", "2026-11-28T12:01:00Z"),
    ];
    assert_eq!(
        of(&anthropic).windows,
        [told(Unit::Calls, 0, 30.0), told(Unit::Tokens, 7000, 60.0)]
    );
    let github = [
        ("X-RateLimit-Remaining", "4999"),
        ("X-RateLimit-Reset", "1795870800"),
        ("X-RateLimit-Used", "1"),
    ];
    assert_eq!(of(&github).windows, [told(Unit::Calls, 4999, 3600.0)]);
    let draft = [
        ("RateLimit-Limit", "100, 100;w=60"),
        ("RateLimit-Remaining", "42"),
        ("RateLimit-Reset", "17"),
    ];
    assert_eq!(of(&draft).windows, [told(Unit::Calls, 42, 17.0)]);
    let list = [
        ("ratelimit", "limit=100, remaining=50, reset=5"),
        ("ratelimit-policy", "100;w=10"),
    ];
    assert_eq!(of(&list).windows, [told(Unit::Calls, 50, 5.0)]);
    let ietf = [("RateLimit", "\"burst\";r=9;t=1, \"daily\";r=700;t=3600")];
    assert_eq!(
        of(&ietf).windows,
        [told(Unit::Calls, 9, 1.0), told(Unit::Calls, 700, 3600.0)]
    );
    let other = [
        ("x-ratelimit-remaining-images", "3"),
        ("x-ratelimit-remaining-minute", "8"),
    ];
    assert!(
        of(&other)
            .windows
            .iter()
            .all(|window| window.unit == Unit::Other && window.reset.is_none())
    );
}

#[test]
fn nonsense_is_counted_and_changes_nothing() {
    for (name, value) in [
        ("retry-after", "-1"),
        ("retry-after", "+1"),
        ("retry-after", "NaN"),
        ("retry-after", "Sat Nov 28 12:00 2026"),
        ("retry-after", "1e9"),
        ("retry-after", "soon"),
        ("retry-after", ""),
        ("retry-after", "inf"),
        ("retry-after", "5s3m"),
        ("retry-after", "5 s"),
        ("retry-after", "Sat, 28 Nov 2026 12:01:00 CET"),
        ("retry-after-ms", "NaN"),
        ("x-ratelimit-remaining", "1.5"),
        ("x-ratelimit-remaining", "many"),
        ("x-ratelimit-reset", "yesterday"),
        ("ratelimit", "r"),
        ("ratelimit", "\"a\";r=x;t=1"),
    ] {
        let limits = of(&[(name, value)]);
        assert_eq!(
            limits,
            Limits {
                nonsense: 1,
                ..Limits::default()
            },
            "{name}: {value}"
        );
    }
    let foreign = [
        ("content-type", "text/plain"),
        ("x-ratelimit-policy", "?"),
        ("x-rate", "1"),
        ("", ""),
    ];
    assert_eq!(of(&foreign), Limits::default());
}

proptest! {
    #[test]
    fn whatever_is_sent_is_read_or_counted(
        name in prop_oneof![
            Just("retry-after"), Just("retry-after-ms"), Just("ratelimit"), Just("x-ratelimit-remaining"),
            Just("x-ratelimit-reset"), Just("anthropic-ratelimit-tokens-remaining"), Just("ratelimit-reset"),
        ],
        value in prop_oneof!["\\PC{0,40}", "[0-9.]{0,30}", "[0-9hms.]{0,20}", "[rt=;,0-9\" ]{0,30}"],
    ) {
        let limits = of(&[(name, &value)]);
        let is_read = limits.retry_after.is_some() || !limits.windows.is_empty() || limits.nonsense > 0;
        // A reset alone describes no window.
        prop_assert!(is_read || name.ends_with("reset"), "{}: {:?}", name, value);
    }

    #[test]
    fn seconds_and_spans_are_read_exactly(hours in 0u64..1000, minutes in 0u64..60, seconds in 0u64..60) {
        let sum = Duration::from_secs(hours * 3600 + minutes * 60 + seconds);
        let span = format!("{hours}h{minutes}m{seconds}s");
        prop_assert_eq!(of(&[("retry-after", &span)]).retry_after, Some(sum));
        let number = sum.as_secs().to_string();
        prop_assert_eq!(of(&[("retry-after", &number)]).retry_after, Some(sum));
    }

    #[test]
    fn names_are_compared_without_case(left in any::<u32>(), upper in any::<bool>()) {
        let name = if upper { "X-RATELIMIT-REMAINING" } else { "x-ratelimit-remaining" };
        let windows = of(&[(name, &left.to_string())]).windows;
        prop_assert_eq!(windows, [Told { unit: Unit::Calls, left: u64::from(left), reset: None }]);
    }
}
