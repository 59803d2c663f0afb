//! Index of the keys of a generation: sorted blocks of hashes and item indexes, so that a lookup reads one block per
//! write.

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::sql::entity::generation_key;
use crate::sql::run::close;
use crate::sql::{Pluck, Run, Store, damaged, locks};
use windrow_core::ids::{Epoch, ItemIndex, TaskId};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::datasets::publication::OwnClaim;
use windrow_engine::ports::ownership::run_store::CheckpointAck;

/// Keys per block, which makes 16 KiB.
const BLOCK_KEYS: usize = 1024;
/// Blocks per statement, which makes 1 MiB.
const BLOCKS_AT_ONCE: usize = 64;
/// Size of a key, its hash and its index, in bytes.
const KEY_BYTES: usize = 16;
/// Block numbers reserved for each write; more than any write needs.
const BLOCKS_OF_WRITE: i64 = 1 << 20;

/// Implements [`windrow_engine::ports::datasets::publication::PublicationStore::write_keys`]; a repeated write
/// replaces the same blocks.
pub(super) async fn write(
    store: &Store,
    own: OwnClaim,
    no: u32,
    keys: &[(u64, ItemIndex)],
) -> Result<CheckpointAck, StoreError> {
    use generation_key::Column as C;
    let transaction = store.write().await?;
    let Some(shard) = locks::shard(&transaction, own.shard).await? else {
        return Ok(CheckpointAck::Fenced);
    };
    if close::judge(&shard, own.epoch, own.claim).is_some() {
        return Ok(CheckpointAck::Fenced);
    }
    let blocks: Vec<_> = keys
        .chunks(BLOCK_KEYS)
        .zip(0..)
        .map(|(keys, at)| block(own, i64::from(no) * BLOCKS_OF_WRITE + at, keys))
        .collect();
    for some in blocks.chunks(BLOCKS_AT_ONCE) {
        let again = OnConflict::columns([C::TaskId, C::Epoch, C::BlockNo])
            .update_columns([C::FirstHash, C::LastHash, C::Body])
            .to_owned();
        generation_key::Entity::insert_many(some.iter().cloned())
            .on_conflict(again)
            .run(&transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(CheckpointAck::Stored)
}

fn block(own: OwnClaim, no: i64, keys: &[(u64, ItemIndex)]) -> generation_key::ActiveModel {
    let hash = |key: Option<&(u64, ItemIndex)>| key.map_or(0, |(hash, _)| column(*hash));
    let mut body = Vec::with_capacity(keys.len() * KEY_BYTES);
    for (hash, index) in keys {
        body.extend_from_slice(&hash.to_le_bytes());
        body.extend_from_slice(&index.0.to_le_bytes());
    }
    generation_key::ActiveModel {
        task_id: Set(own.shard.task.0),
        epoch: Set(own.epoch.0.cast_signed()),
        block_no: Set(no),
        first_hash: Set(hash(keys.first())),
        last_hash: Set(hash(keys.last())),
        body: Set(body),
    }
}

/// Returns a hash as a signed integer with the same sort order.
fn column(hash: u64) -> i64 {
    (hash ^ (1 << 63)).cast_signed()
}

/// Implements [`windrow_engine::ports::datasets::store::DatasetStore::key_indexes`]: reads the blocks whose range
/// includes the hash.
pub(super) async fn find(
    store: &Store,
    (task, epoch): (TaskId, Epoch),
    hash: u64,
    from: ItemIndex,
    count: u32,
) -> Result<Vec<ItemIndex>, StoreError> {
    use generation_key::Column as C;
    let blocks: Vec<Vec<u8>> = generation_key::Entity::find()
        .filter(C::TaskId.eq(task.0))
        .filter(C::Epoch.eq(epoch.0.cast_signed()))
        .filter(C::FirstHash.lte(column(hash)))
        .filter(C::LastHash.gte(column(hash)))
        .order_by_asc(C::BlockNo)
        .pluck([C::Body], &store.readers)
        .await?;
    let mut found = Vec::new();
    for block in blocks {
        for key in block.chunks(KEY_BYTES) {
            let (own, index) = read(key).ok_or_else(|| damaged("generation.keys", &task.to_string()))?;
            if own == hash && index >= from {
                found.push(index);
            }
        }
    }
    found.sort_unstable();
    found.truncate(count as usize);
    Ok(found)
}

fn read(key: &[u8]) -> Option<(u64, ItemIndex)> {
    let (hash, index) = key.split_first_chunk()?;
    let index = index.first_chunk()?;
    Some((u64::from_le_bytes(*hash), ItemIndex(u64::from_le_bytes(*index))))
}
