//! Items that fail, hang or kill, among many that do not.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::diary::{Diary, Entry};
use crate::process::{End, Job, count};

const TOTAL: u64 = 2_007;
const HANG: [u64; 5] = [0, 1, 2, 3, 4];
const FAIL: u64 = 5;
const DIE: u64 = 1_000;

fn is_odd(index: u64) -> bool {
    HANG.contains(&index) || index == FAIL || index == DIE
}

async fn run(diary: &Diary, place: &Path, words: &str) -> End {
    let words = format!(
        "--total {TOTAL} --concurrency 64 --call-timeout 300ms --backoff 400ms..400ms --error-budget none {words}"
    );
    let failures = place.join("failures.ndjson");
    let job = Job::new(&place.join("state"), &words)
        .env("WINDROW_TASK_DEFAULTS__STRAGGLER_AFTER", "200ms")
        .arg("--failures-out")
        .arg(failures);
    let job = diary.worker().into_iter().fold(job, Job::arg);
    let odd = HANG.map(|index| format!("hang={index}")).into_iter();
    let end = odd
        .chain([format!("fail={FAIL}"), format!("die={DIE}")])
        .fold(job, Job::arg)
        .finish()
        .await;
    diary.closed().await;
    end
}

/// The code of each failed item.
fn codes(place: &Path) -> BTreeMap<u64, String> {
    let text = std::fs::read_to_string(place.join("failures.ndjson")).expect("written");
    let read = |line: &str| {
        let failure: Value = serde_json::from_str(line).expect("JSON");
        (
            failure["index"].as_u64().expect("a number"),
            failure["code"].as_str().expect("text").to_owned(),
        )
    };
    text.lines().map(read).collect()
}

fn check_failures(place: &Path) {
    let mut codes = codes(place);
    for index in HANG {
        assert_eq!(codes.remove(&index).as_deref(), Some("TIMEOUT"), "item {index}");
    }
    assert_eq!(codes.remove(&FAIL).as_deref(), Some("ALWAYS"));
    assert_eq!(codes.remove(&DIE).as_deref(), Some("WORKER_CRASH"));
    assert!(codes.is_empty(), "{codes:?}");
}

/// The place of the last entry that fulfils this.
fn last(entries: &[(usize, Entry)], what: impl Fn(&Entry) -> bool) -> usize {
    entries
        .iter()
        .rposition(|(_, entry)| what(entry))
        .expect("there is one")
}

/// Held back, at most what fits the concurrency would be done before the hanging items are given up. Not all of the
/// others are asked for: on a loaded machine the hangs' own time may run out before 2,000 lines are answered.
fn check_order(diary: &Diary) {
    let entries = diary.entries();
    let hangs = last(
        &entries,
        |entry| matches!(entry, Entry::Cancelled(index) if HANG.contains(index)),
    );
    let others = |entry: &Entry| matches!(entry, Entry::Done(index) if !is_odd(*index));
    let before = entries[..hangs].iter().filter(|(_, entry)| others(entry)).count() as u64;
    assert!(
        before > TOTAL / 2,
        "others were held back: {before} were done when the hanging items were given up"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn poison_and_hanging_items_do_not_hold_the_others_back() {
    let (place, diary) = (tempfile::tempdir().expect("a directory"), Diary::open().await);
    let summary = run(&diary, place.path(), "--max-attempts 8").await.summary(8);
    assert_eq!(count(&summary, "succeeded"), TOTAL - 7);
    assert_eq!(count(&summary, "failed"), 7);
    check_failures(place.path());
    check_order(&diary);
}

/// The items at watermark hang: without parking, nothing behind the window would leave until they gave up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_narrow_window_is_not_held_by_items_that_hang() {
    let (place, diary) = (tempfile::tempdir().expect("a directory"), Diary::open().await);
    let summary = run(&diary, place.path(), "--max-attempts 10 --window 256")
        .await
        .summary(8);
    assert_eq!(
        (count(&summary, "succeeded"), count(&summary, "failed")),
        (TOTAL - 7, 7)
    );
    check_failures(place.path());
    check_order(&diary);
}
