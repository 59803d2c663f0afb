//! Redis connections of a node, and a check of Redis without a node.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::{Beside, SystemClock};
use windrow_config::Cluster;
use windrow_core::ids::StoreId;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::meters::Meters;
use windrow_engine::ports::ownership::hints::Hints;
use windrow_engine::ports::ownership::lease_store::LeaseStore;
use windrow_store::redis::{Redis, RedisOptions};

/// Lease store, and channel for hints to other nodes.
pub(super) type Ways = (Option<Arc<dyn LeaseStore>>, Option<Arc<dyn Hints>>);

/// Starts using the configured Redis, if any. An unreachable one is retried in the background.
///
/// # Errors
/// `Refused` if the URL can't be read.
pub(super) fn open(
    beside: &Beside,
    store: &StoreId,
    clock: &Arc<dyn Clock>,
    meters: &Arc<Meters>,
    vital: &Handle,
) -> Result<Ways, StoreError> {
    let Some(cluster) = &beside.cluster else {
        return Ok((None, None));
    };
    let Some(options) = RedisOptions::of(cluster, store.clone())? else {
        return Ok((None, None));
    };
    let redis = Redis::open(options, clock.clone(), meters.clone(), vital);
    Ok((Some(redis.leases), Some(redis.hints)))
}

/// Checks that the URL of the configured Redis, if any, can be parsed.
///
/// # Errors
/// `Refused` if it can't.
pub(super) fn is_readable(cluster: &Cluster) -> Result<(), StoreError> {
    RedisOptions::of(cluster, StoreId("look".to_owned())).map(drop)
}

/// Checks that the configured Redis is reachable and accepts its user, without changing anything. `None` if none is
/// configured.
///
/// # Errors
/// `Unavailable`, with the reason and the key to check.
pub async fn look(cluster: &Cluster) -> Option<Result<(), StoreError>> {
    let options = match RedisOptions::of(cluster, StoreId("doctor".to_owned())) {
        Ok(options) => options?,
        Err(error) => return Some(Err(error)),
    };
    Some(Redis::reach(options, Arc::new(SystemClock::new())).await)
}
