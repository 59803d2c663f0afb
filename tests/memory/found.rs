//! Limits that autopilots found.

use async_trait::async_trait;

use super::state::State;
use super::{Call, MemoryStore};
use windrow_core::execution::Found;
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::found_store::{FoundRow, FoundStore};

#[async_trait]
impl FoundStore for MemoryStore {
    async fn tell_found(&self, row: &FoundRow) -> Result<Vec<FoundRow>, StoreError> {
        self.act(Call::Limit, |state| {
            state.found.insert(row.shard, row.clone());
            let others = state.found.values();
            let others =
                others.filter(|other| other.shard.task == row.shard.task && other.shard != row.shard);
            Ok(others.cloned().collect())
        })
        .await
    }

    async fn last_found(
        &self,
        business: &str,
        service: &str,
        since: WallMs,
    ) -> Result<Option<Found>, StoreError> {
        self.act(Call::Read, |state| {
            let known = state.found.values();
            let known = known.filter(|row| row.business == business && row.service == service);
            let last = known.filter(|row| row.at >= since).max_by_key(|row| row.at);
            Ok(last.map(|row| Found {
                knowledge: row.news.knowledge,
                at: row.at,
            }))
        })
        .await
    }
}

pub(super) fn expire(state: &mut State, before: WallMs) -> u64 {
    let count = state.found.len();
    state.found.retain(|_, row| row.at >= before);
    (count - state.found.len()) as u64
}
