//! The series against a plain list of all points, and its bounds.

use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn at(seconds: u64) -> Moment {
    Moment(seconds * SECOND)
}

/// A second that ends at a moment.
fn second(end: u64, succeeded: u64) -> Slice {
    let mut point = Point {
        succeeded,
        ..Point::default()
    };
    point.permits.due = succeeded * 1_000_000;
    point.calls.record(Duration::from_millis(3), succeeded);
    point.gauges.watermark = end;
    Slice {
        from: at(end - 1),
        to: at(end),
        point,
    }
}

#[test]
fn a_span_sums_the_last_seconds_and_says_what_it_covers() {
    let mut series = Series::default();
    assert_eq!(series.span(at(5), Duration::from_secs(60)), None);
    (1..=30).for_each(|end| series.push(&second(end, 10)));
    let span = series.span(at(30), Duration::from_secs(10)).expect("it ran");
    assert_eq!(
        (span.covered, span.running),
        (Duration::from_secs(10), Duration::from_secs(10))
    );
    assert_eq!((span.point.succeeded, span.point.calls.count()), (100, 100));
    let span = series.span(at(40), Duration::from_secs(60)).expect("it ran");
    assert_eq!(
        (span.covered, span.running),
        (Duration::from_secs(40), Duration::from_secs(30))
    );
    assert_eq!((span.point.settled(), span.point.gauges.watermark), (300, 30));
    assert_eq!(
        series.span(at(100), Duration::from_secs(60)),
        None,
        "nothing ran in that time"
    );
}

#[test]
fn with_little_memory_a_minute_stays_and_with_enough_hours_do() {
    let (mut poor, mut rich) = (Series::default(), Series::default());
    for end in 1..=30_000 {
        poor.push(&second(end, 10));
        rich.push(&second(end, 10));
        poor.trim(0);
        rich.trim(1 << 20);
    }
    assert_eq!(poor.fine.points.len(), FINE_MIN);
    assert_eq!(
        poor.span(at(30_000), Duration::from_secs(60))
            .map(|span| span.point.succeeded),
        Some(600)
    );
    assert_eq!(
        (rich.fine.points.len(), rich.coarse.points.len()),
        (FINE_MAX, COARSE_MAX)
    );
    assert!(rich.bytes() < 1 << 20, "{}", rich.bytes());
    let hours = rich
        .span(at(30_000), Duration::from_secs(6 * 3600))
        .expect("it ran");
    assert_eq!(
        (hours.covered.as_secs(), hours.point.succeeded),
        (21_600, 216_000)
    );
    let slices = rich.slices(at(20_000), at(30_000), Duration::from_secs(1));
    assert_eq!(
        slices.first().map(|slice| slice.length()),
        Some(COARSE_STEP),
        "seconds are gone by then"
    );
    let slices = rich.slices(at(29_900), at(30_000), Duration::from_secs(1));
    assert_eq!((slices.len(), slices[0].length()), (100, Duration::from_secs(1)));
}

#[test]
fn a_point_never_spans_a_time_in_which_nothing_ran() {
    let mut series = Series::default();
    (1..=4)
        .chain(100..=104)
        .for_each(|end| series.push(&second(end, 1)));
    let slices = series.slices(at(0), at(104), COARSE_STEP);
    let bounds: Vec<(u64, u64)> = slices
        .iter()
        .map(|slice| (slice.from.0 / SECOND, slice.to.0 / SECOND))
        .collect();
    assert_eq!(bounds, [(0, 4), (99, 104)]);
}

proptest! {
    #[test]
    fn no_span_differs_from_the_sum_of_all_points_in_it(
        counts in proptest::collection::vec(proptest::option::of(0u64..1000), 1..400),
        length in 1u64..500,
    ) {
        let mut series = Series::default();
        for (end, count) in (1..).zip(&counts) {
            if let Some(count) = count {
                series.push(&second(end, *count));
            }
        }
        let now = counts.len() as u64;
        let lasts = counts.iter().rev().take(usize::try_from(length).expect("small"));
        let sum: u64 = lasts.clone().flatten().sum();
        let span = series.span(at(now), Duration::from_secs(length));
        prop_assert_eq!(span.as_ref().map_or(0, |span| span.point.succeeded), sum);
        let ran = lasts.flatten().count() as u64;
        prop_assert_eq!(span.map_or(0, |span| span.running.as_secs()), ran);
        // The tens of seconds hold the same as the seconds.
        let all: u64 = counts.iter().flatten().sum();
        let coarse = series.slices(at(0), at(now), COARSE_STEP);
        prop_assert_eq!(coarse.iter().map(|slice| slice.point.succeeded).sum::<u64>(), all);
    }
}
