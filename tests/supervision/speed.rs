//! Why a task is slow, on the virtual clock: what its permits came to names the bottleneck.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use windrow::domain::execution::Progress;
use windrow::domain::explain::{CauseKind, Explanation, Facts, Latency, Live, Standing, explain};
use windrow::domain::ids::{ItemCount, ItemIndex, TaskId};
use windrow::domain::lifecycle::Status;
use windrow::domain::settings::{Rate, RateLimit};
use windrow::domain::stall::StallReason;
use windrow::ports::source::{RowChunk, Source, SourceError};

use super::slow;
use crate::world::World;

const SPAN: Duration = Duration::from_secs(60);

/// Blocks of 100 rows, each after two seconds.
struct Sluggish;

impl Source for Sluggish {
    fn total(&self) -> ItemCount {
        ItemCount(1_000_000)
    }

    fn has_data(&self) -> bool {
        true
    }

    fn read(&self, at: ItemIndex) -> BoxFuture<'_, Result<Arc<RowChunk>, SourceError>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let chunk = RowChunk::new(
                ItemIndex(at.0 - at.0 % 100),
                Bytes::from(vec![b'1'; 100]),
                (1..=100).collect(),
            );
            Ok(Arc::new(chunk))
        })
    }
}

fn rate(per_second: u64) -> RateLimit {
    RateLimit::Limited(Rate::per_second(per_second).expect("valid"))
}

async fn progress(world: &World, task: TaskId) -> Progress {
    let (_, progress) = world.node().progress(task).pop().expect("it runs");
    progress
}

/// Explains the next minute of a task.
async fn minute(world: &World, task: TaskId) -> Explanation {
    let before = progress(world, task).await;
    tokio::time::sleep(SPAN).await;
    let after = progress(world, task).await;
    let tuning = world.view(task).await.tuning;
    explain(&Facts {
        covered: SPAN,
        idle: Duration::ZERO,
        permits: after.permits.since(&before.permits),
        settled: after.counters.settled() - before.counters.settled(),
        failed_attempts: 0,
        latency: Latency { p95: after.latency_p95, ..Latency::default() },
        tuning,
        standing: Standing { status: Status::Running, reason: None, text: None },
        live: Some(Live { in_flight: after.counters.in_flight, ..Live::default() }),
        worst_code: None,
        free_rate: None,
    })
}

#[tokio::test(start_paused = true)]
async fn a_slow_source_is_named_first_and_nothing_is_promised_against_it() {
    let world = World::start_with("sluggish", Some(Arc::new(Sluggish)), |_, _| slow()).await;
    let task = world.task(1_000_000, |tuning| tuning.rate = rate(200)).await;
    world.until_in_flight(task, 1).await;
    let found = minute(&world, task).await;
    let first = found.causes.first().expect("a cause");
    assert_eq!(first.kind, CauseKind::Stall(StallReason::SourceWait), "{found:#?}");
    let missing = found.missing().expect("a target");
    assert!(first.micros * 100 >= missing * 95, "{found:#?}");
    assert_eq!(found.causes.iter().map(|cause| cause.micros).sum::<i64>(), missing);
    let target = found.target.expect("a target");
    assert!((target - 12_000_000_000).abs() <= 12_000_000, "200/s for a minute: {target}");
    assert!((found.per_second(found.actual) - 50.0).abs() <= 2.0, "{found:#?}");
    assert!(found.why.starts_with("the source delivers "), "{}", found.why);
    assert!(found.advice[0].change.is_none() && found.advice[0].hindrance.is_some(), "{found:#?}");
}
