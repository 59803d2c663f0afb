//! How runs end: stop, stop now, drain, hand-over, kill of the whole node.

use std::num::NonZeroU64;
use std::time::Duration;

use windrow_core::ids::{ItemIndex, TaskId};
use windrow_core::items::verdict::{Failure, FailureClass, HandlerCommand};
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_core::task::{Canary, CanaryThen, Tuning};
use windrow_engine::actors::runtime::context::Times;
use windrow_engine::ports::handling::data_log::{DataLog, LogQuery};
use windrow_engine::ports::handling::handler::{CallFailure, ItemReplies, ItemVerdict, Reply};
use windrow_engine::ports::ownership::session_store::SessionStore as _;
use windrow_engine::ports::tasks::store::TaskCommand;

use super::{TOTAL, fifty, slow};
use crate::scripted::Act;
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn a_stop_drains_and_the_resume_repeats_nothing() {
    let world = World::start("stop", |_, _| slow()).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(task, 50).await;
    world
        .command(
            task,
            TaskCommand::Stop {
                reason: StopReason::Operator,
            },
        )
        .await;
    let view = world.until(task, Status::Stopped).await;
    assert_eq!(view.stop_reason, Some(StopReason::Operator));
    assert_eq!(
        view.counters.settled(),
        world.handler.deliveries().len() as u64,
        "drained"
    );
    world.command(task, TaskCommand::Start).await;
    world.until(task, Status::Finished).await;
    assert!(
        world.handler.deliveries().values().all(|count| *count == 1),
        "nothing was repeated"
    );
    assert_eq!(take_overs(&world, task).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_nudged_run_stops_dispatching_at_once() {
    let world = World::start("nudge", |_, _| slow()).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(task, 50).await;
    let before = tokio::time::Instant::now();
    world
        .command(
            task,
            TaskCommand::Stop {
                reason: StopReason::Operator,
            },
        )
        .await;
    world.node().nudge(task);
    world.until(task, Status::Stopped).await;
    assert!(
        before.elapsed() < Duration::from_millis(300),
        "drained after {:?}",
        before.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn stop_now_does_not_wait_for_calls_that_hang() {
    let world = World::start("stop-now", |_, _| Act::Hang).await;
    let task = world.task(10, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(task, 10).await;
    let before = tokio::time::Instant::now();
    world.command(task, TaskCommand::StopNow).await;
    let view = world.until(task, Status::Stopped).await;
    assert!(
        before.elapsed() < Duration::from_secs(3),
        "{:?}",
        before.elapsed()
    );
    assert_eq!(view.counters.settled(), 0);
    world.assert_nothing_leaks().await;
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_task_for_good() {
    let world = World::start("cancel", |_, _| slow()).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(task, 50).await;
    world.command(task, TaskCommand::Cancel).await;
    world.until(task, Status::Cancelled).await;
}

#[tokio::test(start_paused = true)]
async fn a_drained_node_hands_over_and_the_next_one_repeats_nothing() {
    let mut world = World::start("drain", |_, _| slow()).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(task, 50).await;
    let node = world.node.take().expect("it runs");
    assert!(
        node.drain(Duration::from_secs(60)).await,
        "everything ended in time"
    );
    let view = world.view(task).await;
    assert_eq!(view.status, Status::Queued, "released, still to be run");
    world.boot().await;
    world.until(task, Status::Finished).await;
    assert!(
        world.handler.deliveries().values().all(|count| *count == 1),
        "nothing was repeated"
    );
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_takes_too_long_aborts_the_calls() {
    let mut world = World::start("drain-hang", |_, _| Act::Hang).await;
    let task = world.task(10, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(task, 10).await;
    let node = world.node.take().expect("it runs");
    assert!(node.drain(Duration::from_secs(60)).await);
    assert_eq!(world.view(task).await.status, Status::Queued);
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_was_taken_back_does_not_cut_the_one_that_ends_the_node() {
    let call = Duration::from_secs(8);
    let mut world = World::start("drain-again", move |_, _| Act::Slow(call)).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(task, 50).await;
    let begun = tokio::time::Instant::now();
    let request = async |drains| {
        let is_live = world.store.request_drain("drain-again", drains).await;
        assert!(is_live.expect("memory"));
    };
    request(true).await;
    world.until(task, Status::Queued).await;
    request(false).await;
    world.until_in_flight(task, 50).await;
    // A little before the time of the first drain is over, with calls that end after it.
    tokio::time::sleep_until(begun + Times::default().drain_timeout - call / 4).await;
    world.until_in_flight(task, 50).await;
    let node = world.node.take().expect("it runs");
    assert!(node.drain(Duration::from_secs(60)).await);
    world.boot().await;
    world.until_in_flight(task, 1).await;
    assert!(
        world.handler.deliveries().values().all(|count| *count == 1),
        "no call was cut"
    );
}

#[tokio::test(start_paused = true)]
async fn a_killed_supervisor_ends_the_node_and_the_next_one_goes_on_at_once() {
    let mut world = World::start("root-kill", |_, _| slow()).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_unsaved(task, super::UNSAVED).await;
    world.crash().await;
    let calls = world.handler.calls.lock().expect("ok").len();
    // Much longer than any item takes.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(
        world.handler.calls.lock().expect("ok").len(),
        calls,
        "its lanes are silent"
    );
    let before = tokio::time::Instant::now();
    world.boot().await;
    world.until_in_flight(task, 1).await;
    assert!(
        before.elapsed() < Duration::from_secs(1),
        "resumed after {:?}",
        before.elapsed()
    );
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, TOTAL);
    let repeats: u32 = world.handler.deliveries().values().map(|count| count - 1).sum();
    assert!(u64::from(repeats) <= super::LOST_WITH_THE_RUN, "{repeats}");
    let told = take_overs(&world, task).await;
    let [line] = told.as_slice() else {
        panic!("one take-over: {told:?}")
    };
    let announced = line.rsplit_once("; up to ").expect("says how many").1;
    let announced: u32 = announced
        .split(' ')
        .next()
        .and_then(|items| items.replace(',', "").parse().ok())
        .expect("a number");
    assert!(line.starts_with("shard 0 was taken over from "), "{line}");
    assert!(announced >= repeats, "{line}: {repeats}");
}

/// What the task's own log says of runs that their node didn't end.
async fn take_overs(world: &World, task: TaskId) -> Vec<String> {
    let found = world.store.search(&LogQuery::newest(Some(task), 100)).await;
    let lines = found.expect("memory").lines.into_iter();
    lines
        .filter(|(_, line)| line.code.as_deref() == Some("TAKEN_OVER"))
        .map(|(_, line)| line.line.message)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_business_stops_its_task_and_finishes_it_early() {
    let command = |command| {
        move |index: ItemIndex, _| {
            if index != ItemIndex(100) {
                return slow();
            }
            let settled = ItemVerdict::Settled(windrow_core::items::verdict::Outcome::Succeeded);
            let command: HandlerCommand = Clone::clone(&command);
            Act::Reply(Reply::Items(Box::new(ItemReplies {
                verdicts: vec![(index, settled)],
                commands: vec![command],
                logs: Vec::new(),
            })))
        }
    };
    let world = World::start(
        "biz-stop",
        command(HandlerCommand::Stop {
            reason: "enough".into(),
        }),
    )
    .await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    let view = world.until(task, Status::Stopped).await;
    assert_eq!(
        (view.stop_reason, view.status_text.as_deref()),
        (Some(StopReason::Business), Some("enough"))
    );

    let world = World::start("biz-finish", command(HandlerCommand::Finish { total: None })).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(
        view.result,
        Some(windrow_core::task::lifecycle::TaskResult::Early)
    );
    assert!(view.counters.excluded >= TOTAL - 200, "{:?}", view.counters);
    assert_eq!(view.counters.settled() + view.counters.excluded, TOTAL);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_gone_stops_the_task_and_keeps_the_items() {
    let world = World::start("gone", |_, _| {
        let failure = Failure::new("GONE", "410 from the business");
        Act::Reply(Reply::Failed(Box::new(CallFailure::Gone(failure))))
    })
    .await;
    let task = world.task(TOTAL, |_| {}).await;
    let view = world.until(task, Status::Stopped).await;
    assert_eq!(view.stop_reason, Some(StopReason::HandlerGone));
    assert_eq!(view.counters.settled(), 0);
}

#[tokio::test(start_paused = true)]
async fn too_many_failed_attempts_recover_by_themselves_and_then_give_up() {
    let world = World::start("recover", |_, _| {
        Act::Reply(Reply::failed(FailureClass::Answered, Failure::new("DOWN", "no")))
    })
    .await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    let view = world.until(task, Status::Recovering).await;
    assert_eq!(view.status_reason.as_deref(), Some("error_budget"));
    // 15 s, 30 s … 10 min, ten times.
    let limit = Duration::from_secs(80 * 60);
    let view = world
        .until_within(limit, task, "given up", |view| view.status == Status::Stopped)
        .await;
    assert_eq!(view.stop_reason, Some(StopReason::RecoveriesExhausted));
}

#[tokio::test(start_paused = true)]
async fn a_canary_stops_the_task_and_the_start_after_it_does_the_rest() {
    let world = World::start("canary", |_, _| slow()).await;
    let canary = Canary {
        items: NonZeroU64::new(100).expect("not zero"),
        then: CanaryThen::Stop,
    };
    let task = world
        .task_of(TOTAL, Some(canary), |tuning| tuning.concurrency = fifty())
        .await;
    let view = world.until(task, Status::Stopped).await;
    assert_eq!(view.stop_reason, Some(StopReason::CanaryDone));
    assert_eq!(
        (view.counters.succeeded, world.handler.deliveries().len()),
        (100, 100)
    );
    let text = view.status_text.expect("it says how it went");
    assert!(
        text.starts_with("the canary of 100 items is done: 100 succeeded"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_may_go_on_does_so_across_a_crash_in_its_middle() {
    let world = World::start("canary-on", |_, _| slow()).await;
    let canary = Canary {
        items: NonZeroU64::new(500).expect("not zero"),
        then: CanaryThen::Continue,
    };
    let task = world
        .task_of(TOTAL, Some(canary), |tuning| tuning.concurrency = fifty())
        .await;
    world.until_in_flight(task, 50).await;
    world.kill("t1.0").await;
    let view = world
        .until_that(task, "past its canary", |view| view.spec.canary.is_none())
        .await;
    assert!(view.counters.succeeded >= 500, "{:?}", view.counters);
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, TOTAL);
}

#[tokio::test(start_paused = true)]
async fn lanes_and_checkpoints_follow_a_change_of_the_settings() {
    let world = World::start("paced", |_, _| Act::Slow(Duration::from_secs(1))).await;
    let hourly = |tuning: &mut Tuning| {
        (tuning.concurrency, tuning.checkpoint_interval) = (fifty(), Duration::from_secs(3600));
    };
    let task = world.task(1_000_000, hourly).await;
    world.until_in_flight(task, 50).await;
    // The doubling waits of the first checkpoints are over: the next one is minutes away.
    tokio::time::sleep(Duration::from_secs(300)).await;
    let view = world.view(task).await;
    let mut tuning = view.tuning.clone();
    tuning.checkpoint_interval = Duration::from_secs(1);
    world.command(task, TaskCommand::Tune(Box::new(tuning))).await;
    let before = view.counters.succeeded;
    let few = Duration::from_secs(3);
    world
        .until_within(few, task, "saved", |view| view.counters.succeeded > before)
        .await;
}
