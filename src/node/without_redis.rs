//! Redis in a program that is built without it: none is configured, or the start fails.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::{Beside, Store};
use windrow_config::{Cluster, Datasets};
use windrow_core::ids::StoreId;
use windrow_engine::actors::runtime::context::SinkParts;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::meters::Meters;
use windrow_engine::ports::ownership::hints::Hints;
use windrow_engine::ports::ownership::lease_store::LeaseStore;

pub(super) type Ways = (Option<Arc<dyn LeaseStore>>, Option<Arc<dyn Hints>>);

pub(super) fn open(
    beside: &Beside,
    _: &StoreId,
    _: &Arc<dyn Clock>,
    _: &Arc<Meters>,
    _: &Handle,
) -> Result<Ways, StoreError> {
    beside.cluster.as_ref().map_or(Ok(()), is_readable)?;
    Ok((None, None))
}

pub(super) fn is_readable(cluster: &Cluster) -> Result<(), StoreError> {
    absent(cluster.redis_url.as_deref())
}

/// Refuses a configured Redis. `None` if none is configured.
///
/// # Errors
/// `Refused`, with the feature to build.
pub async fn look(cluster: &Cluster) -> Option<Result<(), StoreError>> {
    is_readable(cluster).err().map(Err)
}

pub(crate) fn parts(
    config: &Datasets,
    _: (&Arc<Store>, StoreId),
    _: &Arc<dyn Clock>,
    _: &Handle,
) -> Result<Option<SinkParts>, StoreError> {
    absent(config.redis_url.as_deref()).map(|()| None)
}

/// Fails if a Redis is configured. The configuration has been refused before, unless a caller didn't check it.
fn absent(url: Option<&str>) -> Result<(), StoreError> {
    let why = "this program is built without the feature `redis`".to_owned();
    url.map_or(Ok(()), |_| Err(StoreError::Refused(why)))
}
