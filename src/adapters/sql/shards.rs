//! The shards of a task together: cut when it starts, sharing its rate, told what one of them was told.
//!
//! All of it happens in a transaction that changes the task's row first, so two shards never share at the same time.

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::entity::{session, shard, shard_head, task};
use super::{Transaction, error, task_edit, task_finish, task_record, words};
use crate::domain::execution::wanted;
use crate::domain::ids::{ItemIndex, TaskId, WallMs};
use crate::domain::lifecycle::{ShardState, Wish};
use crate::domain::shards::{Nodes, Pause, Share, Told, cut};
use crate::domain::task::ShardRange;
use crate::ports::StoreError;

/// Until when a shard can't be claimed that waits for the canary: for good, as long as nobody lets it.
const HELD: i64 = i64::MAX;

/// The row of a shard that never ran.
pub(super) fn row(task_id: i64, no: i32, range: ShardRange, now: WallMs) -> shard::ActiveModel {
    let (first, end) = (range.start.0.cast_signed(), range.end.0.cast_signed());
    shard::ActiveModel {
        task_id: Set(task_id),
        shard_no: Set(no),
        first_index: Set(first),
        end_index: Set(end),
        range_end: Set(end),
        state: Set(ShardState::Idle.as_str().to_owned()),
        wish: Set(Wish::Rest.as_str().to_owned()),
        control_rev: Set(1),
        low_water: Set(first),
        high_water: Set(first),
        reach: Set(first),
        reach_before: Set(first),
        ckpt_blob: Set(Vec::new()),
        last_claim_lw: Set(-1),
        created_at: Set(now.0),
        updated_at: Set(now.0),
        ..shard::ActiveModel::default()
    }
}

/// Makes the shards of a task that is started and of which nothing ever ran; one that has run keeps those it has.
pub(super) async fn make(
    transaction: &Transaction,
    task: &task::Model,
    now: WallMs,
) -> Result<(), StoreError> {
    use shard::Column as C;
    let shards = task_record::shards(transaction, TaskId(task.id)).await?;
    let is_cut = task.finish_at.is_some() || shards.iter().any(|shard| shard.end_index < shard.range_end);
    if is_cut || shards.iter().any(|shard| shard.run_no > 0) {
        return Ok(());
    }
    let range = whole(task);
    let tuning = words::tuning(&task.tuning)?;
    let asked = words::shards_wanted(task.shards_wanted);
    let wanted = wanted(asked, &tuning, words::canary(task.canary.as_deref())?);
    let parts = cut(range, wanted.count(range, nodes(transaction, task).await?));
    if parts.len() == 1 && shards.len() == 1 {
        return Ok(());
    }
    let of_task = shard::Entity::delete_many().filter(C::TaskId.eq(task.id));
    of_task.exec(transaction).await.map_err(error)?;
    let rows = (0..).zip(parts).map(|(no, part)| shard::ActiveModel {
        control_rev: Set(task.control_rev),
        ..row(task.id, no, part, now)
    });
    shard::Entity::insert_many(rows).exec_without_returning(transaction).await.map_err(error)?;
    Ok(())
}

/// The indexes of a task that are not left out at its head.
pub(super) fn whole(task: &task::Model) -> ShardRange {
    let index = |column: i64| ItemIndex(column.max(0).cast_unsigned());
    ShardRange { start: index(task.skip_first.min(task.total)), end: index(task.total) }
}

/// The live nodes that take tasks of this one's pool.
async fn nodes(transaction: &Transaction, task: &task::Model) -> Result<Nodes, StoreError> {
    let rows = session::Entity::find().filter(session::Column::Fenced.eq(false)).all(transaction).await;
    let mut nodes = Nodes { count: 0, capacity_micros: Some(0) };
    for row in rows.map_err(error)? {
        if !super::session_store::serves(&row, task.pool.as_deref())? {
            continue;
        }
        nodes.count += 1;
        let offered = row.capacity.map(|micros| u128::from(micros.unsigned_abs()));
        nodes.capacity_micros = nodes.capacity_micros.zip(offered).map(|(most, other)| most.max(other));
    }
    Ok(nodes)
}

/// Shares a task that is about to run, while no shard of it has an owner: each that isn't done gets the same part. Only
/// the first can be claimed before the canary has passed.
pub(super) async fn deal(transaction: &Transaction, task: &task::Model) -> Result<(), StoreError> {
    use shard::Column as C;
    if share_alike(transaction, task.id).await? && task.canary.is_some() {
        shard::Entity::update_many()
            .col_expr(C::NotBefore, Expr::value(HELD))
            .filter(C::TaskId.eq(task.id))
            .filter(C::ShardNo.ne(0))
            .filter(C::State.eq(ShardState::Idle.as_str()))
            .exec(transaction)
            .await
            .map_err(error)?;
    }
    Ok(())
}

/// Gives each shard that isn't done the same part, and those that are nothing. False for a task of one shard.
async fn share_alike(transaction: &Transaction, task: i64) -> Result<bool, StoreError> {
    use shard::Column as C;
    let shards = task_record::shards(transaction, TaskId(task)).await?;
    if shards.len() < 2 {
        return Ok(false);
    }
    let open = shards.iter().filter(|shard| shard.state != ShardState::Done.as_str()).count();
    let share = Share::one_of(u32::try_from(open).unwrap_or(u32::MAX)).stored();
    let done = ShardState::Done.as_str();
    for (of, share) in [(C::State.eq(done), 0), (C::State.ne(done), share)] {
        shard::Entity::update_many()
            .col_expr(C::RateShare, Expr::value(share))
            .filter(C::TaskId.eq(task))
            .filter(of)
            .exec(transaction)
            .await
            .map_err(error)?;
    }
    Ok(true)
}

/// After a shard was done: its part goes to the others, whose owners read it with their control. The gate of the run
/// that ended was closed before this transaction began (decision 0020, rule 16).
pub(super) async fn settle(
    transaction: &Transaction,
    task: &mut task::Model,
    now: WallMs,
) -> Result<(), StoreError> {
    if !share_alike(transaction, task.id).await? {
        return Ok(());
    }
    task_edit::bump_control(transaction, task).await?;
    let shards = task_record::shards(transaction, TaskId(task.id)).await?;
    let is_first_done =
        shards.iter().any(|shard| shard.shard_no == 0 && shard.state == ShardState::Done.as_str());
    if is_first_done && task.canary.take().is_some() {
        // Finishing early cut the canary: nothing is left that could judge it.
        let_go(transaction, task.id, now).await?;
    }
    Ok(())
}

/// The canary has passed: every shard can be claimed.
pub(super) async fn let_go(transaction: &Transaction, task: i64, now: WallMs) -> Result<(), StoreError> {
    use shard::Column as C;
    shard::Entity::update_many()
        .col_expr(C::NotBefore, Expr::value(0))
        .col_expr(C::UpdatedAt, Expr::value(now.0))
        .filter(C::TaskId.eq(task))
        .filter(C::NotBefore.eq(HELD))
        .exec(transaction)
        .await
        .map_err(error)?;
    Ok(())
}

/// Keeps what a handler told one shard where all of them read it.
pub(super) async fn tell(
    transaction: &Transaction,
    id: TaskId,
    told: Told,
    now: WallMs,
) -> Result<(), StoreError> {
    let mut task = task_record::load(transaction, id).await?;
    let held = words::pause(&task)?.filter(|pause| pause.until > now);
    put_pause(&mut task, Pause::longer(held, told.pause));
    if let Some(slow) = told.slow {
        task.slow_until = Some(slow.until.0);
        task.slow_rate = Some(i64::try_from(slow.rate.micros_per_second()).unwrap_or(i64::MAX));
    }
    if let Some(end) = told.finish {
        let end = end.0.cast_signed();
        task.finish_at = Some(task.finish_at.map_or(end, |earlier| earlier.min(end)));
        task_finish::cut_unowned(transaction, id, end, now).await?;
        settle(transaction, &mut task, now).await?;
    }
    task_edit::bump_control(transaction, &mut task).await?;
    task_record::save(transaction, &task, now).await
}

pub(super) fn put_pause(task: &mut task::Model, pause: Option<Pause>) {
    task.pause_until = pause.map(|pause| pause.until.0);
    task.pause_reason = pause.map(|pause| pause.reason.as_str().to_owned());
}

/// The whole task recovers because one shard has found its budget exceeded: the others end their runs when they read
/// it, and none is claimed before. Says when; a recovery that is under way already goes on.
pub(super) async fn recover_all(
    transaction: &Transaction,
    task: &mut task::Model,
    (until, nth): (WallMs, Option<u32>),
    now: WallMs,
) -> Result<WallMs, StoreError> {
    use crate::domain::shards::PauseReason;
    use shard::Column as C;
    let under_way =
        words::pause(task)?.filter(|held| held.reason == PauseReason::ErrorBudget && held.until > now);
    let until = under_way.map_or(until, |held| held.until);
    put_pause(task, Some(Pause { until, reason: PauseReason::ErrorBudget }));
    let mut others = shard::Entity::update_many();
    if let Some(nth) = nth {
        others = others.col_expr(C::Recoveries, Expr::value(nth.cast_signed()));
    }
    others
        .col_expr(C::UpdatedAt, Expr::value(now.0))
        .filter(C::TaskId.eq(task.id))
        .filter(C::State.ne(ShardState::Done.as_str()))
        .exec(transaction)
        .await
        .map_err(error)?;
    shard::Entity::update_many()
        .col_expr(C::State, Expr::value(ShardState::Recovering.as_str()))
        .col_expr(C::NotBefore, Expr::value(until.0))
        .filter(C::TaskId.eq(task.id))
        .filter(C::State.is_in([ShardState::Idle.as_str(), ShardState::Recovering.as_str()]))
        .filter(C::NotBefore.lt(until.0))
        .exec(transaction)
        .await
        .map_err(error)?;
    task_edit::bump_control(transaction, task).await?;
    Ok(until)
}

/// What the other shards have abandoned, and whether the handler is down for each of them that isn't done.
pub(super) async fn elsewhere<D: sea_orm::ConnectionTrait>(
    db: &D,
    own: &shard_head::Model,
) -> Result<(u64, bool), StoreError> {
    use sea_orm::QuerySelect;
    use shard_head::Column as C;
    let others: Vec<(i64, String, Option<i64>)> = shard_head::Entity::find()
        .select_only()
        .columns([C::Abandoned, C::State, C::CircuitSince])
        .filter(C::TaskId.eq(own.task_id))
        .filter(C::ShardNo.ne(own.shard_no))
        .into_tuple()
        .all(db)
        .await
        .map_err(error)?;
    let abandoned = others.iter().map(|(abandoned, _, _)| abandoned).sum::<i64>().cast_unsigned();
    let is_up = |(_, state, since): &(i64, String, Option<i64>)| {
        since.is_none() && state != ShardState::Done.as_str()
    };
    Ok((abandoned, !others.iter().any(is_up)))
}
