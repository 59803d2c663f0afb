//! Side records: rows of single items and groups of failures.

use std::collections::BTreeMap;

use super::state::{Item, ItemState, Task};
use windrow_core::ids::ItemIndex;
use windrow_core::items::verdict::{FailingItem, SideRecord};
use windrow_engine::ports::handling::data_log::DataLogLine;
use windrow_engine::ports::ownership::run_store::{FAILURE_CODE_OTHER, FAILURE_CODES_MAX, ShardCheckpoint};
use windrow_engine::ports::tasks::store::FailureGroup;

/// Applies the side records of a checkpoint that was believed, and returns a line for each item that it fails. An
/// failed item never changes again.
pub(super) fn apply(task: &mut Task, checkpoint: &ShardCheckpoint) -> Vec<DataLogLine> {
    let mut lines = Vec::new();
    let last: BTreeMap<ItemIndex, &SideRecord> = checkpoint
        .side
        .iter()
        .map(|record| (record.index(), record))
        .collect();
    for (index, record) in last {
        let is_final = task
            .items
            .get(&index)
            .is_some_and(|item| item.state == ItemState::Failed);
        if !is_final {
            apply_one(task, checkpoint.shard.no, record);
            if let SideRecord::Failed(retrying) = record {
                lines.push(DataLogLine::failed(checkpoint.shard, retrying));
            }
        }
    }
    lines
}

fn apply_one(task: &mut Task, shard: u32, record: &SideRecord) {
    let (state, retrying) = match record {
        SideRecord::Cleared(index) => {
            task.items.remove(index);
            return;
        }
        SideRecord::Retrying(retrying) => (ItemState::Retrying, retrying),
        SideRecord::Parked { retrying, due_at } => (ItemState::Parked(*due_at), retrying),
        SideRecord::Failed(retrying) => (ItemState::Failed, retrying),
    };
    let group = (state == ItemState::Failed).then(|| count(task, retrying));
    let first_at = task
        .items
        .get(&retrying.index)
        .map_or(retrying.at, |item| item.first_at);
    task.items.insert(
        retrying.index,
        Item {
            shard,
            state,
            retrying: retrying.clone(),
            first_at,
            group,
        },
    );
}

/// Adds a failure to its group; says which, and its place in it.
fn count(task: &mut Task, retrying: &FailingItem) -> (String, u64) {
    let code = retrying
        .failure
        .as_ref()
        .map_or(FAILURE_CODE_OTHER, |failure| &failure.code);
    let named = task
        .groups
        .keys()
        .filter(|code| *code != FAILURE_CODE_OTHER)
        .count();
    let is_known = task.groups.contains_key(code);
    let code = if is_known || named < FAILURE_CODES_MAX {
        code
    } else {
        FAILURE_CODE_OTHER
    };
    let group = task
        .groups
        .entry(code.to_owned())
        .or_insert_with(|| FailureGroup {
            code: code.to_owned(),
            count: 0,
            first_at: retrying.at,
            last_at: retrying.at,
            example_index: retrying.index,
            example: retrying
                .failure
                .as_ref()
                .map_or_else(String::new, |failure| failure.message.clone()),
            unconfirmed: 0,
        });
    group.count += 1;
    group.unconfirmed += u64::from(retrying.is_unconfirmed);
    group.first_at = group.first_at.min(retrying.at);
    group.last_at = group.last_at.max(retrying.at);
    (group.code.clone(), group.count - 1)
}
