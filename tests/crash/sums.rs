//! Whatever is said of a job, its terms add up to the total.

use std::time::Duration;

use crate::business::Business;
use crate::kills::mixed;
use crate::process::{End, Job, count};

const TOTAL: u64 = 3_000;
const TERMS: [&str; 7] = [
    "succeeded",
    "skipped",
    "failed",
    "in flight",
    "parked",
    "pending",
    "excluded",
];

/// The number after each word of a plain line; none where the line is not one of progress.
fn terms(line: &str) -> Option<Vec<u64>> {
    let (_, counts) = line.split_once("  succeeded ")?;
    let counts = format!("succeeded {counts}");
    let term = |name: &str| {
        let part = counts.split("  ").find_map(|part| part.strip_prefix(name));
        part.map_or(0, |number| {
            number
                .trim()
                .parse()
                .unwrap_or_else(|_| panic!("{name} in {line}"))
        })
    };
    Some(TERMS.iter().map(|name| term(name)).collect())
}

/// Checks every plain line; says the most that was parked at a time, and how many lines there were.
fn check_lines(end: &End) -> (u64, usize) {
    let told: Vec<Vec<u64>> = end.stderr.iter().filter_map(|line| terms(line)).collect();
    for terms in &told {
        assert_eq!(terms.iter().sum::<u64>(), TOTAL, "{terms:?} of {:?}", end.stderr);
    }
    (told.iter().map(|terms| terms[4]).max().unwrap_or(0), told.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sum_holds_in_every_output() {
    let place = tempfile::tempdir().expect("a directory");
    let business = Business::start(TOTAL as usize, Duration::from_millis(20), mixed).await;
    let words = format!(
        "--total {TOTAL} --max-attempts 4 --backoff 300ms..600ms --error-budget none --url {}",
        business.url()
    );
    let job = Job::new(place.path(), &words);
    let mut life = job.clone().arg("--rate").arg("200/s").start();
    // Late enough for a plain line that is due to its time, not to a change.
    life.until(tokio::time::sleep(Duration::from_millis(6_500))).await;
    let stopped = life.interrupt().await;
    let summary = stopped.summary(9);
    assert!(
        count(&summary, "parked") > 0 && count(&summary, "pending") > 0,
        "{summary}"
    );
    let (parked, lines) = check_lines(&stopped);
    assert!(parked > 0 && lines >= 3, "{:?}", stopped.stderr);

    let finished = job.arg("--rate").arg("800/s").finish().await;
    let summary = finished.summary(8);
    let (_, lines) = check_lines(&finished);
    assert!(lines >= 2, "{:?}", finished.stderr);
    let twelfth = TOTAL / 12;
    let counts = ["succeeded", "skipped", "failed", "parked", "pending"].map(|term| count(&summary, term));
    assert_eq!(counts, [9 * twelfth, twelfth, 2 * twelfth, 0, 0]);
}
