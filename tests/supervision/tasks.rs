//! Tasks as tests make them, and as they look at them.

use std::time::Duration;

use windrow_config::Config;
use windrow_core::ids::{ItemCount, TaskId};
use windrow_core::settings::RateLimit;
use windrow_core::task::spec::TaskSpec;
use windrow_core::task::{Canary, Tuning};
use windrow_engine::ports::tasks::store::{Actor, NewTask, TaskStore, TaskView, Write};
use windrow_memory::MemoryStore;

use crate::patience::within;

pub fn write() -> Write {
    Actor {
        name: "test".into(),
        source: "cli",
        ..Actor::windrow(None)
    }
    .writes()
}

pub fn new_task(total: u64, canary: Option<Canary>, tune: impl FnOnce(&mut Tuning)) -> NewTask {
    let mut tuning = Config::default().task_defaults.tuning;
    tuning.rate = RateLimit::Unlimited;
    tune(&mut tuning);
    NewTask {
        spec: TaskSpec {
            canary,
            ..TaskSpec::default()
        },
        ..NewTask::of("run", ItemCount(total), tuning)
    }
}

pub async fn view(store: &MemoryStore, task: TaskId) -> TaskView {
    store.get(task).await.expect("memory").expect("exists")
}

/// Waits until a task looks so; past the limit the test fails with what it looks like then, and with the nodes' trees.
pub async fn until_that(
    store: &MemoryStore,
    task: TaskId,
    limit: Duration,
    what: &str,
    is: impl Fn(&TaskView) -> bool,
    trees: impl Fn() -> String,
) -> TaskView {
    let look = || async { Some(view(store, task).await).filter(|view| is(view)) };
    match within(limit, look).await {
        Some(view) => view,
        None => panic!(
            "not {what} in {limit:?}: {:?}\n{}",
            view(store, task).await,
            trees()
        ),
    }
}
