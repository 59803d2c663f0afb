//! Release of dead nodes' shards, which are shown as waiting or stopped even if no node is left to take them.
//!
//! Without leases, a fence means that the owner's session is no longer valid. With leases a run may live on its lease
//! although its session is fenced, so the shard's lease is taken first, as a claimant takes it (decision 0020, rules
//! 10 and 17), and held until the shard is released. This comes a moment after the claimants, who don't need it.

use std::time::Duration;
use windrow_words::engine as say;

use crate::actors::membership::heartbeats::Owner;
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::in_time;
use crate::ports::StoreError;
use crate::ports::ownership::lease_store::{LeaseKey, LeaseReply, LeaseStore};
use windrow_core::ids::{ClaimId, SessionId, ShardId, WallMs};
use windrow_core::shards::trust::Term;

/// Maximum number of shards released per round.
const SHARDS_MAX: u32 = 200;
/// Head start of the claimants of a silent owner's shards.
const CLAIMANTS_FIRST: Duration = Duration::from_secs(1);
/// Longest wait for an answer of the lease store.
const LEASE_PATIENCE: Duration = Duration::from_secs(1);

/// Releases the shards of dead sessions. Returns true if there were any.
pub(crate) async fn settle(node: &NodeContext, now: WallMs) -> Result<bool, StoreError> {
    let Some(leases) = &node.leases else {
        let orphans = node.upkeep.orphans(&[], SHARDS_MAX).await?;
        let shards: Vec<ShardId> = orphans.into_iter().map(|(shard, _)| shard).collect();
        return Ok(!node.upkeep.disown(&shards, now).await?.is_empty());
    };
    let silent = node.heartbeats.silent(CLAIMANTS_FIRST, node.clock.now());
    let ids: Vec<SessionId> = silent.iter().map(|(id, _)| *id).collect();
    let orphans = node.upkeep.orphans(&ids, SHARDS_MAX).await?;
    let keys: Vec<LeaseKey> = orphans.iter().map(|(shard, _)| key(node, *shard)).collect();
    if keys.is_empty() {
        fence_all(node, &silent, |_| true).await?;
        return Ok(false);
    }
    let settled = with_leases(node, &**leases, (&orphans, &keys), &silent, now).await;
    // Releasing tokens that were not obtained is harmless, and an unanswered request may have been carried out.
    in_time(LEASE_PATIENCE, say::the_lease_store(), leases.release(&keys)).await?;
    settled
}

fn key(node: &NodeContext, shard: ShardId) -> LeaseKey {
    LeaseKey {
        shard,
        claim: ClaimId(node.new_ids.make()),
    }
}

async fn with_leases(
    node: &NodeContext,
    leases: &dyn LeaseStore,
    (orphans, keys): (&[(ShardId, SessionId)], &[LeaseKey]),
    silent: &[(SessionId, i64)],
    now: WallMs,
) -> Result<bool, StoreError> {
    let sent = node.clock.now();
    let taking = leases.acquire(keys, node.times.lease_ttl);
    let replies = in_time(LEASE_PATIENCE, say::the_lease_store(), taking).await?;
    let until = Term::new(node.times.lease_ttl).trusted_until(sent);
    let got = orphans
        .iter()
        .zip(replies)
        .filter(|(_, reply)| *reply == LeaseReply::Held);
    let got: Vec<(ShardId, SessionId)> = got.map(|(orphan, _)| *orphan).collect();
    if got.is_empty() || node.clock.now() >= until {
        return Ok(false);
    }
    let owns =
        |owner: SessionId, of: &[(ShardId, SessionId)]| of.iter().any(|(_, session)| *session == owner);
    // A full page doesn't show which sessions own nothing.
    let is_whole = orphans.len() < SHARDS_MAX as usize;
    fence_all(node, silent, |owner| {
        owns(owner, &got) || (is_whole && !owns(owner, orphans))
    })
    .await?;
    if node.clock.now() >= until {
        return Ok(false);
    }
    let shards: Vec<ShardId> = got.into_iter().map(|(shard, _)| shard).collect();
    Ok(!node.upkeep.disown(&shards, now).await?.is_empty())
}

/// Fences the silent sessions that `may` allows.
async fn fence_all(
    node: &NodeContext,
    silent: &[(SessionId, i64)],
    may: impl Fn(SessionId) -> bool,
) -> Result<(), StoreError> {
    for (owner, heartbeat) in silent.iter().filter(|(owner, _)| may(*owner)) {
        if node.heartbeats.owner(*owner, Duration::ZERO, node.clock.now()) != Owner::Silent(*heartbeat) {
            continue;
        }
        node.fence(*owner, *heartbeat).await?;
    }
    Ok(())
}
