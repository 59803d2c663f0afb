//! End of a run: the shard is given back in the transaction of the run's last checkpoint (decision 0020, rules 16 and
//! 17).

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::sql::entity::{session, shard_head};
use crate::sql::run::claim::unfenced;
use crate::sql::run::history::{self, Ending};
use crate::sql::task::life::Held;
use crate::sql::{Fetch, Pluck, Store, Transaction, locks, words};
use windrow_core::ids::{ClaimId, Epoch, SessionId, ShardId, TaskId, WallMs};
use windrow_core::life::succession::Fate;
use windrow_core::task::lifecycle::ShardState;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::{CheckpointAck, RunClose};

/// Gives the shard back and ends its run. The caller has checked in this transaction that the claim is its own.
pub(crate) async fn finish(
    transaction: &Transaction,
    id: ShardId,
    close: &RunClose,
    now: WallMs,
) -> Result<(), StoreError> {
    let mut held = Held::find(transaction, id.task).await?;
    let news = held.life.end_run(id.no, close, now);
    let deeds = held.refresh(transaction, news, now).await?;
    history::end(transaction, id, Ending::of(close), now).await?;
    held.keep(transaction, (&[deeds], None), now).await
}

/// Implements [`windrow_engine::ports::ownership::run_store::RunStore::release`]; a repeated release succeeds without
/// an effect.
pub(crate) async fn release(
    store: &Store,
    (id, epoch, claim): (ShardId, Epoch, ClaimId),
    how: &RunClose,
    now: WallMs,
) -> Result<CheckpointAck, StoreError> {
    let transaction = store.write().await?;
    locks::task(&transaction, id.task).await?;
    if let RunClose::Stopped { .. } = how {
        locks::shards(&transaction, id.task).await?;
    }
    let Some(row) = locks::shard(&transaction, id).await? else {
        return Ok(CheckpointAck::Fenced);
    };
    if let Some(ack) = judge(&row, epoch, claim) {
        return Ok(ack);
    }
    finish(&transaction, id, how, now).await?;
    transaction.commit().await?;
    Ok(CheckpointAck::Stored)
}

/// Returns the immediate answer to a run that wants to end: it did so before, or the shard is not its own. Returns
/// `None` if the shard is its own.
pub(crate) fn judge(row: &shard_head::Model, epoch: Epoch, claim: ClaimId) -> Option<CheckpointAck> {
    let own = row.epoch == epoch.0.cast_signed() && row.claim_id == Some(words::claim_text(claim));
    if own && row.session_id.is_none() {
        return Some(CheckpointAck::Stored);
    }
    let is_held = own && row.state == ShardState::Running.as_str();
    (!is_held).then_some(CheckpointAck::Fenced)
}

/// Implements [`windrow_engine::ports::tasks::upkeep::UpkeepStore::orphans`]: shards whose owner is fenced or
/// `silent`.
pub(crate) async fn orphans(
    store: &Store,
    silent: &[SessionId],
    limit: u32,
) -> Result<Vec<(ShardId, SessionId)>, StoreError> {
    use shard_head::Column as C;
    let fenced: Vec<String> = session::Entity::find()
        .filter(session::Column::Fenced.eq(true))
        .pluck([session::Column::Id], &store.readers)
        .await?;
    let owners: Vec<String> = fenced
        .into_iter()
        .chain(silent.iter().map(|id| words::session_text(*id)))
        .collect();
    if owners.is_empty() {
        return Ok(Vec::new());
    }
    let rows = shard_head::Entity::find()
        .filter(C::SessionId.is_in(owners))
        .order_by_asc(C::TaskId)
        .order_by_asc(C::ShardNo)
        .limit(u64::from(limit))
        .rows(&store.readers)
        .await?;
    let owner = |row: &shard_head::Model| row.session_id.as_deref().and_then(|id| words::uuid(id).ok());
    Ok(rows
        .iter()
        .filter_map(|row| Some((words::shard_id(row), SessionId(owner(row)?))))
        .collect())
}

/// Implements [`windrow_engine::ports::tasks::upkeep::UpkeepStore::disown`], in one transaction for all shards.
pub(crate) async fn disown(
    store: &Store,
    shards: &[ShardId],
    now: WallMs,
) -> Result<Vec<TaskId>, StoreError> {
    if shards.is_empty() {
        return Ok(Vec::new());
    }
    let mut shards = shards.to_vec();
    shards.sort_unstable();
    let transaction = store.write().await?;
    locks::tasks(&transaction, &shards.iter().map(|id| id.task).collect()).await?;
    let mut tasks = Vec::new();
    for id in shards {
        if is_lost(&transaction, id).await? {
            history::end(&transaction, id, Ending::lost(Some(Fate::Lost)), now).await?;
            let mut held = Held::find(&transaction, id.task).await?;
            let news = held.life.disown(id.no);
            let deeds = held.refresh(&transaction, news, now).await?;
            held.keep(&transaction, (&[deeds], None), now).await?;
            tasks.push(id.task);
        }
    }
    transaction.commit().await?;
    Ok(tasks)
}

/// Returns true if the shard is running and its owner is fenced or missing.
async fn is_lost(transaction: &Transaction, id: ShardId) -> Result<bool, StoreError> {
    use shard_head::Column as C;
    let lost = shard_head::Entity::find_by_id((id.task.0, words::shard_no(id)))
        .filter(C::State.eq(ShardState::Running.as_str()))
        .filter(C::SessionId.not_in_subquery(unfenced()))
        .row(transaction);
    Ok(lost.await?.is_some())
}
