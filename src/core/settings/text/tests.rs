//! Each text form: examples of the documentation, what is refused, and that display and reading are inverse.

use proptest::prelude::*;

use super::*;
use crate::settings::json::TEXT_CHARS_MAX;

fn shown<T: FromStr<Err = TextError> + fmt::Display>(text: &str) -> String {
    text.parse::<T>()
        .map_or_else(|error| error.to_string(), |value| value.to_string())
}

fn is_refused<T: FromStr<Err = TextError> + fmt::Debug>(texts: &[&str]) {
    for text in texts {
        let error = text.parse::<T>().expect_err(text).to_string();
        assert!(
            error.contains(&format!("{text:?}")) && error.contains("examples: "),
            "{error}"
        );
    }
}

#[test]
fn what_people_write_comes_back_as_they_wrote_it() {
    for text in [
        "500/s", "30/m", "1/h", "10/5s", "1000/s", "1/90s", "3/d", "7/250ms",
    ] {
        assert_eq!(shown::<Rate>(text), text);
    }
    for text in ["unlimited", "2000/s", "auto", "auto up to 30/m"] {
        assert_eq!(shown::<RateLimit>(text), text);
    }
    for text in ["100ms", "50 items", "1500ms"] {
        assert_eq!(shown::<Burst>(text), text);
    }
    for text in [
        "1s..60s x2 jitter 20%",
        "15s..10m x3 jitter 0%",
        "5s jitter 10%",
        "5s x1 jitter 0%",
    ] {
        assert_eq!(shown::<Backoff>(text), text);
    }
    for text in [
        "10/s", "1%", "500", "10/s 1%", "30/m 500", "none", "auto", "auto 1%", "0.5%", "0", "0.0001%", "100%",
    ] {
        assert_eq!(shown::<ErrorBudget>(text), text);
    }
    for text in ["64 KiB", "16 MiB", "20 GiB", "1000 B", "0 B"] {
        assert_eq!(shown::<ByteSize>(text), text);
    }
    assert_eq!(shown::<Auto<NonZeroU32>>("auto"), "auto");
    assert_eq!(shown::<OnExhausted>("fail"), "fail");
    assert_eq!(shown::<OnExhausted>("stop"), "stop");
    assert_eq!(shown::<Results>("keep"), "keep");
    assert_eq!(shown::<Results>("off"), "off");
}

#[test]
fn shorthands_mean_the_same_value() {
    assert_eq!(
        "10k/s".parse(),
        Ok(Rate::per_second(10_000).expect("a legal rate"))
    );
    assert_eq!("10_000 / s".parse::<Rate>(), "10k/s".parse::<Rate>());
    assert_eq!("1/60s".parse::<Rate>(), "1/m".parse::<Rate>());
    assert_eq!("50".parse::<Burst>(), "50 items".parse::<Burst>());
    assert_eq!(
        "1s..60s".parse::<Backoff>(),
        "1s..60s x2 jitter 20%".parse::<Backoff>()
    );
    assert_eq!("5s".parse::<Backoff>(), "5s..5s x2 jitter 20%".parse::<Backoff>());
    assert_eq!(
        "10_000".parse::<Auto<NonZeroU32>>(),
        "10000".parse::<Auto<NonZeroU32>>()
    );
    assert_eq!("4096".parse::<ByteSize>(), "4 KiB".parse::<ByteSize>());
    assert_eq!("500 kB".parse(), Ok(ByteSize(500_000)));
}

#[test]
fn nonsense_is_refused_with_the_text_and_an_example() {
    is_refused::<Rate>(&[
        "",
        "500",
        "0/s",
        "0.5/s",
        "-1/s",
        "1/",
        "/s",
        "1/0s",
        "5/x",
        "unlimited",
    ]);
    is_refused::<Rate>(&[
        "2000000000/s",
        "99999999999999999999/s",
        "18446744073709551615k/s",
        "_1/s",
        "1_/s",
    ]);
    is_refused::<RateLimit>(&[
        "Unlimited",
        "none",
        "0",
        "auto 5/s",
        "auto up to",
        "auto up to auto",
        "autoup to 5/s",
    ]);
    is_refused::<Burst>(&["0", "0 items", "items", "-5", "lots", "4294967296 items"]);
    is_refused::<Auto<NonZeroU32>>(&["0", "", "-1", "automatic", "4294967296", "1e3"]);
    is_refused::<Backoff>(&[
        "",
        "60s..1s",
        "1s..60s x0",
        "1s..60s x2 jitter 101%",
        "1s..60s jitter 20",
    ]);
    is_refused::<Backoff>(&[
        "1s.. x2",
        "x2",
        "1s..60s x2 jitter 20% more",
        "1s..60s jitter",
        "1s y",
    ]);
    is_refused::<OnExhausted>(&["", "Fail", "retry"]);
    is_refused::<Results>(&["", "Keep", "true"]);
    is_refused::<ErrorBudget>(&[
        "",
        "  ",
        "101%",
        "-1%",
        "1% 2%",
        "10/s 10/s",
        "none 1%",
        "0.00001%",
        ".5%",
    ]);
    is_refused::<ByteSize>(&["", "KiB", "-1 KiB", "1.5 MiB", "20000000 TiB", "1 XB"]);
}

#[test]
fn spans_are_numbers_with_units() {
    assert_eq!(parse_span("1h 30m"), Ok(Duration::from_secs(5_400)));
    assert_eq!(parse_span("1h30m"), parse_span("90m"));
    assert_eq!(
        parse_span("18446744073709551615s").map(|span| span.as_secs()),
        Ok(u64::MAX)
    );
    for wrong in [
        "", "5", "s", "5 s", " 5s", "5s ", "1.5s", "-5s", "5x", "1h  30m", "1h,30m", "5S", "５s",
    ] {
        assert!(parse_span(wrong).is_err(), "{wrong:?}");
    }
    for too_long in [
        "18446744073709551616s",
        "18446744073709551615d",
        "18446744073709551615s 999ms 1ms",
    ] {
        assert!(parse_span(too_long).is_err(), "{too_long}");
    }
}

#[test]
fn a_text_in_json_is_short() {
    let padded = |length: usize| format!("\"{:<length$}\"", "500/s");
    assert!(serde_json::from_str::<Rate>(&padded(TEXT_CHARS_MAX)).is_ok());
    assert!(serde_json::from_str::<Rate>(&padded(TEXT_CHARS_MAX + 1)).is_err());
}

#[test]
fn settings_accept_numbers_and_texts_in_json() {
    let read = |json| serde_json::from_str::<Auto<NonZeroU32>>(json);
    assert_eq!(read("64").ok(), NonZeroU32::new(64).map(Auto::Fixed));
    assert_eq!(read("\"auto\"").ok(), Some(Auto::Auto));
    assert!(
        read("0")
            .expect_err("0 is no concurrency")
            .to_string()
            .contains("\"auto\" or a number above 0")
    );
    assert_eq!(serde_json::from_str::<Burst>("50").ok(), "50 items".parse().ok());
    assert_eq!(
        serde_json::to_string(&Auto::Fixed(NonZeroU32::MIN))
            .ok()
            .as_deref(),
        Some("1")
    );
    assert_eq!(
        serde_json::to_string(&Rate::per_second(500).expect("legal"))
            .ok()
            .as_deref(),
        Some("\"500/s\"")
    );
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0..u64::from(u32::MAX)).prop_map(Duration::from_nanos),
        (0..u64::from(u32::MAX)).prop_map(Duration::from_millis),
        (0..1_000_000_u64).prop_map(Duration::from_secs),
        (0..5_000_u64).prop_map(|minutes| Duration::from_secs(60 * minutes)),
    ]
}

fn any_rate() -> impl Strategy<Value = Rate> {
    (1..=u64::from(u32::MAX), span()).prop_filter_map("too fast", |(items, per)| Rate::new(items, per))
}

fn any_limit() -> impl Strategy<Value = FailedLimit> {
    prop_oneof![
        any::<u64>().prop_map(FailedLimit::Count),
        (0..=1_000_000_u32).prop_map(FailedLimit::RatioPpm),
    ]
}

fn reads_back<T>(value: T) -> Result<(), TestCaseError>
where
    T: FromStr<Err = TextError> + fmt::Display + fmt::Debug + PartialEq,
{
    let read = value.to_string().parse::<T>();
    prop_assert_eq!(read.as_ref(), Ok(&value));
    Ok(())
}

proptest! {
    #[test]
    fn spans_read_back(span in span()) {
        prop_assert_eq!(parse_span(&span_text(span)), Ok(span));
    }

    #[test]
    fn rates_read_back(rate in any_rate()) {
        reads_back(rate)?;
        reads_back(RateLimit::Limited(rate))?;
    }

    #[test]
    fn bursts_and_numbers_read_back(span in span(), items in any::<NonZeroU32>()) {
        reads_back(Burst::Span(span))?;
        reads_back(Burst::Items(items))?;
        reads_back(Auto::Fixed(items))?;
    }

    #[test]
    fn backoffs_read_back(a in span(), b in span(), factor in 1..1000_u32, jitter_percent in 0..=100_u32) {
        reads_back(Backoff { first: a.min(b), max: a.max(b), factor, jitter_percent })?;
        reads_back(Backoff { first: a, max: a, factor, jitter_percent })?;
    }

    #[test]
    fn error_budgets_read_back(
        failed_attempts in proptest::option::of(prop_oneof![any_rate().prop_map(FailedAttempts::Rate), Just(FailedAttempts::AUTO)]),
        failed in proptest::option::of(any_limit()),
    ) {
        reads_back(ErrorBudget { failed_attempts, failed })?;
    }

    #[test]
    fn sizes_read_back(bytes in any::<u64>(), shift in 0..50_u32) {
        reads_back(ByteSize(bytes >> shift << shift))?;
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in "[0-9a-z/%. _xk-]{0,24}") {
        let outcomes = [
            text.parse::<RateLimit>().is_ok(), text.parse::<Burst>().is_ok(), text.parse::<Backoff>().is_ok(),
            text.parse::<ErrorBudget>().is_ok(), text.parse::<ByteSize>().is_ok(),
        ];
        // A text that is read must be one that can be shown and read again.
        if outcomes[3] {
            reads_back(text.parse::<ErrorBudget>().expect("just read"))?;
        }
        if outcomes[2] {
            reads_back(text.parse::<Backoff>().expect("just read"))?;
        }
    }
}

#[test]
fn a_rate_without_its_time_is_guessed() {
    for (bare, guess) in [("500", "500/s"), (" 10_000 ", "10000/s")] {
        let guess = format!("; did you mean {guess:?}? examples: ");
        for error in [
            bare.parse::<Rate>().unwrap_err(),
            bare.parse::<RateLimit>().unwrap_err(),
        ] {
            assert!(error.to_string().contains(&guess), "{error}");
        }
    }
    for other in ["0", "fast", "5/x"] {
        let error = other.parse::<Rate>().unwrap_err().to_string();
        assert!(!error.contains("did you mean"), "{error}");
    }
    let span = |text| parse_span(text).unwrap_err().to_string();
    assert!(
        span("500").contains("; did you mean \"500s\"? examples: "),
        "{}",
        span("500")
    );
    assert!(!span("5 x").contains("did you mean"), "{}", span("5 x"));
}
