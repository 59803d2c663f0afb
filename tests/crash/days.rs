//! What was done in each day, through `kill -9`: the days of each shard sum up to its counters whenever its process died.
//!
//! `CRASH_KILLS=50` kills so often.

use std::path::Path;
use std::time::Duration;

use windrow_core::ids::TaskId;
use windrow_core::stats::daily::Settled;
use windrow_engine::ports::tasks::statistics::StatisticsStore as _;
use windrow_engine::ports::tasks::store::TaskStore as _;
use windrow_store::sql::Store;

use crate::business::Business;
use crate::dice;
use crate::kills::{kill_one, mixed};
use crate::process::{Job, count};

const TOTAL_MIN: u64 = 12_000;
/// A kill comes before this many items have settled, at 400 a second. Measured: 65 at most.
const ITEMS_PER_KILL: u64 = 120;

#[expect(
    clippy::disallowed_methods,
    reason = "a longer play comes from the environment"
)]
fn kills() -> u32 {
    std::env::var("CRASH_KILLS").map_or(8, |text| text.parse().expect("a number"))
}

/// Items of the job: enough that it lasts beyond the last kill, in twelfths.
fn total() -> u64 {
    (u64::from(kills()) * ITEMS_PER_KILL).max(TOTAL_MIN)
}

/// What the only task's days and its counters say.
async fn recount(state: &Path) -> (Settled, Settled) {
    let store = Store::open(&state.join("windrow.db")).await.expect("opened");
    let (task, days) = (store.get(TaskId(1)).await, store.shard_days(TaskId(1)).await);
    store.close().await.expect("closed");
    let days = days.expect("read").into_iter();
    let counters = task.expect("read").expect("it is there").counters;
    let sum = days.fold(Settled::default(), |sum, day| sum.plus(day.items));
    (sum, Settled::of(&counters))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn days_sum_up_to_the_counters_after_every_kill() {
    let mut rng = dice("days_sum_up_to_the_counters_after_every_kill");
    let total = total();
    let place = tempfile::tempdir().expect("a directory");
    let state = place.path().join("state");
    let business = Business::start(total as usize, Duration::from_millis(5), mixed).await;
    let words = format!(
        "--total {total} --concurrency 100 --max-attempts 4 --backoff 50ms..100ms --error-budget none --url {}",
        business.url()
    );
    let job = Job::new(&state, &words).env("WINDROW_TASK_DEFAULTS__CHECKPOINT_INTERVAL", "20ms");
    let paced = job.clone().arg("--rate").arg("400/s");
    let mut grown = 0;
    let mut before = Settled::default();
    for _ in 0..kills() {
        kill_one(&paced, &business, &mut rng).await;
        let (days, counters) = recount(&state).await;
        assert_eq!(days, counters);
        grown += u32::from(days != before);
        before = days;
    }
    assert!(
        grown > kills() / 4,
        "lives that settle nothing prove nothing: {grown}"
    );
    let summary = job.finish().await.summary(8);
    let (days, counters) = recount(&state).await;
    assert_eq!(days, counters);
    let told = ["succeeded", "skipped", "failed"].map(|term| count(&summary, term));
    assert_eq!([days.succeeded, days.skipped, days.failed], told);
    let twelfth = total / 12;
    assert_eq!(told, [9 * twelfth, twelfth, 2 * twelfth], "each item once");
}
