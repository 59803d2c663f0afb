//! Publication of a generation in one write: the pointer, the generation and the end of its task, under the claim of
//! the shard that publishes (decision 0020, rule 15).

use async_trait::async_trait;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use windrow_words::store as say;

use super::{begin, keys, let_go, lock, moved, pointer, save};
use crate::sql::entity::{dataset, generation, shard_head};
use crate::sql::run::close;
use crate::sql::task::life::Held;
use crate::sql::task::record::{self, Change};
use crate::sql::{Run, Store, Transaction, locks, settled};
use windrow_core::dataset::{GenerationState, Publishing};
use windrow_core::ids::{ItemIndex, TaskId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::actor::Actor;
use windrow_engine::ports::access::audit_object::{AuditObject, ObjectKind};
use windrow_engine::ports::datasets::publication::{OwnClaim, Prepared, PublicationStore};
use windrow_engine::ports::ownership::run_store::{CheckpointAck, RunClose};

#[async_trait]
impl PublicationStore for Store {
    async fn publish(
        &self,
        own: OwnClaim,
        prepared: &Prepared,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError> {
        settled(|| publish(self, own, prepared, now)).await
    }

    async fn write_keys(
        &self,
        own: OwnClaim,
        no: u32,
        written: &[(u64, ItemIndex)],
    ) -> Result<CheckpointAck, StoreError> {
        settled(|| keys::write(self, own, no, written)).await
    }

    async fn lend_token(
        &self,
        own: OwnClaim,
        token_hash: &str,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError> {
        settled(|| lend(self, own, token_hash, now)).await
    }
}

async fn lend(
    store: &Store,
    own: OwnClaim,
    token_hash: &str,
    now: WallMs,
) -> Result<CheckpointAck, StoreError> {
    let transaction = store.write().await?;
    let Some(row) = locks::task(&transaction, own.shard.task).await? else {
        return Ok(CheckpointAck::Fenced);
    };
    let Some(shard) = locks::shard(&transaction, own.shard).await? else {
        return Ok(CheckpointAck::Fenced);
    };
    if close::judge(&shard, own.epoch, own.claim).is_some() {
        return Ok(CheckpointAck::Fenced);
    }
    let mut held = Held::of(&transaction, row).await?;
    let deeds = held.life.lend(token_hash.to_owned());
    held.keep(&transaction, (&[deeds], None), now).await?;
    transaction.commit().await?;
    Ok(CheckpointAck::Stored)
}

async fn publish(
    store: &Store,
    own: OwnClaim,
    prepared: &Prepared,
    now: WallMs,
) -> Result<CheckpointAck, StoreError> {
    let transaction = store.write().await?;
    let task = own.shard.task;
    let Some(row) = locks::task(&transaction, task).await? else {
        return Ok(CheckpointAck::Fenced);
    };
    let Some(shard) = locks::shard(&transaction, own.shard).await? else {
        return Ok(CheckpointAck::Fenced);
    };
    if let Some(ack) = close::judge(&shard, own.epoch, own.claim) {
        return Ok(ack);
    }
    if let Some(publishing) = crate::sql::words::publishing(row.publishing.as_deref())? {
        make_known(&transaction, (own, &publishing), prepared, now).await?;
    }
    close::finish(&transaction, own.shard, &RunClose::Done, now).await?;
    transaction.commit().await?;
    Ok(CheckpointAck::Stored)
}

async fn make_known(
    transaction: &Transaction,
    (own, publishing): (OwnClaim, &Publishing),
    prepared: &Prepared,
    now: WallMs,
) -> Result<(), StoreError> {
    let (task, no) = (own.shard.task, publishing.generation);
    let Some(before) = lock(transaction, &publishing.publish.dataset).await? else {
        return begin::withhold(transaction, task, say::dataset_deleted().english(), now).await;
    };
    let after = match pointer(&before).publish(no) {
        Ok(after) => after,
        Err(superseded) => return begin::withhold(transaction, task, &superseded.to_string(), now).await,
    };
    let row = moved(before.clone(), after, now);
    if !keep_generation(transaction, (own, publishing, &row), prepared, now).await? {
        // A dataset of the same name was created since, with other generation numbers.
        return Ok(());
    }
    let row = save(transaction, row, now).await?;
    let_go(transaction, &row).await?;
    tell(transaction, task, (&before, &row), now).await
}

/// Marks the generation as published. Returns false if it was no longer pending.
async fn keep_generation(
    transaction: &Transaction,
    (own, publishing, row): (OwnClaim, &Publishing, &dataset::Model),
    prepared: &Prepared,
    now: WallMs,
) -> Result<bool, StoreError> {
    use generation::Column as C;
    let shards = shards(transaction, own.shard.task).await?;
    let results: u64 = shards.iter().map(|(_, _, results)| results).sum();
    let shards = serde_json::to_string(&shards).map_err(|fault| StoreError::Refused(fault.to_string()))?;
    let key = publishing.publish.key.clone().filter(|_| prepared.is_keyed);
    let epoch = key.as_ref().map(|_| own.epoch.0.cast_signed());
    let written = generation::Entity::update_many()
        .col_expr(C::State, GenerationState::Published.as_str().into())
        .col_expr(C::Summary, prepared.summary.as_deref().into())
        .col_expr(C::Results, results.cast_signed().into())
        .col_expr(C::Shards, shards.into())
        .col_expr(C::KeyMember, key.into())
        .col_expr(C::KeyEpoch, epoch.into())
        .col_expr(C::PublicationNo, row.publication_no.into())
        .col_expr(C::PublishedAt, now.0.into())
        .filter(C::DatasetId.eq(row.id))
        .filter(C::No.eq(publishing.generation.0.cast_signed()))
        .filter(C::TaskId.eq(own.shard.task.0))
        .filter(C::State.eq(GenerationState::Pending.as_str()))
        .run(transaction)
        .await?;
    Ok(written == 1)
}

/// Returns number, end and result count of each shard that has items, in index order.
async fn shards(transaction: &Transaction, task: TaskId) -> Result<Vec<(u32, u64, u64)>, StoreError> {
    let rows = record::shards(transaction, task).await?;
    let of = |row: &shard_head::Model| {
        (
            row.shard_no.cast_unsigned(),
            row.end_index.cast_unsigned(),
            row.results.cast_unsigned(),
        )
    };
    let with_items = rows.iter().filter(|row| row.first_index < row.range_end);
    Ok(with_items.map(of).collect())
}

async fn tell(
    transaction: &Transaction,
    task: TaskId,
    (before, after): (&dataset::Model, &dataset::Model),
    now: WallMs,
) -> Result<(), StoreError> {
    let change = Change {
        object: AuditObject::new(ObjectKind::Dataset, &after.name),
        task: Some(task),
        business: Some(after.business_id),
        action: "dataset.publish".to_owned(),
        before: Some(super::change::shown(before)),
        after: Some(super::change::shown(after)),
    };
    record::audit(transaction, &Actor::windrow(None), change, now).await
}
