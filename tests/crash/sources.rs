//! A source that changes under a running job.

use std::fmt::Write;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::business::{Business, Call};
use crate::process::{Job, count};

const ROWS: usize = 200_000;
const OLD: &[u8] = b"honest";
const NEW: &[u8] = b"forged";

/// Writes the rows; says where the word of the last but one row stands.
fn write_rows(path: &Path) -> u64 {
    let mut text = String::from("id,word\n");
    for row in 0..ROWS {
        writeln!(text, "{row:07},honest").expect("a string takes any text");
    }
    std::fs::write(path, &text).expect("written");
    let row = "0000000,honest\n".len();
    (text.len() - row - OLD.len() - 1) as u64
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).expect("there");
    file.write_all_at(bytes, at).expect("written");
}

fn holds(body: &[u8], word: &[u8]) -> bool {
    body.windows(word.len()).any(|window| window == word)
}

/// A business that does something to the file before it answers its first call, and looks for forged rows.
async fn business(meddle: impl Fn() + Send + Sync + 'static, seen: &'static AtomicBool) -> Business {
    let first = AtomicBool::new(true);
    let act = move |call: &Call| {
        if first.swap(false, Ordering::Relaxed) {
            meddle();
        }
        if holds(&call.body, NEW) {
            seen.store(true, Ordering::Relaxed);
        }
        (204, String::new())
    };
    Business::start(ROWS, Duration::ZERO, act).await
}

fn job(place: &Path, rows: &PathBuf, business: &Business) -> Job {
    let words = format!("--batch 50 --concurrency 500 --url {} --csv", business.url());
    Job::new(&place.join("state"), &words).arg(rows)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_was_changed_under_the_job_never_leaves() {
    static FORGED: AtomicBool = AtomicBool::new(false);
    let place = tempfile::tempdir().expect("a directory");
    let rows = place.path().join("rows.csv");
    let at = write_rows(&rows);
    let changed = rows.clone();
    let business = business(move || overwrite(&changed, at, NEW), &FORGED).await;
    let job = job(place.path(), &rows, &business);

    let end = job.finish().await;
    let summary = end.summary(9);
    assert_eq!(summary["stop_reason"], "source_changed", "{summary}");
    let said = end.stderr.join("\n");
    for part in [
        "have changed",
        "try: restore the old file",
        "--restart",
        "rows.csv",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    assert!(!FORGED.load(Ordering::Relaxed), "a changed row left");
    let done = count(&summary, "succeeded");
    assert!(done > 0 && done < ROWS as u64, "{summary}");
    {
        let record = business.record();
        assert_eq!(
            record.counts[ROWS - 2..],
            [0, 0],
            "rows of the changed block left"
        );
        assert_eq!(record.repeats(), 0);
    }

    overwrite(&rows, at, OLD);
    let end = job.finish().await;
    assert_eq!(count(&end.summary(0), "succeeded"), ROWS as u64);
    assert!(
        end.resumed_at().is_some(),
        "with the old content the job goes on: {end:?}"
    );
    let record = business.record();
    assert_eq!((record.never_delivered(), record.repeats()), (0, 0));
    assert!(!FORGED.load(Ordering::Relaxed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_appended_under_the_job_are_left_alone() {
    static FORGED: AtomicBool = AtomicBool::new(false);
    let place = tempfile::tempdir().expect("a directory");
    let rows = place.path().join("rows.csv");
    write_rows(&rows);
    let grown = rows.clone();
    let append = move || {
        let mut file = OpenOptions::new().append(true).open(&grown).expect("there");
        std::io::Write::write_all(&mut file, b"9999999,forged\n").expect("written");
    };
    let business = business(append, &FORGED).await;
    let summary = job(place.path(), &rows, &business).finish().await.summary(0);
    assert_eq!(
        (count(&summary, "succeeded"), &summary["total"]),
        (ROWS as u64, &ROWS.into())
    );
    assert!(!FORGED.load(Ordering::Relaxed), "a row left that was not counted");
    assert_eq!(business.record().repeats(), 0);
}
