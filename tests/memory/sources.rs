//! Sources and their block indexes.

use async_trait::async_trait;

use super::{Call, MemoryStore};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::sources::store::{IndexedSource, SourceStore};

#[async_trait]
impl SourceStore for MemoryStore {
    async fn save(&self, source: &IndexedSource, parts: &[Vec<u8>]) -> Result<i64, StoreError> {
        self.act(Call::Source, |state| {
            let same = |old: &IndexedSource| old.location == source.location && old.format == source.format;
            state.sources.retain(|_, (old, _)| !same(old));
            state.sources_made += 1;
            state
                .sources
                .insert(state.sources_made, (source.clone(), parts.to_vec()));
            Ok(state.sources_made)
        })
        .await
    }

    async fn find(&self, location: &str, format: &str) -> Result<Option<(i64, IndexedSource)>, StoreError> {
        self.act(Call::Read, |state| {
            let mut sources = state.sources.iter();
            let found = sources.find(|(_, (old, _))| old.location == location && old.format == format);
            Ok(found.map(|(id, (source, _))| (*id, source.clone())))
        })
        .await
    }

    async fn part(&self, source: i64, number: u32) -> Result<Option<Vec<u8>>, StoreError> {
        self.act(Call::Read, |state| {
            Ok(state
                .sources
                .get(&source)
                .and_then(|(_, parts)| parts.get(number as usize).cloned()))
        })
        .await
    }
}
