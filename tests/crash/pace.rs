//! The pace over the lives of a job, from the gate times that its business saw.

use std::time::Duration;

use windrow_core::pace::burst_items;
use windrow_core::settings::{Burst, Rate};

use crate::business::{Business, Call};
use crate::dice;
use crate::process::{Job, count};

const FAST: u64 = 2_000;
const SLOW: u64 = 1_000;
const TOTAL: usize = 12_000;
/// Gate times are written in whole microseconds, and so are the ends of lives. Unit: items.
const ROUNDING: f64 = 0.05;

/// When a process lived and how fast it was allowed to be. Unit: microseconds since the Unix epoch.
struct Span {
    from: i64,
    to: i64,
    per_second: f64,
}

impl Span {
    /// How many items its rate made until then.
    fn earned(&self, until: i64) -> f64 {
        (until.clamp(self.from, self.to) - self.from) as f64 / 1e6 * self.per_second
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "compared with the gate times of another process"
)]
fn now() -> i64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970");
    i64::try_from(since.as_micros()).expect("this century")
}

fn burst(per_second: u64) -> f64 {
    let rate = Rate::per_second(per_second).expect("a rate");
    burst_items(Burst::Span(Duration::from_millis(100)), rate, 1) as f64
}

/// The most by which the attempts of any interval exceed what the spans earned in it, in one pass:
/// max over k of (k + 1 − earned(t_k)) − min over j ≤ k of (j − earned(t_j)).
fn over(times: &[i64], spans: &[Span]) -> f64 {
    let (mut least, mut most) = (f64::MAX, f64::MIN);
    for (k, time) in times.iter().enumerate() {
        let earned: f64 = spans.iter().map(|span| span.earned(*time)).sum();
        least = least.min(k as f64 - earned);
        most = most.max((k + 1) as f64 - earned - least);
    }
    most
}

/// One attempt in ten fails; which, depends on nothing but the attempt.
fn answer(call: &Call) -> (u16, String) {
    let (index, attempt) = call.items[0];
    let fails = (index * 7 + u64::from(attempt) * 3).is_multiple_of(10);
    (if fails { 500 } else { 204 }, String::new())
}

fn sorted(business: &Business) -> Vec<i64> {
    let mut times: Vec<i64> = business.record().gates.iter().map(|(gate, _)| *gate).collect();
    times.sort_unstable();
    times
}

#[test]
fn an_interval_above_the_pace_is_noticed() {
    let span = || {
        vec![Span {
            from: 0,
            to: 2_000_000,
            per_second: 10.0,
        }]
    };
    let even: Vec<i64> = (1..=20).map(|k| k * 100_000).collect();
    assert!(
        (over(&even, &span()) - 1.0).abs() < 1e-6,
        "{}",
        over(&even, &span())
    );
    let mut crowded = even;
    crowded.splice(10..10, [1_000_000; 4]);
    assert!(
        (over(&crowded, &span()) - 5.0).abs() < 1e-6,
        "{}",
        over(&crowded, &span())
    );
    let after_the_end = [1_900_000, 2_500_000, 3_000_000];
    assert!(
        over(&after_the_end, &span()) > 1.9,
        "nothing is earned when nobody lives"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_interval_exceeds_the_pace() {
    let mut rng = dice("no_interval_exceeds_the_pace");
    let place = tempfile::tempdir().expect("a directory");
    let business = Business::start(TOTAL, Duration::ZERO, answer).await;
    let words = format!(
        "--total {TOTAL} --concurrency 256 --max-attempts 50 --backoff 50ms..200ms --error-budget none --url {}",
        business.url()
    );
    let job = |rate: u64| {
        Job::new(place.path(), &words)
            .arg("--rate")
            .arg(format!("{rate}/s"))
    };
    let mut spans = Vec::new();
    for kill in [true, true, true, false] {
        let (from, newest) = (now(), business.record().newest());
        let mut life = job(FAST).start();
        life.until(business.newer_than(newest)).await;
        life.until(rng.moment(300, 1_500)).await;
        let end = if kill {
            life.kill().await
        } else {
            life.interrupt().await
        };
        assert_eq!(end.status.code(), (!kill).then_some(9), "{end:?}");
        spans.push(Span {
            from,
            to: now(),
            per_second: FAST as f64,
        });
    }
    let from = now();
    let summary = job(SLOW).finish().await.summary(0);
    spans.push(Span {
        from,
        to: now(),
        per_second: SLOW as f64,
    });
    assert_eq!(
        (count(&summary, "succeeded"), &summary["rate"]),
        (TOTAL as u64, &"1000/s".into())
    );

    let times = sorted(&business);
    let retries: u64 = business.record().runs.values().map(|run| run.retried).sum();
    assert!(retries > TOTAL as u64 / 20, "attempts were repeated: {retries}");
    // A life begins with an empty bucket, so a whole record has one burst only.
    let excess = over(&times, &spans);
    eprintln!(
        "{} attempts, {retries} retries; over {excess:.2} of {} items",
        times.len(),
        burst(FAST)
    );
    assert!(
        excess <= burst(FAST) + ROUNDING,
        "an interval exceeds the pace by {excess:.2} items"
    );
    for span in &spans {
        let within: Vec<i64> = times
            .iter()
            .copied()
            .filter(|time| (span.from..=span.to).contains(time))
            .collect();
        let (excess, allowed) = (
            over(&within, std::slice::from_ref(span)),
            burst(span.per_second as u64),
        );
        eprintln!(
            "  {} attempts at {}/s: over {excess:.2} of {allowed} items",
            within.len(),
            span.per_second
        );
        assert!(
            excess <= allowed + ROUNDING,
            "an interval exceeds the pace by {excess:.2} items"
        );
    }
}
