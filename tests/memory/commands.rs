//! What people do to tasks: their life decides, maps change.

use super::state::State;
use super::{datasets, hooks, life, shards, shown, statistics};
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::life::{Circumstances, CommandRefusal, StartToken, status_json};
use windrow_core::task::lifecycle::decide_delete;
use windrow_engine::ports::tasks::store::{CommandError, TaskCommand, TaskView, Write};
use windrow_host::start_token;

/// See [`windrow_engine::ports::tasks::store::TaskStore::command_if`].
pub(super) fn obey(
    state: &mut State,
    (id, expected): (TaskId, Option<u64>),
    command: &TaskCommand,
    write: &Write,
    now: WallMs,
) -> Result<TaskView, CommandError> {
    let task = state.tasks.get(&id).ok_or(CommandError::NotFound(id))?;
    if let Some(expected) = expected.filter(|expected| *expected != task.version) {
        return Err(CommandError::Changed {
            expected,
            found: task.version,
        });
    }
    let plain = start_token::make()?;
    let token = StartToken {
        hash: start_token::hash(&plain),
        plain,
    };
    let (listener, nodes) = (hooks::listener(state, id), shards::nodes(state));
    let name_holder = command
        .wanted_name()
        .and_then(|name| holder_of_name(state, id, name));
    let around = Circumstances {
        now,
        listener: &listener,
        nodes,
        token: &token,
        name_holder,
    };
    life::change(
        state,
        id,
        Some(&write.actor),
        now,
        |life, evidence| -> Result<_, CommandRefusal> {
            let mut deeds = vec![life.obey(command, &around)?];
            if life.must_refresh(command) {
                deeds.push(life.refresh(None, evidence, now));
            }
            Ok(deeds)
        },
    )?;
    let task = state.tasks.get(&id).ok_or(CommandError::NotFound(id))?;
    Ok(shown::view_with_owners(state, id, task))
}

fn holder_of_name(state: &State, id: TaskId, name: &str) -> Option<TaskId> {
    let business = &state.tasks.get(&id)?.new.business;
    let mut tasks = state.tasks.iter().filter(|(other, _)| **other != id);
    let holder =
        tasks.find(|(_, task)| task.new.business == *business && task.new.spec.name.as_deref() == Some(name));
    holder.filter(|_| !name.is_empty()).map(|(id, _)| *id)
}

/// See [`windrow_engine::ports::tasks::store::TaskStore::delete`].
pub(super) fn delete(state: &mut State, id: TaskId, write: &Write, now: WallMs) -> Result<(), CommandError> {
    let status = state.tasks.get(&id).ok_or(CommandError::NotFound(id))?.status;
    decide_delete(status).map_err(CommandRefusal::from)?;
    let mut children = state
        .tasks
        .iter()
        .filter(|(_, child)| child.new.parent == Some(id));
    if let Some((child, _)) = children.find(|(_, child)| !child.status.is_terminal()) {
        return Err(CommandError::HasRedrive(*child));
    }
    statistics::fold(state, id);
    let gone = state.tasks.remove(&id);
    datasets::keep_results(state, id, gone);
    state.start_tokens.retain(|_, (task, _)| *task != id);
    state.outbox.retain(|call| call.task != id);
    state.log.retain(|line| line.1.shard.task != id);
    let before = Some(status_json(status));
    state.record(
        Some(id),
        &write.actor,
        now,
        "task.delete".to_owned(),
        (before, None),
    );
    Ok(())
}
