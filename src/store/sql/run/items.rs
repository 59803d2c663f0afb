//! Rows of single items, as the side records of a checkpoint change them.
//!
//! A failed item is final: its row never changes again and it is counted once, however often it is recorded.

use std::collections::{BTreeMap, HashSet};

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, EntityTrait, Iterable, QueryFilter};

use crate::sql::entity::item;
use crate::sql::log::data_log;
use crate::sql::log::failure_groups::{self, Places};
use crate::sql::{Pluck, Run, Transaction, damaged, words};
use windrow_core::ids::{ItemIndex, WallMs};
use windrow_core::items::verdict::{AttemptNote, FailingItem, Failure, SideRecord};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::ShardCheckpoint;

pub(crate) const RETRYING: &str = "retrying";
pub(crate) const PARKED: &str = "parked";
pub(crate) const FAILED: &str = "failed";

/// Maximum number of values in one statement for SQLite; the other databases take more.
const VALUES_MAX: usize = 32_766;
/// Maximum number of indexes in one `IN (…)`.
const INDEXES_PER_STATEMENT: usize = 10_000;

/// Applies the side records of a checkpoint whose compare-and-set just succeeded.
pub(crate) async fn apply(transaction: &Transaction, checkpoint: &ShardCheckpoint) -> Result<(), StoreError> {
    // The last record of an item wins. Rows are written in index order, along the key.
    let mut last: BTreeMap<ItemIndex, &SideRecord> = BTreeMap::new();
    for record in &checkpoint.side {
        last.insert(record.index(), record);
    }
    let finals = failed_before(transaction, checkpoint, &last).await?;
    last.retain(|index, _| !finals.contains(index));
    let cleared = last
        .iter()
        .filter(|(_, record)| matches!(record, SideRecord::Cleared(_)));
    let cleared: Vec<i64> = cleared.map(|(index, _)| index.0.cast_signed()).collect();
    delete(transaction, checkpoint, &cleared).await?;
    let failed = last.values().filter_map(|record| match record {
        SideRecord::Failed(retrying) => Some(retrying),
        _ => None,
    });
    let failed: Vec<&FailingItem> = failed.collect();
    let places = failure_groups::count(transaction, checkpoint.shard.task, &failed).await?;
    let rows = last
        .values()
        .filter_map(|record| row(checkpoint, record, &places).transpose());
    let rows: Vec<item::ActiveModel> = rows.collect::<Result<_, _>>()?;
    upsert(transaction, rows).await?;
    data_log::note_failed(transaction, checkpoint.shard, &failed).await
}

async fn failed_before(
    transaction: &Transaction,
    checkpoint: &ShardCheckpoint,
    records: &BTreeMap<ItemIndex, &SideRecord>,
) -> Result<HashSet<ItemIndex>, StoreError> {
    let indexes: Vec<i64> = records.keys().map(|index| index.0.cast_signed()).collect();
    let mut found = HashSet::new();
    for chunk in indexes.chunks(INDEXES_PER_STATEMENT) {
        let rows: Vec<i64> = item::Entity::find()
            .filter(item::Column::TaskId.eq(checkpoint.shard.task.0))
            .filter(item::Column::Idx.is_in(chunk.iter().copied()))
            .filter(item::Column::State.eq(FAILED))
            .pluck([item::Column::Idx], transaction)
            .await?;
        found.extend(rows.into_iter().map(|index| ItemIndex(index.cast_unsigned())));
    }
    Ok(found)
}

async fn delete(
    transaction: &Transaction,
    checkpoint: &ShardCheckpoint,
    indexes: &[i64],
) -> Result<(), StoreError> {
    for chunk in indexes.chunks(INDEXES_PER_STATEMENT) {
        item::Entity::delete_many()
            .filter(item::Column::TaskId.eq(checkpoint.shard.task.0))
            .filter(item::Column::Idx.is_in(chunk.iter().copied()))
            .run(transaction)
            .await?;
    }
    Ok(())
}

fn row(
    checkpoint: &ShardCheckpoint,
    record: &SideRecord,
    places: &Places,
) -> Result<Option<item::ActiveModel>, StoreError> {
    let (state, retrying, due_at) = match record {
        SideRecord::Retrying(retrying) => (RETRYING, retrying, 0),
        SideRecord::Parked { retrying, due_at } => (PARKED, retrying, due_at.0),
        SideRecord::Failed(retrying) => (FAILED, retrying, 0),
        SideRecord::Cleared(_) => return Ok(None),
    };
    let failure = retrying.failure.as_ref();
    let place = places.get(&retrying.index);
    Ok(Some(item::ActiveModel {
        task_id: Set(checkpoint.shard.task.0),
        idx: Set(retrying.index.0.cast_signed()),
        shard_no: Set(words::shard_no(checkpoint.shard)),
        state: Set(state.to_owned()),
        attempts: Set(retrying.attempts.cast_signed()),
        due_at: Set(due_at),
        code: Set(failure.map(|failure| failure.code.clone().into_owned())),
        message: Set(failure.map(|failure| failure.message.clone())),
        output: Set(failure.and_then(|failure| failure.output.clone())),
        epoch: Set(checkpoint.epoch.0.cast_signed()),
        first_at: Set(retrying.at.0),
        last_at: Set(retrying.at.0),
        history: Set(history_text(&retrying.history)?),
        grp: Set(place.map(|(group, _)| group.clone())),
        grp_no: Set(place.map(|(_, number)| number.cast_signed())),
        charged: Set(Some(i64::from(retrying.charged))),
        unconfirmed: Set(retrying.is_unconfirmed.then_some(1)),
        others_answered: Set((state == FAILED).then_some(retrying.others_answered.cast_signed())),
    }))
}

async fn upsert(transaction: &Transaction, rows: Vec<item::ActiveModel>) -> Result<(), StoreError> {
    use item::Column as C;
    let rows_max = VALUES_MAX / C::iter().count();
    for chunk in rows.chunks(rows_max) {
        // All but `first_at`, which keeps the time of the first failure.
        let replaced = [
            C::ShardNo,
            C::State,
            C::Attempts,
            C::DueAt,
            C::Code,
            C::Message,
            C::Output,
            C::Epoch,
            C::LastAt,
            C::History,
            C::Grp,
            C::GrpNo,
            C::Charged,
            C::Unconfirmed,
            C::OthersAnswered,
        ];
        let conflict = OnConflict::columns([C::TaskId, C::Idx])
            .update_columns(replaced)
            .to_owned();
        item::Entity::insert_many(chunk.iter().cloned())
            .on_conflict(conflict)
            .run(transaction)
            .await?;
    }
    Ok(())
}

/// Converts a row to the item with its failure.
pub(crate) fn retrying(row: item::Model) -> Result<FailingItem, StoreError> {
    let charged = charged(&row);
    let (message, output) = (row.message.unwrap_or_default(), row.output);
    Ok(FailingItem {
        index: ItemIndex(row.idx.cast_unsigned()),
        attempts: row.attempts.cast_unsigned(),
        charged,
        is_unconfirmed: row.unconfirmed == Some(1),
        others_answered: row.others_answered.map_or(0, i64::cast_unsigned),
        failure: row.code.map(|code| Failure {
            code: code.into(),
            message,
            output,
        }),
        at: WallMs(row.last_at),
        history: history(row.history.as_deref())?,
    })
}

/// Returns the attempts that count against the item; all of them if the row doesn't say.
pub(crate) fn charged(row: &item::Model) -> u32 {
    row.charged.map_or_else(
        || row.attempts.cast_unsigned(),
        |charged| u32::try_from(charged).unwrap_or(u32::MAX),
    )
}

/// Parses the failed attempts that a row keeps.
pub(crate) fn history(text: Option<&str>) -> Result<Vec<AttemptNote>, StoreError> {
    let Some(text) = text else { return Ok(Vec::new()) };
    serde_json::from_str(text).map_err(|fault| damaged("item.history", &fault.to_string()))
}

fn history_text(notes: &[AttemptNote]) -> Result<Option<String>, StoreError> {
    let text = || serde_json::to_string(notes).map_err(|fault| StoreError::Refused(fault.to_string()));
    (!notes.is_empty()).then(text).transpose()
}
