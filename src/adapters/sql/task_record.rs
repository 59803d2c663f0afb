//! The task row and what follows from its shards: status, ends and audit, in the transaction of the change.

use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::Expr;
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use super::entity::{audit, failure_group, item, shard, shard_head, task};
use super::{Transaction, damaged, error, items, task_hooks, words};
use crate::domain::ids::{TaskId, WallMs};
use crate::domain::lifecycle::{
    self, ShardState, Shards, Status, StopReason, TaskResult, Wish, note_after, status_of,
};
use crate::ports::StoreError;
use crate::ports::task_store::{Actor, COORDINATOR_DOWN};

/// What is shown beside a new status.
pub(super) struct Note {
    /// A machine slug.
    pub(super) reason: Option<String>,
    /// A sentence for people.
    pub(super) text: String,
    /// When something happens by itself.
    pub(super) next_at: Option<WallMs>,
}

/// A task that must exist, because a shard of it does.
pub(super) async fn load(transaction: &Transaction, id: TaskId) -> Result<task::Model, StoreError> {
    let found = task::Entity::find_by_id(id.0).one(transaction).await.map_err(error)?;
    found.ok_or_else(|| damaged("the task of a shard", &id.to_string()))
}

/// The shards of a task in index order.
pub(super) async fn shards(
    transaction: &Transaction,
    id: TaskId,
) -> Result<Vec<shard_head::Model>, StoreError> {
    shard_head::Entity::find()
        .filter(shard_head::Column::TaskId.eq(id.0))
        .order_by_asc(shard_head::Column::FirstIndex)
        .order_by_asc(shard_head::Column::ShardNo)
        .all(transaction)
        .await
        .map_err(error)
}

/// Writes a task back by compare-and-set on its version, which goes up by one.
pub(super) async fn save(
    transaction: &Transaction,
    task: &task::Model,
    now: WallMs,
) -> Result<(), StoreError> {
    let mut row = task::ActiveModel::from(task.clone()).reset_all();
    row.id = NotSet;
    row.version = Set(task.version + 1);
    row.updated_at = Set(now.0);
    let saved = task::Entity::update_many()
        .set(row)
        .filter(task::Column::Id.eq(task.id))
        .filter(task::Column::Version.eq(task.version))
        .exec(transaction)
        .await
        .map_err(error)?;
    match saved.rows_affected {
        1 => Ok(()),
        _ => Err(StoreError::Unavailable(format!("{} was changed at the same time", TaskId(task.id)))),
    }
}

/// Makes a task want to stop because a run of it found a reason to.
pub(super) async fn wish_to_stop(
    transaction: &Transaction,
    mut task: task::Model,
    reason: StopReason,
    now: WallMs,
) -> Result<task::Model, StoreError> {
    task.wish = Wish::Stop.as_str().to_owned();
    task.stop_reason = Some(reason.as_str().to_owned());
    save(transaction, &task, now).await?;
    copy_wish(transaction, TaskId(task.id), Wish::Stop, now).await?;
    load(transaction, TaskId(task.id)).await
}

/// Copies a task's wish onto its shards, so that claims and heartbeats read one table; unowned shards follow at once.
pub(super) async fn copy_wish(
    transaction: &Transaction,
    id: TaskId,
    wish: Wish,
    now: WallMs,
) -> Result<(), StoreError> {
    use shard::Column as C;
    let update = || shard::Entity::update_many().filter(C::TaskId.eq(id.0));
    let copied = update()
        .col_expr(C::Wish, Expr::value(wish.as_str()))
        .col_expr(C::UpdatedAt, Expr::value(now.0))
        .exec(transaction);
    copied.await.map_err(error)?;
    let unowned = match wish {
        Wish::Rest => return Ok(()),
        // A start forgives: no waiting time, no stalls.
        Wish::Run => update()
            .col_expr(C::State, Expr::value(ShardState::Idle.as_str()))
            .col_expr(C::NotBefore, Expr::value(0))
            .col_expr(C::Recoveries, Expr::value(0))
            .col_expr(C::LastClaimLw, Expr::value(-1))
            .filter(C::State.eq(ShardState::Stopped.as_str())),
        Wish::Stop | Wish::StopNow | Wish::Cancel => update()
            .col_expr(C::State, Expr::value(ShardState::Stopped.as_str()))
            .filter(C::State.is_in([ShardState::Idle.as_str(), ShardState::Recovering.as_str()])),
    };
    unowned.exec(transaction).await.map_err(error)?;
    Ok(())
}

/// Stores what a task is now, after a shard of it changed.
pub(super) async fn refresh(
    transaction: &Transaction,
    id: TaskId,
    now: WallMs,
    note: Option<Note>,
) -> Result<(), StoreError> {
    let task = load(transaction, id).await?;
    refresh_read(transaction, task, now, note).await
}

/// The same with the task's row as this transaction has read it under its lock.
pub(super) async fn refresh_read(
    transaction: &Transaction,
    mut task: task::Model,
    now: WallMs,
    note: Option<Note>,
) -> Result<(), StoreError> {
    let rows = shards(transaction, TaskId(task.id)).await?;
    let states = rows.iter().map(words::shard_state).collect::<Result<Vec<_>, _>>()?;
    let before = words::status(&task)?;
    let standing =
        Shards { states: &states, awaiting_business: before == Status::AwaitingBusiness, finalized: false };
    let mut status = status_of(words::wish(&task.wish)?, &standing);
    let mut proof = None;
    if status == Status::Finalizing {
        match prove(transaction, &task, &rows).await? {
            Ok(result) => {
                status = Status::Finished;
                task.result = Some(result.as_str().to_owned());
            }
            Err(text) => {
                proof = Some(Note { reason: Some("proof_failed".to_owned()), text, next_at: None });
            }
        }
    }
    let said = proof.or_else(|| said(&task, before, status, note, &rows));
    if status == before {
        if task.status_reason.as_deref() == Some(COORDINATOR_DOWN)
            && status == Status::Running
            && said.is_none()
        {
            // Somebody owns it again.
            (task.status_reason, task.status_text) = (None, None);
            return save(transaction, &task, now).await;
        }
        return say(transaction, task, said, now).await;
    }
    enter(&mut task, status, said, now);
    save(transaction, &task, now).await?;
    if matches!(status, Status::Finished | Status::Stopped | Status::Cancelled) {
        audit_end(transaction, &task, status, before, now).await?;
        task_hooks::announce(transaction, &task, status, now).await?;
    }
    Ok(())
}

/// What is shown from now on beside the status.
fn said(
    task: &task::Model,
    before: Status,
    status: Status,
    news: Option<Note>,
    shards: &[shard_head::Model],
) -> Option<Note> {
    let held =
        task.status_text.clone().map(|text| lifecycle::Note { reason: task.status_reason.clone(), text });
    let news = news.map(|Note { reason, text, .. }| lifecycle::Note { reason, text });
    let lifecycle::Note { reason, text } = note_after(before, held, status, news)?;
    let waiting = shards.iter().filter(|shard| shard.state == ShardState::Recovering.as_str());
    let next = waiting.map(|shard| WallMs(shard.not_before)).min();
    Some(Note { reason, text, next_at: next.filter(|_| status == Status::Recovering) })
}

/// Shows something else beside the status that the task has.
async fn say(
    transaction: &Transaction,
    mut task: task::Model,
    note: Option<Note>,
    now: WallMs,
) -> Result<(), StoreError> {
    let Some(Note { reason, text, .. }) = note else { return Ok(()) };
    if task.status_reason == reason && task.status_text.as_ref() == Some(&text) {
        return Ok(());
    }
    (task.status_reason, task.status_text) = (reason, Some(text));
    save(transaction, &task, now).await
}

/// Sets a status with what belongs to it. Nothing that belonged to the old one stays.
pub(super) fn enter(task: &mut task::Model, status: Status, note: Option<Note>, now: WallMs) {
    task.status = status.as_str().to_owned();
    task.status_since = now.0;
    let (reason, text, next_at) = match note {
        Some(note) => (note.reason, Some(note.text), note.next_at),
        None => (None, None, None),
    };
    (task.status_reason, task.status_text) = (reason, text);
    task.next_at = next_at.map(|at| at.0);
    if !matches!(status, Status::Stopping | Status::Stopped) {
        task.stop_reason = None;
    }
    if status != Status::AwaitingBusiness {
        task.awaiting_until = None;
    }
    if status == Status::Stopped || status.is_terminal() {
        // The start is over, and with it what its token was for.
        task.start_token_hash = None;
    }
    if status.is_terminal() {
        task.finished_at = Some(now.0);
    }
}

/// Proves that a task whose shards are all done is whole; says what isn't.
async fn prove(
    transaction: &Transaction,
    task: &task::Model,
    shards: &[shard_head::Model],
) -> Result<Result<TaskResult, String>, StoreError> {
    let mut next = task.skip_first.min(task.total);
    for shard in shards {
        let done = shard.succeeded + shard.skipped + shard.abandoned;
        if shard.first_index != next {
            return Ok(Err(format!("the shards don't meet at item {next}")));
        }
        if shard.low_water != shard.end_index
            || shard.parked != 0
            || done != shard.end_index - shard.first_index
        {
            return Ok(Err(format!(
                "shard {} ended at {} of {} with {done} items settled and {} parked",
                shard.shard_no, shard.low_water, shard.end_index, shard.parked
            )));
        }
        next = shard.range_end;
    }
    if next != task.total {
        return Ok(Err(format!("the shards end at item {next} of {}", task.total)));
    }
    let abandoned: i64 = shards.iter().map(|shard| shard.abandoned).sum();
    let recorded = failures_recorded(transaction, task.id).await?;
    if recorded != abandoned {
        return Ok(Err(format!("{abandoned} items were abandoned, but {recorded} failures are recorded")));
    }
    if is_parked(transaction, task.id).await? {
        return Ok(Err("an item is still parked".to_owned()));
    }
    let early = shards.iter().any(|shard| shard.end_index < shard.range_end);
    Ok(Ok(match (abandoned, early) {
        (1.., _) => TaskResult::WithFailures,
        (_, true) => TaskResult::Early,
        (_, false) => TaskResult::Succeeded,
    }))
}

async fn failures_recorded(transaction: &Transaction, task: i64) -> Result<i64, StoreError> {
    let groups =
        failure_group::Entity::find().filter(failure_group::Column::TaskId.eq(task)).all(transaction);
    Ok(groups.await.map_err(error)?.iter().map(|group| group.n).sum())
}

async fn is_parked(transaction: &Transaction, task: i64) -> Result<bool, StoreError> {
    let parked = item::Entity::find()
        .filter(item::Column::TaskId.eq(task))
        .filter(item::Column::State.eq(items::PARKED))
        .one(transaction);
    Ok(parked.await.map_err(error)?.is_some())
}

async fn audit_end(
    transaction: &Transaction,
    task: &task::Model,
    status: Status,
    before: Status,
    now: WallMs,
) -> Result<(), StoreError> {
    let actor = Actor::windrow(task.stop_reason.clone());
    let change = Change {
        task: Some(TaskId(task.id)),
        business: None,
        action: format!("task.{status}"),
        before: Some(status_json(before)),
        after: Some(status_json(status)),
    };
    audit(transaction, &actor, change, now).await
}

/// A status as the audit shows it.
pub(super) fn status_json(status: Status) -> String {
    format!("{{\"status\":\"{status}\"}}")
}

/// What an audit entry says beside who and when.
pub(super) struct Change {
    pub(super) task: Option<TaskId>,
    /// The row of the business, where the change is one of it.
    pub(super) business: Option<i64>,
    pub(super) action: String,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

/// Appends an audit entry.
pub(super) async fn audit(
    transaction: &Transaction,
    actor: &Actor,
    change: Change,
    now: WallMs,
) -> Result<(), StoreError> {
    let entry = audit::ActiveModel {
        id: NotSet,
        task_id: Set(change.task.map(|id| id.0)),
        at_ms: Set(now.0),
        actor: Set(actor.name.clone()),
        source: Set(actor.source.to_owned()),
        action: Set(change.action),
        reason: Set(actor.reason.clone()),
        before_json: Set(change.before),
        after_json: Set(change.after),
        request_id: Set(actor.request_id.clone()),
        business_id: Set(change.business),
    };
    audit::Entity::insert(entry).exec_without_returning(transaction).await.map_err(error)?;
    Ok(())
}
