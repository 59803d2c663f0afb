//! The hooks of the memory adapter do what tests of the actors rely on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use uuid::Uuid;
use windrow_core::ids::{ClaimId, Moment, SessionId, ShardId, TaskId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::ownership::lease_store::{LeaseKey, LeaseReply, LeaseStore};
use windrow_engine::ports::ownership::session_store::{Heartbeat, SessionStore};
use windrow_engine::ports::tasks::store::TaskStore;
use windrow_memory::{Call, MemoryLeases, MemoryStore, When};

use crate::fixture::{BUSINESS, NOW, alive, new_session, task, write};

#[tokio::test]
async fn a_call_fails_before_or_after_its_effect() {
    let store = MemoryStore::new();
    store.ensure_business(BUSINESS, &write(), NOW).await.unwrap();
    store.faults().fail_next(Call::Create, When::Before, 2);
    for _ in 0..2 {
        assert!(store.create(&task(1), &write(), NOW).await.is_err());
    }
    assert_eq!(store.get(TaskId(1)).await.unwrap(), None, "nothing happened");
    store.faults().fail_next(Call::Create, When::After, 1);
    assert!(store.create(&task(1), &write(), NOW).await.is_err());
    assert!(
        store.get(TaskId(1)).await.unwrap().is_some(),
        "only the answer was lost"
    );
    store.create(&task(1), &write(), NOW).await.unwrap();
}

#[tokio::test]
async fn a_held_call_waits_until_it_is_let_go() {
    let store = Arc::new(MemoryStore::new());
    store.faults().hold(Call::Create);
    let held = tokio::spawn({
        let store = store.clone();
        async move { store.ensure_business(BUSINESS, &write(), NOW).await }
    });
    store.faults().until_waiting(Call::Create).await;
    assert!(!held.is_finished());
    store.faults().let_go(Call::Create);
    held.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_frozen_session_does_not_beat_until_it_thaws() {
    let store = Arc::new(MemoryStore::new());
    let (frozen, other) = (SessionId(Uuid::new_v4()), SessionId(Uuid::new_v4()));
    store.begin(&new_session(frozen)).await.unwrap();
    store.begin(&new_session(other)).await.unwrap();
    store.faults().freeze(frozen);
    let beat = tokio::spawn({
        let store = store.clone();
        async move { store.beat(frozen).await }
    });
    store.faults().until_waiting(Call::Beat).await;
    assert_eq!(store.beat(other).await.unwrap(), alive(vec![]));
    store.fence_all_but(other).await.unwrap();
    store.faults().thaw(frozen);
    assert_eq!(
        beat.await.unwrap().unwrap(),
        Heartbeat::Fenced,
        "it learns what happened meanwhile"
    );
}

/// A clock that tests set.
#[derive(Default)]
struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn now(&self) -> Moment {
        Moment(self.0.load(Ordering::SeqCst))
    }

    fn wall(&self) -> WallMs {
        NOW
    }

    fn wall_micros(&self, moment: Moment) -> i64 {
        (moment.0 / 1000).cast_signed()
    }

    fn sleep_until(&self, _: Moment) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

const TTL: Duration = Duration::from_secs(15);

fn key(no: u32) -> LeaseKey {
    LeaseKey {
        shard: ShardId { task: TaskId(1), no },
        claim: ClaimId(Uuid::new_v4()),
    }
}

#[tokio::test]
async fn a_lease_is_held_by_one_until_it_runs_out() {
    let clock = Arc::new(TestClock::default());
    let leases = MemoryLeases::new(clock.clone());
    let (mine, free) = (key(0), key(1));
    let rival = LeaseKey {
        claim: ClaimId(Uuid::new_v4()),
        ..mine
    };
    use LeaseReply::{Absent, Held, Lost};
    assert_eq!(leases.acquire(&[mine, free], TTL).await.unwrap(), [Held, Held]);
    assert_eq!(leases.acquire(&[rival, mine], TTL).await.unwrap(), [Lost, Held]);
    assert_eq!(leases.renew(&[rival], TTL, true).await.unwrap(), [Lost]);
    leases.release(&[rival]).await.unwrap();
    assert_eq!(
        leases.renew(&[mine], TTL, false).await.unwrap(),
        [Held],
        "a rival can't give it back"
    );
    clock.0.store(15_000_000_000, Ordering::SeqCst);
    assert_eq!(leases.renew(&[mine], TTL, false).await.unwrap(), [Absent]);
    assert_eq!(
        leases.renew(&[mine], TTL, true).await.unwrap(),
        [Held],
        "set again while trust lasts"
    );
    leases.release(&[mine]).await.unwrap();
    assert_eq!(leases.acquire(&[rival], TTL).await.unwrap(), [Held]);
}

#[tokio::test]
async fn after_data_loss_there_is_no_new_lease_for_one_ttl() {
    let clock = Arc::new(TestClock::default());
    let leases = MemoryLeases::new(clock.clone());
    let mine = key(0);
    let rival = LeaseKey {
        claim: ClaimId(Uuid::new_v4()),
        ..mine
    };
    leases.acquire(&[mine], TTL).await.unwrap();
    leases.lose_everything(TTL);
    assert_eq!(leases.acquire(&[rival], TTL).await.unwrap(), [LeaseReply::Absent]);
    assert_eq!(
        leases.renew(&[mine], TTL, true).await.unwrap(),
        [LeaseReply::Held],
        "its run goes on"
    );
    leases.release(&[mine]).await.unwrap();
    clock.0.store(15_000_000_000, Ordering::SeqCst);
    assert_eq!(leases.acquire(&[rival], TTL).await.unwrap(), [LeaseReply::Held]);
    leases.faults().fail_next(Call::Lease, When::Before, 1);
    let refused = leases.renew(&[rival], TTL, false).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)));
}
