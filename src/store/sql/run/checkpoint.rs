//! Fenced checkpoints (decision 0020, rules 15 and 16).

use std::collections::BTreeSet;

use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, UpdateMany};

use crate::sql::entity::{result_segment, shard, shard_head};
use crate::sql::log::data_log;
use crate::sql::run::close;
use crate::sql::run::items;
use crate::sql::run::results;
use crate::sql::statistics::days::{self, OverDays};
use crate::sql::task::life::Held;
use crate::sql::{Store, Transaction, error, locks, words};
use windrow_core::ids::{CheckpointSeq, TaskId};
use windrow_core::items::verdict::SideRecord;
use windrow_core::task::lifecycle::ShardState;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::{
    CHECKPOINT_SHARDS_MAX, CheckpointAck, RunClose, ShardCheckpoint,
};

/// See [`windrow_engine::ports::ownership::run_store::RunStore::checkpoint`].
pub(crate) async fn checkpoint(
    store: &Store,
    checkpoints: &[ShardCheckpoint],
) -> Result<Vec<CheckpointAck>, StoreError> {
    if checkpoints.len() > CHECKPOINT_SHARDS_MAX {
        let text = format!(
            "{} checkpoints at once; at most {CHECKPOINT_SHARDS_MAX}",
            checkpoints.len()
        );
        return Err(StoreError::Refused(text));
    }
    let mut results = Vec::with_capacity(checkpoints.len());
    for checkpoint in checkpoints {
        results.push(results::prepare(store, checkpoint).await?);
    }
    let transaction = store.write().await?;
    let changed = checkpoints.iter().filter(|checkpoint| changes_task(checkpoint));
    locks::tasks(
        &transaction,
        &changed.map(|checkpoint| checkpoint.shard.task).collect(),
    )
    .await?;
    let mut stopped: BTreeSet<TaskId> = checkpoints
        .iter()
        .filter(|one| stops_task(one))
        .map(|one| one.shard.task)
        .collect();
    let mut acks = vec![CheckpointAck::Fenced; checkpoints.len()];
    let mut results: Vec<Option<_>> = results.into_iter().map(Some).collect();
    let mut days = OverDays::default();
    for (place, checkpoint) in in_order(checkpoints) {
        if stopped.remove(&checkpoint.shard.task) {
            locks::shards(&transaction, checkpoint.shard.task).await?;
        }
        let results = results[place].take().unwrap_or_default();
        acks[place] = write(&transaction, checkpoint, results, &mut days).await?;
    }
    days.write(&transaction).await?;
    transaction.commit().await.map_err(error)?;
    Ok(acks)
}

/// The checkpoints with their places, in the order in which their shards are locked.
fn in_order(checkpoints: &[ShardCheckpoint]) -> Vec<(usize, &ShardCheckpoint)> {
    let mut order: Vec<(usize, &ShardCheckpoint)> = checkpoints.iter().enumerate().collect();
    order.sort_by_key(|(_, one)| (one.shard.task, one.shard.no));
    order
}

/// Whether more of the task than the shard's own progress may change: its status, its canary, the groups of its failures,
/// its log.
fn changes_task(checkpoint: &ShardCheckpoint) -> bool {
    let abandons = |record: &SideRecord| matches!(record, SideRecord::Abandoned(_));
    checkpoint.close.is_some()
        || checkpoint.canary_passed
        || checkpoint.finish_at.is_some()
        || !checkpoint.lines.is_empty()
        || checkpoint.side.iter().any(abandons)
}

/// Whether the task's wish may change, and with it all of its shards.
fn stops_task(checkpoint: &ShardCheckpoint) -> bool {
    matches!(checkpoint.close, Some(RunClose::Stopped { .. }))
}

/// One shard. The compare-and-set comes first: a fenced run leaves nothing, so nothing has to be rolled back.
async fn write(
    transaction: &Transaction,
    checkpoint: &ShardCheckpoint,
    results: Vec<result_segment::ActiveModel>,
    days: &mut OverDays,
) -> Result<CheckpointAck, StoreError> {
    let Some(row) = locks::shard(transaction, checkpoint.shard).await? else {
        return Ok(CheckpointAck::Fenced);
    };
    let written = progress(checkpoint, &row)
        .exec(transaction)
        .await
        .map_err(error)?;
    if written.rows_affected == 0 {
        return Ok(classify(checkpoint, &row));
    }
    days.take(checkpoint, &row);
    let stored = CheckpointSeq(row.ckpt_seq.cast_unsigned());
    data_log::note_replies(transaction, checkpoint, stored).await?;
    items::apply(transaction, checkpoint).await?;
    results::write(transaction, results).await?;
    if checkpoint.canary_passed {
        let mut held = Held::find(transaction, checkpoint.shard.task).await?;
        held.life.pass_canary(checkpoint.now);
        held.keep(transaction, (&[], None), checkpoint.now).await?;
    }
    if checkpoint.finish_at.is_some() {
        let mut held = Held::find(transaction, checkpoint.shard.task).await?;
        held.life.cut_short();
        held.keep(transaction, (&[], None), checkpoint.now).await?;
    }
    if !checkpoint.told.is_empty() {
        let mut held = Held::find(transaction, checkpoint.shard.task).await?;
        held.life.tell(checkpoint.told, checkpoint.now);
        held.keep(transaction, (&[], None), checkpoint.now).await?;
    }
    if let Some(close) = &checkpoint.close {
        close::finish(transaction, checkpoint.shard, close, checkpoint.now).await?;
    }
    Ok(CheckpointAck::Stored)
}

/// A repeat of the number that is stored was a success; all else isn't believed.
fn classify(checkpoint: &ShardCheckpoint, row: &shard_head::Model) -> CheckpointAck {
    let own = row.epoch == checkpoint.epoch.0.cast_signed()
        && row.claim_id.as_deref() == Some(words::claim_text(checkpoint.claim).as_str());
    // A claim sets the number to 0, so 0 was never written by a run.
    if own && checkpoint.seq.0 > 0 && row.ckpt_seq == checkpoint.seq.0.cast_signed() {
        return CheckpointAck::Stored;
    }
    if own && row.state == ShardState::Running.as_str() {
        tracing::error!(
            shard = %checkpoint.shard, seq = checkpoint.seq.0, stored_seq = row.ckpt_seq,
            low_water = checkpoint.low_water.0, stored_low_water = row.low_water,
            "a run's own checkpoint goes backwards; it is refused"
        );
    }
    CheckpointAck::Fenced
}

/// The compare-and-set of a run's write: own claim, growing number, shard still owned, low water not falling.
pub(crate) fn fenced(checkpoint: &ShardCheckpoint) -> UpdateMany<shard::Entity> {
    use shard::Column as C;
    shard::Entity::update_many()
        .filter(C::TaskId.eq(checkpoint.shard.task.0))
        .filter(C::ShardNo.eq(words::shard_no(checkpoint.shard)))
        .filter(C::Epoch.eq(checkpoint.epoch.0.cast_signed()))
        .filter(C::ClaimId.eq(words::claim_text(checkpoint.claim)))
        .filter(C::State.eq(ShardState::Running.as_str()))
}

fn progress(checkpoint: &ShardCheckpoint, row: &shard_head::Model) -> UpdateMany<shard::Entity> {
    use shard::Column as C;
    let low_water = checkpoint.low_water.0.cast_signed();
    let high_water = checkpoint.high_water.0.cast_signed().max(row.high_water);
    let counters = &checkpoint.counters;
    with_day(fenced(checkpoint), checkpoint, row)
        .col_expr(C::LowWater, Expr::value(low_water))
        .col_expr(C::HighWater, Expr::value(high_water))
        .col_expr(C::Reach, Expr::value(checkpoint.reach.0.cast_signed()))
        .col_expr(C::EndIndex, Expr::value(end_index(checkpoint, row, high_water)))
        .col_expr(C::Succeeded, Expr::value(counters.succeeded.cast_signed()))
        .col_expr(C::Skipped, Expr::value(counters.skipped.cast_signed()))
        .col_expr(C::Abandoned, Expr::value(counters.abandoned.cast_signed()))
        .col_expr(C::Parked, Expr::value(counters.parked.cast_signed()))
        .col_expr(C::Results, Expr::value(checkpoint.results_kept.cast_signed()))
        .col_expr(C::CkptBlob, Expr::value(checkpoint.blob.clone()))
        .col_expr(C::CkptSeq, Expr::value(checkpoint.seq.0.cast_signed()))
        .col_expr(
            C::CircuitSince,
            Expr::value(checkpoint.outage.map(|outage| outage.since.0)),
        )
        .col_expr(
            C::CircuitProbes,
            Expr::value(checkpoint.outage.map(|outage| i64::from(outage.probes))),
        )
        .col_expr(C::UpdatedAt, Expr::value(checkpoint.now.0))
        .filter(C::CkptSeq.lt(checkpoint.seq.0.cast_signed()))
        .filter(C::LowWater.lte(low_water))
}

/// With the day that begins, if one does, and the counters that it begins with.
fn with_day(
    update: UpdateMany<shard::Entity>,
    checkpoint: &ShardCheckpoint,
    row: &shard_head::Model,
) -> UpdateMany<shard::Entity> {
    use shard::Column as C;
    let Some(day) = days::begun(checkpoint, row) else {
        return update;
    };
    update
        .col_expr(C::Day, Expr::value(day.0))
        .col_expr(C::DaySucceeded, Expr::value(row.succeeded))
        .col_expr(C::DaySkipped, Expr::value(row.skipped))
        .col_expr(C::DayAbandoned, Expr::value(row.abandoned))
}

/// The end after finishing early: what was dispatched still counts, and the end never grows again.
fn end_index(checkpoint: &ShardCheckpoint, row: &shard_head::Model, high_water: i64) -> i64 {
    match checkpoint.finish_at {
        Some(end) => end.0.cast_signed().max(high_water).min(row.end_index),
        None => row.end_index,
    }
}
