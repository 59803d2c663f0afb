//! Leases outside the database (in Redis): a second witness, never an authority.

use std::time::Duration;

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::ids::{ClaimId, ShardId};

/// Key of one lease: a shard and the token of the holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseKey {
    /// Shard of the lease.
    pub shard: ShardId,
    /// Token: the claim that works, or wants to work, under it.
    pub claim: ClaimId,
}

/// Reply of the lease store about one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseReply {
    /// Held by us, for one more TTL from the time the request was sent.
    Held,
    /// Held by someone else: definitive.
    Lost,
    /// Held by nobody, and it may not be set now (the lease store lost its data less than a TTL ago, or it ran out).
    Absent,
}

/// Store of leases: acquires, renews and releases many in one round trip.
#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// Takes each lease that nobody holds; one reply for each key.
    ///
    /// # Errors
    /// `Unavailable`: nothing is known; the validity keeps decaying.
    async fn acquire(&self, keys: &[LeaseKey], ttl: Duration) -> Result<Vec<LeaseReply>, StoreError>;

    /// Extends each lease that still carries its own token; sets an absent one again only if `reassert`.
    ///
    /// # Errors
    /// As `acquire`.
    async fn renew(
        &self,
        keys: &[LeaseKey],
        ttl: Duration,
        reassert: bool,
    ) -> Result<Vec<LeaseReply>, StoreError>;

    /// Releases each lease that still carries its own token.
    ///
    /// # Errors
    /// As `acquire`; a lease that stays behind expires on its own.
    async fn release(&self, keys: &[LeaseKey]) -> Result<(), StoreError>;
}
