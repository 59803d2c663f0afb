//! Claims (decision 0020, rules 12–14).

use sea_orm::sea_query::{Condition, Expr, ExprTrait as _, Query, SelectStatement};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select, UpdateMany};

use crate::sql::entity::{item, session, shard, shard_head};
use crate::sql::run::claim_batch;
use crate::sql::run::history;
use crate::sql::run::items;
use crate::sql::task::life::Held;
use crate::sql::{Fetch, Run, Store, Transaction, locks, words};
use windrow_core::checkpoint;
use windrow_core::execution::{HORIZON_OF_CLAIM, Horizon};
use windrow_core::ids::{ClaimId, Epoch, ItemIndex, RunNo, SessionId};
use windrow_core::task::ShardRange;
use windrow_core::task::lifecycle::{Desired, ShardState};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::{
    CLAIMABLE, ClaimOutcome, ClaimRequest, ClaimedShard, LeftBy,
};

/// Desired states for which a shard is claimed only to be ended.
pub(crate) const ENDING: [Desired; 3] = [Desired::Stop, Desired::StopNow, Desired::Cancel];

/// Selects the ids of sessions that are not fenced.
pub(crate) fn unfenced() -> SelectStatement {
    Query::select()
        .column(session::Column::Id)
        .from(session::Entity)
        .and_where(session::Column::Fenced.eq(false))
        .to_owned()
}

/// Implements [`windrow_engine::ports::ownership::run_store::RunStore::claim`]; on a server in two round trips, if
/// that suffices.
pub(crate) async fn claim(store: &Store, request: ClaimRequest) -> Result<ClaimOutcome, StoreError> {
    if let Some(talk) = store.talk().await?
        && let Some(outcome) = claim_batch::claim(talk, &request).await?
    {
        return Ok(outcome);
    }
    let transaction = store.write().await?;
    // The task before its shard, like everywhere; the claim may change its status.
    let Some(task) = locks::task(&transaction, request.shard.task).await? else {
        return Ok(ClaimOutcome::Lost);
    };
    let before = history::head(&transaction, request.shard).await?;
    let mut left_by = None;
    let raised = raise_epoch(&transaction, &request).await?;
    let Some(row) = own_row(&transaction, &request).await? else {
        return Ok(ClaimOutcome::Lost);
    };
    if raised {
        let heir = history::begin(&transaction, &request, &row).await?;
        match before {
            Some(before) if before.session_id.is_some() => {
                history::succeed(&transaction, &before, heir.as_deref(), request.now).await?;
            }
            Some(before) if before.run_no > 0 => {
                left_by = history::left_by(&transaction, &before).await?;
            }
            _ => {}
        }
        let mut held = Held::of(&transaction, task).await?;
        let deeds = held.refresh_claimed(&transaction, request.now).await?;
        held.keep(&transaction, (&[deeds], None), request.now).await?;
    } else if !is_unfenced(&transaction, request.session).await? {
        return Ok(ClaimOutcome::Lost);
    }
    let kept = (
        blob(&transaction, &row).await?,
        retrying(&transaction, &row).await?,
    );
    let claimed = claimed(&request, &row, kept, left_by)?;
    if let Some(version) = checkpoint::version_of(&claimed.blob).filter(|it| *it > checkpoint::VERSION) {
        // Not committed: the shard stays as it was, for a node that can read it.
        return Ok(ClaimOutcome::Newer(version));
    }
    transaction.commit().await?;
    Ok(ClaimOutcome::Claimed(Box::new(claimed)))
}

/// Runs the compare-and-set. Returns true if this request just raised the epoch.
async fn raise_epoch(transaction: &Transaction, request: &ClaimRequest) -> Result<bool, StoreError> {
    let raised = raising(request).run(transaction).await?;
    Ok(raised == 1)
}

/// Builds the statement of the compare-and-set.
pub(crate) fn raising(request: &ClaimRequest) -> UpdateMany<shard::Entity> {
    use shard::Column as C;
    let next = Expr::col(C::Epoch).add(1);
    let epoch = Expr::case(next.clone().gt(request.now.0), next).finally(request.now.0);
    // No progress was possible while the handler was down: such a claim is no sign of a crash loop.
    let moved = Expr::col(C::Watermark)
        .gt(Expr::col(C::LastClaimLw))
        .or(Expr::col(C::CircuitSince).is_not_null());
    let horizon = Expr::col(C::HighWater).add(HORIZON_OF_CLAIM.cast_signed());
    let timely = Condition::any()
        .add(C::NotBefore.lte(request.now.0))
        .add(C::Desired.is_in(ENDING.map(Desired::as_str)));
    shard::Entity::update_many()
        // Before `last_claim_lw`: MySQL evaluates assignments from left to right, each with the new values.
        .col_expr(
            C::StallCount,
            Expr::case(moved, 0)
                .finally(Expr::col(C::StallCount).add(1))
                .into(),
        )
        .col_expr(C::LastClaimLw, Expr::col(C::Watermark))
        // Before `horizon`, for the same reason.
        .col_expr(
            C::HorizonBefore,
            greatest(Expr::col(C::Horizon), Expr::col(C::HighWater)),
        )
        .col_expr(C::Horizon, greatest(Expr::col(C::Horizon), horizon))
        .col_expr(C::Epoch, epoch.into())
        .col_expr(C::ClaimId, Expr::value(words::claim_text(request.claim)))
        .col_expr(C::SessionId, Expr::value(words::session_text(request.session)))
        .col_expr(C::RunNo, Expr::col(C::RunNo).add(1))
        .col_expr(C::CkptSeq, Expr::value(0))
        .col_expr(C::State, Expr::value(ShardState::Running.as_str()))
        .col_expr(C::MoveTo, Expr::value(None::<String>))
        .col_expr(C::MoveUntil, Expr::value(None::<i64>))
        .col_expr(C::UpdatedAt, Expr::value(request.now.0))
        .filter(C::TaskId.eq(request.shard.task.0))
        .filter(C::ShardNo.eq(words::shard_no(request.shard)))
        .filter(C::Epoch.eq(request.seen.0.cast_signed()))
        .filter(C::State.is_in(CLAIMABLE.map(ShardState::as_str)))
        .filter(C::Desired.ne(Desired::Rest.as_str()))
        .filter(timely)
        .filter(may_pass(request.session))
}

/// Matches if the shard has no owner, or a fenced or missing one, and the claimant is not fenced.
fn may_pass(claimant: SessionId) -> Condition {
    let owner = Expr::col(shard::Column::SessionId);
    let me = unfenced()
        .and_where(session::Column::Id.eq(words::session_text(claimant)))
        .to_owned();
    Condition::all()
        .add(owner.clone().is_null().or(owner.not_in_subquery(unfenced())))
        .add(Expr::exists(me))
}

fn greatest(one: Expr, other: Expr) -> Expr {
    Expr::case(one.clone().gt(other.clone()), one)
        .finally(other)
        .into()
}

/// Returns the shard if this very claim owns it, even if the answer to an earlier request was lost.
async fn own_row(
    transaction: &Transaction,
    request: &ClaimRequest,
) -> Result<Option<shard_head::Model>, StoreError> {
    let row = history::head(transaction, request.shard).await?;
    Ok(row.filter(|row| is_own(row, request)))
}

/// Returns true if this very claim owns the shard.
pub(crate) fn is_own(row: &shard_head::Model, request: &ClaimRequest) -> bool {
    row.claim_id.as_deref() == Some(words::claim_text(request.claim).as_str())
        && row.session_id.as_deref() == Some(words::session_text(request.session).as_str())
        && row.state == ShardState::Running.as_str()
}

async fn is_unfenced(transaction: &Transaction, id: SessionId) -> Result<bool, StoreError> {
    let row = session::Entity::find_by_id(words::session_text(id))
        .row(transaction)
        .await?;
    Ok(row.is_some_and(|row| !row.fenced))
}

/// Builds the claimed shard, with the bytes of its checkpoint and its retrying items.
pub(crate) fn claimed(
    request: &ClaimRequest,
    row: &shard_head::Model,
    (blob, retrying): (Vec<u8>, Vec<item::Model>),
    left_by: Option<LeftBy>,
) -> Result<ClaimedShard, StoreError> {
    Ok(ClaimedShard {
        shard: request.shard,
        range: ShardRange {
            start: index(row.first_index),
            end: index(row.range_end),
        },
        epoch: Epoch(row.epoch.cast_unsigned()),
        claim: ClaimId(request.claim.0),
        run: RunNo(row.run_no.cast_unsigned()),
        desired: words::desired(&row.desired)?,
        watermark: index(row.watermark),
        high_water: index(row.high_water),
        horizon: Horizon {
            may_leave: index(row.horizon),
            may_have_left: index(row.horizon_before),
        },
        counters: words::counters(row),
        blob,
        stalls: row.stall_count.cast_unsigned(),
        recoveries: row.recoveries.cast_unsigned(),
        finish_at: (row.end_index < row.range_end).then(|| index(row.end_index)),
        outage: words::outage(row),
        retrying: retrying
            .into_iter()
            .map(items::retrying)
            .collect::<Result<_, _>>()?,
        results_kept: row.results.cast_unsigned(),
        left_by,
    })
}

fn index(column: i64) -> ItemIndex {
    ItemIndex(column.cast_unsigned())
}

async fn blob(transaction: &Transaction, row: &shard_head::Model) -> Result<Vec<u8>, StoreError> {
    let found = find_blob((row.task_id, row.shard_no))
        .into_tuple::<Vec<u8>>()
        .row(transaction)
        .await?;
    Ok(found.unwrap_or_default())
}

/// Builds the query for a shard's checkpoint.
pub(crate) fn find_blob(key: (i64, i32)) -> Select<shard::Entity> {
    shard::Entity::find_by_id(key)
        .select_only()
        .column(shard::Column::CkptBlob)
}

async fn retrying(
    transaction: &Transaction,
    row: &shard_head::Model,
) -> Result<Vec<item::Model>, StoreError> {
    find_retrying((row.task_id, row.shard_no)).rows(transaction).await
}

/// Builds the query for the items that a shard was about to retry.
pub(crate) fn find_retrying((task, shard): (i64, i32)) -> Select<item::Entity> {
    item::Entity::find()
        .filter(item::Column::TaskId.eq(task))
        .filter(item::Column::ShardNo.eq(shard))
        .filter(item::Column::State.eq(items::RETRYING))
        .order_by_asc(item::Column::Idx)
}
