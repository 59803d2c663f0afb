//! Groups of a task's failures, counted and numbered as checkpoints commit them.
//!
//! A failed item gets its group and its 0-based ordinal in it, dense and final: the failures `[a, b)` of a group stay
//! the same forever, however many follow.

use std::collections::{BTreeMap, HashMap, HashSet};

use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::sql::entity::failure_group;
use crate::sql::{Fetch, Run, Transaction};
use windrow_core::ids::{ItemIndex, TaskId};
use windrow_core::items::verdict::FailingItem;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::{FAILURE_CODE_OTHER, FAILURE_CODES_MAX};

/// Group of each item, with the item's ordinal in it.
pub(crate) type Places = HashMap<ItemIndex, (String, u64)>;

/// Adds newly failed items, in the order given, to the groups of their codes. Returns the place of each.
pub(crate) async fn count(
    transaction: &Transaction,
    task: TaskId,
    failed: &[&FailingItem],
) -> Result<Places, StoreError> {
    let mut places = Places::new();
    if failed.is_empty() {
        return Ok(places);
    }
    let rows = failure_group::Entity::find().filter(failure_group::Column::TaskId.eq(task.0));
    let rows = rows.rows(transaction).await?;
    let mut groups: BTreeMap<String, failure_group::Model> =
        rows.into_iter().map(|row| (row.code.clone(), row)).collect();
    let mut changed = HashSet::new();
    for retrying in failed {
        let code = group_code(&groups, code_of(retrying));
        let group = groups
            .entry(code.clone())
            .or_insert_with(|| new_group(task, &code, retrying));
        places.insert(retrying.index, (code.clone(), group.n.cast_unsigned()));
        group.n += 1;
        group.unconfirmed += i64::from(retrying.is_unconfirmed);
        group.first_at = group.first_at.min(retrying.at.0);
        group.last_at = group.last_at.max(retrying.at.0);
        changed.insert(code);
    }
    let rows = groups.into_values().filter(|group| changed.contains(&group.code));
    save(
        transaction,
        rows.map(failure_group::ActiveModel::from).map(all_set).collect(),
    )
    .await?;
    Ok(places)
}

/// Returns the code of a failed item; one without a recorded failure has no code of its own.
fn code_of(retrying: &FailingItem) -> &str {
    retrying
        .failure
        .as_ref()
        .map_or(FAILURE_CODE_OTHER, |failure| &failure.code)
}

fn group_code(groups: &BTreeMap<String, failure_group::Model>, code: &str) -> String {
    let named = groups.keys().filter(|code| *code != FAILURE_CODE_OTHER).count();
    let fits = groups.contains_key(code) || named < FAILURE_CODES_MAX;
    if fits {
        code.to_owned()
    } else {
        FAILURE_CODE_OTHER.to_owned()
    }
}

fn new_group(task: TaskId, code: &str, retrying: &FailingItem) -> failure_group::Model {
    failure_group::Model {
        task_id: task.0,
        code: code.to_owned(),
        n: 0,
        first_at: retrying.at.0,
        last_at: retrying.at.0,
        example_idx: retrying.index.0.cast_signed(),
        example: retrying
            .failure
            .as_ref()
            .map_or_else(String::new, |failure| failure.message.clone()),
        unconfirmed: 0,
    }
}

/// Marks every column as set: a model read from the database counts as unchanged, but an upsert needs all columns.
fn all_set(group: failure_group::ActiveModel) -> failure_group::ActiveModel {
    use sea_orm::ActiveModelTrait as _;
    group.reset_all()
}

async fn save(transaction: &Transaction, groups: Vec<failure_group::ActiveModel>) -> Result<(), StoreError> {
    use failure_group::Column as C;
    let conflict = OnConflict::columns([C::TaskId, C::Code])
        .update_columns([C::N, C::FirstAt, C::LastAt, C::Unconfirmed])
        .to_owned();
    failure_group::Entity::insert_many(groups)
        .on_conflict(conflict)
        .run(transaction)
        .await?;
    Ok(())
}
