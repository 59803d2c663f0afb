//! `kill -9`, again and again.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use crate::business::{Business, Record};
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

fn write_rows(path: &Path) {
    let mut out = BufWriter::new(std::fs::File::create(path).expect("a file"));
    writeln!(out, "id,name").expect("written");
    for row in 0..ROWS {
        writeln!(out, "{row},user {row}").expect("written");
    }
    out.flush().expect("written");
}

/// What is known of one life.
struct Story {
    run: u32,
    /// Until the first delivery.
    start: Duration,
    resumed_at: u64,
}

async fn kill_one(job: &Job, business: &Business, rng: &mut Rng) -> Story {
    let before = business.record().newest();
    let begun = Instant::now();
    let mut life = job.start();
    let run = life.until(business.newer_than(before)).await;
    let start = begun.elapsed();
    life.until(rng.moment(20, 600)).await;
    let end = life.kill().await;
    assert_eq!(end.status.code(), None, "it ended before it was killed: {end:?}");
    Story { run, start, resumed_at: end.resumed_at().unwrap_or(0) }
}

fn check_stories(record: &Record, stories: &[Story]) {
    for pair in stories.windows(2) {
        assert!(
            pair[0].resumed_at <= pair[1].resumed_at,
            "low water went back: {pair:?}",
            pair = pair[1].run
        );
    }
    for story in stories {
        let run = &record.runs[&story.run];
        assert!(run.lowest >= story.resumed_at, "run {} went below its low water: {run:?}", story.run);
        assert!(story.start <= AT_ONCE, "run {} began after {:?}", story.run, story.start);
    }
    for (no, run) in &record.runs {
        assert_eq!(run.retried, 0, "run {no} delivered items twice although all succeeded: {run:?}");
        assert!(run.repeated <= CONCURRENCY + UNSAVED_MAX, "too much was repeated of run {no}: {run:?}");
    }
}

fn report(record: &Record, stories: &[Story], took: Duration) {
    let spread = |mut values: Vec<u64>| {
        values.sort_unstable();
        (values[0], values[values.len() / 2], values[values.len() - 1])
    };
    let repeats = spread(stories.iter().map(|story| record.runs[&story.run].repeated).collect());
    let delivered = spread(stories.iter().map(|story| record.runs[&story.run].deliveries).collect());
    let starts = spread(stories[1..].iter().map(|story| story.start.as_millis() as u64).collect());
    eprintln!("{} kills in {took:.1?}; each as (least, median, most):", stories.len());
    eprintln!("  deliveries of a life {delivered:?}, repeats of a kill {repeats:?}");
    eprintln!("  from the start of a process to its first delivery {starts:?} ms");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_of_a_million_is_delivered_through_fifty_kills() {
    let mut rng = dice("every_row_of_a_million_is_delivered_through_fifty_kills");
    let place = tempfile::tempdir().expect("a directory");
    let rows = place.path().join("rows.csv");
    write_rows(&rows);
    let business = Business::content(ROWS, Duration::from_millis(5)).await;
    let words = format!("--batch 100 --concurrency {CONCURRENCY} --url {} --csv", business.url());
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
    assert_eq!(summary["low_water"], ROWS);
    assert!(end.resumed_at() >= stories.last().map(|story| story.resumed_at), "low water went back");
    check_stories(&record, &stories);
}
