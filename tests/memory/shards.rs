//! What the shards of a task, and the nodes that could run them, are to one another.

use super::state::{Shard, State, Task};
use windrow_core::business::POOL_DEFAULT;
use windrow_core::execution::Shared;
use windrow_core::shards::{Nodes, Share};
use windrow_core::task::lifecycle::ShardState;

/// The live nodes that take tasks.
pub(super) fn nodes(state: &State) -> Nodes {
    let serves = |pools: &Option<Vec<String>>| {
        pools
            .as_ref()
            .is_none_or(|pools| pools.iter().any(|pool| pool == POOL_DEFAULT))
    };
    let live = state
        .sessions
        .values()
        .filter(|session| !session.fenced && !session.face.draining);
    live.filter(|session| serves(&session.face.pools))
        .map(|session| session.face.capacity.map(|load| load.0))
        .collect()
}

/// What a run of one shard knows of the others.
pub(super) fn shared(task: &Task, no: u32) -> Shared {
    let own = task.shards.iter().find(|shard| shard.no == no);
    let others = || task.shards.iter().filter(|shard| shard.no != no);
    let is_up = |shard: &Shard| shard.outage.is_none() && shard.state != ShardState::Done;
    Shared {
        share: Share::read(own.and_then(|shard| shard.share)),
        items: task.new.range().len(),
        failed_elsewhere: others().map(|shard| shard.counters.failed).sum(),
        all_down: !others().any(is_up),
    }
}
