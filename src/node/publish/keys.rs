//! Index of a generation by key, built from the results in batches.

use windrow_core::dataset::{key_hash, key_of};
use windrow_core::ids::ItemIndex;
use windrow_engine::ports::datasets::publication::{KEYS_AT_ONCE, OwnClaim, PrepareError, PublicationStore};
use windrow_engine::ports::ownership::run_store::CheckpointAck;
use windrow_server::service::results::Reader;

/// Writes the key of each result that has one.
pub(super) async fn write(
    store: &dyn PublicationStore,
    mut results: Reader,
    member: &str,
    own: OwnClaim,
) -> Result<(), PrepareError> {
    let (mut keys, mut no) = (Vec::new(), 0);
    loop {
        let outputs = results.page().await;
        let outputs = outputs.map_err(|why| PrepareError::Unavailable(why.to_string()))?;
        let is_over = outputs.is_empty();
        for output in outputs {
            let key = key_of(&output.json, member);
            keys.extend(key.map(|key| (key_hash(&key), output.index)));
        }
        while keys.len() >= KEYS_AT_ONCE || (is_over && !keys.is_empty()) {
            let rest = keys.split_off(keys.len().min(KEYS_AT_ONCE));
            flush(store, own, no, std::mem::replace(&mut keys, rest)).await?;
            no += 1;
        }
        if is_over {
            return Ok(());
        }
    }
}

async fn flush(
    store: &dyn PublicationStore,
    own: OwnClaim,
    no: u32,
    mut keys: Vec<(u64, ItemIndex)>,
) -> Result<(), PrepareError> {
    keys.sort_unstable();
    match store.write_keys(own, no, &keys).await {
        Ok(CheckpointAck::Stored) => Ok(()),
        Ok(CheckpointAck::Fenced) => Err(PrepareError::Fenced),
        Err(error) => Err(PrepareError::Unavailable(error.text())),
    }
}
