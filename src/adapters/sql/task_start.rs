//! Starts: the token of each, the business's before-run hook, and what makes the shards claimable.

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::entity::{shard, start_token, task};
use super::task_record::{self, Note};
use super::{Store, Transaction, error, shards, task_edit, task_hooks};
use crate::adapters::start_token as token;
use crate::domain::ids::{TaskId, WallMs};
use crate::domain::lifecycle::{ShardState, Standing, Status, StopReason, Verb, Wish, decide};
use crate::ports::StoreError;
use crate::ports::task_store::{CommandError, TaskEdit, TokenStart};

/// Starts a task: it is queued, or waits for its business first.
pub(super) async fn start(
    transaction: &Transaction,
    row: &mut task::Model,
    standing: Standing,
    at: Option<WallMs>,
    now: WallMs,
) -> Result<(), CommandError> {
    let queued = decide(Verb::Start, standing)?;
    if let Some(at) = at {
        row.not_before = at.0.max(0);
    }
    if row.stop_reason.as_deref() == Some(StopReason::CanaryDone.as_str()) {
        // Whoever starts it now has seen the canary and wants the rest.
        row.canary = None;
        task_edit::bump_control(transaction, row).await?;
    }
    row.start_no += 1;
    row.started_at = row.started_at.or(Some(now.0));
    row.stop_reason = None;
    row.wish = queued.wish.as_str().to_owned();
    let token = new_token(transaction, row).await?;
    let hooks = task_hooks::of(transaction, row).await?;
    let Some(until) = task_hooks::ready_until(&hooks, now) else {
        return Ok(go(transaction, row, now).await?);
    };
    let asked = decide(Verb::HookAsked, Standing { wish: queued.wish, status: queued.status, owned: false })?;
    hold(transaction, row, now).await?;
    let text = "the business prepares itself for this start".to_owned();
    let note = Note { reason: Some("prepare".to_owned()), text, next_at: Some(until) };
    task_record::enter(row, asked.status, Some(note), now);
    row.awaiting_until = Some(until.0);
    Ok(task_hooks::ask(transaction, row, &token, until, now).await?)
}

/// Starts what rested too long to go on by itself: as after a stop.
pub(super) async fn wake(
    transaction: &Transaction,
    row: &mut task::Model,
    standing: Standing,
    at: Option<WallMs>,
    now: WallMs,
) -> Result<(), CommandError> {
    decide(Verb::Woken, standing)?;
    task_record::copy_wish(transaction, TaskId(row.id), Wish::Stop, now).await?;
    let rested = Standing { wish: Wish::Stop, status: Status::Stopped, owned: false };
    start(transaction, row, rested, at, now).await
}

/// A token for this start. Only its hash is kept; the plain one leaves with the before-run hook, if there is one.
async fn new_token(transaction: &Transaction, row: &mut task::Model) -> Result<String, StoreError> {
    let token = token::make()?;
    let hash = token::hash(&token);
    let kept = start_token::ActiveModel {
        token_hash: Set(hash.clone()),
        task_id: Set(row.id),
        start_no: Set(row.start_no),
    };
    start_token::Entity::insert(kept).exec_without_returning(transaction).await.map_err(error)?;
    row.start_token_hash = Some(hash);
    Ok(token)
}

/// While the business prepares itself, no shard can be claimed: stopped, without a wish.
async fn hold(transaction: &Transaction, row: &task::Model, now: WallMs) -> Result<(), StoreError> {
    use shard::Column as C;
    shard::Entity::update_many()
        .col_expr(C::Wish, Expr::value(Wish::Rest.as_str()))
        .col_expr(C::State, Expr::value(ShardState::Stopped.as_str()))
        .col_expr(C::UpdatedAt, Expr::value(now.0))
        .filter(C::TaskId.eq(row.id))
        .filter(C::State.ne(ShardState::Done.as_str()))
        .exec(transaction)
        .await
        .map_err(error)?;
    Ok(())
}

/// Cuts and shares the task, and makes its shards claimable, from the task's own `start_at` on.
async fn go(transaction: &Transaction, row: &mut task::Model, now: WallMs) -> Result<(), StoreError> {
    use shard::Column as C;
    shards::make(transaction, row, now).await?;
    task_record::copy_wish(transaction, TaskId(row.id), Wish::Run, now).await?;
    // A start forgives: what made the task wait before holds no more.
    shards::put_pause(row, None);
    (row.slow_until, row.slow_rate) = (None, None);
    row.queued_at = row.not_before.max(now.0);
    let is_later = row.not_before > now.0;
    if is_later {
        shard::Entity::update_many()
            .col_expr(C::NotBefore, Expr::value(row.not_before))
            .filter(C::TaskId.eq(row.id))
            .filter(C::State.eq(ShardState::Idle.as_str()))
            .exec(transaction)
            .await
            .map_err(error)?;
    }
    shards::deal(transaction, row).await?;
    let at = WallMs(row.not_before);
    let note = is_later.then(|| Note {
        reason: Some("start_at".to_owned()),
        text: format!("it starts at {}", at.to_rfc3339()),
        next_at: Some(at),
    });
    task_record::enter(row, Status::Queued, note, now);
    Ok(())
}

/// The business is ready: what it changes is applied, shards are cut and become claimable.
pub(super) async fn ready(
    transaction: &Transaction,
    row: &mut task::Model,
    standing: Standing,
    (start_no, edit): (u32, &TaskEdit),
    now: WallMs,
) -> Result<(), CommandError> {
    check_start(row, start_no)?;
    decide(Verb::HookReady, standing)?;
    task_edit::apply(transaction, row, edit).await?;
    Ok(go(transaction, row, now).await?)
}

/// The business isn't, and says why.
pub(super) async fn not_ready(
    transaction: &Transaction,
    row: &mut task::Model,
    standing: Standing,
    (start_no, text): (u32, &str),
    now: WallMs,
) -> Result<(), CommandError> {
    check_start(row, start_no)?;
    let decision = decide(Verb::HookRefused, standing)?;
    row.wish = decision.wish.as_str().to_owned();
    row.stop_reason = Some(StopReason::Business.as_str().to_owned());
    task_record::copy_wish(transaction, TaskId(row.id), decision.wish, now).await?;
    let note = Note { reason: None, text: text.to_owned(), next_at: None };
    task_record::enter(row, decision.status, Some(note), now);
    Ok(())
}

fn check_start(row: &task::Model, given: u32) -> Result<(), CommandError> {
    let present = row.start_no.cast_unsigned();
    if given == present { Ok(()) } else { Err(CommandError::StaleStart { given, present }) }
}

/// See [`crate::ports::task_store::TaskStore::start_of_token`].
pub(super) async fn of_token(store: &Store, token: &str) -> Result<Option<TokenStart>, StoreError> {
    let hash = token::hash(token);
    let found = start_token::Entity::find_by_id(hash.clone()).one(&store.readers).await.map_err(error)?;
    let Some(found) = found else { return Ok(None) };
    let live = task::Entity::find_by_id(found.task_id)
        .filter(task::Column::StartTokenHash.eq(hash))
        .one(&store.readers)
        .await
        .map_err(error)?;
    let (task, start_no) = (TaskId(found.task_id), found.start_no.cast_unsigned());
    Ok(Some(TokenStart { task, start_no, is_live: live.is_some() }))
}
