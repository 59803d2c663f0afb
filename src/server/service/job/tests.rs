use std::num::NonZeroU32;

use super::*;
use windrow_config::TaskDefaults;
use windrow_engine::ports::tasks::store::Actor;
use windrow_memory::MemoryStore;

fn job(name: &str, meaning: u64) -> Job {
    Job {
        business: "run".to_owned(),
        name: name.to_owned(),
        source: r#"{"kind":"range","total":10}"#.to_owned(),
        meaning,
        total: ItemCount(10),
        skip_first: ItemIndex(0),
        tuning: TaskDefaults::default().tuning,
        metering: Metering::default(),
        labels: BTreeMap::new(),
        parent: None,
    }
}

fn me() -> Write {
    Actor {
        name: "tester".to_owned(),
        source: "cli",
        ..Actor::windrow(None)
    }
    .writes()
}

async fn begin_at(tasks: &MemoryStore, job: &Job, restart: bool) -> Result<JobStart, JobError> {
    begin(tasks, job, restart, &me(), WallMs(1_000)).await
}

fn new(found: JobStart) -> TaskView {
    match found {
        JobStart::New(task) => task,
        other => panic!("not new: {other:?}"),
    }
}

#[tokio::test]
async fn a_new_job_is_made_and_started() {
    let tasks = MemoryStore::new();
    let task = new(begin_at(&tasks, &job("a", 1), false).await.expect("begun"));
    assert_eq!((task.status, task.start_no), (Status::Queued, 1));
}

#[tokio::test]
async fn the_same_job_goes_on_with_new_settings() {
    let tasks = MemoryStore::new();
    let first = new(begin_at(&tasks, &job("a", 1), false).await.expect("begun"));
    let stop = TaskCommand::Stop {
        reason: StopReason::Operator,
    };
    tasks
        .command(first.id, &stop, &me(), WallMs(2_000))
        .await
        .expect("stopped");
    let mut again = job("a", 1);
    again.tuning.max_attempts = NonZeroU32::MIN;
    let found = begin_at(&tasks, &again, false).await.expect("begun");
    let JobStart::Resumed(task) = found else {
        panic!("not resumed: {found:?}")
    };
    assert_eq!(
        (task.id, task.status, task.start_no),
        (first.id, Status::Queued, 2)
    );
    assert_eq!(task.tuning, again.tuning);
}

#[tokio::test]
async fn a_name_with_other_items_is_refused_and_nothing_changes() {
    let tasks = MemoryStore::new();
    let first = new(begin_at(&tasks, &job("a", 1), false).await.expect("begun"));
    let refused = begin_at(&tasks, &job("a", 2), false)
        .await
        .expect_err("other items");
    assert!(matches!(refused, JobError::OtherMeaning { task } if *task == first));
    assert_eq!(tasks.get(first.id).await.expect("read"), Some(first));
}

#[tokio::test]
async fn restart_makes_a_new_task_and_cancels_the_old_one() {
    let tasks = MemoryStore::new();
    let first = new(begin_at(&tasks, &job("a", 1), false).await.expect("begun"));
    let second = new(begin_at(&tasks, &job("a", 2), true).await.expect("begun"));
    assert_ne!(first.id, second.id);
    let old = tasks.get(first.id).await.expect("read").expect("still there");
    assert_eq!((old.status, old.life.spec.name), (Status::Cancelled, None));
}

#[tokio::test]
async fn a_cancelled_job_counts_as_ended() {
    let tasks = MemoryStore::new();
    let first = new(begin_at(&tasks, &job("a", 1), false).await.expect("begun"));
    tasks
        .command(first.id, &TaskCommand::Cancel, &me(), WallMs(2_000))
        .await
        .expect("cancelled");
    let found = begin_at(&tasks, &job("a", 1), false).await.expect("found");
    assert!(matches!(found, JobStart::Ended(task) if task.id == first.id));
}

#[tokio::test]
async fn other_limits_are_set_before_a_stopped_job_goes_on() {
    let tasks = MemoryStore::new();
    let limited = |limit: &str| Job {
        metering: Metering::parse(&[limit.to_owned()], &[], &[], &[]).expect("sound"),
        ..job("a", 1)
    };
    let first = new(begin_at(&tasks, &limited("200 calls"), false)
        .await
        .expect("begun"));
    assert_eq!(first.spec.metering.to_string(), "200 calls");
    let found = begin_at(&tasks, &limited("500 calls"), false)
        .await
        .expect("begun");
    let JobStart::Resumed(task) = found else {
        panic!("not resumed: {found:?}")
    };
    assert_eq!((task.status, task.start_no), (Status::Queued, 2));
    assert_eq!(task.spec.metering.to_string(), "500 calls");
}
