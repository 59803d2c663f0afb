//! Leases in memory, which run out on the clock they are given. Stands in for Redis, and says the same in the same case
//! (`tests/redis` compares them).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::{Call, Faults};
use windrow_core::ids::{ClaimId, Moment, ShardId};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::ownership::lease_store::{LeaseKey, LeaseReply, LeaseStore};

#[derive(Debug, Default)]
struct Leases {
    held: HashMap<ShardId, (ClaimId, Moment)>,
    /// After data loss no new lease before this: a holder that doesn't know yet may still work under its own.
    closed_until: Moment,
    /// Everything is gone and nobody noticed yet; the quarantine begins with whoever does.
    is_wiped: bool,
}

/// A lease store that forgets everything when it is dropped.
pub struct MemoryLeases {
    clock: Arc<dyn Clock>,
    leases: Mutex<Leases>,
    faults: Faults,
}

impl MemoryLeases {
    /// No leases, on this clock.
    pub fn new(clock: Arc<dyn Clock>) -> MemoryLeases {
        MemoryLeases {
            clock,
            leases: Mutex::default(),
            faults: Faults::default(),
        }
    }

    /// What goes wrong, on demand.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Loses all data, as `FLUSHALL` does; no new lease is given for one `ttl` (decision 0020, rule 20).
    pub fn lose_everything(&self, ttl: Duration) {
        let closed_until = self.clock.now().plus(ttl);
        *self.lock() = Leases {
            closed_until,
            ..Leases::default()
        };
    }

    /// Loses all data, as `FLUSHALL`, a restart or a failover does. Whoever asks next begins a quarantine of the TTL that
    /// it asks for: until its end nobody's leases stay nobody's, unless their owner sets them again.
    pub fn wipe(&self) {
        *self.lock() = Leases {
            is_wiped: true,
            ..Leases::default()
        };
    }

    fn lock(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn act<T>(&self, effect: impl FnOnce(&mut Leases, Moment) -> T) -> Result<T, StoreError> {
        self.faults.before(Call::Lease).await?;
        let now = self.clock.now();
        let done = effect(&mut self.lock(), now);
        self.faults.after(Call::Lease)?;
        Ok(done)
    }
}

impl Leases {
    fn notice_loss(&mut self, now: Moment, ttl: Duration) {
        if std::mem::take(&mut self.is_wiped) {
            self.closed_until = now.plus(ttl);
        }
    }

    fn holder(&self, shard: ShardId, now: Moment) -> Option<ClaimId> {
        self.held
            .get(&shard)
            .filter(|(_, until)| now < *until)
            .map(|(claim, _)| *claim)
    }

    fn set(&mut self, key: LeaseKey, until: Moment) -> LeaseReply {
        self.held.insert(key.shard, (key.claim, until));
        LeaseReply::Held
    }
}

#[async_trait]
impl LeaseStore for MemoryLeases {
    async fn acquire(&self, keys: &[LeaseKey], ttl: Duration) -> Result<Vec<LeaseReply>, StoreError> {
        self.act(|leases, now| {
            leases.notice_loss(now, ttl);
            let take = |key: &LeaseKey| match leases.holder(key.shard, now) {
                Some(holder) if holder == key.claim => leases.set(*key, now.plus(ttl)),
                Some(_) => LeaseReply::Lost,
                None if now < leases.closed_until => LeaseReply::Absent,
                None => leases.set(*key, now.plus(ttl)),
            };
            keys.iter().map(take).collect()
        })
        .await
    }

    async fn renew(
        &self,
        keys: &[LeaseKey],
        ttl: Duration,
        reassert: bool,
    ) -> Result<Vec<LeaseReply>, StoreError> {
        self.act(|leases, now| {
            leases.notice_loss(now, ttl);
            let extend = |key: &LeaseKey| match leases.holder(key.shard, now) {
                Some(holder) if holder != key.claim => LeaseReply::Lost,
                None if !reassert => LeaseReply::Absent,
                _ => leases.set(*key, now.plus(ttl)),
            };
            keys.iter().map(extend).collect()
        })
        .await
    }

    async fn release(&self, keys: &[LeaseKey]) -> Result<(), StoreError> {
        self.act(|leases, now| {
            for key in keys {
                if leases.holder(key.shard, now) == Some(key.claim) {
                    leases.held.remove(&key.shard);
                }
            }
        })
        .await
    }
}
