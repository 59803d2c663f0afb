//! How a run gives its shard back, in the transaction of its last checkpoint (decision 0020, rules 16 and 17).

use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::entity::{session, shard, shard_head, task};
use super::run_claim::unfenced;
use super::task_record::{self, Note};
use super::{Store, Transaction, error, locks, run_history, shards, words};
use crate::domain::ids::{ClaimId, Epoch, SessionId, ShardId, TaskId, WallMs};
use crate::domain::lifecycle::{ShardState, TASK_RECOVERS, Wish};
use crate::domain::succession::Fate;
use crate::ports::StoreError;
use crate::ports::run_store::{CheckpointAck, MOVE_PATIENCE, RunClose, ShardCheckpoint};
use crate::ports::upkeep::OWNER_GONE;

/// Writes the end of a run whose compare-and-set has just succeeded.
pub(super) async fn close(
    transaction: &Transaction,
    checkpoint: &ShardCheckpoint,
    close: &RunClose,
) -> Result<(), StoreError> {
    finish(transaction, checkpoint.shard, close, checkpoint.now).await
}

/// Gives the shard back and ends its run; the caller knows, in this transaction, that the claim is its own.
async fn finish(
    transaction: &Transaction,
    id: ShardId,
    close: &RunClose,
    now: WallMs,
) -> Result<(), StoreError> {
    let mut task = task_record::load(transaction, id.task).await?;
    if let (RunClose::Stopped { reason, .. }, Wish::Run) = (close, words::wish(&task.wish)?) {
        task = task_record::wish_to_stop(transaction, task, *reason, now).await?;
    }
    let state = state_after(close, words::wish(&task.wish)?);
    let close = &together(transaction, &mut task, close, state, now).await?;
    give_back(transaction, id, state, close, now).await?;
    if state == ShardState::Done {
        let before = task.control_rev;
        shards::settle(transaction, &mut task, now).await?;
        if task.control_rev != before {
            task_record::save(transaction, &task, now).await?;
        }
    }
    run_history::end(transaction, (id, end_reason(close)), fate(close), now).await?;
    task_record::refresh(transaction, id.task, now, note(close)).await
}

/// A run that found the error budget of its task exceeded takes the other shards with it.
async fn together(
    transaction: &Transaction,
    task: &mut task::Model,
    close: &RunClose,
    state: ShardState,
    now: WallMs,
) -> Result<RunClose, StoreError> {
    let mut close = close.clone();
    let RunClose::Recovering { not_before, reason, nth, .. } = &mut close else { return Ok(close) };
    let is_shared = reason == TASK_RECOVERS && state == ShardState::Recovering;
    if is_shared && task_record::shards(transaction, TaskId(task.id)).await?.len() > 1 {
        *not_before = shards::recover_all(transaction, task, (*not_before, *nth), now).await?;
        task_record::save(transaction, task, now).await?;
        *task = task_record::load(transaction, TaskId(task.id)).await?;
    }
    Ok(close)
}

fn state_after(close: &RunClose, wish: Wish) -> ShardState {
    match (close, wish) {
        (RunClose::Done, _) => ShardState::Done,
        (RunClose::Stopped { .. }, _) => ShardState::Stopped,
        // Nobody would claim it only to find that it has to stop.
        (_, Wish::Stop | Wish::StopNow | Wish::Cancel) => ShardState::Stopped,
        (RunClose::Released, _) => ShardState::Idle,
        (RunClose::Recovering { .. }, _) => ShardState::Recovering,
    }
}

fn end_reason(close: &RunClose) -> &'static str {
    match close {
        RunClose::Released => "released",
        RunClose::Done => "done",
        RunClose::Stopped { .. } => "stopped",
        RunClose::Recovering { .. } => "recovering",
    }
}

/// What people should know of afterwards.
fn fate(close: &RunClose) -> Option<Fate<'_>> {
    match close {
        RunClose::Recovering { text, .. } => Some(Fate::Recovering(text)),
        RunClose::Released | RunClose::Done | RunClose::Stopped { .. } => None,
    }
}

fn note(close: &RunClose) -> Option<Note> {
    match close {
        RunClose::Released | RunClose::Done => None,
        RunClose::Stopped { text, .. } => Some(Note { reason: None, text: text.clone(), next_at: None }),
        RunClose::Recovering { not_before, reason, text, .. } => {
            Some(Note { reason: Some(reason.clone()), text: text.clone(), next_at: Some(*not_before) })
        }
    }
}

async fn give_back(
    transaction: &Transaction,
    id: ShardId,
    state: ShardState,
    close: &RunClose,
    now: WallMs,
) -> Result<(), StoreError> {
    use shard::Column as C;
    let not_before = match close {
        RunClose::Recovering { not_before, .. } => not_before.0,
        _ => 0,
    };
    let mut update = shard::Entity::update_many()
        .col_expr(C::State, Expr::value(state.as_str()))
        .col_expr(C::SessionId, Expr::value(None::<String>))
        .col_expr(C::NotBefore, Expr::value(not_before))
        .col_expr(C::MoveUntil, Expr::value(now.plus(MOVE_PATIENCE).0))
        .col_expr(C::UpdatedAt, Expr::value(now.0));
    if let RunClose::Recovering { nth: Some(nth), .. } = close {
        update = update.col_expr(C::Recoveries, Expr::value(nth.cast_signed()));
    }
    if close.is_calm() {
        // A run that ended calmly isn't a stall, nor one that paused because too much failed.
        update = update.col_expr(C::LastClaimLw, Expr::value(-1));
    }
    let given = update
        .filter(C::TaskId.eq(id.task.0))
        .filter(C::ShardNo.eq(words::shard_no(id)))
        .exec(transaction)
        .await
        .map_err(error)?;
    if given.rows_affected == 1 { Ok(()) } else { Err(StoreError::Unavailable(format!("{id} is gone"))) }
}

/// See [`crate::ports::run_store::RunStore::release`].
pub(super) async fn release(
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
    let Some(row) = locks::shard(&transaction, id).await? else { return Ok(CheckpointAck::Fenced) };
    let own = row.epoch == epoch.0.cast_signed() && row.claim_id == Some(words::claim_text(claim));
    if own && row.session_id.is_none() {
        return Ok(CheckpointAck::Stored);
    }
    if !own || row.state != ShardState::Running.as_str() {
        return Ok(CheckpointAck::Fenced);
    }
    finish(&transaction, id, how, now).await?;
    transaction.commit().await.map_err(error)?;
    Ok(CheckpointAck::Stored)
}

/// See [`crate::ports::upkeep::UpkeepStore::orphans`].
pub(super) async fn orphans(
    store: &Store,
    silent: &[SessionId],
    limit: u32,
) -> Result<Vec<(ShardId, SessionId)>, StoreError> {
    use shard_head::Column as C;
    let fenced: Vec<String> = session::Entity::find()
        .select_only()
        .column(session::Column::Id)
        .filter(session::Column::Fenced.eq(true))
        .into_tuple()
        .all(&store.readers)
        .await
        .map_err(error)?;
    let owners: Vec<String> =
        fenced.into_iter().chain(silent.iter().map(|id| words::session_text(*id))).collect();
    if owners.is_empty() {
        return Ok(Vec::new());
    }
    let rows = shard_head::Entity::find()
        .filter(C::SessionId.is_in(owners))
        .order_by_asc(C::TaskId)
        .order_by_asc(C::ShardNo)
        .limit(u64::from(limit))
        .all(&store.readers)
        .await
        .map_err(error)?;
    let owner = |row: &shard_head::Model| row.session_id.as_deref().and_then(|id| words::uuid(id).ok());
    Ok(rows.iter().filter_map(|row| Some((words::shard_id(row), SessionId(owner(row)?)))).collect())
}

/// See [`crate::ports::upkeep::UpkeepStore::disown`].
pub(super) async fn disown(
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
        let found = shard_head::Entity::find_by_id((id.task.0, words::shard_no(id))).one(&transaction).await;
        let Some(row) = found.map_err(error)? else { continue };
        if take_away(&transaction, &row).await? {
            run_history::end(&transaction, (id, run_history::LOST), Some(Fate::Lost), now).await?;
            let note = Note { reason: None, text: OWNER_GONE.to_owned(), next_at: None };
            task_record::refresh(&transaction, id.task, now, Some(note)).await?;
            tasks.push(id.task);
        }
    }
    transaction.commit().await.map_err(error)?;
    Ok(tasks)
}

/// When it was active last stays as it was, and so does the low water of its last claim. False where a claim was first.
async fn take_away(transaction: &Transaction, row: &shard_head::Model) -> Result<bool, StoreError> {
    use shard::Column as C;
    let state = state_after(&RunClose::Released, words::wish(&row.wish)?);
    let taken = shard::Entity::update_many()
        .col_expr(C::State, Expr::value(state.as_str()))
        .col_expr(C::SessionId, Expr::value(None::<String>))
        .filter(C::TaskId.eq(row.task_id))
        .filter(C::ShardNo.eq(row.shard_no))
        .filter(C::Epoch.eq(row.epoch))
        .filter(C::Wish.eq(row.wish.as_str()))
        .filter(C::State.eq(ShardState::Running.as_str()))
        .filter(C::SessionId.not_in_subquery(unfenced()))
        .exec(transaction)
        .await
        .map_err(error)?;
    Ok(taken.rows_affected == 1)
}
