//! The supervision tree under kills and panics: only the subtree suffers, nothing leaks, the task completes.
//!
//! Real actors on a paused clock over the memory store: every wait is virtual, so the times are exact.

#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod clock;
mod cluster;
mod ends;
mod faults;
mod fires;
mod hooks;
mod limits;
mod line;
mod link;
mod load;
mod many;
mod named_limits;
mod patience;
mod races;
mod reply_lines;
mod scripted;
mod shards;
mod speed;
mod talk;
mod tasks;
mod upkeep;
mod world;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use scripted::Act;
use serde_json::Value;
use windrow_core::ids::ItemIndex;
use windrow_core::settings::Auto;
use windrow_core::task::lifecycle::{Status, TaskResult};
use windrow_engine::ports::handling::handler::Reply;
use windrow_server::telemetry::{self, Style};
use world::World;

const TOTAL: u64 = 2_000;
const CONCURRENCY: u32 = 50;

fn ok() -> Act {
    Act::Reply(Reply::AllOk)
}

fn slow() -> Act {
    Act::Slow(Duration::from_millis(100))
}

fn fifty() -> Auto<std::num::NonZeroU32> {
    Auto::Fixed(std::num::NonZeroU32::new(CONCURRENCY).expect("not zero"))
}

/// Runs a task of slow items, lets something happen while it is in full flight, and checks that every item was
/// settled once and that repeats stayed within what was in flight or unsaved.
async fn survives(name: &str, repeats_max: u64, disturb: impl AsyncFnOnce(&World)) {
    let world = World::start(name, |_, _| slow()).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_unsaved(task, UNSAVED).await;
    disturb(&world).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.result, Some(TaskResult::Succeeded));
    assert_eq!(view.counters.succeeded, TOTAL);
    let deliveries = world.handler.deliveries();
    assert_eq!(deliveries.len() as u64, TOTAL, "every item was delivered");
    let repeats: u64 = deliveries.values().map(|count| u64::from(count - 1)).sum();
    assert!(repeats <= repeats_max, "{repeats} repeats, at most {repeats_max}");
    world.assert_nothing_leaks().await;
}

/// Half of what is settled between two checkpoints: what a loss costs at a moment that favours nobody.
const UNSAVED: u64 = 250;

/// The actors that a node has once.
const CHILDREN: [&str; 9] = [
    "session",
    "restorer",
    "lease-keeper",
    "checkpoint-writer",
    "data-log-writer",
    "outbox-dispatcher",
    "scheduler",
    "sink-follower",
    "maintenance",
];

/// In flight, and what was settled in the second since the last checkpoint.
const LOST_WITH_THE_RUN: u64 = 50 + 10 * 50 + 50;

#[tokio::test(start_paused = true)]
async fn a_task_runs_to_its_end_and_leaves_nothing_behind() {
    let world = World::start("plain", |_, _| ok()).await;
    let task = world.task(10_000, |_| {}).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.result, Some(TaskResult::Succeeded));
    assert_eq!(view.counters.succeeded, 10_000);
    assert_eq!(world.handler.deliveries().len(), 10_000);
    world.assert_nothing_leaks().await;
}

#[tokio::test(start_paused = true)]
async fn a_killed_executor_repeats_only_what_was_in_flight() {
    survives("exec-kill", 50, async |world| world.kill("t1.0/executor").await).await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_executor_repeats_only_what_was_in_flight() {
    survives("exec-panic", 50, async |world| {
        world.panic_in("t1.0/executor", 1).await
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_killed_renewer_costs_nothing() {
    survives("renew-kill", 0, async |world| {
        world.kill("t1.0/lease-renewer").await
    })
    .await;
}

/// The log of this test's thread, as objects.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic while held").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_is_logged_with_its_actor_its_reason_and_which_one_it_is() {
    let page = Page::default();
    let (writer, filter) = (page.clone(), "info".parse().expect("a filter"));
    let log = telemetry::start_log(filter, Style::Json, move || writer.clone());
    assert!(log.is_some(), "this process has no other log");
    survives("logged", 100, async |world| {
        world.panic_in("t1.0/executor", 1).await;
        world.panic_in("t1.0/executor", 1).await;
        world.panic_in("outbox-dispatcher", 1).await;
    })
    .await;
    let text = String::from_utf8(page.0.lock().expect("ok").clone()).expect("text");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an object"));
    let restarts: Vec<Value> = lines.filter(|line| line["msg"] == "actor restarted").collect();
    let told = |actor: &str, nth: u64| {
        let found = restarts
            .iter()
            .find(|line| line["actor"] == actor && line["restarts"] == nth);
        found.unwrap_or_else(|| panic!("{actor} {nth} is not in {restarts:#?}"))
    };
    for (actor, nth) in [
        ("logged/t1.0/executor", 1),
        ("logged/t1.0/executor", 2),
        ("logged/outbox-dispatcher", 1),
    ] {
        let line = told(actor, nth);
        let reason = line["reason"].to_string();
        assert!(reason.contains("the planted panic"), "{line:#}");
        assert!(line["tree"].is_array(), "its part of the tree is whole: {line:#}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panicking_renewer_costs_nothing() {
    survives("renew-panic", 0, async |world| {
        world.panic_in("t1.0/lease-renewer", 1).await
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_killed_launcher_repeats_what_was_in_flight_or_unsaved() {
    survives("launch-kill", LOST_WITH_THE_RUN, async |world| {
        world.kill("t1.0").await
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_launcher_repeats_what_was_in_flight_or_unsaved() {
    survives("launch-panic", LOST_WITH_THE_RUN, async |world| {
        world.panic_in("t1.0", 1).await
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_node_s_own_actors_can_be_killed_without_costing_an_item() {
    for child in CHILDREN {
        survives(&format!("kill-{child}-1"), 0, async |world| {
            world.kill(child).await
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_node_s_own_actors_can_panic_without_costing_an_item() {
    // Two hear nothing here: this node has neither schedules nor a sink.
    let deaf = ["scheduler", "sink-follower"];
    for child in CHILDREN.into_iter().filter(|child| !deaf.contains(child)) {
        survives(&format!("panic-{child}-1"), 0, async |world| {
            world.panic_in(child, 1).await
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_lane_restarts_the_executor_and_the_item_is_tried_again() {
    static PANICS: AtomicU32 = AtomicU32::new(0);
    let world = World::start("lane-panic", |index, _| {
        let first = index == ItemIndex(700) && PANICS.fetch_add(1, Ordering::SeqCst) < 2;
        if first { Act::Panic } else { slow() }
    })
    .await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, TOTAL);
    assert!(world.handler.deliveries()[&ItemIndex(700)] >= 3);
    world.assert_nothing_leaks().await;
}

#[tokio::test(start_paused = true)]
async fn past_the_limit_the_failure_goes_up_and_the_shard_recovers_from_its_checkpoint() {
    static PANICS: AtomicU32 = AtomicU32::new(0);
    let world = World::start("lane-panics", |index, _| {
        let first = index == ItemIndex(700) && PANICS.fetch_add(1, Ordering::SeqCst) < 8;
        if first { Act::Panic } else { slow() }
    })
    .await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, TOTAL);
    assert!(
        *world.handler.opened.lock().expect("ok") >= 2,
        "a second run was needed"
    );
    world.assert_nothing_leaks().await;
}

#[tokio::test(start_paused = true)]
async fn one_task_s_crash_does_not_touch_another() {
    let world = World::start("two", |_, _| slow()).await;
    let first = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(first, 50).await;
    let second = world.task(100, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(second, 1).await;
    world.kill("t2.0/executor").await;
    world.kill("t2.0").await;
    let view = world.until(first, Status::Finished).await;
    assert_eq!(view.counters.succeeded, TOTAL);
    let runs = *world.handler.opened.lock().expect("ok");
    assert_eq!(runs, 3, "only the crashed task got a second run");
    world.until(second, Status::Finished).await;
}
