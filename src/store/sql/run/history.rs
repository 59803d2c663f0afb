//! Rows of runs: begun by claims, ended by whoever gives a shard back or takes it, and kept with their nodes' names
//! long after the sessions are gone. Abnormal ends are also written to the audit.

use std::time::Duration;

use sea_orm::sea_query::Expr;
use sea_orm::{ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter, Select, UpdateMany};

use crate::sql::entity::{run, session, shard_head};
use crate::sql::task::record::{self, Change};
use crate::sql::{Fetch, Run, Transaction, error, words};
use windrow_core::ids::{RunNo, ShardId, TaskId, WallMs};
use windrow_core::life::succession::{Episode, Fate};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::audit_object::AuditObject;
use windrow_engine::ports::ownership::run_store::{ClaimRequest, LeftBy, RunClose};
use windrow_engine::ports::tasks::store::Actor;

/// End reason of a run whose node gave the shard back.
const RELEASED: &str = "released";
/// End reason of a run that its node didn't end.
pub(crate) const LOST: &str = "lost";

/// Returns the row of a shard.
pub(crate) async fn head(
    transaction: &Transaction,
    id: ShardId,
) -> Result<Option<shard_head::Model>, StoreError> {
    find_head(id).row(transaction).await
}

/// Builds the query for a shard's row.
pub(crate) fn find_head(id: ShardId) -> Select<shard_head::Entity> {
    shard_head::Entity::find_by_id((id.task.0, words::shard_no(id)))
}

/// Begins the run of a claim that has just raised the epoch. Returns the name of its node.
pub(crate) async fn begin(
    transaction: &Transaction,
    request: &ClaimRequest,
    row: &shard_head::Model,
) -> Result<Option<String>, StoreError> {
    let owner = session::Entity::find_by_id(words::session_text(request.session))
        .row(transaction)
        .await;
    let node = owner?.map(|owner| owner.node);
    run::Entity::insert(new_run(request, row, node.clone()))
        .run(transaction)
        .await?;
    Ok(node)
}

/// Builds the row of the run that a claim begins.
pub(crate) fn new_run(
    request: &ClaimRequest,
    row: &shard_head::Model,
    node: Option<String>,
) -> run::ActiveModel {
    run::ActiveModel {
        task_id: Set(row.task_id),
        shard_no: Set(row.shard_no),
        run_no: Set(row.run_no),
        epoch: Set(row.epoch),
        claim_id: Set(words::claim_text(request.claim)),
        session_id: Set(words::session_text(request.session)),
        started_at: Set(request.now.0),
        ended_at: Set(None),
        end_reason: Set(None),
        watermark: Set(row.watermark),
        succeeded: Set(row.succeeded),
        skipped: Set(row.skipped),
        failed: Set(row.failed),
        parked: Set(row.parked),
        node: Set(node),
        end_text: Set(None),
    }
}

/// Reason and circumstances of the end of a run.
pub(crate) struct Ending<'a> {
    reason: &'static str,
    /// Explanation for people; `None` if the reason says it all or `fate` provides the text.
    text: Option<String>,
    /// Fate that people should know about afterwards; written to the audit.
    fate: Option<Fate<'a>>,
}

impl<'a> Ending<'a> {
    /// Returns the ending of a run that gave its shard back.
    pub(crate) fn of(close: &'a RunClose) -> Ending<'a> {
        let (reason, text, fate) = match close {
            RunClose::Released => (RELEASED, None, None),
            RunClose::Done => ("done", None, None),
            RunClose::Stopped { .. } => ("stopped", Some(close.to_string()), None),
            RunClose::Recovering { text, .. } => {
                ("recovering", Some(text.clone()), Some(Fate::Recovering(text)))
            }
        };
        Ending { reason, text, fate }
    }

    /// Returns the ending of a run that its node didn't end.
    pub(crate) fn lost(fate: Option<Fate<'a>>) -> Ending<'a> {
        Ending {
            reason: LOST,
            text: None,
            fate,
        }
    }
}

/// Ends the run that a claim found unended. `before` is the shard as that run left it, `heir` the node that
/// continues.
pub(crate) async fn succeed(
    transaction: &Transaction,
    before: &shard_head::Model,
    heir: Option<&str>,
    now: WallMs,
) -> Result<(), StoreError> {
    end_row(transaction, before, Ending::lost(heir.map(Fate::TakenOver)), now).await
}

/// Ends the newest run of a shard with the shard's current progress.
pub(crate) async fn end(
    transaction: &Transaction,
    id: ShardId,
    how: Ending<'_>,
    now: WallMs,
) -> Result<(), StoreError> {
    match head(transaction, id).await? {
        Some(row) => end_row(transaction, &row, how, now).await,
        None => Ok(()),
    }
}

async fn end_row(
    transaction: &Transaction,
    row: &shard_head::Model,
    how: Ending<'_>,
    now: WallMs,
) -> Result<(), StoreError> {
    let mut text = how.text;
    if let Some(fate) = how.fate {
        let node = find(transaction, row).await?.and_then(|run| run.node);
        let (actor, change) = told(row, node.as_deref(), fate, now);
        text = text.or_else(|| actor.reason.clone());
        record::audit(transaction, &actor, change, now).await?;
    }
    let ended = ending(row, (how.reason, text), now).exec(transaction).await;
    ended.map(drop).map_err(error)
}

/// Builds the statement that ends the newest run of a shard.
pub(crate) fn ending(
    row: &shard_head::Model,
    (reason, text): (&str, Option<String>),
    now: WallMs,
) -> UpdateMany<run::Entity> {
    use run::Column as C;
    run::Entity::update_many()
        .col_expr(C::EndedAt, Expr::value(now.0))
        .col_expr(C::EndReason, Expr::value(reason))
        .col_expr(C::EndText, Expr::value(text))
        .col_expr(C::Watermark, Expr::value(row.watermark))
        .col_expr(C::Succeeded, Expr::value(row.succeeded))
        .col_expr(C::Skipped, Expr::value(row.skipped))
        .col_expr(C::Failed, Expr::value(row.failed))
        .col_expr(C::Parked, Expr::value(row.parked))
        .filter(C::TaskId.eq(row.task_id))
        .filter(C::ShardNo.eq(row.shard_no))
        .filter(C::RunNo.eq(row.run_no))
}

/// Returns the audit entry for a run that `node` left.
pub(crate) fn told(
    row: &shard_head::Model,
    node: Option<&str>,
    fate: Fate<'_>,
    now: WallMs,
) -> (Actor, Change) {
    let episode = Episode {
        shard: row.shard_no.cast_unsigned(),
        run: RunNo(row.run_no.cast_unsigned()),
        node,
        silent: Duration::from_millis(u64::try_from(now.0 - row.updated_at).unwrap_or_default()),
        may_repeat: may_repeat(row),
        fate,
    };
    let change = Change {
        object: AuditObject::task(TaskId(row.task_id)),
        task: Some(TaskId(row.task_id)),
        business: None,
        action: episode.action().to_owned(),
        before: Some(episode.before()),
        after: Some(episode.after()),
    };
    (Actor::windrow(Some(episode.sentence().to_string())), change)
}

/// Returns the maximum number of items that a shard dispatched without saving them as settled.
fn may_repeat(row: &shard_head::Model) -> u64 {
    let left = row.horizon.max(row.high_water).min(row.end_index) - row.first_index;
    let settled = row.succeeded + row.skipped + row.failed;
    u64::try_from(left - settled).unwrap_or_default()
}

/// Returns who left the newest run of a shard for others to continue.
pub(crate) async fn left_by(
    transaction: &Transaction,
    row: &shard_head::Model,
) -> Result<Option<LeftBy>, StoreError> {
    Ok(find(transaction, row).await?.and_then(left_by_run))
}

/// Returns who left a run for others to continue; `None` if it ended otherwise.
pub(crate) fn left_by_run(run: run::Model) -> Option<LeftBy> {
    let is_lost = match run.end_reason.as_deref()? {
        RELEASED => false,
        LOST => true,
        _ => return None,
    };
    run.node.map(|node| LeftBy { node, is_lost })
}

/// Returns the newest run of a shard, according to the shard's row.
async fn find(transaction: &Transaction, row: &shard_head::Model) -> Result<Option<run::Model>, StoreError> {
    let key = (row.task_id, row.shard_no, row.run_no);
    run::Entity::find_by_id(key).row(transaction).await
}
