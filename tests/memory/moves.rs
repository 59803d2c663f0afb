//! Moves of shards between nodes: wishes in the shards' rows.

use super::state::{Shard, State};
use windrow_core::ids::{SessionId, ShardId, TaskId, WallMs};
use windrow_core::task::lifecycle::ShardState;
use windrow_engine::ports::ownership::run_store::MOVE_PATIENCE;
use windrow_engine::ports::tasks::store::{CommandError, MoveRefusal, Write};

/// See [`windrow_engine::ports::tasks::store::TaskStore::move_shards`].
pub(super) fn move_shards(
    state: &mut State,
    (id, only, to): (TaskId, Option<u32>, &str),
    write: &Write,
    now: WallMs,
) -> Result<u32, CommandError> {
    let there = sessions_of(state, to)?;
    let task = state.tasks.get_mut(&id).ok_or(CommandError::NotFound(id))?;
    let name = only.map_or_else(|| id.to_string(), |no| ShardId { task: id, no }.to_string());
    let mut shards: Vec<&mut Shard> = task
        .shards
        .iter_mut()
        .filter(|shard| only.is_none_or(|no| no == shard.no))
        .collect();
    if let (true, Some(no)) = (shards.is_empty(), only) {
        return Err(MoveRefusal::NoShard(ShardId { task: id, no }).into());
    }
    shards.retain(|shard| shard.state == ShardState::Running && shard.session.is_some());
    if shards.is_empty() {
        return Err(MoveRefusal::NotRunning(name).into());
    }
    shards.retain(|shard| shard.session.is_none_or(|owner| !there.contains(&owner)));
    if shards.is_empty() {
        return Err(MoveRefusal::AlreadyThere(name, to.to_owned()).into());
    }
    let mut moved = Vec::new();
    for shard in shards {
        shard.moves = Some((to.to_owned(), now.plus(MOVE_PATIENCE)));
        moved.push(shard.no);
    }
    let after = serde_json::json!({ "to": to, "shards": moved }).to_string();
    state.record(
        Some(id),
        &write.actor,
        now,
        "task.move".to_owned(),
        (None, Some(after)),
    );
    Ok(u32::try_from(moved.len()).unwrap_or(u32::MAX))
}

/// The sessions of the node that may take something.
fn sessions_of(state: &State, node: &str) -> Result<Vec<SessionId>, CommandError> {
    let mut live = state
        .sessions
        .iter()
        .filter(|(_, session)| session.node == node && !session.fenced);
    if live.clone().next().is_none() {
        return Err(MoveRefusal::NoNode(node.to_owned()).into());
    }
    if live
        .clone()
        .all(|(_, session)| session.drain || session.face.draining)
    {
        return Err(MoveRefusal::Draining(node.to_owned()).into());
    }
    let takes = live
        .by_ref()
        .filter(|(_, session)| !session.drain && !session.face.draining);
    Ok(takes.map(|(id, _)| *id).collect())
}
