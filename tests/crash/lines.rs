//! What a business says about its items outlives `kill -9` as the results of those items do.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use windrow_core::ids::TaskId;
use windrow_engine::ports::handling::data_log::DataLog;
use windrow_engine::ports::tasks::store::TaskStore;
use windrow_store::sql::Store;

use crate::business::{Business, Call};
use crate::dice;
use crate::process::{Job, count};

const TOTAL: u64 = 3_000;
const KILLS: usize = 5;

/// Says a line about each item.
fn talkative(call: &Call) -> (u16, String) {
    let (index, _) = call.items[0];
    (
        200,
        format!(r#"{{"result":"ok","logs":[{{"message":"item {index} is done"}}]}}"#),
    )
}

/// What the database of a dead process holds: settled items, and how many lines each item has.
async fn found(state: &Path) -> (u64, BTreeMap<u64, u32>) {
    let store = Store::open(&state.join("windrow.db")).await.expect("opened");
    let task = TaskId(1);
    let view = store.get(task).await.expect("read").expect("it is there");
    let mut lines = BTreeMap::new();
    // Those without an item tell of take-overs.
    let found = store.after(task, 0, u32::MAX).await.expect("read");
    for index in found.into_iter().filter_map(|(_, line)| line.line.index) {
        *lines.entry(index.0).or_default() += 1;
    }
    assert_eq!(
        store.dropped(task).await.expect("read"),
        [],
        "there was room for all"
    );
    store.close().await.expect("closed");
    (view.counters.settled(), lines)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_settled_item_has_the_line_that_came_with_its_reply_through_kills() {
    let mut rng = dice("every_settled_item_has_the_line_that_came_with_its_reply_through_kills");
    let place = tempfile::tempdir().expect("a directory");
    let business = Business::start(TOTAL as usize, Duration::from_millis(5), talkative).await;
    let words = format!("--total {TOTAL} --concurrency 50 --url {}", business.url());
    let job = Job::new(place.path(), &words);
    let paced = job.clone().arg("--rate").arg("300/s");
    let mut settled = 0;
    for _ in 0..KILLS {
        let before = business.record().newest();
        let mut life = paced.start();
        life.until(business.newer_than(before)).await;
        life.until(rng.moment(100, 1_500)).await;
        life.kill().await;
        let (now, lines) = found(place.path()).await;
        assert_eq!(
            lines.len() as u64,
            now,
            "each settled item has its line, and no other has one"
        );
        assert!(lines.values().all(|lines| *lines == 1), "{lines:?}");
        assert!(now >= settled, "{now} < {settled}");
        settled = now;
    }
    assert!(settled > 0, "the test is about items that were settled");
    assert_eq!(count(&job.finish().await.summary(0), "succeeded"), TOTAL);
    let (now, lines) = found(place.path()).await;
    assert_eq!((now, lines.len() as u64), (TOTAL, TOTAL));
    assert!(lines.values().all(|lines| *lines == 1), "{lines:?}");
}
