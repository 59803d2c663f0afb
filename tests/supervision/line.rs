//! The waiting line: who is admitted, why others wait, and what changes that while the node runs.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::capacity::{Capacity, Obstacle};
use windrow_core::ids::TaskId;
use windrow_core::settings::{Rate, RateLimit};
use windrow_core::shards::Share;
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_engine::actors::runtime::context::ServingNow;
use windrow_engine::ports::ownership::session_store::{SessionFace, SessionStore, SessionView};
use windrow_engine::ports::tasks::store::{TaskCommand, TaskStore};

use super::slow;
use crate::patience::within;
use crate::scripted::Act;
use crate::world::World;

const STOP: TaskCommand = TaskCommand::Stop {
    reason: StopReason::Operator,
};

fn rate(items: u64) -> Rate {
    Rate::per_second(items).expect("not zero")
}

/// A node of 1000/s whose items take 100 ms.
async fn node(name: &str) -> World {
    World::start_as(
        name,
        |world| world.capacity = Capacity::Limited(rate(1000)),
        |_, _| slow(),
    )
    .await
}

/// A task that takes a while at this rate.
async fn paced(world: &World, items: u64) -> TaskId {
    world
        .task(1_000_000, |tuning| tuning.rate = RateLimit::Limited(rate(items)))
        .await
}

async fn waits(world: &World, task: TaskId, reason: &str) -> String {
    let is = |reason_is: Option<&str>| reason_is == Some(reason);
    let view = world
        .until_that(task, reason, |view| is(view.status_reason.as_deref()))
        .await;
    assert_eq!(view.status, Status::Queued);
    view.status_text.expect("a reason has a text")
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_says_why_and_runs_within_a_second_of_the_room() {
    let world = node("line-full").await;
    let first = paced(&world, 800).await;
    world.until(first, Status::Running).await;
    let second = paced(&world, 500).await;
    let text = waits(&world, second, "capacity").await;
    assert_eq!(
        text,
        "it needs 500/s; too much of the node's 1000/s is used by other tasks, mostly t1"
    );
    let version = world.view(second).await.version;
    // Many scans, each of which sees it wait.
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(
        world.view(second).await.version,
        version,
        "the same reason is written once"
    );
    assert_eq!(world.node().room().waiting, 1);
    world.command(first, STOP).await;
    world.until(first, Status::Stopped).await;
    let freed = Instant::now();
    world.until(second, Status::Running).await;
    assert!(freed.elapsed() <= Duration::from_secs(1), "{:?}", freed.elapsed());
    let runs = world.node().runs();
    assert_eq!(
        (runs.len(), runs[0].shard.task, runs[0].business.as_str()),
        (1, second, "run")
    );
    assert_eq!(runs[0].tuning.rate, RateLimit::Limited(rate(500)));
}

#[tokio::test(start_paused = true)]
async fn nobody_starves_behind_thousands_that_can_not_run() {
    let world = node("line-long").await;
    for _ in 0..2_500 {
        paced(&world, 2_000).await;
    }
    let last = world
        .task(10, |tuning| tuning.rate = RateLimit::Limited(rate(100)))
        .await;
    world.until(last, Status::Finished).await;
    let text = waits(&world, TaskId(1), "too_big").await;
    assert!(
        text.starts_with("it needs 2000/s, more than the node's whole capacity of 1000/s"),
        "{text}"
    );
    waits(&world, TaskId(2_500), "too_big").await;
    world.node().set_capacity(Capacity::Limited(rate(2_000)));
    world.until(TaskId(1), Status::Running).await;
    assert!(
        waits(&world, TaskId(2_500), "capacity")
            .await
            .starts_with("it needs 2000/s; too much of")
    );
}

#[tokio::test(start_paused = true)]
async fn hundreds_admitted_at_once_are_all_claimed() {
    let world = World::start("line-many", |_, _| super::ok()).await;
    let mut tasks = Vec::new();
    for _ in 0..300 {
        tasks.push(world.task(5, |_| {}).await);
    }
    for task in tasks {
        world.until(task, Status::Finished).await;
    }
    assert_eq!(world.node().room().shards, 0, "nothing stays booked");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_rate_is_booked_before_it_is_made() {
    let world = node("line-rebook").await;
    let (first, second) = (paced(&world, 600).await, paced(&world, 300).await);
    world.until(first, Status::Running).await;
    world.until(second, Status::Running).await;
    let to = |items| RateLimit::Limited(rate(items));
    let refusal = world
        .node()
        .rebook(first, to(701), Share::ALL)
        .await
        .expect_err("one too many");
    assert_eq!(
        refusal.to_string(),
        "it needs 701/s; only 700/s of the node's 1000/s would fit now"
    );
    assert_eq!(world.node().rebook(first, to(700), Share::ALL).await, Ok(()));
    let unknown = world
        .node()
        .rebook(TaskId(99), to(1_001), Share::ALL)
        .await
        .expect_err("never");
    assert_eq!(unknown.obstacle, Obstacle::TooBig);
    assert_eq!(
        world.node().rebook(TaskId(99), to(1_000), Share::ALL).await,
        Ok(())
    );
    let third = paced(&world, 500).await;
    waits(&world, third, "capacity").await;
    let freed = Instant::now();
    assert_eq!(world.node().rebook(first, to(200), Share::ALL).await, Ok(()));
    world.until(third, Status::Running).await;
    assert!(freed.elapsed() <= Duration::from_secs(1), "{:?}", freed.elapsed());
    assert_eq!(world.node().room().reserved.to_string(), "1000/s");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_runs_no_tasks_takes_none_until_it_does_and_says_so() {
    let world = World::start("line-serving", |_, _| slow()).await;
    world.node().set_serving(ServingNow {
        run_tasks: false,
        pools: None,
    });
    let task = world.task(10, |_| {}).await;
    let text = waits(&world, task, "no_node").await;
    assert!(
        text.starts_with("no node that runs tasks serves its pool default"),
        "{text}"
    );
    world.node().set_serving(ServingNow {
        run_tasks: true,
        pools: Some(vec!["slow".to_owned()]),
    });
    // Many scans, each of which may not take it.
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(world.view(task).await.status, Status::Queued);
    world.node().set_serving(ServingNow {
        run_tasks: true,
        pools: Some(vec!["default".to_owned()]),
    });
    let begun = Instant::now();
    world.until(task, Status::Running).await;
    assert!(begun.elapsed() <= Duration::from_secs(1), "{:?}", begun.elapsed());
}

/// The session of the only node, once it shows this.
async fn shown(world: &World, what: &str, shows: impl Fn(&SessionFace) -> bool) -> SessionView {
    let first = async || world.store.list().await.expect("memory").into_iter().next();
    let look = async || first().await.filter(|session| shows(&session.face));
    within(Duration::from_secs(2), look)
        .await
        .unwrap_or_else(|| panic!("it doesn't show {what}"))
}

#[tokio::test(start_paused = true)]
async fn a_session_shows_what_its_node_takes_and_that_it_drains() {
    let world = World::start("line-face", |_, _| Act::Hang).await;
    world.node().set_capacity(Capacity::Limited(rate(1_700)));
    world.node().set_serving(ServingNow {
        run_tasks: true,
        pools: Some(vec!["default".to_owned()]),
    });
    let task = world.task(10, |_| {}).await;
    world.until(task, Status::Running).await;
    let seen = shown(&world, "1700/s", |face| {
        face.capacity
            .as_ref()
            .is_some_and(|load| load.to_string() == "1700/s")
    })
    .await;
    assert_eq!(
        (seen.face.pools, seen.face.draining),
        (Some(vec!["default".to_owned()]), false)
    );
    let age = world.node().heartbeat_ages()[&seen.id];
    assert!(age <= Duration::from_secs(3), "{age:?}");
    let drained = tokio::join!(world.node().drain_now(Duration::from_secs(60)), async {
        shown(&world, "that it drains", |face| face.draining).await;
    });
    assert!(drained.0, "{}", world.node().tree().render(""));
    assert!(world.node().is_over());
}

#[tokio::test(start_paused = true)]
async fn a_drain_does_not_wait_for_claims_that_were_not_made_yet() {
    use windrow_memory::Call;
    let world = World::start("line-drain", |_, _| slow()).await;
    world.store.faults().hold(Call::Claim);
    for _ in 0..100 {
        world.task(1_000, |_| {}).await;
    }
    world.store.faults().until_waiting(Call::Claim).await;
    // Whatever would be on its way too is by now.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let drained = tokio::join!(world.node().drain_now(Duration::from_secs(60)), async {
        // It drains for a while before the first answer.
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.store.faults().let_go(Call::Claim);
    });
    assert!(drained.0, "{}", world.node().tree().render(""));
    let claimed = world.runs.claims.lock().expect("ok").len();
    assert_eq!(claimed, 16, "no more than were on their way");
}

#[tokio::test(start_paused = true)]
async fn a_rate_that_was_changed_between_offer_and_claim_is_booked_as_it_runs() {
    use windrow_memory::Call;
    let world = node("line-stale").await;
    world.store.faults().hold(Call::Control);
    let task = paced(&world, 100).await;
    world.store.faults().until_waiting(Call::Control).await;
    let mut tuning = world.view(task).await.life.tuning;
    tuning.rate = RateLimit::Limited(rate(900));
    world.command(task, TaskCommand::Tune(Box::new(tuning))).await;
    world.store.faults().let_go(Call::Control);
    world.until_in_flight(task, 1).await;
    assert_eq!(world.node().room().reserved.to_string(), "900/s");
    let other = paced(&world, 200).await;
    waits(&world, other, "capacity").await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_started_again_says_again_why_it_waits() {
    let world = node("line-again").await;
    let first = paced(&world, 800).await;
    world.until(first, Status::Running).await;
    let second = paced(&world, 500).await;
    waits(&world, second, "capacity").await;
    world
        .store
        .command(
            second,
            &STOP,
            &crate::tasks::write(),
            world.clock_in(Duration::ZERO),
        )
        .await
        .expect("legal");
    // The start is a moment of its own.
    tokio::time::sleep(Duration::from_millis(1)).await;
    world.command(second, TaskCommand::Start).await;
    assert_eq!(world.view(second).await.status_reason, None, "the stop took it");
    waits(&world, second, "capacity").await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_no_longer_fits_after_a_restart_says_so() {
    let mut world = node("line-smaller").await;
    let task = paced(&world, 800).await;
    world.until(task, Status::Running).await;
    world.crash().await;
    world.capacity = Capacity::Limited(rate(100));
    // The row says that it runs until the session of the node before is fenced.
    world.boot().await;
    let says = |reason: Option<&str>| reason == Some("too_big");
    world
        .until_that(task, "too_big", |view| says(view.status_reason.as_deref()))
        .await;
}

#[tokio::test(start_paused = true)]
async fn short_ones_are_filled_in_behind_one_that_waits_for_a_task_whose_end_is_known() {
    let world = node("line-fill").await;
    let long = world
        .task(900_000, |tuning| tuning.rate = RateLimit::Limited(rate(900)))
        .await;
    world.until(long, Status::Running).await;
    let head = paced(&world, 1_000).await;
    waits(&world, head, "capacity").await;
    // A thousand seconds are left: these end before, one after the other, also long after the first minute.
    for _ in 0..3 {
        let small = world
            .task(5_000, |tuning| tuning.rate = RateLimit::Limited(rate(100)))
            .await;
        world.until(small, Status::Running).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        world.until(small, Status::Finished).await;
    }
    let endless = paced(&world, 100).await;
    let text = waits(&world, endless, "behind").await;
    assert_eq!(
        text,
        format!("it waits behind {head}, which is ahead in the line and doesn't fit yet")
    );
}
