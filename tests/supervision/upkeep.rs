//! What time makes due.

use std::time::Duration;

use windrow_core::life::TaskEdit;
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_core::task::spec::SpecPatch;
use windrow_engine::actors::runtime::context::{Keep, ServingNow};
use windrow_engine::ports::tasks::store::{TaskCommand, TaskStore};

use super::{TOTAL, fifty, ok, slow};
use crate::patience::{holds_within, within};
use crate::world::World;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_deadline_stops_what_runs_and_what_waits() {
    let world = World::start("deadline", |_, _| slow()).await;
    let deadline = world.clock_in(MINUTE);
    let running = world
        .made(1_000_000, |new| {
            (new.spec.deadline, new.tuning.concurrency) = (Some(deadline), fifty());
        })
        .await;
    world.command(running, TaskCommand::Start).await;
    world.until_in_flight(running, 50).await;
    world.node().set_serving(ServingNow {
        run_tasks: false,
        pools: None,
    });
    let waiting = world.made(10, |new| new.spec.deadline = Some(deadline)).await;
    world.command(waiting, TaskCommand::Start).await;
    let unbound = world.task(10, |_| {}).await;
    for task in [running, waiting] {
        let view = world.until(task, Status::Stopped).await;
        assert_eq!(view.stop_reason, Some(StopReason::Deadline));
        assert_eq!(
            view.status_text.as_deref(),
            Some("its deadline passed"),
            "it isn't somebody's command"
        );
        assert!(
            view.since >= deadline && view.since <= deadline.plus(Duration::from_secs(2)),
            "{view:?}"
        );
    }
    assert_eq!(world.view(unbound).await.status, Status::Queued);
}

#[tokio::test(start_paused = true)]
async fn a_start_after_the_deadline_sends_nothing() {
    let world = World::start("too-late", |_, _| ok()).await;
    let deadline = world.clock_in(MINUTE);
    let task = world.made(10, |new| new.spec.deadline = Some(deadline)).await;
    tokio::time::sleep(2 * MINUTE).await;
    world.command(task, TaskCommand::Start).await;
    let view = world.view(task).await;
    assert_eq!(
        (view.status, view.stop_reason),
        (Status::Stopped, Some(StopReason::Deadline))
    );
    assert_eq!(view.status_text.as_deref(), Some("its deadline passed"));
    let edit = TaskEdit {
        spec: SpecPatch {
            deadline: Some(None),
            ..SpecPatch::default()
        },
        ..TaskEdit::default()
    };
    world.command(task, TaskCommand::Edit(Box::new(edit))).await;
    assert_eq!(world.view(task).await.counters.settled(), 0);
    world.command(task, TaskCommand::Start).await;
    world.until(task, Status::Finished).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_starts_at_its_time() {
    let world = World::start("start-at", |_, _| ok()).await;
    let at = world.clock_in(MINUTE);
    let task = world.made(10, |new| new.spec.start_at = Some(at)).await;
    world.command(task, TaskCommand::Start).await;
    let view = world.until(task, Status::Finished).await;
    let late = view.finished_at.expect("it ended").since(at);
    assert!(
        view.finished_at >= Some(at) && late <= Duration::from_secs(2),
        "{late:?} late"
    );
}

#[tokio::test(start_paused = true)]
async fn ended_tasks_are_removed_when_they_were_kept_long_enough() {
    let day = Duration::from_secs(24 * 3600);
    let keep = Keep {
        failures: day,
        results: day,
        tasks: 2 * MINUTE,
        log: day,
        log_lines: 1_000,
        fires: Duration::from_secs(3600),
        statistics: day,
        appended: day,
        audit: day,
    };
    let world = World::start_as("keep", |world| world.keep = Some(keep), |_, _| ok()).await;
    let task = world.task(10, |_| {}).await;
    world.until(task, Status::Finished).await;
    // Half of the time that it is kept.
    tokio::time::sleep(MINUTE).await;
    assert!(world.store.get(task).await.expect("memory").is_some());
    let open = world.made(10, |_| {}).await;
    let gone = async || {
        world
            .store
            .get(task)
            .await
            .expect("memory")
            .is_none()
            .then_some(())
    };
    assert!(within(4 * MINUTE, gone).await.is_some(), "it is removed");
    assert!(
        world.store.get(open).await.expect("memory").is_some(),
        "what has not ended stays"
    );
}

#[tokio::test(start_paused = true)]
async fn what_rests_for_longer_than_the_window_is_dormant_until_it_is_started() {
    let world = World::start_as("dormant", |world| world.restore_window = MINUTE, |_, _| ok()).await;
    world.node().set_serving(ServingNow {
        run_tasks: false,
        pools: None,
    });
    let task = world.task(10, |_| {}).await;
    let dormant = async || {
        let view = world.view(task).await;
        (view.status_reason.as_deref() == Some("dormant")).then_some(view)
    };
    let view = within(2 * MINUTE, dormant).await.expect("it says so");
    assert_eq!(view.status, Status::Queued);
    assert!(
        view.status_text
            .is_some_and(|text| text.contains("1m (`cluster.restore_window`)"))
    );
    world.node().set_serving(ServingNow {
        run_tasks: true,
        pools: None,
    });
    // Many scans, none of which takes it.
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.view(task).await.status, Status::Queued);
    world.command(task, TaskCommand::Start).await;
    world.until(task, Status::Finished).await;
}

#[tokio::test(start_paused = true)]
async fn killed_maintenance_is_started_again() {
    let world = World::start("maintenance-kill", |_, _| slow()).await;
    world.kill("maintenance").await;
    let deadline = world.clock_in(Duration::from_secs(10));
    let task = world
        .made(TOTAL * 100, |new| new.spec.deadline = Some(deadline))
        .await;
    world.command(task, TaskCommand::Start).await;
    assert_eq!(
        world.until(task, Status::Stopped).await.stop_reason,
        Some(StopReason::Deadline)
    );
}

#[tokio::test(start_paused = true)]
async fn a_finish_by_command_is_obeyed_within_a_second_and_outlasts_a_stop() {
    use windrow_core::ids::ItemIndex;
    use windrow_core::task::lifecycle::TaskResult;
    let world = World::start("finish", |_, _| slow()).await;
    let task = world.task(1_000_000, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(task, 50).await;
    let end = ItemIndex(2_000);
    world.command(task, TaskCommand::Finish { end }).await;
    let excluded = || world.node().progress(task)[0].1.counters.excluded;
    assert!(
        holds_within(Duration::from_millis(1_100), || excluded() == 998_000).await,
        "{}",
        excluded()
    );
    world
        .command(
            task,
            TaskCommand::Stop {
                reason: StopReason::Operator,
            },
        )
        .await;
    world.until(task, Status::Stopped).await;
    world.command(task, TaskCommand::Start).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.result, Some(TaskResult::Early));
    assert_eq!(
        (view.counters.succeeded, view.counters.excluded),
        (2_000, 998_000)
    );
    assert!(world.handler.deliveries().keys().all(|index| *index < end));
}
