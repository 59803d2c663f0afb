//! Tasks as every surface shows them.

use super::life;
use super::state::{State, Task};
use windrow_core::ids::TaskId;
use windrow_engine::ports::tasks::store::TaskView;

/// A task with the sums over its shards.
pub(super) fn view(id: TaskId, task: &Task) -> TaskView {
    TaskView {
        business: task.new.business.clone(),
        version: task.version,
        created_at: task.created_at,
        parent: task.new.parent,
        fire: task.fire,
        ..TaskView::of(life::read(id, task))
    }
}

/// The same, with the names of the nodes that own its shards.
pub(super) fn view_with_owners(state: &State, id: TaskId, task: &Task) -> TaskView {
    let mut view = view(id, task);
    for shard in &view.life.shards {
        let owner = shard.session.and_then(|id| state.sessions.get(&id));
        let named = owner.map(|session| (shard.no, session.node.clone()));
        view.owners.extend(named);
    }
    view
}
