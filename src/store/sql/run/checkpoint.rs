//! Fenced checkpoints (decision 0020, rules 15 and 16).

use crate::sql::entity::{result_segment, shard_head};
use crate::sql::log::data_log;
use crate::sql::run::close;
use crate::sql::run::items;
use crate::sql::run::progress;
use crate::sql::run::results;
use crate::sql::statistics::days::OverDays;
use crate::sql::task::life::Held;
use crate::sql::{Store, Transaction, locks};
use windrow_core::ids::CheckpointSeq;
use windrow_core::items::verdict::SideRecord;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::{
    CHECKPOINT_SHARDS_MAX, CheckpointAck, RunClose, ShardCheckpoint,
};
use windrow_words::store as say;

/// Implements [`windrow_engine::ports::ownership::run_store::RunStore::checkpoint`]: writes the checkpoints in one
/// transaction, each only if its run still owns the shard.
pub(crate) async fn checkpoint(
    store: &Store,
    checkpoints: &[ShardCheckpoint],
) -> Result<Vec<CheckpointAck>, StoreError> {
    if checkpoints.len() > CHECKPOINT_SHARDS_MAX {
        let text = say::too_many_checkpoints(checkpoints.len(), CHECKPOINT_SHARDS_MAX);
        return Err(StoreError::Refused(text.to_string()));
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
    let mut group = Group {
        acks: vec![CheckpointAck::Fenced; checkpoints.len()],
        results,
        days: OverDays::default(),
    };
    for wave in waves(checkpoints) {
        group.write(&transaction, &wave).await?;
    }
    group.days.write(&transaction).await?;
    transaction.commit().await?;
    Ok(group.acks)
}

/// Checkpoints written together: their answers and results, by position in the request.
struct Group {
    acks: Vec<CheckpointAck>,
    results: Vec<Vec<result_segment::ActiveModel>>,
    days: OverDays,
}

impl Group {
    /// Writes those checkpoints of a wave that may be written. Progress comes first: a fenced run writes nothing, so
    /// nothing has to be rolled back.
    async fn write(
        &mut self,
        transaction: &Transaction,
        wave: &[(usize, &ShardCheckpoint)],
    ) -> Result<(), StoreError> {
        let heads = progress::lock(transaction, wave, stops_task).await?;
        let mut own = Vec::with_capacity(wave.len());
        for (place, checkpoint) in wave {
            match heads.get(&checkpoint.shard) {
                Some(row) if progress::may_write(checkpoint, row) => own.push((*place, *checkpoint, row)),
                Some(row) => self.acks[*place] = progress::refusal(checkpoint, row),
                None => {}
            }
        }
        let rows = own.iter().map(|(_, checkpoint, row)| (*checkpoint, *row));
        progress::write(transaction, rows).await?;
        for (place, checkpoint, row) in own {
            self.days.take(checkpoint, row);
            let results = std::mem::take(&mut self.results[place]);
            write_beside(transaction, checkpoint, row, results).await?;
            self.acks[place] = CheckpointAck::Stored;
        }
        Ok(())
    }
}

/// Groups the checkpoints, with their positions, into waves in the lock order of shards; a wave has each shard once.
fn waves(checkpoints: &[ShardCheckpoint]) -> Vec<Vec<(usize, &ShardCheckpoint)>> {
    let mut order: Vec<(usize, &ShardCheckpoint)> = checkpoints.iter().enumerate().collect();
    order.sort_by_key(|(_, one)| one.shard);
    let mut waves: Vec<Vec<(usize, &ShardCheckpoint)>> = Vec::new();
    for of_shard in order.chunk_by(|(_, one), (_, other)| one.shard == other.shard) {
        for (nth, one) in of_shard.iter().enumerate() {
            match waves.get_mut(nth) {
                Some(wave) => wave.push(*one),
                None => waves.push(vec![*one]),
            }
        }
    }
    waves
}

/// Returns true if a checkpoint may change more of the task than the shard's own progress: its status, its canary,
/// the groups of its failures, its log.
fn changes_task(checkpoint: &ShardCheckpoint) -> bool {
    let fails = |record: &SideRecord| matches!(record, SideRecord::Failed(_));
    checkpoint.close.is_some()
        || checkpoint.canary_passed
        || checkpoint.finish_at.is_some()
        || !checkpoint.lines.is_empty()
        || checkpoint.side.iter().any(fails)
}

/// Returns true if a checkpoint may change the task's desired state, and with it all of its shards.
fn stops_task(checkpoint: &ShardCheckpoint) -> bool {
    matches!(checkpoint.close, Some(RunClose::Stopped { .. }))
}

/// Writes everything in a checkpoint besides the shard's progress; `row` is the shard as it was.
async fn write_beside(
    transaction: &Transaction,
    checkpoint: &ShardCheckpoint,
    row: &shard_head::Model,
    results: Vec<result_segment::ActiveModel>,
) -> Result<(), StoreError> {
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
    Ok(())
}
