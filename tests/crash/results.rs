//! Results through `kill -9`: each exactly once, in order, and what was written once stays as it was.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::business::{Business, Call};
use crate::dice;
use crate::process::Job;

const ROWS: usize = 20_000;
const KILLS: usize = 12;
const RATE: &str = "4000/s";

/// The whole lines of a file that is being written.
fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    whole.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_result_is_written_once_in_order_and_never_changes_through_kills() {
    let mut rng = dice("each_result_is_written_once_in_order_and_never_changes_through_kills");
    let place = tempfile::tempdir().expect("a directory");
    let answer = |call: &Call| {
        let (index, _) = call.items[0];
        (
            200,
            json!({"result": "ok", "output": {"of": index, "text": "an answer"}}).to_string(),
        )
    };
    let business = Business::start(ROWS, Duration::from_millis(3), answer).await;
    let (out, partial) = (
        place.path().join("out.ndjson"),
        place.path().join("out.ndjson.partial"),
    );
    let words = format!("--total {ROWS} --concurrency 200 --url {}", business.url());
    let job = Job::new(&place.path().join("state"), &words)
        .env("WINDROW_TASK_DEFAULTS__CHECKPOINT_INTERVAL", "100ms")
        .arg("--results-out")
        .arg(&out);
    let paced = job.clone().arg("--rate").arg(RATE);
    let mut seen: Vec<String> = Vec::new();
    for _ in 0..KILLS {
        let before = business.record().newest();
        let mut life = paced.start();
        life.until(business.newer_than(before)).await;
        life.until(rng.moment(100, 900)).await;
        assert_eq!(
            life.kill().await.status.code(),
            None,
            "it ended before it was killed"
        );
        let now = lines(&partial);
        assert!(now.len() >= seen.len(), "results were withdrawn");
        assert_eq!(now[..seen.len()], seen[..], "results have changed");
        seen = now;
    }
    assert!(!seen.is_empty(), "no life wrote anything");
    let end = job.finish().await;
    assert_eq!(end.status.code(), Some(0), "{end:?}");
    let all = lines(&out);
    assert_eq!(all.len(), ROWS);
    assert_eq!(all[..seen.len()], seen[..], "results have changed");
    for (index, line) in all.iter().enumerate() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["index"], index);
        assert_eq!(line["output"]["of"], index, "the answer to another item");
    }
}
