//! Ctrl-C: what was stopped calmly is never repeated.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::business::Business;
use crate::diary::{Diary, Entry};
use crate::dice;
use crate::process::{Job, count};

const ROUNDS: u32 = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_then_resume_repeats_no_call_of_a_url() {
    let mut rng = dice("ctrl_c_then_resume_repeats_no_call_of_a_url");
    let place = tempfile::tempdir().expect("a directory");
    let items = 200_000;
    let business = Business::content(items, Duration::from_millis(20)).await;
    let words = format!(
        "--total {items} --batch 50 --concurrency 1000 --url {}",
        business.url()
    );
    let job = Job::new(place.path(), &words);
    // Too slow to be done before the last Ctrl-C.
    let paced = job.clone().arg("--rate").arg("20000/s");
    for _ in 0..ROUNDS {
        let newest = business.record().newest();
        let mut life = paced.start();
        life.until(business.newer_than(newest)).await;
        life.until(rng.moment(1, 500)).await;
        let summary = life.interrupt().await.summary(9);
        assert_eq!(
            (count(&summary, "in_flight"), &summary["status"]),
            (0, &"stopped".into())
        );
        let delivered: u64 = business.record().runs.values().map(|run| run.deliveries).sum();
        assert_eq!(
            count(&summary, "succeeded"),
            delivered,
            "what was delivered is accounted for"
        );
    }
    assert_eq!(count(&job.finish().await.summary(0), "succeeded"), items as u64);
    let record = business.record();
    assert_eq!((record.never_delivered(), record.repeats()), (0, 0));
    assert_eq!(record.runs.len() as u32, ROUNDS + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_then_resume_repeats_no_item_of_a_worker() {
    let mut rng = dice("ctrl_c_then_resume_repeats_no_item_of_a_worker");
    let place = tempfile::tempdir().expect("a directory");
    let diary = Diary::open().await;
    let items = 10_000;
    let with_worker = |rate: &str| {
        let words = format!("--total {items} --concurrency 64 {rate}");
        diary
            .worker()
            .into_iter()
            .fold(Job::new(place.path(), &words), Job::arg)
    };
    let (paced, job) = (with_worker("--rate 2000/s"), with_worker(""));
    for round in 0..ROUNDS {
        let done = diary.entries().len();
        let mut life = paced.start();
        life.until(diary.until(round as usize + 1, |entry| matches!(entry, Entry::Began(_))))
            .await;
        life.until(rng.moment(1, 500)).await;
        let end = life.interrupt().await;
        assert_eq!(count(&end.summary(9), "in_flight"), 0, "after {done} entries");
    }
    job.finish().await.summary(0);
    diary.closed().await;
    let mut times = BTreeMap::<u64, u32>::new();
    for (_, entry) in diary.entries() {
        if let Entry::Got(index) = entry {
            *times.entry(index).or_default() += 1;
        }
    }
    assert_eq!(
        (times.len(), times.values().sum::<u32>()),
        (items, items as u32),
        "each once"
    );
}
