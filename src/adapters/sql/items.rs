//! Rows of single items, and the groups of failures, as side records of a checkpoint change them.
//!
//! An abandoned item is final: its row never changes again and it is counted once, however often it is recorded.

use std::collections::{BTreeMap, HashSet};

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, DatabaseTransaction, EntityTrait, QueryFilter, QuerySelect};

use super::entity::{failure_group, item};
use super::{damaged, error, words};
use crate::domain::ids::{ItemIndex, WallMs};
use crate::domain::verdict::{AttemptNote, Failure, ItemTrouble, SideRecord};
use crate::ports::StoreError;
use crate::ports::run_store::{FAILURE_CODE_OTHER, FAILURE_CODES_MAX, ShardCheckpoint};

pub(super) const RETRYING: &str = "retrying";
pub(super) const PARKED: &str = "parked";
pub(super) const ABANDONED: &str = "abandoned";

/// Rows of one statement: 15 columns each, and SQLite takes 32,766 values.
const ROWS_PER_STATEMENT: usize = 2000;
/// Indexes in one `IN (…)`.
const INDEXES_PER_STATEMENT: usize = 10_000;

/// Applies the side records of a checkpoint whose compare-and-set has just succeeded.
pub(super) async fn apply(
    transaction: &DatabaseTransaction,
    checkpoint: &ShardCheckpoint,
) -> Result<(), StoreError> {
    // The last record of an item wins; in index order, so that rows are written along the key.
    let mut last: BTreeMap<ItemIndex, &SideRecord> = BTreeMap::new();
    for record in &checkpoint.side {
        last.insert(record.index(), record);
    }
    let finals = abandoned_before(transaction, checkpoint, &last).await?;
    last.retain(|index, _| !finals.contains(index));
    let cleared = last.iter().filter(|(_, record)| matches!(record, SideRecord::Cleared(_)));
    let cleared: Vec<i64> = cleared.map(|(index, _)| index.0.cast_signed()).collect();
    delete(transaction, checkpoint, &cleared).await?;
    let rows = last.values().filter_map(|record| row(checkpoint, record).transpose());
    let rows: Vec<item::ActiveModel> = rows.collect::<Result<_, _>>()?;
    upsert(transaction, rows).await?;
    let abandoned = last.values().filter_map(|record| match record {
        SideRecord::Abandoned(trouble) => Some(trouble),
        _ => None,
    });
    count(transaction, checkpoint, abandoned.collect()).await
}

async fn abandoned_before(
    transaction: &DatabaseTransaction,
    checkpoint: &ShardCheckpoint,
    records: &BTreeMap<ItemIndex, &SideRecord>,
) -> Result<HashSet<ItemIndex>, StoreError> {
    let indexes: Vec<i64> = records.keys().map(|index| index.0.cast_signed()).collect();
    let mut found = HashSet::new();
    for chunk in indexes.chunks(INDEXES_PER_STATEMENT) {
        let rows: Vec<i64> = item::Entity::find()
            .select_only()
            .column(item::Column::Idx)
            .filter(item::Column::TaskId.eq(checkpoint.shard.task.0))
            .filter(item::Column::Idx.is_in(chunk.iter().copied()))
            .filter(item::Column::State.eq(ABANDONED))
            .into_tuple()
            .all(transaction)
            .await
            .map_err(error)?;
        found.extend(rows.into_iter().map(|index| ItemIndex(index.cast_unsigned())));
    }
    Ok(found)
}

async fn delete(
    transaction: &DatabaseTransaction,
    checkpoint: &ShardCheckpoint,
    indexes: &[i64],
) -> Result<(), StoreError> {
    for chunk in indexes.chunks(INDEXES_PER_STATEMENT) {
        item::Entity::delete_many()
            .filter(item::Column::TaskId.eq(checkpoint.shard.task.0))
            .filter(item::Column::Idx.is_in(chunk.iter().copied()))
            .exec(transaction)
            .await
            .map_err(error)?;
    }
    Ok(())
}

fn row(checkpoint: &ShardCheckpoint, record: &SideRecord) -> Result<Option<item::ActiveModel>, StoreError> {
    let (state, trouble, due_at) = match record {
        SideRecord::Retrying(trouble) => (RETRYING, trouble, 0),
        SideRecord::Parked { trouble, due_at } => (PARKED, trouble, due_at.0),
        SideRecord::Abandoned(trouble) => (ABANDONED, trouble, 0),
        SideRecord::Cleared(_) => return Ok(None),
    };
    let failure = trouble.failure.as_ref();
    Ok(Some(item::ActiveModel {
        task_id: Set(checkpoint.shard.task.0),
        idx: Set(trouble.index.0.cast_signed()),
        shard_no: Set(words::shard_no(checkpoint.shard)),
        state: Set(state.to_owned()),
        attempts: Set(trouble.attempts.cast_signed()),
        due_at: Set(due_at),
        code: Set(failure.map(|failure| failure.code.clone().into_owned())),
        message: Set(failure.map(|failure| failure.message.clone())),
        output: Set(failure.and_then(|failure| failure.output.clone())),
        epoch: Set(checkpoint.epoch.0.cast_signed()),
        first_at: Set(trouble.at.0),
        last_at: Set(trouble.at.0),
        history: Set(history_text(&trouble.history)?),
        grp: Set(None),
        grp_no: Set(None),
    }))
}

async fn upsert(transaction: &DatabaseTransaction, rows: Vec<item::ActiveModel>) -> Result<(), StoreError> {
    use item::Column as C;
    for chunk in rows.chunks(ROWS_PER_STATEMENT) {
        // All but `first_at`, which keeps the first failure's time.
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
        ];
        let conflict = OnConflict::columns([C::TaskId, C::Idx]).update_columns(replaced).to_owned();
        item::Entity::insert_many(chunk.iter().cloned())
            .on_conflict(conflict)
            .exec_without_returning(transaction)
            .await
            .map_err(error)?;
    }
    Ok(())
}

/// Adds newly abandoned items to the groups of their codes.
async fn count(
    transaction: &DatabaseTransaction,
    checkpoint: &ShardCheckpoint,
    abandoned: Vec<&ItemTrouble>,
) -> Result<(), StoreError> {
    if abandoned.is_empty() {
        return Ok(());
    }
    let task = checkpoint.shard.task.0;
    let rows = failure_group::Entity::find().filter(failure_group::Column::TaskId.eq(task)).all(transaction);
    let rows = rows.await.map_err(error)?;
    let mut groups: BTreeMap<String, failure_group::Model> =
        rows.into_iter().map(|row| (row.code.clone(), row)).collect();
    let mut changed = HashSet::new();
    for trouble in abandoned {
        let code = group_code(&groups, code_of(trouble));
        let group = groups.entry(code.clone()).or_insert_with(|| new_group(task, &code, trouble));
        group.n += 1;
        group.first_at = group.first_at.min(trouble.at.0);
        group.last_at = group.last_at.max(trouble.at.0);
        changed.insert(code);
    }
    let rows = groups.into_values().filter(|group| changed.contains(&group.code));
    save_groups(transaction, rows.map(failure_group::ActiveModel::from).map(all_set).collect()).await
}

/// An item that was given up without a failure on record has no code of its own.
fn code_of(trouble: &ItemTrouble) -> &str {
    trouble.failure.as_ref().map_or(FAILURE_CODE_OTHER, |failure| &failure.code)
}

fn group_code(groups: &BTreeMap<String, failure_group::Model>, code: &str) -> String {
    let named = groups.keys().filter(|code| *code != FAILURE_CODE_OTHER).count();
    let fits = groups.contains_key(code) || named < FAILURE_CODES_MAX;
    if fits { code.to_owned() } else { FAILURE_CODE_OTHER.to_owned() }
}

fn new_group(task_id: i64, code: &str, trouble: &ItemTrouble) -> failure_group::Model {
    failure_group::Model {
        task_id,
        code: code.to_owned(),
        n: 0,
        first_at: trouble.at.0,
        last_at: trouble.at.0,
        example_idx: trouble.index.0.cast_signed(),
        example: trouble.failure.as_ref().map_or_else(String::new, |failure| failure.message.clone()),
    }
}

/// A model read from the database counts as unchanged; an upsert needs every column.
fn all_set(group: failure_group::ActiveModel) -> failure_group::ActiveModel {
    use sea_orm::ActiveModelTrait as _;
    group.reset_all()
}

async fn save_groups(
    transaction: &DatabaseTransaction,
    groups: Vec<failure_group::ActiveModel>,
) -> Result<(), StoreError> {
    use failure_group::Column as C;
    let conflict =
        OnConflict::columns([C::TaskId, C::Code]).update_columns([C::N, C::FirstAt, C::LastAt]).to_owned();
    failure_group::Entity::insert_many(groups)
        .on_conflict(conflict)
        .exec_without_returning(transaction)
        .await
        .map_err(error)?;
    Ok(())
}

/// What a row remembers of an item's failure.
pub(super) fn trouble(row: item::Model) -> Result<ItemTrouble, StoreError> {
    let (message, output) = (row.message.unwrap_or_default(), row.output);
    Ok(ItemTrouble {
        index: ItemIndex(row.idx.cast_unsigned()),
        attempts: row.attempts.cast_unsigned(),
        failure: row.code.map(|code| Failure { code: code.into(), message, output }),
        at: WallMs(row.last_at),
        history: history(row.history.as_deref())?,
    })
}

/// The failed attempts that a row keeps.
pub(super) fn history(text: Option<&str>) -> Result<Vec<AttemptNote>, StoreError> {
    let Some(text) = text else { return Ok(Vec::new()) };
    serde_json::from_str(text).map_err(|fault| damaged("an item's history", &fault.to_string()))
}

fn history_text(notes: &[AttemptNote]) -> Result<Option<String>, StoreError> {
    let text = || serde_json::to_string(notes).map_err(|fault| StoreError::Refused(fault.to_string()));
    (!notes.is_empty()).then(text).transpose()
}
