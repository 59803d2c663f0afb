//! Talk of autopilots: what a run finds is told to the task's other runs, and to later tasks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::ids::TaskId;
use windrow_core::settings::{Auto, RateLimit};
use windrow_core::task::lifecycle::Status;
use windrow_core::task::spec::Shards;
use windrow_engine::ports::tasks::store::TaskCommand;

use crate::scripted::Act;
use crate::world::World;

/// Mean time of a call that needn't wait for a server. Unit: seconds.
const CALL: f64 = 0.1;

/// Service of ten servers, each of which works on one call at a time.
#[derive(Default)]
struct Service {
    seed: u64,
    free_at: Vec<Instant>,
    calls: Vec<(Instant, Duration)>,
}

impl Service {
    fn call(&mut self) -> Duration {
        let now = Instant::now();
        self.free_at.retain(|at| *at > now);
        self.free_at.sort();
        let begin = match self.free_at.len() {
            busy if busy < 10 => now,
            busy => self.free_at[busy - 10],
        };
        // Between a half and three halves of the mean, in a fixed sequence.
        self.seed = self
            .seed
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        let part = (self.seed >> 40) as f64 / (1_u64 << 24) as f64;
        let end = begin + Duration::from_secs_f64(CALL * (0.5 + part));
        self.free_at.push(end);
        let takes = end - now;
        self.calls.push((now, takes));
        takes
    }

    /// Returns the mean time of the calls sent from then on.
    fn mean_from(&self, from: Instant) -> f64 {
        let late = self.calls.iter().filter(|(at, _)| *at >= from);
        let times: Vec<f64> = late.map(|(_, takes)| takes.as_secs_f64()).collect();
        times.iter().sum::<f64>() / times.len() as f64
    }
}

async fn world_of(name: &str) -> (World, Arc<Mutex<Service>>) {
    let service = Arc::new(Mutex::new(Service::default()));
    let called = service.clone();
    let world = World::start(name, move |_, _| {
        Act::Slow(called.lock().expect("no panic while held").call())
    });
    (world.await, service)
}

async fn started(world: &World, total: u64, shards: u32) -> TaskId {
    let task = world
        .made(total, |new| {
            new.spec.shards = Shards(Auto::Fixed(shards.try_into().expect("not zero")));
            new.tuning.rate = RateLimit::Auto(None);
        })
        .await;
    world.command(task, TaskCommand::Start).await;
    task
}

#[tokio::test(start_paused = true)]
async fn three_shards_of_a_task_steer_as_one() {
    let (world, service) = world_of("talk-shards").await;
    let task = started(&world, 1_000_000, 3).await;
    let from = Instant::now() + Duration::from_secs(100);
    tokio::time::sleep(Duration::from_secs(200)).await;
    let mean = service.lock().expect("no panic while held").mean_from(from);
    // Three that don't talk: 1.46.
    assert!(mean < 1.35 * CALL, "{mean}");
    let runs = world.node().progress(task);
    let allowed = runs
        .iter()
        .filter_map(|(_, run)| run.autopilot)
        .map(|found| found.in_flight);
    assert_eq!(runs.len(), 3);
    assert!(
        allowed.clone().sum::<u32>() <= 20,
        "{:?}",
        allowed.collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn next_task_at_a_service_begins_with_what_the_last_one_found() {
    let (world, _) = world_of("talk-memory").await;
    let first = started(&world, 3_000, 1).await;
    world.until(first, Status::Finished).await;
    let next = started(&world, 100_000, 1).await;
    world.until_in_flight(next, 1).await;
    let runs = world.node().progress(next);
    let allowed = runs
        .first()
        .and_then(|(_, run)| run.autopilot)
        .map(|found| found.in_flight);
    assert!(
        allowed > Some(6),
        "{allowed:?}; a run that knows nothing begins with four"
    );
}

#[tokio::test(start_paused = true)]
async fn tasks_that_meet_at_one_service_are_counted() {
    let (world, _) = world_of("talk-company").await;
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let task = started(&world, 100_000, 1).await;
        world.until_in_flight(task, 1).await;
        tasks.push(task);
    }
    let given = world
        .task(100_000, |tuning| tuning.concurrency = crate::fifty())
        .await;
    world.until_in_flight(given, 1).await;
    assert_eq!(world.node().company_of(tasks[0]), 2);
    assert_eq!(world.node().company_of(given), 0, "its pace isn't found");
}
