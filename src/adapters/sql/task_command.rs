//! Obeys commands: the transition table decides, one transaction writes task, shards, audit and outbox.

use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, DatabaseTransaction, EntityTrait, QueryFilter};

use super::entity::{shard, task};
use super::task_record::{self, Change};
use super::{Store, error, task_view, words};
use crate::domain::ids::{TaskId, WallMs};
use crate::domain::lifecycle::{Decision, ShardState, Standing, Status, StopReason, Verb, decide};
use crate::domain::task::Tuning;
use crate::ports::StoreError;
use crate::ports::task_store::{Actor, CommandError, TaskCommand, TaskView};

/// See [`crate::ports::task_store::TaskStore::command`].
pub(super) async fn command(
    store: &Store,
    id: TaskId,
    command: &TaskCommand,
    actor: &Actor,
    now: WallMs,
) -> Result<TaskView, CommandError> {
    let transaction = store.write().await?;
    let mut row = find(&transaction, id).await?;
    let standing = standing(&transaction, &row).await?;
    let verb = verb(command)?;
    let decision = decide(verb, standing)?;
    let change = change(&row, command, verb, standing.status, decision)?;
    match command {
        TaskCommand::Tune(tuning) => tune(&transaction, &mut row, tuning).await?,
        _ => obey(&transaction, &mut row, command, standing, decision, now).await?,
    }
    task_record::save(&transaction, &row, now).await?;
    task_record::audit(&transaction, actor, change, now).await?;
    if decision.status == Status::Stopped && standing.status != Status::Stopped {
        task_record::announce(&transaction, &row, Status::Stopped, now).await?;
    }
    let row = task_record::load(&transaction, id).await?;
    let view = task_view::view(&transaction, row).await?;
    transaction.commit().await.map_err(error)?;
    Ok(view)
}

async fn find(transaction: &DatabaseTransaction, id: TaskId) -> Result<task::Model, CommandError> {
    let found = task::Entity::find_by_id(id.0).one(transaction).await.map_err(error)?;
    found.ok_or(CommandError::NotFound(id))
}

async fn standing(transaction: &DatabaseTransaction, row: &task::Model) -> Result<Standing, StoreError> {
    let shards = task_record::shards(transaction, TaskId(row.id)).await?;
    let owned = shards.iter().any(|shard| shard.state == ShardState::Running.as_str());
    Ok(Standing { wish: words::wish(&row.wish)?, status: words::status(row)?, owned })
}

fn verb(command: &TaskCommand) -> Result<Verb, CommandError> {
    Ok(match command {
        TaskCommand::Start => Verb::Start,
        TaskCommand::Stop { .. } => Verb::Stop,
        TaskCommand::StopNow => Verb::StopNow,
        TaskCommand::Cancel => Verb::Cancel,
        TaskCommand::Tune(_) => Verb::Tune,
        TaskCommand::Finish { .. }
        | TaskCommand::Recover
        | TaskCommand::Edit(_)
        | TaskCommand::Ready { .. }
        | TaskCommand::NotReady { .. } => {
            return Err(StoreError::Refused("not built yet".to_owned()).into());
        }
    })
}

fn change(
    row: &task::Model,
    command: &TaskCommand,
    verb: Verb,
    before: Status,
    decision: Decision,
) -> Result<Change, StoreError> {
    let (before, after) = match command {
        TaskCommand::Tune(tuning) => (row.tuning.clone(), words::tuning_text(tuning)?),
        _ => (task_record::status_json(before), task_record::status_json(decision.status)),
    };
    let action = format!("task.{verb}");
    Ok(Change {
        task: Some(TaskId(row.id)),
        business: None,
        action,
        before: Some(before),
        after: Some(after),
    })
}

async fn tune(
    transaction: &DatabaseTransaction,
    row: &mut task::Model,
    tuning: &Tuning,
) -> Result<(), StoreError> {
    row.tuning = words::tuning_text(tuning)?;
    row.control_rev += 1;
    shard::Entity::update_many()
        .col_expr(shard::Column::ControlRev, Expr::value(row.control_rev))
        .filter(shard::Column::TaskId.eq(row.id))
        .exec(transaction)
        .await
        .map_err(error)?;
    Ok(())
}

async fn obey(
    transaction: &DatabaseTransaction,
    row: &mut task::Model,
    command: &TaskCommand,
    standing: Standing,
    decision: Decision,
    now: WallMs,
) -> Result<(), StoreError> {
    row.wish = decision.wish.as_str().to_owned();
    if decision.wish != standing.wish {
        task_record::copy_wish(transaction, TaskId(row.id), decision.wish, now).await?;
    }
    match command {
        TaskCommand::Start => on_start(row, now),
        TaskCommand::Stop { reason } => give_reason(row, *reason),
        _ => give_reason(row, StopReason::Operator),
    }
    if decision.status != standing.status {
        task_record::enter(row, decision.status, None, now);
    }
    Ok(())
}

fn on_start(row: &mut task::Model, now: WallMs) {
    row.start_no += 1;
    row.queued_at = now.0;
    row.started_at = row.started_at.or(Some(now.0));
    row.stop_reason = None;
}

/// The first reason to stop is the one that is shown.
fn give_reason(row: &mut task::Model, reason: StopReason) {
    row.stop_reason.get_or_insert_with(|| reason.as_str().to_owned());
}

/// See [`crate::ports::task_store::TaskStore::release_name`].
pub(super) async fn release_name(
    store: &Store,
    id: TaskId,
    actor: &Actor,
    now: WallMs,
) -> Result<(), CommandError> {
    let transaction = store.write().await?;
    let mut row = find(&transaction, id).await?;
    let Some(name) = row.name.take() else { return Ok(()) };
    task_record::save(&transaction, &row, now).await?;
    let before = Some(serde_json::json!({ "name": name }).to_string());
    let after = Some(serde_json::json!({ "name": null }).to_string());
    let change =
        Change { task: Some(id), business: None, action: "task.release_name".to_owned(), before, after };
    task_record::audit(&transaction, actor, change, now).await?;
    transaction.commit().await.map_err(error)?;
    Ok(())
}

/// See [`crate::ports::task_store::TaskStore::explain_wait`].
pub(super) async fn explain_wait(
    store: &Store,
    id: TaskId,
    reason: &str,
    text: &str,
    now: WallMs,
) -> Result<(), StoreError> {
    let transaction = store.write().await?;
    let found = task::Entity::find_by_id(id.0).one(&transaction).await.map_err(error)?;
    let Some(mut row) = found else { return Ok(()) };
    let is_known = row.status_reason.as_deref() == Some(reason) && row.status_text.as_deref() == Some(text);
    if is_known || words::status(&row)? != Status::Queued {
        return Ok(());
    }
    row.status_reason = Some(reason.to_owned());
    row.status_text = Some(text.to_owned());
    task_record::save(&transaction, &row, now).await?;
    transaction.commit().await.map_err(error)
}
