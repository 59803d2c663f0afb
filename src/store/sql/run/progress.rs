//! Progress of shards in checkpoints: judged under their locks, and written in one statement.
//!
//! A node with thousands of tasks saves thousands of rows a second. With one statement to read and one to write each,
//! most of the time went to the statements.

use std::collections::BTreeMap;

use sea_orm::ActiveValue::Set;
use sea_orm::EntityTrait;
use sea_orm::sea_query::OnConflict;

use crate::sql::entity::{shard, shard_head};
use crate::sql::statistics::days;
use crate::sql::{Transaction, error, locks, words};
use windrow_core::ids::ShardId;
use windrow_core::task::lifecycle::ShardState;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::{CheckpointAck, ShardCheckpoint};

/// Approximate size of a statement in bytes: MariaDB takes packets of 16 MiB.
const STATEMENT_BYTES_MAX: usize = 4 << 20;

/// Locks the shards of checkpoints and reads them; all shards of the task if `whole` is true for its checkpoint.
pub(super) async fn lock(
    transaction: &Transaction,
    checkpoints: &[(usize, &ShardCheckpoint)],
    whole: impl Fn(&ShardCheckpoint) -> bool,
) -> Result<BTreeMap<ShardId, shard_head::Model>, StoreError> {
    let mut wanted: locks::Shards = BTreeMap::new();
    for (_, checkpoint) in checkpoints {
        let shard = checkpoint.shard;
        match wanted.entry(shard.task).or_insert_with(|| Some(Vec::new())) {
            every if whole(checkpoint) => *every = None,
            Some(numbers) => numbers.push(words::shard_no(shard)),
            None => {}
        }
    }
    locks::shards_of(transaction, &wanted).await
}

/// Returns true if a run may write: own claim, growing number, shard still owned, watermark not falling (rules 15 and
/// 16). The row is locked, so nothing comes between this check and the write.
pub(super) fn may_write(checkpoint: &ShardCheckpoint, row: &shard_head::Model) -> bool {
    is_own(checkpoint, row)
        && row.state == ShardState::Running.as_str()
        && row.ckpt_seq < checkpoint.seq.0.cast_signed()
        && row.watermark <= checkpoint.watermark.0.cast_signed()
}

fn is_own(checkpoint: &ShardCheckpoint, row: &shard_head::Model) -> bool {
    row.epoch == checkpoint.epoch.0.cast_signed()
        && row.claim_id.as_deref() == Some(words::claim_text(checkpoint.claim).as_str())
}

/// Returns the answer to a checkpoint that may not be written: success for a repeat of the stored number, fenced for
/// anything else.
pub(super) fn refusal(checkpoint: &ShardCheckpoint, row: &shard_head::Model) -> CheckpointAck {
    let own = is_own(checkpoint, row);
    // A claim resets the number to 0, so no run ever wrote 0.
    if own && checkpoint.seq.0 > 0 && row.ckpt_seq == checkpoint.seq.0.cast_signed() {
        return CheckpointAck::Stored;
    }
    if own && row.state == ShardState::Running.as_str() {
        tracing::error!(
            shard = %checkpoint.shard, seq = checkpoint.seq.0, stored_seq = row.ckpt_seq,
            watermark = checkpoint.watermark.0, stored_watermark = row.watermark,
            "a run's own checkpoint goes backwards; rejecting it"
        );
    }
    CheckpointAck::Fenced
}

/// Writes the progress of shards whose locks are held, each shard once.
pub(super) async fn write(
    transaction: &Transaction,
    checkpoints: impl Iterator<Item = (&ShardCheckpoint, &shard_head::Model)>,
) -> Result<(), StoreError> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for (checkpoint, row) in checkpoints {
        bytes += checkpoint.blob.len();
        rows.push(written(checkpoint, row));
        if bytes >= STATEMENT_BYTES_MAX {
            upsert(transaction, std::mem::take(&mut rows)).await?;
            bytes = 0;
        }
    }
    upsert(transaction, rows).await
}

/// Updates many rows in a form that every database supports; the rows exist already.
async fn upsert(transaction: &Transaction, rows: Vec<shard::ActiveModel>) -> Result<(), StoreError> {
    use shard::Column as C;
    if rows.is_empty() {
        return Ok(());
    }
    let known = OnConflict::columns([C::TaskId, C::ShardNo])
        .update_columns([
            C::Watermark,
            C::HighWater,
            C::Horizon,
            C::EndIndex,
            C::Succeeded,
            C::Skipped,
            C::Failed,
            C::Parked,
            C::Results,
            C::CkptBlob,
            C::CkptSeq,
            C::CircuitSince,
            C::CircuitProbes,
            C::UpdatedAt,
            C::Day,
            C::DaySucceeded,
            C::DaySkipped,
            C::DayFailed,
        ])
        .to_owned();
    shard::Entity::insert_many(rows)
        .on_conflict(known)
        .exec_without_returning(transaction)
        .await
        .map(drop)
        .map_err(error)
}

/// Builds the new row: the columns that [`upsert`] updates, and those that are mandatory.
fn written(checkpoint: &ShardCheckpoint, row: &shard_head::Model) -> shard::ActiveModel {
    let high_water = checkpoint.high_water.0.cast_signed().max(row.high_water);
    let counters = &checkpoint.counters;
    let outage = checkpoint.outage;
    let (day, [succeeded, skipped, failed]) = day(checkpoint, row);
    shard::ActiveModel {
        task_id: Set(row.task_id),
        shard_no: Set(row.shard_no),
        state: Set(row.state.clone()),
        desired: Set(row.desired.clone()),
        watermark: Set(checkpoint.watermark.0.cast_signed()),
        high_water: Set(high_water),
        horizon: Set(checkpoint.horizon.0.cast_signed()),
        end_index: Set(end_index(checkpoint, row, high_water)),
        succeeded: Set(counters.succeeded.cast_signed()),
        skipped: Set(counters.skipped.cast_signed()),
        failed: Set(counters.failed.cast_signed()),
        parked: Set(counters.parked.cast_signed()),
        results: Set(checkpoint.results_kept.cast_signed()),
        ckpt_blob: Set(checkpoint.blob.clone()),
        ckpt_seq: Set(checkpoint.seq.0.cast_signed()),
        circuit_since: Set(outage.map(|outage| outage.since.0)),
        circuit_probes: Set(outage.map(|outage| i64::from(outage.probes))),
        updated_at: Set(checkpoint.now.0),
        day: Set(day),
        day_succeeded: Set(succeeded),
        day_skipped: Set(skipped),
        day_failed: Set(failed),
        ..shard::ActiveModel::default()
    }
}

/// Returns the day in which the shard last settled items, and its counters at the start of that day.
fn day(checkpoint: &ShardCheckpoint, row: &shard_head::Model) -> (i64, [i64; 3]) {
    match days::begun(checkpoint, row) {
        Some(day) => (day.0, [row.succeeded, row.skipped, row.failed]),
        None => (row.day, [row.day_succeeded, row.day_skipped, row.day_failed]),
    }
}

/// Returns the end after finishing early: dispatched items still count, and the end never grows again.
fn end_index(checkpoint: &ShardCheckpoint, row: &shard_head::Model, high_water: i64) -> i64 {
    match checkpoint.finish_at {
        Some(end) => end.0.cast_signed().max(high_water).min(row.end_index),
        None => row.end_index,
    }
}
