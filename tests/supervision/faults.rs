//! A store that fails, hangs or loses answers, and a session that is fenced: nothing is lost, nothing leaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use windrow_core::ids::{ItemCount, ItemIndex, WallMs};
use windrow_core::items::verdict::{Failure, RetryAdvice};
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_engine::ports::handling::handler::{ItemReplies, ItemVerdict, Reply};
use windrow_engine::ports::ownership::session_store::SessionStore;
use windrow_engine::ports::sources::source::{RowChunk, Source, SourceError};
use windrow_memory::{Call, When};

use super::{TOTAL, fifty, slow, survives};
use crate::scripted::Act;
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
                windrow_core::settings::Auto::Fixed(std::num::NonZeroU32::new(200).expect("ok"));
        })
        .await;
    world.until_in_flight(task, 50).await;
    world.store.faults().hold(Call::Checkpoint);
    // The minute of the name.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (_, progress) = world.node().progress(task).pop().expect("it lives");
    assert!(progress.unsaved <= 200 + 50, "{progress:?}");
    assert_eq!(progress.counters.in_flight, 0, "dispatch is held");
    world.store.faults().let_go(Call::Checkpoint);
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, TOTAL);
    assert!(
        world.handler.deliveries().values().all(|count| *count == 1),
        "nothing was repeated"
    );
}

#[tokio::test(start_paused = true)]
async fn heartbeats_that_fail_for_longer_than_the_trust_stop_dispatch_until_they_succeed_again() {
    let world = World::start("no-heart", |_, _| slow()).await;
    let task = world.task(15_000, |tuning| tuning.concurrency = fifty()).await;
    world.until_in_flight(task, 50).await;
    world.store.faults().hold(Call::Beat);
    // Longer than the trust.
    tokio::time::sleep(Duration::from_secs(16)).await;
    let before = world.handler.calls.lock().expect("ok").len();
    assert!(before < 15_000, "the test is about a task that isn't done");
    let (known, trusted) = (
        world.node().progress(task).len(),
        world.node().trusted_progress(task).len(),
    );
    assert_eq!((known, trusted), (1, 0), "another node may be further");
    // Two more promises.
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(
        world.handler.calls.lock().expect("ok").len(),
        before,
        "no dispatch without trust"
    );
    world.store.faults().let_go(Call::Beat);
    while world.node().trusted_progress(task).is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, 15_000);
    assert!(
        world.handler.deliveries().values().all(|count| *count == 1),
        "nothing was repeated"
    );
}

#[tokio::test(start_paused = true)]
async fn a_fenced_session_drops_everything_and_a_new_one_goes_on() {
    let world = World::start("fenced", |_, _| slow()).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    world.until_unsaved(task, super::UNSAVED).await;
    let session = world
        .store
        .list()
        .await
        .expect("memory")
        .pop()
        .expect("one session");
    assert!(
        world
            .store
            .fence(session.id, session.heartbeat, WallMs(0))
            .await
            .expect("memory"),
        "fenced"
    );
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, TOTAL);
    let repeats: u64 = world
        .handler
        .deliveries()
        .values()
        .map(|count| u64::from(count - 1))
        .sum();
    assert!(repeats <= super::LOST_WITH_THE_RUN, "{repeats}");
    world.assert_nothing_leaks().await;
}

/// Blocks of 100 rows; some reads fail.
struct Shaky {
    total: u64,
    reads: AtomicU32,
    fails: fn(u32, ItemIndex) -> Option<SourceError>,
}

impl Source for Shaky {
    fn total(&self) -> ItemCount {
        ItemCount(self.total)
    }

    fn has_data(&self) -> bool {
        true
    }

    fn read(&self, at: ItemIndex) -> BoxFuture<'_, Result<Arc<RowChunk>, SourceError>> {
        let nth = self.reads.fetch_add(1, Ordering::SeqCst);
        if let Some(error) = (self.fails)(nth, at) {
            return Box::pin(std::future::ready(Err(error)));
        }
        let first = at.0 - at.0 % 100;
        let rows = (self.total - first).min(100);
        let buffer = Bytes::from(vec![b'1'; usize::try_from(rows).expect("small")]);
        let ends = (1..=u32::try_from(rows).expect("small")).collect();
        Box::pin(std::future::ready(Ok(Arc::new(RowChunk::new(
            ItemIndex(first),
            buffer,
            ends,
        )))))
    }
}

pub fn shaky(fails: fn(u32, ItemIndex) -> Option<SourceError>) -> Option<Arc<dyn Source>> {
    Some(Arc::new(Shaky {
        total: TOTAL,
        reads: AtomicU32::new(0),
        fails,
    }))
}

#[tokio::test(start_paused = true)]
async fn a_source_that_can_t_be_read_for_a_while_holds_the_items_and_reads_each_block_once() {
    let source = shaky(|nth, _| {
        (5..15)
            .contains(&nth)
            .then(|| SourceError::Unreadable("the disk sleeps".into()))
    });
    let world = World::start_with("shaky", source, |_, _| slow()).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, TOTAL);
    assert!(world.handler.deliveries().values().all(|count| *count == 1));
}

#[tokio::test(start_paused = true)]
async fn a_retry_whose_row_can_t_be_read_waits_for_it_without_a_hot_loop() {
    // Item 3 parks; when it is due its block lies far behind and is read again, which fails for a while.
    static AGAIN: AtomicU32 = AtomicU32::new(0);
    let source = shaky(|nth, at| {
        let again = nth > 10 && at == ItemIndex(3) && AGAIN.fetch_add(1, Ordering::SeqCst) < 5;
        again.then(|| SourceError::Unreadable("the disk sleeps".into()))
    });
    let world = World::start_with("shaky-retry", source, |index, attempt| {
        if index != ItemIndex(3) || attempt.get() > 1 {
            return slow();
        }
        let advice = RetryAdvice::Retry {
            after: Some(Duration::from_secs(60)),
        };
        let failure = Failure::new("LATER", "in a minute");
        let verdicts = vec![(index, ItemVerdict::Failed { failure, advice })];
        Act::Reply(Reply::Items(Box::new(ItemReplies {
            verdicts,
            ..ItemReplies::default()
        })))
    })
    .await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, TOTAL);
    assert_eq!(world.handler.deliveries()[&ItemIndex(3)], 2);
    assert_eq!(
        AGAIN.load(Ordering::SeqCst),
        6,
        "five failed reads, a second apart, and one that succeeded"
    );
}

#[tokio::test(start_paused = true)]
async fn a_changed_source_stops_the_task_before_an_item_of_the_changed_block_leaves() {
    let source = shaky(|_, at| {
        (at >= ItemIndex(700)).then(|| SourceError::Changed("rows 700..800 are not what was indexed".into()))
    });
    let world = World::start_with("changed", source, |_, _| slow()).await;
    let task = world.task(TOTAL, |tuning| tuning.concurrency = fifty()).await;
    let view = world.until(task, Status::Stopped).await;
    assert_eq!(view.stop_reason, Some(StopReason::SourceChanged));
    assert!(
        world
            .handler
            .deliveries()
            .keys()
            .all(|index| *index < ItemIndex(700))
    );
}
