//! A store that fails, hangs or loses answers, and a session that is fenced: nothing is lost, nothing leaks.

use std::time::Duration;

use windrow::adapters::memory::{Call, When};
use windrow::domain::lifecycle::Status;
use windrow::ports::session_store::SessionStore;

use super::{TOTAL, fifty, slow, survives};
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn lost_answers_of_checkpoints_and_claims_cost_nothing() {
    survives("lost-acks", 0, async |world| {
        world.store.faults().fail_next(Call::Checkpoint, When::After, 3);
    })
    .await;
    let world = World::start("lost-claim", |_, _| slow()).await;
    world.store.faults().fail_next(Call::Claim, When::After, 2);
    let task = world.task(100, |_| {}).await;
    world.until(task, Status::Finished).await;
    assert!(world.handler.deliveries().values().all(|count| *count == 1));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_for_a_minute_holds_dispatch_at_unsaved_max_and_loses_nothing() {
    let world = World::start("down", |_, _| slow()).await;
    let task = world
        .task(TOTAL, |tuning| {
            tuning.concurrency = fifty();
            tuning.unsaved_max =
                windrow::domain::settings::Auto::Fixed(std::num::NonZeroU32::new(200).expect("ok"));
        })
        .await;
    world.until_in_flight(task, 50).await;
    world.store.faults().hold(Call::Checkpoint);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (_, progress) = world.node().progress(task).pop().expect("it lives");
    assert!(progress.unsaved <= 200 + 50, "{progress:?}");
    assert_eq!(progress.counters.in_flight, 0, "dispatch is held");
    world.store.faults().let_go(Call::Checkpoint);
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, TOTAL);
    assert!(world.handler.deliveries().values().all(|count| *count == 1), "nothing was repeated");
}

#[tokio::test(start_paused = true)]
async fn heartbeats_that_fail_for_longer_than_the_trust_stop_dispatch_until_they_succeed_again() {
    let world = World::start("no-heart", |_, _| slow()).await;
    let task = world.task(15_000, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(task, 50).await;
    world.store.faults().hold(Call::Beat);
    tokio::time::sleep(Duration::from_secs(16)).await;
    let before = world.handler.calls.lock().expect("ok").len();
    assert!(before < 15_000, "the test is about a task that isn't done");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(world.handler.calls.lock().expect("ok").len(), before, "no dispatch without trust");
    world.store.faults().let_go(Call::Beat);
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, 15_000);
    assert!(world.handler.deliveries().values().all(|count| *count == 1), "nothing was repeated");
}

#[tokio::test(start_paused = true)]
async fn a_fenced_session_drops_everything_and_a_new_one_goes_on() {
    let world = World::start("fenced", |_, _| slow()).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(task, 50).await;
    tokio::time::sleep(Duration::from_millis(1_250)).await;
    let session = world.store.list().await.expect("memory").pop().expect("one session");
    assert!(world.store.fence(session.id, session.heartbeat).await.expect("memory"), "fenced");
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, TOTAL);
    let repeats: u64 = world.handler.deliveries().values().map(|count| u64::from(count - 1)).sum();
    assert!(repeats <= super::LOST_WITH_THE_RUN, "{repeats}");
    tokio::time::sleep(Duration::from_secs(3)).await;
    world.assert_nothing_leaks().await;
}
