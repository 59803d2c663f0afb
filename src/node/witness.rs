//! Redis as a node uses it, for the composition and for who looks at it without a node.

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

/// The lease store and the way to other nodes' ears.
pub(super) type Ways = (Option<Arc<dyn LeaseStore>>, Option<Arc<dyn Hints>>);

/// Begins to use the Redis of the configuration, if it names one. One that can't be reached is looked for from now on.
///
/// # Errors
/// `Refused` when the URL can't be read.
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

/// Whether the URL of the configuration's Redis can be read, if it names one.
///
/// # Errors
/// `Refused` when it can't.
pub(super) fn is_readable(cluster: &Cluster) -> Result<(), StoreError> {
    RedisOptions::of(cluster, StoreId("look".to_owned())).map(drop)
}

/// Looks whether the Redis of the configuration can be reached and lets its user in; changes nothing there. None where
/// the configuration names none.
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
