//! A disk that is full for a while.

use std::time::Duration;

use crate::business::Business;
use crate::kills::mixed;
use crate::process::{Job, count};

const TOTAL: u64 = 6_000;

/// What the database needs to come up, and then some. Unit: blocks of 512 bytes.
const ROOM: u32 = 1_800;

/// A file that may not grow is as good as a full disk, and needs no privileges.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_goes_on_when_a_full_disk_has_room_again() {
    let place = tempfile::tempdir().expect("a directory");
    let business = Business::start(TOTAL as usize, Duration::from_millis(1), mixed).await;
    let words = format!(
        "--total {TOTAL} --rate 2000/s --concurrency 200 --max-attempts 4 --backoff 50ms..100ms --error-budget none \
         --url {}",
        business.url()
    );
    let job = Job::new(place.path(), &words)
        .env("WINDROW_TASK_DEFAULTS__CHECKPOINT_INTERVAL", "50ms")
        .env("WINDROW_CLUSTER__LEASE_TTL", "2s")
        .env("WINDROW_CLUSTER__LEASE_RENEW", "500ms");
    let mut life = job.start_within(ROOM);
    let mut lines = life.lines();
    let full = lines.wait_for(|lines| lines.iter().any(|line| line.contains("can't save progress")));
    life.until(full).await.expect("it lives");
    // Every kind of write has failed by then, more than once, and the node's own heartbeat was silent for so long that it
    // would fence another's session.
    life.until(tokio::time::sleep(Duration::from_secs(8))).await;
    life.unlimit();
    let summary = life.end().await.summary(8);
    let twelfth = TOTAL / 12;
    let counts = ["succeeded", "skipped", "failed", "parked", "pending"].map(|term| count(&summary, term));
    assert_eq!(counts, [9 * twelfth, twelfth, 2 * twelfth, 0, 0]);
    let record = business.record();
    assert_eq!(
        (record.never_delivered(), record.runs.len()),
        (0, 1),
        "one run saw it through"
    );
}
