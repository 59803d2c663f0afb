//! Results through `kill -9`: each exactly once, in order, the answer to its own row; what was read once stays as it was.
//!
//! `WINDROW_RESULT_ROWS=200000` plays it with so many rows.

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::dice;
use crate::process::Job;
use crate::vendor::Vendor;

const ROWS: usize = 40_000;
const KILLS: u64 = 20;
/// Keeps the killed lives from finishing the job; the last one is unpaced.
const RATE: u64 = 3_000;

#[expect(
    clippy::disallowed_methods,
    reason = "a larger size comes from the environment"
)]
fn rows() -> usize {
    std::env::var("WINDROW_RESULT_ROWS").map_or(ROWS, |text| text.parse().expect("a number"))
}

fn id(row: usize) -> String {
    format!("A-{row:06}")
}

/// Neighbours differ, and no row has its index.
fn number(row: usize) -> usize {
    row * 7919 % 100_003 + 1
}

fn write_rows(path: &Path, rows: usize) {
    let mut out = BufWriter::new(std::fs::File::create(path).expect("a file"));
    writeln!(out, "id,n").expect("written");
    for row in 0..rows {
        writeln!(out, "{},{}", id(row), number(row)).expect("written");
    }
    out.flush().expect("written");
}

/// A file that is being written.
fn read(path: &Path) -> Vec<u8> {
    match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

/// What it has of whole lines.
fn whole(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    &bytes[..end.map_or(0, |end| end + 1)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_row_has_its_own_answer_once_in_order_and_none_ever_changes_through_kills() {
    let mut rng = dice("each_row_has_its_own_answer_once_in_order_and_none_ever_changes_through_kills");
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name);
    let (rows, vendor) = (rows(), Vendor::start().await);
    write_rows(&path("orders.csv"), rows);
    let call = format!("POST http://{}/v1/orders/{{id}}", vendor.address);
    let job = Job::new(&path("state"), "--concurrency 200")
        .env("WINDROW_TASK_DEFAULTS__CHECKPOINT_INTERVAL", "100ms")
        .arg("--csv")
        .arg(path("orders.csv"))
        .arg("--request")
        .arg(call)
        .arg("--json")
        .arg(r#"{"n": {n:number}}"#)
        .arg("--results-out")
        .arg(path("out.ndjson"));
    let paced = job.clone().arg("--rate").arg(format!("{RATE}/s"));
    // All lives together come to nine tenths of the rows at most.
    let most = rows as u64 * 900 / (RATE * KILLS);
    // What was read, also of a line that is not whole: the next life writes the same line there.
    let (mut seen, mut torn) = (Vec::new(), 0);
    let mut growths = 0;
    for _ in 0..KILLS {
        let known = vendor.calls_of_the_dead().await;
        let mut life = paced.start();
        life.until(vendor.more_calls_than(known)).await;
        life.until(rng.moment(most / 12, most)).await;
        let before = read(&path("out.ndjson.partial"));
        let end = life.kill().await;
        assert_eq!(end.status.code(), None, "it ended before it was killed: {end:?}");
        let after = read(&path("out.ndjson.partial"));
        assert!(
            before.starts_with(whole(&seen)),
            "results have changed or are gone"
        );
        assert!(after.starts_with(&before), "results have changed or are gone");
        growths += usize::from(whole(&after).len() > whole(&seen).len());
        torn += usize::from(whole(&after).len() < after.len());
        seen = after;
    }
    let end = job.finish().await;
    assert_eq!(end.status.code(), Some(0), "{end:?}");
    assert!(!path("out.ndjson.partial").exists());
    let all = read(&path("out.ndjson"));
    assert!(all.starts_with(&seen), "results have changed or are gone");
    let calls = vendor.calls();
    println!(
        "{rows} rows, {KILLS} kills: {} calls, {growths} lives wrote results, {torn} left a torn line",
        calls.len()
    );
    assert!(growths > 0, "no life wrote anything");
    check(&all, rows, &calls);
}

/// One line for each row, in order, with what the vendor answered to a call for that row.
fn check(all: &[u8], rows: usize, calls: &[String]) {
    let text = std::str::from_utf8(all).expect("text");
    assert!(text.ends_with('\n'));
    let mut used = BTreeSet::new();
    let mut count = 0;
    for (row, line) in text.lines().enumerate() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let call = line["output"]["call"]
            .as_u64()
            .unwrap_or_else(|| panic!("row {row}: {line}"));
        let of = &calls[usize::try_from(call).expect("small")];
        assert_eq!(*of, id(row), "the answer to another row: {line}");
        assert!(used.insert(call), "one answer for two rows: {line}");
        let answer = json!({"order": id(row), "n": number(row), "call": call});
        assert_eq!((&line["index"], &line["output"]), (&json!(row), &answer));
        count += 1;
    }
    assert_eq!(count, rows);
}
