//! Why a task is slow, on the virtual clock: what its permits came to names the bottleneck.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use windrow_core::execution::Progress;
use windrow_core::explain::{
    CauseKind, Explanation, Facts, Latency, Live, Silent, Standing, Stood, Unheard, explain,
};
use windrow_core::handler::sight::HandlerSight;
use windrow_core::ids::{Attempt, ItemCount, ItemIndex, TaskId};
use windrow_core::items::verdict::{Failure, FailureClass};
use windrow_core::settings::{Auto, Rate, RateLimit};
use windrow_core::stats::stall::StallReason;
use windrow_core::task::Tuning;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::handling::handler::{CallFailure, Reply};
use windrow_engine::ports::sources::source::{RowChunk, Source, SourceError};

use super::slow;
use crate::scripted::Act;
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
    let tuning = world.view(task).await.life.tuning;
    explain(&Facts {
        task,
        business: "push".to_owned(),
        covered: SPAN,
        idle: Duration::ZERO,
        stood: Stood::default(),
        unheard: Unheard::default(),
        silent: Silent::default(),
        permits: after.permits.since(&before.permits),
        latency: Latency {
            p95: after.latency_p95,
            ..Latency::default()
        },
        tuning,
        standing: Standing {
            status: Status::Running,
            reason: None,
            text: None,
        },
        live: Some(Live {
            in_flight: after.counters.in_flight,
            ..Live::default()
        }),
        worst_code: None,
        free_rate: None,
        is_alone: false,
        held_back: Vec::new(),
        unsaved: None,
        stood_still: None,
        company: 0,
        limit: None,
        taken_over: None,
        handler: HandlerSight::default(),
    })
}

#[tokio::test(start_paused = true)]
async fn a_slow_source_is_named_first_and_nothing_is_promised_against_it() {
    let world = World::start_with("sluggish", Some(Arc::new(Sluggish)), |_, _| slow()).await;
    let task = world.task(1_000_000, |tuning| tuning.rate = rate(200)).await;
    world.until(task, Status::Running).await;
    let found = minute(&world, task).await;
    let first = found.causes.first().expect("a cause");
    assert_eq!(
        first.kind,
        CauseKind::Stall(StallReason::SourceWait),
        "{found:#?}"
    );
    let missing = found.missing().expect("a target");
    assert!(first.micros * 100 >= missing * 95, "{found:#?}");
    let target = found.target.expect("a target");
    assert!(
        (target - 12_000_000_000).abs() <= 12_000_000,
        "200/s for a minute: {target}"
    );
    assert!((found.per_second(found.actual) - 50.0).abs() <= 2.0, "{found:#?}");
    assert_eq!(found.why[0].code(), "explain.source_slow", "{:?}", found.why);
    assert!(
        found.advice[0].change.is_none() && found.advice[0].hindrance.is_some(),
        "{found:#?}"
    );
}

/// Runs a task of a million items and explains a minute of it.
async fn rigged(
    name: &str,
    tune: impl FnOnce(&mut Tuning),
    script: impl Fn(ItemIndex, Attempt) -> Act + Send + Sync + 'static,
) -> Explanation {
    let world = World::start(name, script).await;
    let task = world.task(1_000_000, tune).await;
    world.until(task, Status::Running).await;
    // The start has causes of its own.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let found = minute(&world, task).await;
    let RateLimit::Limited(rate) = world.view(task).await.tuning.rate else {
        panic!("it has a rate")
    };
    let (due, target) = (rate.as_per_second() * 60e6, found.target.expect("a target"));
    assert!(
        (target as f64 - due).abs() <= 0.001 * due + 2e6,
        "{target} of {due}"
    );
    found
}

/// Nearly all that is missing in a minute is missing for this.
async fn bottleneck(
    name: &str,
    kind: CauseKind,
    tune: impl FnOnce(&mut Tuning),
    script: impl Fn(ItemIndex, Attempt) -> Act + Send + Sync + 'static,
) {
    let found = rigged(name, tune, script).await;
    let (missing, target) = found.missing().zip(found.target).expect("a target");
    // What was sent and what was lost is all that was due, but for what the bucket holds.
    let rest = target - found.actual - missing;
    assert!(
        rest.abs() as f64 <= 0.11 * target as f64 / 60.0 + 2e6,
        "{found:#?}"
    );
    assert!(
        missing as f64 > 0.05 * target as f64,
        "the rig is too fast: {found:#?}"
    );
    let first = found.causes.first().expect("a cause");
    assert_eq!(first.kind, kind, "{found:#?}");
    assert!(first.micros * 10 >= missing * 9, "{found:#?}");
}

fn fixed(number: u32) -> Auto<std::num::NonZeroU32> {
    Auto::Fixed(number.try_into().expect("not zero"))
}

fn stall(reason: StallReason) -> CauseKind {
    CauseKind::Stall(reason)
}

fn fails() -> Act {
    let failure = Failure::new("E_TEST", "it failed");
    Act::Reply(Reply::Failed(Box::new(CallFailure::Failed {
        class: FailureClass::Answered,
        failure,
        after: None,
    })))
}

#[tokio::test(start_paused = true)]
async fn a_window_smaller_than_the_rate_needs_is_named() {
    let tune = |tuning: &mut Tuning| (tuning.rate, tuning.window) = (rate(200), fixed(8));
    bottleneck("window", stall(StallReason::WindowFull), tune, |_, _| slow()).await;
}

#[tokio::test(start_paused = true)]
async fn the_window_is_named_also_when_one_slow_item_holds_it_and_is_parked_again_and_again() {
    let tune = |tuning: &mut Tuning| (tuning.rate, tuning.window) = (rate(200), fixed(100));
    let script = |index: ItemIndex, _| match index.0 % 400 {
        0 => Act::Slow(Duration::from_secs(20)),
        _ => Act::Slow(Duration::from_millis(5)),
    };
    bottleneck("head", stall(StallReason::WindowFull), tune, script).await;
}

#[tokio::test(start_paused = true)]
async fn a_small_concurrency_is_named_whatever_the_batch_and_however_low_the_rate() {
    let tune = |tuning: &mut Tuning| (tuning.rate, tuning.concurrency) = (rate(200), fixed(8));
    bottleneck("slots", stall(StallReason::Concurrency), tune, |_, _| slow()).await;
    let tune = |tuning: &mut Tuning| {
        (tuning.rate, tuning.concurrency) = (rate(400), fixed(20));
        tuning.batch = 16.try_into().expect("not zero");
    };
    bottleneck("batches", stall(StallReason::Concurrency), tune, |_, _| slow()).await;
    let tune = |tuning: &mut Tuning| (tuning.rate, tuning.concurrency) = (rate(1), fixed(1));
    let script = |_, _| Act::Slow(Duration::from_secs(4));
    bottleneck("tiny", stall(StallReason::Concurrency), tune, script).await;
}

#[tokio::test(start_paused = true)]
async fn repeats_are_named_and_so_are_waits_where_nothing_else_may_leave() {
    let backoff = |tuning: &mut Tuning, text: &str| tuning.backoff = text.parse().expect("a back-off");
    let once = |_, attempt: Attempt| {
        if attempt == Attempt::FIRST {
            fails()
        } else {
            Act::Slow(Duration::ZERO)
        }
    };
    let tune = |tuning: &mut Tuning| {
        tuning.rate = rate(200);
        tuning.error_budget.failed_attempts = None;
        backoff(tuning, "100ms..100ms x1 jitter 0%");
    };
    let found = rigged("repeats", tune, once).await;
    assert!(found.keeps_rate(), "half of what is sent are repeats: {found:#?}");
    assert!(
        (2 * found.repeats.micros - found.actual).abs() < found.actual / 50,
        "{found:#?}"
    );
    assert_eq!(found.advice[0].about, CauseKind::Retries, "{found:#?}");
    let tune = |tuning: &mut Tuning| {
        (tuning.rate, tuning.ordered) = (rate(200), true);
        tuning.error_budget.failed_attempts = None;
        backoff(tuning, "1s..1s x1 jitter 0%");
    };
    bottleneck("waits", stall(StallReason::RetryWait), tune, once).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_turns_calls_away_is_named_for_the_pause_and_for_the_calls() {
    let second = std::sync::Mutex::new((tokio::time::Instant::now(), 0));
    let script = move |_, _| {
        let mut second = second.lock().expect("no panic while held");
        if second.0.elapsed() >= Duration::from_secs(1) {
            *second = (tokio::time::Instant::now(), 0);
        }
        second.1 += 1;
        if second.1 <= 40 {
            return Act::Slow(Duration::from_millis(10));
        }
        let failure = Failure::new("HTTP_429", "too many");
        let after = Some(Duration::from_secs(1));
        Act::Reply(Reply::Failed(Box::new(CallFailure::BackPressure {
            after,
            failure,
        })))
    };
    bottleneck(
        "busy",
        stall(StallReason::BackPressure),
        |tuning| tuning.rate = rate(200),
        script,
    )
    .await;
}
