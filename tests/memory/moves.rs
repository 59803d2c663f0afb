//! Moves of shards between nodes: wishes in the shards' rows.

use super::life;
use super::state::State;
use windrow_core::ids::{SessionId, TaskId, WallMs};
use windrow_engine::ports::ownership::run_store::MOVE_PATIENCE;
use windrow_engine::ports::tasks::command::shards_to_move;
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
    let moved = shards_to_move((id, only), to, &there, &life::read(id, task).shards)?;
    for shard in task.shards.iter_mut().filter(|shard| moved.contains(&shard.no)) {
        shard.moves = Some((to.to_owned(), now.plus(MOVE_PATIENCE)));
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
