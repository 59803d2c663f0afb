//! The supervision tree under kills and panics: only the subtree suffers, nothing leaks, the task completes.
//!
//! Real actors on a paused clock over the memory store; waits are virtual.

mod world;

use std::time::Duration;

use windrow::domain::lifecycle::{Status, TaskResult};
use world::{Act, World};

fn ok() -> Act {
    Act::Reply(windrow::ports::handler::Reply::AllOk)
}

#[tokio::test(start_paused = true)]
async fn a_task_runs_to_its_end_and_leaves_nothing_behind() {
    let world = World::start("plain", |_, _| ok()).await;
    let task = world.task(10_000, |_| {}).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.result, Some(TaskResult::Succeeded));
    assert_eq!(view.counters.succeeded, 10_000);
    assert_eq!(world.handler.deliveries().len(), 10_000);
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.assert_nothing_leaks().await;
}
