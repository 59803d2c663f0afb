//! Commands, deaths and answers that arrive at the worst moment: none is lost, none is taken for another's.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use windrow_core::ids::{ItemIndex, ShardId, TaskId};
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_engine::ports::handling::handler::{CallFailure, Reply};
use windrow_engine::ports::tasks::store::TaskCommand;
use windrow_memory::Call;

use super::{TOTAL, fifty, slow};
use crate::scripted::Act;
use crate::world::World;

const STOP: TaskCommand = TaskCommand::Stop {
    reason: StopReason::Operator,
};

#[tokio::test(start_paused = true)]
async fn a_stop_between_the_claim_and_the_reading_of_the_control_is_obeyed() {
    let world = World::start("stop-in-claim", |_, _| slow()).await;
    world.store.faults().hold(Call::Control);
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.store.faults().until_waiting(Call::Control).await;
    world.command(task, STOP).await;
    world.store.faults().let_go(Call::Control);
    let view = world
        .until_that(task, "ended", |view| {
            matches!(view.status, Status::Stopped | Status::Finished)
        })
        .await;
    assert_eq!(view.status, Status::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_command_while_the_executor_is_dead_is_obeyed_by_the_next_one() {
    let world = World::start("stop-dead", |_, _| slow()).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(task, 50).await;
    world.kill("t1.0/executor").await;
    world.command(task, STOP).await;
    world.node().nudge(task);
    let view = world
        .until_that(task, "ended", |view| {
            matches!(view.status, Status::Stopped | Status::Finished)
        })
        .await;
    assert_eq!(view.status, Status::Stopped);
    world.assert_nothing_leaks().await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_while_the_executor_is_dead_hands_over() {
    let mut world = World::start("drain-dead", |_, _| slow()).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(task, 50).await;
    world.kill("t1.0/executor").await;
    let before = tokio::time::Instant::now();
    let node = world.node.take().expect("it runs");
    assert!(
        node.drain(Duration::from_secs(60)).await,
        "everything ended in time"
    );
    assert!(
        before.elapsed() < Duration::from_secs(5),
        "after {:?}",
        before.elapsed()
    );
    assert_eq!(world.view(task).await.status, Status::Queued);
}

#[tokio::test(start_paused = true)]
async fn a_stop_now_while_the_executor_is_dead_is_obeyed() {
    let world = World::start("stop-now-dead", |_, _| slow()).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(task, 50).await;
    world.kill("t1.0/executor").await;
    world.command(task, TaskCommand::StopNow).await;
    let view = world
        .until_that(task, "ended", |view| {
            matches!(view.status, Status::Stopped | Status::Finished)
        })
        .await;
    assert_eq!(view.status, Status::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_its_handler_calls_stale_ends_at_once_and_a_newer_one_goes_on() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let world = World::start("stale", |_, _| {
        let stale = CALLS.fetch_add(1, Ordering::SeqCst) == 700;
        if stale {
            Act::Reply(Reply::Failed(Box::new(CallFailure::Fenced)))
        } else {
            slow()
        }
    })
    .await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, TOTAL);
    assert_eq!(
        *world.handler.opened.lock().expect("ok"),
        2,
        "a second run was needed"
    );
    world.assert_nothing_leaks().await;
}

#[tokio::test(start_paused = true)]
async fn rows_behind_a_long_settled_span_are_read_although_nobody_asks_for_one_of_the_span() {
    // Item 3 holds watermark while all others of the window are settled; then the node ends.
    static SLEEPY: AtomicU32 = AtomicU32::new(0);
    let source = super::faults::shaky(|_, _| None);
    let mut world = World::start_with("span", source, |index, _| match index {
        ItemIndex(3) if SLEEPY.fetch_add(1, Ordering::SeqCst) == 0 => Act::Hang,
        ItemIndex(3) => Act::Slow(Duration::from_secs(2)),
        ItemIndex(1_500..) => Act::Slow(Duration::from_secs(20)),
        _ => Act::Slow(Duration::from_millis(100)),
    })
    .await;
    let task = world
        .task(TOTAL, |tuning| {
            tuning.concurrency = fifty();
            tuning.straggler_after = Duration::from_secs(3600);
        })
        .await;
    world
        .until_that(task, "settled up to the slow ones", |view| {
            view.counters.succeeded == 1_499
        })
        .await;
    world.crash().await;
    world.boot().await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, TOTAL);
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_a_claimed_shard_is_provided_for_costs_a_recovery() {
    let world = World::start("panic-provide", |_, _| slow()).await;
    world.provider_panics.store(2, Ordering::SeqCst);
    let task = world.task(100, |_| {}).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, 100);
    world.assert_nothing_leaks().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_while_closing_leaks_nothing() {
    let world = World::start("panic-close", |_, _| slow()).await;
    world.handler.close_panics.store(1, Ordering::SeqCst);
    let task = world.task(100, |_| {}).await;
    world.until(task, Status::Finished).await;
    world.assert_nothing_leaks().await;
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_once_is_read_again() {
    let source = super::faults::shaky(|nth, _| {
        assert!(nth != 5, "the scripted panic while reading");
        None
    });
    let world = World::start_with("panic-read", source, |_, _| slow()).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, TOTAL);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_the_store_refuses_is_not_tried_again_without_a_pause() {
    let world = World::start("refused-claim", |_, _| slow()).await;
    world.runs.refuses_claims.store(true, Ordering::SeqCst);
    let task = world.task(100, |_| {}).await;
    // The span in which its tries are counted.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let claims = world.runs.claims.lock().expect("ok").len();
    assert!((5..=20).contains(&claims), "{claims} claims in 10 s");
    world.runs.refuses_claims.store(false, Ordering::SeqCst);
    world.until(task, Status::Finished).await;
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_the_store_refuses_ends_its_own_run_only() {
    let world = World::start("refused-checkpoint", |_, _| slow()).await;
    world.store.faults().hold(Call::Checkpoint);
    let first = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(first, 50).await;
    *world.runs.refused.lock().expect("ok") = Some(ShardId {
        task: TaskId(2),
        no: 0,
    });
    let second = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(second, 50).await;
    // Both wait to be written in one transaction.
    tokio::time::sleep(Duration::from_secs(3)).await;
    world.store.faults().let_go(Call::Checkpoint);
    world.until(second, Status::Recovering).await;
    let view = world.until(first, Status::Finished).await;
    assert_eq!(view.counters.succeeded, TOTAL);
    let claims = world.runs.claims.lock().expect("ok").clone();
    assert_eq!(
        claims.iter().filter(|task| **task == first).count(),
        1,
        "its run went on"
    );
}
