//! Workers that are killed, and workers that survive a killed windrow.

use std::collections::BTreeSet;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::diary::{Diary, Entry};
use crate::process::{Job, count};

fn pid(entries: &[(usize, Entry)], worker: usize) -> Pid {
    let began = entries.iter().find_map(|(who, entry)| match entry {
        Entry::Began(pid) if *who == worker => Some(*pid),
        _ => None,
    });
    Pid::from_raw(began.expect("it began").cast_signed()).expect("a process id")
}

fn done(diary: &Diary) -> BTreeSet<u64> {
    let index = |(_, entry)| match entry {
        Entry::Done(index) => Some(index),
        _ => None,
    };
    diary.entries().into_iter().filter_map(index).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_is_replaced_and_its_items_are_tried_again() {
    let (place, diary) = (tempfile::tempdir().expect("a directory"), Diary::open().await);
    let total = 3_000;
    let words = format!("--total {total} --concurrency 64 --backoff 50ms..50ms --rate 2000/s");
    let mut life = diary
        .worker()
        .into_iter()
        .fold(Job::new(place.path(), &words), Job::arg)
        .start();
    for (kills, items) in [(1, 500), (2, 1_500), (3, 2_500)] {
        life.until(diary.until(items, |entry| matches!(entry, Entry::Done(_))))
            .await;
        let entries = diary.entries();
        let newest = entries
            .iter()
            .filter(|(_, entry)| matches!(entry, Entry::Began(_)))
            .count()
            - 1;
        kill_process(pid(&entries, newest), Signal::KILL).expect("it lives");
        life.until(diary.until(kills, |entry| *entry == Entry::Gone))
            .await;
    }
    let summary = life.end().await.summary(0);
    diary.closed().await;
    assert_eq!(count(&summary, "succeeded"), total);
    assert_eq!(done(&diary).len() as u64, total);
    let workers = diary
        .entries()
        .iter()
        .filter(|(_, entry)| matches!(entry, Entry::Began(_)))
        .count();
    assert!(workers > 3, "killed workers were replaced: {workers}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_outlives_a_killed_windrow_is_ended_by_the_next_start() {
    let (place, diary) = (tempfile::tempdir().expect("a directory"), Diary::open().await);
    let job = Job::new(place.path(), "--total 2000 --concurrency 64 --rate 1000/s")
        .env("WINDROW_HANDLER__COMMAND__KILL_GRACE", "200ms");
    let job = diary.worker().into_iter().fold(job, Job::arg).arg("linger=1");
    let mut life = job.start();
    life.until(diary.until(200, |entry| matches!(entry, Entry::Done(_))))
        .await;
    life.kill().await;
    let left = pid(&diary.entries(), 0);
    test_kill_process(left).expect("the worker outlives its windrow");
    assert!(!diary.entries().contains(&(0, Entry::Gone)));

    let mut life = job.start();
    life.until(diary.until(1, |entry| *entry == Entry::Gone)).await;
    let summary = life.end().await.summary(0);
    diary.closed().await;
    let entries = diary.entries();
    let place_of =
        |what: &dyn Fn(&(usize, Entry)) -> bool| entries.iter().position(what).expect("it happened");
    let gone = place_of(&|entry| *entry == (0, Entry::Gone));
    let begun = place_of(&|(worker, entry)| *worker == 1 && matches!(entry, Entry::Got(_)));
    assert!(gone < begun, "both worked at the same time");
    assert_eq!((count(&summary, "succeeded"), done(&diary).len()), (2_000, 2_000));
}
