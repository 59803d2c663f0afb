//! Changes of what a task is called, when it goes, and what it means.

use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use serde_json::{Value, json};

use super::entity::{shard, shard_head, task};
use super::{Transaction, error, task_record, upload_use, words};
use crate::domain::ids::{ItemCount, ItemIndex, TaskId, WallMs};
use crate::domain::lifecycle::{ShardState, Standing};
use crate::domain::meaning::{Meaning, changed};
use crate::domain::task::Tuning;
use crate::ports::StoreError;
use crate::ports::task_store::{CommandError, TaskEdit};

/// Whether an edit is legal as the task stands; see [`TaskEdit::check`].
pub(super) async fn check(
    transaction: &Transaction,
    row: &task::Model,
    edit: &TaskEdit,
    standing: Standing,
) -> Result<(), CommandError> {
    let shards = task_record::shards(transaction, TaskId(row.id)).await?;
    edit.check(standing, shards.iter().any(|shard| shard.run_no > 0))
}

/// Applies an edit to the task's row and its shards; says what was and what is.
pub(super) async fn apply(
    transaction: &Transaction,
    row: &mut task::Model,
    edit: &TaskEdit,
) -> Result<(String, String), CommandError> {
    let before = described(row, edit);
    if let Some(name) = &edit.name {
        rename(transaction, row, name).await?;
    }
    if let Some(labels) = &edit.labels {
        row.labels = words::labels_text(labels)?;
    }
    row.priority = edit.priority.unwrap_or(row.priority);
    if let Some(deadline) = edit.deadline {
        row.deadline = deadline.map(|at| at.0);
    }
    if let Some(params) = &edit.params {
        row.params = Some(params.clone());
    }
    if let Some(tuning) = &edit.tuning {
        tune(transaction, row, tuning).await?;
    }
    if !edit.meaning().is_empty() {
        mean(transaction, row, edit).await?;
    }
    Ok((before, described(row, edit)))
}

async fn rename(transaction: &Transaction, row: &mut task::Model, name: &str) -> Result<(), CommandError> {
    if name.is_empty() {
        row.name = None;
        return Ok(());
    }
    let holder = task::Entity::find()
        .filter(task::Column::BusinessId.eq(row.business_id))
        .filter(task::Column::Name.eq(name))
        .filter(task::Column::Id.ne(row.id))
        .one(transaction);
    match holder.await.map_err(error)? {
        Some(holder) => Err(CommandError::NameTaken(name.to_owned(), TaskId(holder.id))),
        None => {
            row.name = Some(name.to_owned());
            Ok(())
        }
    }
}

async fn mean(transaction: &Transaction, row: &mut task::Model, edit: &TaskEdit) -> Result<(), CommandError> {
    let shards = task_record::shards(transaction, TaskId(row.id)).await?;
    let now = Meaning {
        total: ItemCount(row.total.cast_unsigned()),
        skip_first: ItemIndex(row.skip_first.cast_unsigned()),
        source: row.source.clone(),
        shards: words::shards_wanted(row.shards_wanted),
        has_run: shards.iter().any(|shard| shard.run_no > 0),
        is_cut: row.finish_at.is_some() || shards.iter().any(|shard| shard.end_index < shard.range_end),
    };
    let next = changed(&now, &edit.meaning()).map_err(CommandError::Fields)?;
    row.total = next.total.0.cast_signed();
    row.skip_first = next.skip_first.0.cast_signed();
    row.source = next.source;
    row.shards_wanted = words::shards_column(next.shards);
    if let Some((_, meaning)) = edit.source {
        row.meaning_hash = meaning.cast_signed();
        let now = upload_use::index_of(transaction, &row.source).await?;
        let before = std::mem::replace(&mut row.source_id, now);
        if before != now {
            upload_use::give_up(transaction, before, row.id).await?;
        }
    }
    match shards.last() {
        Some(last) if now.has_run => Ok(extend(transaction, row, last).await?),
        _ => Ok(cut(transaction, row).await?),
    }
}

/// Makes one shard of a task that never ran, which has all of its rate; a start cuts it anew.
async fn cut(transaction: &Transaction, row: &task::Model) -> Result<(), StoreError> {
    use shard::Column as C;
    let first = row.skip_first.min(row.total);
    let others = shard::Entity::delete_many().filter(C::TaskId.eq(row.id)).filter(C::ShardNo.ne(0));
    others.exec(transaction).await.map_err(error)?;
    let done = shard::Entity::update_many()
        .col_expr(C::FirstIndex, Expr::value(first))
        .col_expr(C::LowWater, Expr::value(first))
        .col_expr(C::HighWater, Expr::value(first))
        .col_expr(C::Reach, Expr::value(first))
        .col_expr(C::ReachBefore, Expr::value(first))
        .col_expr(C::EndIndex, Expr::value(row.total))
        .col_expr(C::RangeEnd, Expr::value(row.total))
        .col_expr(C::RateShare, Expr::value(None::<i64>))
        .filter(C::TaskId.eq(row.id))
        .filter(C::ShardNo.eq(0))
        .filter(C::RunNo.eq(0))
        .exec(transaction)
        .await
        .map_err(error)?;
    expect_one(row, done.rows_affected)
}

/// Lengthens the last shard of a task that has run.
async fn extend(
    transaction: &Transaction,
    row: &task::Model,
    last: &shard_head::Model,
) -> Result<(), StoreError> {
    use shard::Column as C;
    if last.range_end == row.total {
        return Ok(());
    }
    let is_done = last.state == ShardState::Done.as_str();
    let state = if is_done { ShardState::Stopped.as_str() } else { last.state.as_str() };
    let done = shard::Entity::update_many()
        .col_expr(C::EndIndex, Expr::value(row.total))
        .col_expr(C::RangeEnd, Expr::value(row.total))
        .col_expr(C::State, Expr::value(state))
        .filter(C::TaskId.eq(row.id))
        .filter(C::ShardNo.eq(last.shard_no))
        .filter(C::State.ne(ShardState::Running.as_str()))
        .exec(transaction)
        .await
        .map_err(error)?;
    expect_one(row, done.rows_affected)
}

fn expect_one(row: &task::Model, changed: u64) -> Result<(), StoreError> {
    match changed {
        1 => Ok(()),
        _ => Err(StoreError::Unavailable(format!("a shard of {} was changed", TaskId(row.id)))),
    }
}

/// The members that an edit names, as they are; a source by its kind, for it may be long.
fn described(row: &task::Model, edit: &TaskEdit) -> String {
    let read = |text: Option<&str>| -> Value {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    };
    let members = [
        ("settings", edit.tuning.is_some(), read(Some(row.tuning.as_str()))),
        ("name", edit.name.is_some(), json!(row.name)),
        ("labels", edit.labels.is_some(), read(row.labels.as_deref())),
        ("priority", edit.priority.is_some(), json!(row.priority)),
        ("deadline_ms", edit.deadline.is_some(), json!(row.deadline)),
        ("params", edit.params.is_some(), read(row.params.as_deref())),
        ("total", edit.total.is_some(), json!(row.total)),
        ("skip_first", edit.skip_first.is_some(), json!(row.skip_first)),
        ("source", edit.source.is_some(), read(Some(row.source.as_str()))["kind"].take()),
        ("shards", edit.shards.is_some(), json!(words::shards_wanted(row.shards_wanted))),
    ];
    let named = members.into_iter().filter(|(_, is_named, _)| *is_named);
    Value::Object(named.map(|(name, _, value)| (name.to_owned(), value)).collect()).to_string()
}

/// Puts other live settings in place, for owners to see within a second.
pub(super) async fn tune(
    transaction: &Transaction,
    row: &mut task::Model,
    tuning: &Tuning,
) -> Result<(String, String), StoreError> {
    let before = std::mem::replace(&mut row.tuning, words::tuning_text(tuning)?);
    bump_control(transaction, row).await?;
    Ok((before, row.tuning.clone()))
}

/// Remembers that items which wait with a code are given up, for owners to see within a second.
pub(super) async fn abandon(
    transaction: &Transaction,
    row: &mut task::Model,
    code: &str,
    now: WallMs,
) -> Result<(String, String), CommandError> {
    let mut decided = words::abandonments(row.abandonments.as_deref())?;
    decided.decide(code, now)?;
    let before = std::mem::replace(&mut row.abandonments, words::abandonments_text(&decided)?);
    bump_control(transaction, row).await?;
    let list = |text: Option<String>| text.unwrap_or_else(|| "[]".to_owned());
    Ok((list(before), list(row.abandonments.clone())))
}

/// Tells owners that the task's control changed.
pub(super) async fn bump_control(transaction: &Transaction, row: &mut task::Model) -> Result<(), StoreError> {
    row.control_rev += 1;
    shard::Entity::update_many()
        .col_expr(shard::Column::ControlRev, Expr::value(row.control_rev))
        .filter(shard::Column::TaskId.eq(row.id))
        .exec(transaction)
        .await
        .map_err(error)?;
    Ok(())
}
