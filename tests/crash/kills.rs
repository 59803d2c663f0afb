//! `kill -9`, again and again.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::business::{Business, Call, Record};
use crate::dice;
use crate::process::{Job, count};
use crate::rng::Rng;

const ROWS: usize = 1_000_000;
const KILLS: usize = 50;
const CONCURRENCY: u64 = 2_000;
const UNSAVED_MAX: u64 = 10_000;
/// Keeps the killed lives from finishing the job; the last one is unpaced.
const RATE: &str = "25000/s";
/// A dead owner's lease would take 15 s to run out: a start that waited for it would take longer than this.
const AT_ONCE: Duration = Duration::from_secs(8);

fn write_rows(path: &Path, rows: usize) {
    let mut out = BufWriter::new(std::fs::File::create(path).expect("a file"));
    writeln!(out, "id,name").expect("written");
    for row in 0..rows {
        writeln!(out, "{row},user {row}").expect("written");
    }
    out.flush().expect("written");
}

/// What is known of one life that was killed.
pub(crate) struct Story {
    run: u32,
    /// Until the first delivery.
    start: Duration,
    resumed_at: u64,
}

pub(crate) async fn kill_one(job: &Job, business: &Business, rng: &mut Rng) -> Story {
    let before = business.record().newest();
    let begun = Instant::now();
    let mut life = job.start();
    let run = life.until(business.newer_than(before)).await;
    let start = begun.elapsed();
    life.until(rng.moment(20, 600)).await;
    let end = life.kill().await;
    assert_eq!(end.status.code(), None, "it ended before it was killed: {end:?}");
    Story {
        run,
        start,
        resumed_at: end.resumed_at().unwrap_or(0),
    }
}

fn check_stories(record: &Record, stories: &[Story]) {
    for pair in stories.windows(2) {
        assert!(
            pair[0].resumed_at <= pair[1].resumed_at,
            "watermark went back: {pair:?}",
            pair = pair[1].run
        );
    }
    for story in stories {
        let run = &record.runs[&story.run];
        assert!(
            run.lowest >= story.resumed_at,
            "run {} went below its watermark: {run:?}",
            story.run
        );
        assert!(
            story.start <= AT_ONCE,
            "run {} began after {:?}",
            story.run,
            story.start
        );
    }
    for (no, run) in &record.runs {
        assert_eq!(
            run.retried, 0,
            "run {no} delivered items twice although all succeeded: {run:?}"
        );
        assert!(
            run.repeated <= CONCURRENCY + UNSAVED_MAX,
            "too much was repeated of run {no}: {run:?}"
        );
    }
}

fn report(record: &Record, stories: &[Story], took: Duration) {
    let spread = |mut values: Vec<u64>| {
        values.sort_unstable();
        (values[0], values[values.len() / 2], values[values.len() - 1])
    };
    let repeats = spread(
        stories
            .iter()
            .map(|story| record.runs[&story.run].repeated)
            .collect(),
    );
    let delivered = spread(
        stories
            .iter()
            .map(|story| record.runs[&story.run].deliveries)
            .collect(),
    );
    let starts = spread(
        stories[1..]
            .iter()
            .map(|story| story.start.as_millis() as u64)
            .collect(),
    );
    eprintln!(
        "{} kills in {took:.1?}; each as (least, median, most):",
        stories.len()
    );
    eprintln!("  deliveries of a life {delivered:?}, repeats of a kill {repeats:?}");
    eprintln!("  from the start of a process to its first delivery {starts:?} ms");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_of_a_million_is_delivered_through_fifty_kills() {
    let mut rng = dice("every_row_of_a_million_is_delivered_through_fifty_kills");
    let place = tempfile::tempdir().expect("a directory");
    let rows = place.path().join("rows.csv");
    write_rows(&rows, ROWS);
    let business = Business::content(ROWS, Duration::from_millis(5)).await;
    let words = format!(
        "--batch 100 --concurrency {CONCURRENCY} --url {} --csv",
        business.url()
    );
    let job = Job::new(&place.path().join("state"), &words)
        .arg(&rows)
        .env("WINDROW_TASK_DEFAULTS__UNSAVED_MAX", &UNSAVED_MAX.to_string());
    let paced = job.clone().arg("--rate").arg(RATE);
    let begun = Instant::now();
    let mut stories = Vec::new();
    for _ in 0..KILLS {
        stories.push(kill_one(&paced, &business, &mut rng).await);
    }
    let took = begun.elapsed();
    let end = job.finish().await;
    let summary = end.summary(0);
    let record = business.record();
    report(&record, &stories, took);
    eprintln!(
        "  the last life: {} items in {:.1?}",
        record.runs[&record.newest()].deliveries,
        begun.elapsed() - took
    );
    assert_eq!(record.never_delivered(), 0);
    assert_eq!(count(&summary, "succeeded"), ROWS as u64);
    assert_eq!(summary["watermark"], ROWS);
    assert!(
        end.resumed_at() >= stories.last().map(|story| story.resumed_at),
        "watermark went back"
    );
    check_stories(&record, &stories);
}

const MIXED: u64 = 6_000;

/// Items that are skipped, failed, exhausted, parked and repeated, next to those that succeed.
pub(crate) fn mixed(call: &Call) -> (u16, String) {
    let (index, attempt) = call.items[0];
    let body = match (index % 12, attempt) {
        (1, _) => r#"{"result":"skip"}"#,
        (2, _) => r#"{"result":"fail","code":"NO_SUCH_USER","message":"gone"}"#,
        (3, 1) => r#"{"result":"retry","retry_after":"3s","code":"BUSY"}"#,
        (4, 1 | 2) => return (500, String::new()),
        (5, _) => r#"{"result":"retry","retry_after":"10ms","code":"NEVER"}"#,
        _ => "",
    };
    (200, body.to_owned())
}

/// The index of each line, in the order of the file.
fn failed_items(path: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(path).expect("written");
    let index = |line| {
        serde_json::from_str::<Value>(line).expect("JSON")["index"]
            .as_u64()
            .expect("a number")
    };
    text.lines().map(index).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_failure_is_kept_once_through_kills() {
    let mut rng = dice("every_failure_is_kept_once_through_kills");
    let place = tempfile::tempdir().expect("a directory");
    let failures = place.path().join("failures.ndjson");
    let business = Business::start(MIXED as usize, Duration::from_millis(5), mixed).await;
    let words = format!(
        "--total {MIXED} --concurrency 100 --max-attempts 4 --backoff 50ms..100ms --error-budget none --url {}",
        business.url()
    );
    let job = Job::new(&place.path().join("state"), &words)
        .env("WINDROW_TASK_DEFAULTS__CHECKPOINT_INTERVAL", "100ms")
        .arg("--failures-out")
        .arg(&failures);
    let paced = job.clone().arg("--rate").arg("1000/s");
    for _ in 0..10 {
        kill_one(&paced, &business, &mut rng).await;
    }
    let summary = job.finish().await.summary(8);
    let twelfth = MIXED / 12;
    let counts = ["succeeded", "skipped", "failed", "parked", "pending"].map(|term| count(&summary, term));
    assert_eq!(counts, [9 * twelfth, twelfth, 2 * twelfth, 0, 0]);
    assert_eq!(business.record().never_delivered(), 0);
    let failed: Vec<u64> = (0..MIXED)
        .filter(|index| [2, 5].contains(&(index % 12)))
        .collect();
    assert_eq!(failed_items(&failures), failed, "each once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_is_killed_leaves_nothing_half_done() {
    let mut rng = dice("a_start_that_is_killed_leaves_nothing_half_done");
    let items = 2_000;
    for _ in 0..4 {
        let place = tempfile::tempdir().expect("a directory");
        let rows = place.path().join("rows.csv");
        write_rows(&rows, items);
        let business = Business::content(items, Duration::ZERO).await;
        let words = format!("--batch 50 --concurrency 100 --url {} --csv", business.url());
        let job = Job::new(&place.path().join("state"), &words).arg(&rows);
        for _ in 0..8 {
            let life = job.start();
            rng.moment(0, 80).await;
            life.kill().await;
        }
        assert_eq!(count(&job.finish().await.summary(0), "succeeded"), items as u64);
        assert_eq!(business.record().never_delivered(), 0);
    }
}
