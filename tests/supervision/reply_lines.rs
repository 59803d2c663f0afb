//! Log lines of replies: stored with what the replies said, once, whatever dies on the way.

use std::time::Duration;

use windrow_core::ids::{Attempt, ItemIndex, TaskId};
use windrow_core::items::verdict::{Failure, Outcome, RetryAdvice};
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::handling::data_log::{DataLog, DropReason};
use windrow_engine::ports::handling::handler::{ItemReplies, ItemVerdict, LogLevel, LogLine, Reply};
use windrow_memory::{Call, When};

use super::{TOTAL, UNSAVED, fifty};
use crate::scripted::Act;
use crate::world::World;

fn reply(index: ItemIndex, attempt: Attempt, verdict: ItemVerdict, lines: usize) -> Reply {
    let line = LogLine {
        index: Some(index),
        level: LogLevel::Info,
        message: format!("attempt {}", attempt.get()),
        extra: None,
    };
    let replies = ItemReplies {
        verdicts: vec![(index, verdict)],
        commands: Vec::new(),
        logs: vec![line; lines],
    };
    Reply::Items(Box::new(replies))
}

/// Each reply says a line; every tenth item fails at first.
fn talkative(index: ItemIndex, attempt: Attempt) -> Act {
    let fails = index.0.is_multiple_of(10) && attempt == Attempt::FIRST;
    let verdict = if fails {
        let advice = RetryAdvice::Retry {
            after: Some(Duration::from_millis(10)),
        };
        ItemVerdict::Failed {
            failure: Failure::new("BUSY", "not yet"),
            advice,
        }
    } else {
        ItemVerdict::Settled(Outcome::Succeeded)
    };
    Act::Slowly(Duration::from_millis(100), reply(index, attempt, verdict, 1))
}

/// The lines of a task as index and text, ordered.
async fn lines(world: &World, task: TaskId) -> Vec<(u64, String)> {
    let lines = world.store.after(task, 0, u32::MAX).await.expect("memory");
    let mut lines: Vec<(u64, String)> = lines
        .into_iter()
        .map(|(_, line)| (line.line.index.expect("about an item").0, line.line.message))
        .collect();
    lines.sort();
    lines
}

/// One line an item, two where the first attempt failed.
fn each_once() -> Vec<(u64, String)> {
    let of = |index: u64| {
        let attempts = if index.is_multiple_of(10) { 2 } else { 1 };
        (1..=attempts).map(move |attempt| (index, format!("attempt {attempt}")))
    };
    (0..TOTAL).flat_map(of).collect()
}

async fn keeps_every_line_once(name: &str, disturb: impl AsyncFnOnce(&World)) {
    let world = World::start(name, talkative).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_unsaved(task, UNSAVED).await;
    disturb(&world).await;
    world.until(task, Status::Finished).await;
    assert_eq!(lines(&world, task).await, each_once());
    assert_eq!(world.store.dropped(task).await.expect("memory"), []);
}

#[tokio::test(start_paused = true)]
async fn a_line_of_each_attempt_is_stored_by_the_end_of_its_task() {
    keeps_every_line_once("lines-plain", async |_| {}).await;
}

/// What the launcher's death takes was not saved: neither the items nor their lines, and both come again.
#[tokio::test(start_paused = true)]
async fn a_run_that_dies_takes_the_lines_of_the_items_that_come_again() {
    keeps_every_line_once("lines-launcher", async |world| world.kill("t1.0").await).await;
}

#[tokio::test(start_paused = true)]
async fn lines_of_a_checkpoint_that_was_stored_unheard_are_not_stored_again_by_the_next() {
    for (no, child) in ["t1.0/executor", "checkpoint-writer", "data-log-writer"]
        .into_iter()
        .enumerate()
    {
        keeps_every_line_once(&format!("lines-unheard-{no}"), async |world| {
            world.store.faults().fail_next(Call::Checkpoint, When::After, 1);
            // The next checkpoint is stored, nobody hears of it, and it is not sent again yet.
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            world.kill(child).await;
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn lines_wait_for_a_store_that_is_away_up_to_a_bound_and_the_rest_is_counted() {
    let world = World::start("lines-away", |index, attempt| {
        let verdict = ItemVerdict::Settled(Outcome::Succeeded);
        Act::Slowly(Duration::from_millis(100), reply(index, attempt, verdict, 20))
    })
    .await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_unsaved(task, 1).await;
    world.store.faults().hold(Call::Checkpoint);
    // All items are done by then.
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.store.faults().let_go(Call::Checkpoint);
    world.until(task, Status::Finished).await;
    let stored = lines(&world, task).await.len() as u64;
    let dropped = world.store.dropped(task).await.expect("memory");
    assert!(stored >= 10_000, "{stored}");
    assert_eq!(
        dropped,
        [(DropReason::Queue, 20 * TOTAL - stored)],
        "none is missing uncounted"
    );
}
