//! Tasks as every surface shows them, and what is read without changing anything.

use super::life;
use super::state::{Item, ItemState, State, Task};
use windrow_core::business::POOL_DEFAULT;
use windrow_core::ids::{ItemIndex, TaskId};
use windrow_engine::ports::tasks::store::{FailedItem, FailureGroup, TaskRest, TaskView};

/// A task with the sums over its shards.
pub(super) fn view(id: TaskId, task: &Task) -> TaskView {
    let rest = TaskRest {
        business: task.new.business.clone(),
        version: task.version,
        created_at: task.created_at,
        pool: POOL_DEFAULT.to_owned(),
        send_params: task.new.send_params,
        limits: task.new.limits.clone(),
        parent: task.new.parent,
    };
    TaskView::of(life::read(id, task), rest)
}

/// The same, with the names of the nodes that own its shards.
pub(super) fn view_with_owners(state: &State, id: TaskId, task: &Task) -> TaskView {
    let mut view = view(id, task);
    for shard in &mut view.shards {
        let owner = shard.session.and_then(|id| state.sessions.get(&id));
        shard.node = owner.map(|session| session.node.clone());
    }
    view
}

/// Groups, most frequent first.
pub(super) fn groups(state: &State, id: TaskId) -> Vec<FailureGroup> {
    let Some(task) = state.tasks.get(&id) else {
        return Vec::new();
    };
    let mut groups: Vec<FailureGroup> = task.groups.values().cloned().collect();
    groups.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.code.cmp(&b.code)));
    groups
}

/// Abandoned items in index order.
pub(super) fn failures(state: &State, id: TaskId, after: Option<ItemIndex>, limit: u32) -> Vec<FailedItem> {
    let Some(task) = state.tasks.get(&id) else {
        return Vec::new();
    };
    let abandoned = task
        .items
        .values()
        .filter(|item| item.state == ItemState::Abandoned);
    let wanted = abandoned.filter(|item| after.is_none_or(|after| item.trouble.index > after));
    wanted.take(limit as usize).map(failed).collect()
}

fn failed(item: &Item) -> FailedItem {
    let failure = item.trouble.failure.clone();
    let (code, message, output) =
        failure.map_or_else(Default::default, |f| (f.code.into_owned(), f.message, f.output));
    FailedItem {
        index: item.trouble.index,
        attempts: item.trouble.attempts,
        code,
        message,
        output,
        at: item.trouble.at,
    }
}
