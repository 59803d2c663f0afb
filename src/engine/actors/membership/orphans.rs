//! What a dead node ran is shown as waiting, or as stopped, also where no node is left to take it.
//!
//! Without leases a fence says that the owner's trust is over. With leases a run may live on its lease although its session
//! is fenced, so the shard's lease is taken first, as a claimant takes it (decision 0020, rules 10 and 17), and held until
//! the shard is released. It comes a moment after the claimants, who need it not.

use std::time::Duration;
use windrow_words::engine as say;

use crate::actors::membership::heartbeats::Owner;
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::in_time;
use crate::ports::StoreError;
use crate::ports::ownership::lease_store::{LeaseKey, LeaseReply, LeaseStore};
use windrow_core::ids::{ClaimId, SessionId, ShardId, WallMs};
use windrow_core::shards::trust::Term;

/// Shards of one round.
const SHARDS_MAX: u32 = 200;
/// How long the claimants of a silent owner's shards go before.
const CLAIMANTS_FIRST: Duration = Duration::from_secs(1);
/// How long the lease store may take to answer.
const LEASE_PATIENCE: Duration = Duration::from_secs(1);

/// Releases the shards of dead sessions; says whether there were any.
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
    // Tokens that were not got do no harm in a release, and a request that was not answered may have been obeyed.
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
    // Of a full page nobody can say who owns nothing.
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

/// Fences those of the silent sessions that may be.
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
