//! Windrow as a library: what the public surface promises, over a real folder.

mod node;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use tempfile::tempdir;
use windrow::{
    Answer, Batch, Cause, End, Error, Item, ItemCtx, ItemHandler, Job, LogLevel, Results, Windrow,
};

/// How often each key was seen.
type Seen = Arc<Mutex<BTreeMap<String, u64>>>;

async fn windrow(folder: &Path) -> Windrow {
    Windrow::builder()
        .store(folder)
        .build()
        .await
        .expect("a folder that nobody holds")
}

/// A job that notes each call.
fn noting(job: Job, seen: &Seen) -> Job {
    let seen = seen.clone();
    job.handler(move |item: Item| {
        *seen.lock().expect("not poisoned").entry(item.key).or_default() += 1;
        async { Ok::<_, String>(()) }
    })
}

#[tokio::test]
async fn each_item_is_handled_once_and_a_finished_job_does_nothing_more() {
    let (folder, seen) = (tempdir().expect("a folder"), Seen::default());
    for _ in 0..2 {
        let windrow = windrow(folder.path()).await;
        let report = windrow
            .run(noting(Job::items(0..500), &seen))
            .await
            .expect("it runs");
        assert_eq!(
            (report.end, report.succeeded, report.total),
            (End::Succeeded, 500, 500)
        );
        windrow.close().await;
    }
    let seen = seen.lock().expect("not poisoned");
    assert_eq!((seen.len(), seen.values().all(|times| *times == 1)), (500, true));
}

#[tokio::test]
async fn a_range_begins_where_it_says() {
    let (folder, indexes) = (tempdir().expect("a folder"), Arc::new(Mutex::new(Vec::new())));
    let windrow = windrow(folder.path()).await;
    let noted = indexes.clone();
    let job = Job::items(7..10).handler(move |item: Item| {
        noted.lock().expect("not poisoned").push(item.index.0);
        async { Ok::<_, String>(()) }
    });
    assert!(windrow.run(job).await.expect("it runs").is_finished());
    indexes.lock().expect("not poisoned").sort_unstable();
    assert_eq!(*indexes.lock().expect("not poisoned"), [7, 8, 9]);
    let other = windrow
        .run(noting(Job::items(0..10), &Seen::default()))
        .await
        .expect_err("another job");
    assert!(matches!(other, Error::Job(_)), "{other}");
    windrow.close().await;
}

#[tokio::test]
async fn a_stopped_job_goes_on_with_the_same_keys() {
    let (folder, seen) = (tempdir().expect("a folder"), Seen::default());
    let first = windrow(folder.path()).await;
    let running = first
        .start(noting(Job::items(0..1000).rate("200/s"), &seen))
        .await
        .expect("it begins");
    while running.progress().await.expect("readable").succeeded < 20 {
        tokio::task::yield_now().await;
    }
    running.stop().await.expect("it stops");
    let report = running.wait().await.expect("it stopped");
    assert!(
        matches!(report.end, End::Stopped { .. }) && report.succeeded < 1000,
        "{report:?}"
    );
    first.close().await;
    let second = windrow(folder.path()).await;
    let report = second
        .run(noting(Job::items(0..1000), &seen))
        .await
        .expect("it goes on");
    assert_eq!((report.end, report.succeeded), (End::Succeeded, 1000));
    second.close().await;
    let seen = seen.lock().expect("not poisoned");
    assert_eq!(
        (seen.len(), seen.values().sum::<u64>()),
        (1000, 1000),
        "nothing twice"
    );
}

#[tokio::test]
async fn what_is_dropped_in_the_middle_goes_on_and_others_run_beside_it() {
    let (folder, seen) = (tempdir().expect("a folder"), Seen::default());
    let first = windrow(folder.path()).await;
    let running = first
        .start(noting(Job::items(0..1000).rate("200/s"), &seen))
        .await
        .expect("it begins");
    while running.progress().await.expect("readable").succeeded < 50 {
        tokio::task::yield_now().await;
    }
    drop(running);
    drop(first);
    // The folder is free once what held it is gone from the threads that were given up.
    let second = loop {
        match Windrow::builder().store(folder.path()).build().await {
            Ok(windrow) => break windrow,
            Err(Error::Folder { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    let other = tempdir().expect("a folder");
    let beside = windrow(other.path()).await;
    let report = second
        .run(noting(Job::items(0..1000), &seen))
        .await
        .expect("it goes on");
    assert_eq!((report.end, report.succeeded), (End::Succeeded, 1000));
    let report = beside
        .run(noting(Job::items(0..10), &Seen::default()))
        .await
        .expect("it runs");
    assert_eq!(report.succeeded, 10);
    beside.close().await;
    assert_eq!(seen.lock().expect("not poisoned").len(), 1000);
    second.close().await;
}

#[tokio::test]
async fn errors_and_panics_are_failed_attempts_and_are_counted_by_code() {
    let folder = tempdir().expect("a folder");
    let windrow = windrow(folder.path()).await;
    let job = Job::items(0..30)
        .max_attempts(1)
        .handler(async |item: Item| match item.index.0 {
            3 | 4 => Err(std::io::Error::other("no such person")),
            5 => panic!("a mistake"),
            _ => Ok(()),
        });
    let report = windrow.run(job).await.expect("it runs");
    assert_eq!(
        (report.end, report.succeeded, report.failed),
        (End::WithFailures, 27, 3)
    );
    let failures: Vec<_> = report
        .failures
        .iter()
        .map(|group| (group.code.as_str(), group.count))
        .collect();
    assert_eq!(failures, [("ERROR", 2), ("PANIC", 1)]);
    assert_eq!(report.failures[0].example, "no such person");
    windrow.close().await;
}

struct Totals(Arc<AtomicU64>);

impl ItemHandler for Totals {
    async fn process(&self, _: &ItemCtx<'_>, items: Batch<'_>) -> Results {
        let amounts = items.iter().filter_map(|item| {
            let row: serde_json::Value = serde_json::from_str(item.data?).ok()?;
            row["amount"].as_str()?.parse::<u64>().ok()
        });
        self.0.fetch_add(amounts.sum(), Ordering::Relaxed);
        Results::AllOk
    }
}

#[tokio::test]
async fn rows_of_a_file_come_in_batches_and_two_jobs_run_at_a_time() {
    let (folder, sum) = (tempdir().expect("a folder"), Arc::new(AtomicU64::new(0)));
    let path = folder.path().join("orders.csv");
    let rows: String = (1..=100).map(|amount| format!("{amount}\n")).collect();
    std::fs::write(&path, format!("amount\n{rows}")).expect("written");
    let windrow = windrow(&folder.path().join("progress")).await;
    let orders = windrow.run(Job::csv(&path).batch(8).handler_of(Totals(sum.clone())));
    let others = windrow.run(noting(Job::items(0..200), &Seen::default()));
    let (orders, others) = tokio::join!(orders, others);
    assert_eq!(orders.expect("it runs").succeeded, 100);
    assert_eq!(others.expect("it runs").succeeded, 200);
    assert_eq!(sum.load(Ordering::Relaxed), 5050);
    windrow.close().await;
}

#[tokio::test]
async fn what_is_wrong_is_said_before_anything_runs() {
    let folder = tempdir().expect("a folder");
    let windrow = windrow(folder.path()).await;
    let job = || noting(Job::items(0..1), &Seen::default());
    for (job, said) in [
        (job().rate("500"), "500/s"),
        (job().concurrency(0), "concurrency must be at least 1"),
        (Job::items(0..1), "Job::handler"),
        (noting(Job::csv("no-such.csv"), &Seen::default()), "no-such.csv"),
    ] {
        let why = windrow.run(job).await.expect_err(said).to_string();
        assert!(why.contains(said), "{why}");
    }
    let held = Windrow::builder()
        .store(folder.path())
        .build()
        .await
        .expect_err("it is held")
        .to_string();
    assert!(held.contains("progress can't be saved"), "{held}");
    windrow.close().await;
}

#[tokio::test]
async fn rows_of_a_program_are_resumed_and_answered_with_everything_that_a_handler_can_say() {
    let folder = tempdir().expect("a folder");
    let windrow = windrow(folder.path()).await;
    let rows = || (0..100_u64).map(|number| BTreeMap::from([("number", number)]));
    let attempts = Arc::new(AtomicU64::new(0));
    let job = || {
        Job::rows(rows())
            .keep_results()
            .handler_with(attempts.clone(), async |attempts, item: Item| {
                attempts.fetch_add(1, Ordering::Relaxed);
                let number = item.json::<BTreeMap<String, u64>>()?["number"];
                Ok::<_, Cause>(match number {
                    1 => Answer::skip(),
                    2 => Answer::fail("NO_SUCH_NUMBER", "two"),
                    3 if item.attempt.get() == 1 => {
                        Answer::retry_after(Duration::from_millis(5), "LATER", "three")
                    }
                    4 => Answer::output(&number)
                        .log(LogLevel::Warn, "a line")
                        .pause(Duration::from_millis(5)),
                    _ => Answer::output(&number),
                })
            })
    };
    for _ in 0..2 {
        let running = windrow.start(job()).await.expect("it begins");
        let report = running.wait().await.expect("it ends");
        assert_eq!((report.succeeded, report.failed), (99, 1), "{report:?}");
        assert_eq!(report.failures[0].code, "NO_SUCH_NUMBER");
        let (mut outputs, mut read) = (running.outputs().await.expect("readable"), Vec::new());
        while let Some(output) = outputs.next().await.expect("readable") {
            read.push((output.index, output.json::<u64>().expect("a number")));
        }
        let expected = (0..100).filter(|number| ![1, 2].contains(number));
        assert_eq!(read, expected.map(|number| (number, number)).collect::<Vec<_>>());
    }
    assert_eq!(
        attempts.load(Ordering::Relaxed),
        101,
        "a finished job does nothing more"
    );
    let others = Job::rows([1, 2, 3]).handler(async |_| Ok::<_, Cause>(()));
    let refused = windrow.start(others).await;
    assert!(
        matches!(refused, Err(Error::Job(_))),
        "other rows under the same name"
    );
    windrow.close().await;
}

#[tokio::test]
async fn a_stream_is_a_job_too() {
    let folder = tempdir().expect("a folder");
    let windrow = windrow(folder.path()).await;
    let rows = futures_util::stream::iter(0..20).then(async |number| {
        tokio::task::yield_now().await;
        number
    });
    let job = Job::stream(rows).handler(async |item: Item| item.json::<u32>().map(|_| ()));
    let report = windrow.run(job).await.expect("it runs");
    assert_eq!((report.succeeded, report.total), (20, 20));
    windrow.close().await;
}
