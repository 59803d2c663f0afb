//! What the shards of a task, and the nodes that could run them, are to one another.

use super::state::{Shard, State, Task};
use windrow_core::business::POOL_DEFAULT;
use windrow_core::execution::Shared;
use windrow_core::ids::ItemIndex;
use windrow_core::shards::{Nodes, Share};
use windrow_core::task::ShardRange;
use windrow_core::task::lifecycle::ShardState;

/// The indexes of a task that are not left out at its head.
pub(super) fn whole(task: &Task) -> ShardRange {
    let (total, head) = (task.new.total.0, task.new.skip_first.0);
    ShardRange {
        start: ItemIndex(head.min(total)),
        end: ItemIndex(total),
    }
}

/// The live nodes that take tasks.
pub(super) fn nodes(state: &State) -> Nodes {
    let serves = |pools: &Option<Vec<String>>| {
        pools
            .as_ref()
            .is_none_or(|pools| pools.iter().any(|pool| pool == POOL_DEFAULT))
    };
    let mut nodes = Nodes {
        count: 0,
        capacity_micros: Some(0),
    };
    let live = state
        .sessions
        .values()
        .filter(|session| !session.fenced && !session.face.draining);
    for session in live.filter(|session| serves(&session.face.pools)) {
        nodes.count += 1;
        let offered = session.face.capacity.map(|load| load.0);
        nodes.capacity_micros = nodes
            .capacity_micros
            .zip(offered)
            .map(|(most, other)| most.max(other));
    }
    nodes
}

/// What a run of one shard knows of the others.
pub(super) fn shared(task: &Task, no: u32) -> Shared {
    let own = task.shards.iter().find(|shard| shard.no == no);
    let others = || task.shards.iter().filter(|shard| shard.no != no);
    let is_up = |shard: &Shard| shard.outage.is_none() && shard.state != ShardState::Done;
    Shared {
        share: Share::read(own.and_then(|shard| shard.share)),
        items: whole(task).len(),
        abandoned_elsewhere: others().map(|shard| shard.counters.abandoned).sum(),
        all_down: !others().any(is_up),
    }
}
