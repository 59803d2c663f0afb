//! Finishing early, and recovering at once.

use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::entity::{shard, shard_head, task};
use super::{Transaction, error, shards, task_edit, task_record, words};
use crate::domain::ids::{ItemIndex, TaskId, WallMs};
use crate::domain::lifecycle::{ShardState, Standing, Status, Verb, decide};
use crate::domain::meaning::FieldRefusal;
use crate::domain::shards::PauseReason;
use crate::ports::StoreError;
use crate::ports::task_store::CommandError;

/// Lowers the task's end. Shards without an owner are cut here; an owner reads it from its control.
pub(super) async fn finish(
    transaction: &Transaction,
    row: &mut task::Model,
    standing: Standing,
    end: ItemIndex,
    now: WallMs,
) -> Result<(), CommandError> {
    decide(Verb::Finish, standing)?;
    let end = i64::try_from(end.0).unwrap_or(i64::MAX);
    if end >= row.total {
        let why = format!("the task has {} items; an early finish lies below that", row.total);
        return Err(CommandError::Fields(vec![FieldRefusal::new("total", why)]));
    }
    let shards = task_record::shards(transaction, TaskId(row.id)).await?;
    // What was dispatched is never cut off, so an end below it says nothing more. Of several shards each has its own.
    let dispatched = shards.iter().map(dispatched).max().unwrap_or_default();
    let end = if shards.len() == 1 { end.max(dispatched) } else { end };
    row.finish_at = Some(row.finish_at.map_or(end, |earlier| earlier.min(end)));
    task_edit::bump_control(transaction, row).await?;
    cut_unowned(transaction, TaskId(row.id), end, now).await?;
    Ok(shards::settle(transaction, row, now).await?)
}

/// What was dispatched of a shard, as far as is known; its owner knows better.
fn dispatched(shard: &shard_head::Model) -> i64 {
    if shard.state == ShardState::Running.as_str() { shard.high_water } else { shard.may_have_left() }
}

/// Cuts the shards that nobody owns.
pub(super) async fn cut_unowned(
    transaction: &Transaction,
    id: TaskId,
    end: i64,
    now: WallMs,
) -> Result<(), StoreError> {
    let closed = [ShardState::Running.as_str(), ShardState::Done.as_str()];
    for shard in task_record::shards(transaction, id).await? {
        if !closed.contains(&shard.state.as_str()) {
            cut(transaction, &shard, end, now).await?;
        }
    }
    Ok(())
}

/// What was dispatched, or may have been, stays; a shard with nothing left is done.
async fn cut(
    transaction: &Transaction,
    shard: &shard_head::Model,
    end: i64,
    now: WallMs,
) -> Result<(), StoreError> {
    use shard::Column as C;
    let end = shard.end_index.min(end.max(shard.may_have_left()).max(shard.first_index));
    let is_done = shard.low_water >= end && shard.parked == 0;
    let state = if is_done { ShardState::Done.as_str() } else { shard.state.as_str() };
    let changed = shard::Entity::update_many()
        .col_expr(C::EndIndex, Expr::value(end))
        .col_expr(C::State, Expr::value(state))
        .col_expr(C::UpdatedAt, Expr::value(now.0))
        .filter(C::TaskId.eq(shard.task_id))
        .filter(C::ShardNo.eq(shard.shard_no))
        .filter(C::State.ne(ShardState::Running.as_str()))
        .exec(transaction)
        .await
        .map_err(error)?;
    match changed.rows_affected {
        1 => Ok(()),
        _ => Err(StoreError::Unavailable(format!("a shard of {} was claimed", TaskId(shard.task_id)))),
    }
}

/// Lets waiting shards be claimed now. Of a task whose end didn't add up nothing waits: it is proved again with its status
/// (`task_record::refresh`).
pub(super) async fn recover(
    transaction: &Transaction,
    row: &mut task::Model,
    standing: Standing,
    now: WallMs,
) -> Result<(), CommandError> {
    use shard::Column as C;
    let decision = decide(Verb::Recover, standing)?;
    if decision.status == Status::Finalizing {
        return Ok(());
    }
    shard::Entity::update_many()
        .col_expr(C::State, Expr::value(ShardState::Idle.as_str()))
        .col_expr(C::NotBefore, Expr::value(0))
        .col_expr(C::UpdatedAt, Expr::value(now.0))
        .filter(C::TaskId.eq(row.id))
        .filter(C::State.eq(ShardState::Recovering.as_str()))
        .exec(transaction)
        .await
        .map_err(error)?;
    if words::pause(row)?.is_some_and(|pause| pause.reason == PauseReason::ErrorBudget) {
        shards::put_pause(row, None);
        task_edit::bump_control(transaction, row).await?;
    }
    task_record::enter(row, decision.status, None, now);
    Ok(())
}
