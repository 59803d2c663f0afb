//! Items appended to open tasks: a block is written in the transaction that lengthens its task.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait as _};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DerivePartialModel, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};

use crate::sql::dialect::settled;
use crate::sql::entity::{appended, item, shard_head};
use crate::sql::task::life::Held;
use crate::sql::{Fetch, Pluck, Run, Store, Transaction, damaged, keep, locks, words};
use windrow_core::ids::{ItemCount, ItemIndex, TaskId, WallMs};
use windrow_core::task::lifecycle::ShardState;
use windrow_core::task::supply::Addition;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::actor::Write;
use windrow_engine::ports::sources::append::{AppendError, AppendStore, Appended, NewBlock, StoredBlock};
use windrow_engine::ports::tasks::upkeep::SWEEP_MAX;

/// Maximum number of blocks that one statement reads.
const BLOCKS_AT_ONCE: u64 = 128;

#[async_trait]
impl AppendStore for Store {
    async fn append_items(
        &self,
        task: TaskId,
        block: &NewBlock,
        write: &Write,
        now: WallMs,
    ) -> Result<Appended, AppendError> {
        settled(|| append(self, task, block, write, now)).await
    }

    async fn blocks(
        &self,
        task: TaskId,
        at: ItemIndex,
        bytes_max: usize,
    ) -> Result<Vec<StoredBlock>, StoreError> {
        blocks(self, task, at, bytes_max).await
    }

    async fn bytes_waiting(&self, task: TaskId) -> Result<u64, StoreError> {
        let low = watermark(self, task.0).await?;
        let all = bytes_appended(&self.readers, task).await?;
        let done = bytes_below(&self.readers, task, low, all).await?;
        Ok(all.saturating_sub(done))
    }
}

async fn append(
    store: &Store,
    id: TaskId,
    block: &NewBlock,
    write: &Write,
    now: WallMs,
) -> Result<Appended, AppendError> {
    let transaction = store.write().await?;
    let row = locks::task(&transaction, id)
        .await?
        .ok_or(AppendError::NotFound(id))?;
    let total = ItemCount(row.total.cast_unsigned());
    if let Some(known) = repeated(&transaction, id, block).await? {
        return Ok(Appended { total, ..known });
    }
    locks::shards(&transaction, id).await?;
    let mut held = Held::of(&transaction, row).await?;
    let bytes_before = bytes_appended(&transaction, id).await?;
    let addition = Addition {
        items: block.items(),
        bytes: block.bytes(),
        bytes_waiting: bytes_before - bytes_done(&transaction, &held, bytes_before).await?,
    };
    let first = held.life.append(&addition, now)?;
    insert(&transaction, (id, first, bytes_before), block, now).await?;
    let total = held.life.total;
    held.keep(&transaction, (&[], None), now).await?;
    keep(transaction, write).await?;
    Ok(Appended {
        first,
        items: block.items(),
        is_repeat: false,
        total,
    })
}

/// Row of a block without its items.
#[derive(DerivePartialModel)]
#[sea_orm(entity = "appended::Entity")]
struct Head {
    first_index: i64,
    end_index: i64,
    bytes_before: i64,
    byte_count: i64,
    body_hash: String,
}

/// Looks up an earlier append with the block's key. Fails if it had other rows.
async fn repeated(
    transaction: &Transaction,
    id: TaskId,
    block: &NewBlock,
) -> Result<Option<Appended>, AppendError> {
    let Some(key) = &block.key else { return Ok(None) };
    use appended::Column as C;
    let found: Option<Head> = appended::Entity::find()
        .filter(C::TaskId.eq(id.0))
        .filter(C::KeyHash.eq(words::digest(&[key])))
        .part(transaction)
        .await?;
    let Some(found) = found else {
        return Ok(None);
    };
    if found.body_hash != words::digest(&[block.rows()]) {
        return Err(AppendError::KeyReused(id));
    }
    Ok(Some(Appended {
        first: words::index(found.first_index),
        items: (found.end_index - found.first_index).cast_unsigned(),
        is_repeat: true,
        total: ItemCount(0),
    }))
}

/// Returns the bytes of all blocks that a task ever had.
async fn bytes_appended<T: ConnectionTrait>(transaction: &T, id: TaskId) -> Result<u64, StoreError> {
    use appended::Column as C;
    let last: Option<Head> = appended::Entity::find()
        .filter(C::TaskId.eq(id.0))
        .order_by_desc(C::FirstIndex)
        .part(transaction)
        .await?;
    Ok(last.map_or(0, |last| (last.bytes_before + last.byte_count).cast_unsigned()))
}

/// Returns the bytes of blocks that lie wholly below the watermark; `all` if no other block is left.
async fn bytes_done(transaction: &Transaction, held: &Held, all: u64) -> Result<u64, StoreError> {
    let low = held.life.shards.iter().map(|shard| shard.watermark).min();
    let low = low.unwrap_or_default().0.cast_signed();
    bytes_below(transaction, held.life.id, low, all).await
}

async fn bytes_below<T: ConnectionTrait>(
    transaction: &T,
    id: TaskId,
    low: i64,
    all: u64,
) -> Result<u64, StoreError> {
    use appended::Column as C;
    let first: Option<i64> = appended::Entity::find()
        .filter(C::TaskId.eq(id.0))
        .filter(C::FirstIndex.lte(low))
        .filter(C::EndIndex.gt(low))
        .order_by_desc(C::FirstIndex)
        .pluck_one([C::BytesBefore], transaction)
        .await?;
    Ok(first.map_or(all, i64::cast_unsigned))
}

async fn insert(
    transaction: &Transaction,
    (id, first, bytes_before): (TaskId, ItemIndex, u64),
    block: &NewBlock,
    now: WallMs,
) -> Result<(), StoreError> {
    let key = block.key.as_ref();
    let row = appended::ActiveModel {
        task_id: Set(id.0),
        first_index: Set(first.0.cast_signed()),
        end_index: Set((first.0 + block.items()).cast_signed()),
        bytes_before: Set(bytes_before.cast_signed()),
        byte_count: Set(block.bytes().cast_signed()),
        key_hash: Set(key.map(|key| words::digest(&[key]))),
        body_hash: Set(words::digest(&[block.rows()])),
        body: Set(block.rows().as_bytes().to_vec()),
        appended_at: Set(now.0),
        is_kept: Set(false),
    };
    appended::Entity::insert(row).run(transaction).await?;
    Ok(())
}

async fn blocks(
    store: &Store,
    id: TaskId,
    at: ItemIndex,
    bytes_max: usize,
) -> Result<Vec<StoredBlock>, StoreError> {
    use appended::Column as C;
    let at = at.0.cast_signed();
    let holder: Option<Head> = appended::Entity::find()
        .filter(C::TaskId.eq(id.0))
        .filter(C::FirstIndex.lte(at))
        .order_by_desc(C::FirstIndex)
        .part(&store.readers)
        .await?;
    let Some(holder) = holder.filter(|holder| holder.end_index > at) else {
        return Ok(Vec::new());
    };
    let first = holder.first_index;
    let bytes = i64::try_from(bytes_max).unwrap_or(i64::MAX);
    let near = C::BytesBefore.lt(holder.bytes_before.saturating_add(bytes));
    let rows = appended::Entity::find()
        .filter(C::TaskId.eq(id.0))
        .filter(C::FirstIndex.gte(first))
        .filter(C::FirstIndex.eq(first).or(near))
        .order_by_asc(C::FirstIndex)
        .limit(BLOCKS_AT_ONCE)
        .rows(&store.readers)
        .await?;
    let mut next = first;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        // A removed block may be left with nothing but its key.
        if row.first_index != next || row.body.is_empty() {
            break;
        }
        next = row.end_index;
        found.push(stored(row)?);
    }
    Ok(found)
}

fn stored(row: appended::Model) -> Result<StoredBlock, StoreError> {
    let rows = String::from_utf8(row.body).map_err(|fault| damaged("appended.body", &fault.to_string()))?;
    Ok(StoredBlock {
        first: words::index(row.first_index),
        rows,
    })
}

/// Removes the rows of old blocks that have no item which is still needed; marks other old blocks as kept.
pub(crate) async fn sweep(store: &Store, before: WallMs) -> Result<u64, StoreError> {
    use appended::Column as C;
    let tasks: Vec<i64> = appended::Entity::find()
        .distinct()
        .filter(C::IsKept.eq(false))
        .filter(C::AppendedAt.lt(before.0))
        .pluck([C::TaskId], &store.readers)
        .await?;
    let mut looked_at = 0;
    for task in tasks {
        looked_at += sweep_task(store, task, before).await?;
        if looked_at >= SWEEP_MAX {
            break;
        }
    }
    Ok(looked_at)
}

async fn sweep_task(store: &Store, task: i64, before: WallMs) -> Result<u64, StoreError> {
    use appended::Column as C;
    let old: Vec<(i64, i64)> = appended::Entity::find()
        .filter(C::TaskId.eq(task))
        .filter(C::IsKept.eq(false))
        .filter(C::AppendedAt.lt(before.0))
        .filter(C::EndIndex.lte(watermark(store, task).await?))
        .order_by_asc(C::FirstIndex)
        .limit(SWEEP_MAX)
        .pluck([C::FirstIndex, C::EndIndex], &store.readers)
        .await?;
    if old.is_empty() {
        return Ok(0);
    }
    let failed = with_failures(store, task, &old).await?;
    let firsts = old.iter().map(|(first, _)| *first);
    let (kept, gone): (Vec<i64>, Vec<i64>) = firsts.partition(|first| failed.contains(first));
    let transaction = store.write().await?;
    // A block sent again within the week gets the same answer as before, so blocks with a key keep the key.
    let keyed = appended::Entity::update_many()
        .col_expr(C::IsKept, Expr::value(true))
        .col_expr(C::Body, Expr::value(Vec::<u8>::new()))
        .filter(C::TaskId.eq(task))
        .filter(C::FirstIndex.is_in(gone.iter().copied()))
        .filter(C::KeyHash.is_not_null());
    keyed.run(&transaction).await?;
    appended::Entity::update_many()
        .col_expr(C::IsKept, Expr::value(true))
        .filter(C::TaskId.eq(task))
        .filter(C::FirstIndex.is_in(kept))
        .run(&transaction)
        .await?;
    appended::Entity::delete_many()
        .filter(C::TaskId.eq(task))
        .filter(C::FirstIndex.is_in(gone))
        .filter(C::KeyHash.is_null())
        .run(&transaction)
        .await?;
    transaction.commit().await?;
    Ok(old.len() as u64)
}

/// Removes old keys of blocks whose rows are gone.
pub(crate) async fn sweep_keys(store: &Store, before: WallMs) -> Result<u64, StoreError> {
    use appended::Column as C;
    let old: Vec<(i64, i64)> = appended::Entity::find()
        .filter(C::IsKept.eq(true))
        .filter(C::AppendedAt.lt(before.0))
        .filter(C::Body.eq(Vec::<u8>::new()))
        .order_by_asc(C::AppendedAt)
        .limit(SWEEP_MAX)
        .pluck([C::TaskId, C::FirstIndex], &store.readers)
        .await?;
    let mut by_task: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (task, first) in &old {
        by_task.entry(*task).or_default().push(*first);
    }
    if old.is_empty() {
        return Ok(0);
    }
    let transaction = store.write().await?;
    for (task, firsts) in by_task {
        let gone = appended::Entity::delete_many()
            .filter(C::TaskId.eq(task))
            .filter(C::FirstIndex.is_in(firsts));
        gone.run(&transaction).await?;
    }
    transaction.commit().await?;
    Ok(old.len() as u64)
}

/// Returns the watermark of a task: below it, every item is settled or parked.
async fn watermark(store: &Store, task: i64) -> Result<i64, StoreError> {
    let shards = shard_head::Entity::find()
        .filter(shard_head::Column::TaskId.eq(task))
        .filter(shard_head::Column::State.ne(ShardState::Done.as_str()))
        .rows(&store.readers)
        .await?;
    Ok(shards
        .iter()
        .map(|shard| shard.watermark)
        .min()
        .unwrap_or(i64::MAX))
}

/// Returns the blocks with an item that has a row: it failed, or is retrying.
async fn with_failures(store: &Store, task: i64, blocks: &[(i64, i64)]) -> Result<BTreeSet<i64>, StoreError> {
    let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
        return Ok(BTreeSet::new());
    };
    let rows: Vec<i64> = item::Entity::find()
        .filter(item::Column::TaskId.eq(task))
        .filter(item::Column::Idx.gte(first.0))
        .filter(item::Column::Idx.lt(last.1))
        .order_by_asc(item::Column::Idx)
        .pluck([item::Column::Idx], &store.readers)
        .await?;
    let holds = |block: &&(i64, i64)| {
        let at = rows.partition_point(|index| *index < block.0);
        rows.get(at).is_some_and(|index| *index < block.1)
    };
    Ok(blocks.iter().filter(holds).map(|(first, _)| *first).collect())
}
