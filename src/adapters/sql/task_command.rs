//! Obeys commands: the transition table decides, one transaction writes task, shards, audit and outbox.

use super::entity::task;
use super::task_record::{self, Change, Note};
use super::{
    Store, Transaction, keep, locks, task_edit, task_finish, task_hooks, task_start, task_view, words,
};
use crate::domain::ids::{TaskId, WallMs};
use crate::domain::lifecycle::{
    DORMANT, ShardState, Standing, Status, StopReason, Verb, decide, note_of_command,
};
use crate::ports::StoreError;
use crate::ports::task_store::{Actor, CommandError, TaskCommand, TaskView};

/// See [`crate::ports::task_store::TaskStore::command_if`].
pub(super) async fn command(
    store: &Store,
    (id, expected): (TaskId, Option<u64>),
    command: &TaskCommand,
    actor: &Actor,
    now: WallMs,
) -> Result<TaskView, CommandError> {
    let transaction = store.write().await?;
    let mut row = find(&transaction, id).await?;
    locks::shards(&transaction, id).await?;
    check_version(&row, expected)?;
    let standing = standing(&transaction, &row).await?;
    let settings = obey(&transaction, &mut row, command, standing, now).await?;
    task_record::save(&transaction, &row, now).await?;
    let status = words::status(&row)?;
    let statuses = || (task_record::status_json(standing.status), task_record::status_json(status));
    let (before, after) = settings.unwrap_or_else(statuses);
    let action = command.action().to_owned();
    let change = Change { task: Some(id), business: None, action, before: Some(before), after: Some(after) };
    task_record::audit(&transaction, actor, change, now).await?;
    if status == Status::Stopped && standing.status != Status::Stopped {
        task_hooks::announce(&transaction, &row, Status::Stopped, now).await?;
    }
    if matches!(command, TaskCommand::Finish { .. }) || status == Status::Finalizing {
        // It may have left nothing to do, or its end may add up by now.
        task_record::refresh(&transaction, id, now, None).await?;
    }
    let row = task_record::load(&transaction, id).await?;
    let view = task_view::view_with_owners(&transaction, row).await?;
    keep(transaction, actor).await?;
    Ok(view)
}

/// Starts a task that was made in this transaction, or never started.
pub(super) async fn start_new(
    transaction: &Transaction,
    mut row: task::Model,
    actor: &Actor,
    now: WallMs,
) -> Result<task::Model, StoreError> {
    let standing = Standing { wish: words::wish(&row.wish)?, status: words::status(&row)?, owned: false };
    match task_start::start(transaction, &mut row, standing, None, now).await {
        Ok(()) => {}
        Err(CommandError::Store(error)) => return Err(error),
        Err(refusal) => return Err(StoreError::Refused(refusal.to_string())),
    }
    task_record::save(transaction, &row, now).await?;
    let (id, status) = (TaskId(row.id), words::status(&row)?);
    let action = TaskCommand::Start.action().to_owned();
    let (before, after) =
        (Some(task_record::status_json(standing.status)), Some(task_record::status_json(status)));
    let change = Change { task: Some(id), business: None, action, before, after };
    task_record::audit(transaction, actor, change, now).await?;
    task_record::load(transaction, id).await
}

async fn find(transaction: &Transaction, id: TaskId) -> Result<task::Model, CommandError> {
    locks::task(transaction, id).await?.ok_or(CommandError::NotFound(id))
}

fn check_version(row: &task::Model, expected: Option<u64>) -> Result<(), CommandError> {
    let found = row.version.cast_unsigned();
    match expected {
        Some(expected) if expected != found => Err(CommandError::Changed { expected, found }),
        _ => Ok(()),
    }
}

async fn standing(transaction: &Transaction, row: &task::Model) -> Result<Standing, StoreError> {
    let shards = task_record::shards(transaction, TaskId(row.id)).await?;
    let owned = shards.iter().any(|shard| shard.state == ShardState::Running.as_str());
    Ok(Standing { wish: words::wish(&row.wish)?, status: words::status(row)?, owned })
}

/// Changes the row and the shards; says what was and what is where that isn't the status.
async fn obey(
    transaction: &Transaction,
    row: &mut task::Model,
    command: &TaskCommand,
    standing: Standing,
    now: WallMs,
) -> Result<Option<(String, String)>, CommandError> {
    match command {
        TaskCommand::Recover if row.status_reason.as_deref() == Some(DORMANT) => {
            task_start::wake(transaction, row, standing, None, now).await?;
        }
        TaskCommand::Start | TaskCommand::StartAt(_) | TaskCommand::StartJudging(_) => {
            return start(transaction, row, command, standing, now).await;
        }
        TaskCommand::Stop { reason } => {
            end(transaction, row, (Verb::Stop, *reason), standing, now).await?;
        }
        TaskCommand::StopNow => {
            end(transaction, row, (Verb::StopNow, StopReason::Operator), standing, now).await?;
        }
        TaskCommand::Cancel => {
            end(transaction, row, (Verb::Cancel, StopReason::Operator), standing, now).await?;
        }
        TaskCommand::Tune(tuning) => {
            decide(Verb::Tune, standing)?;
            return Ok(Some(task_edit::tune(transaction, row, tuning).await?));
        }
        TaskCommand::Edit(edit) => {
            task_edit::check(transaction, row, edit, standing).await?;
            return Ok(Some(task_edit::apply(transaction, row, edit).await?));
        }
        TaskCommand::Finish { end } => {
            task_finish::finish(transaction, row, standing, *end, now).await?;
        }
        TaskCommand::Abandon { code } => {
            decide(Verb::Abandon, standing)?;
            return Ok(Some(task_edit::abandon(transaction, row, code, now).await?));
        }
        TaskCommand::Recover => task_finish::recover(transaction, row, standing, now).await?,
        TaskCommand::Ready { start_no, edit } => {
            task_start::ready(transaction, row, standing, (*start_no, edit), now).await?;
        }
        TaskCommand::NotReady { start_no, text } => {
            task_start::not_ready(transaction, row, standing, (*start_no, text), now).await?;
        }
    }
    Ok(None)
}

/// Starts, or lets go on; says what was and is where that isn't the status alone.
async fn start(
    transaction: &Transaction,
    row: &mut task::Model,
    command: &TaskCommand,
    standing: Standing,
    now: WallMs,
) -> Result<Option<(String, String)>, CommandError> {
    let judging = matches!(command, TaskCommand::StartJudging(_));
    let tuned = match judging {
        true => Some(task_edit::tune(transaction, row, &words::tuning(&row.tuning)?.judging_items()).await?),
        false => None,
    };
    let at = command.start_at();
    if row.status_reason.as_deref() == Some(DORMANT) {
        task_start::wake(transaction, row, standing, at, now).await?;
    } else {
        task_start::start(transaction, row, standing, at, now).await?;
    }
    Ok(tuned)
}

/// Stop and cancel.
async fn end(
    transaction: &Transaction,
    row: &mut task::Model,
    (verb, reason): (Verb, StopReason),
    standing: Standing,
    now: WallMs,
) -> Result<(), CommandError> {
    let decision = decide(verb, standing)?;
    row.wish = decision.wish.as_str().to_owned();
    if decision.wish != standing.wish {
        task_record::copy_wish(transaction, TaskId(row.id), decision.wish, now).await?;
    }
    // The first reason to stop is the one that is shown.
    row.stop_reason.get_or_insert_with(|| reason.as_str().to_owned());
    if decision.status != standing.status {
        let said = note_of_command(verb, reason);
        let note = said.map(|said| Note { reason: said.reason, text: said.text, next_at: None });
        task_record::enter(row, decision.status, note, now);
    }
    Ok(())
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
    keep(transaction, actor).await?;
    Ok(())
}
