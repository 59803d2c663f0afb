//! Leases outside the database (Redis later): a second witness, never an authority.

use std::time::Duration;

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::ids::{ClaimId, ShardId};

/// One lease: a shard and the token of who holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseKey {
    /// The shard.
    pub shard: ShardId,
    /// The token: the claim that works, or wants to work, under it.
    pub claim: ClaimId,
}

/// What the lease store said of one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseReply {
    /// Ours, for one more TTL from the time the request was sent.
    Held,
    /// Someone else's: definitive.
    Lost,
    /// Nobody's, and it may not be set now (the lease store lost its data less than a TTL ago, or it ran out).
    Absent,
}

/// Acquires, renews and releases leases, many in one round trip.
#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// Takes each lease that nobody holds; one reply for each key.
    ///
    /// # Errors
    /// `Unavailable`: nothing is known; trust keeps decaying.
    async fn acquire(&self, keys: &[LeaseKey], ttl: Duration) -> Result<Vec<LeaseReply>, StoreError>;

    /// Extends each lease that still carries its own token; sets an absent one again only where `reassert`.
    ///
    /// # Errors
    /// As `acquire`.
    async fn renew(
        &self,
        keys: &[LeaseKey],
        ttl: Duration,
        reassert: bool,
    ) -> Result<Vec<LeaseReply>, StoreError>;

    /// Gives each lease back that still carries its own token.
    ///
    /// # Errors
    /// As `acquire`; a lease that stays behind runs out by itself.
    async fn release(&self, keys: &[LeaseKey]) -> Result<(), StoreError>;
}
