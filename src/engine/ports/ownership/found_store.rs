//! Limits that autopilots found, told to the other runs of their task and to later tasks of their business.

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::execution::Found;
use windrow_core::ids::{ShardId, WallMs};
use windrow_core::pilot::News;

/// State of a run's autopilot.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundRow {
    /// Shard that the run executes.
    pub shard: ShardId,
    /// Slug of its business.
    pub business: String,
    /// Origin of the service that it calls.
    pub service: String,
    /// State that it tells.
    pub news: News,
    /// Time at which it was told, by the clock of the run's node.
    pub at: WallMs,
}

/// Store of what autopilots found: one row for each shard, for a day. It decides nothing: a run whose news is lost or
/// late finds less.
///
/// # Errors
/// The store can't be read or written.
#[async_trait]
pub trait FoundStore: Send + Sync {
    /// Keeps the state of a run in place of the shard's last one, and returns those of the other shards of its task.
    async fn tell_found(&self, row: &FoundRow) -> Result<Vec<FoundRow>, StoreError>;

    /// Returns what a run of this business found last at this service, no earlier than `since`.
    async fn last_found(
        &self,
        business: &str,
        service: &str,
        since: WallMs,
    ) -> Result<Option<Found>, StoreError>;
}
