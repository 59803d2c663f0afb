//! Live settings of a task, and what else its owners read with them.

use super::state::{State, Task};
use crate::domain::ids::{TaskId, WallMs};
use crate::domain::lifecycle::{Standing, Verb, decide};
use crate::domain::task::Tuning;
use crate::ports::StoreError;
use crate::ports::task_store::{CommandError, TaskCommand};

/// What was and what is, as the audit has it.
type Change = (Option<String>, Option<String>);

/// Other live settings.
pub(super) fn tune(task: &mut Task, tuning: &Tuning) -> Result<Change, CommandError> {
    let change = (json(&task.tuning)?, json(tuning)?);
    task.tuning = tuning.clone();
    task.control_rev += 1;
    Ok(change)
}

/// A code that is given up.
pub(super) fn abandon(
    task: &mut Task,
    standing: Standing,
    code: &str,
    now: WallMs,
) -> Result<Change, CommandError> {
    decide(Verb::Abandon, standing)?;
    let before = json(&task.abandonments)?;
    task.abandonments.decide(code, now)?;
    task.control_rev += 1;
    Ok((before, json(&task.abandonments)?))
}

/// What a start changes of the settings.
pub(super) fn judge_items(
    state: &mut State,
    id: TaskId,
    command: &TaskCommand,
) -> Result<Option<Change>, CommandError> {
    let task = state.tasks.get_mut(&id).ok_or(CommandError::NotFound(id))?;
    if !matches!(command, TaskCommand::StartJudging(_)) {
        return Ok(None);
    }
    let tuning = task.tuning.clone().judging_items();
    tune(task, &tuning).map(Some)
}

pub(super) fn json(settings: &impl serde::Serialize) -> Result<Option<String>, StoreError> {
    serde_json::to_string(settings)
        .map(Some)
        .map_err(|cause| StoreError::Refused(format!("settings: {cause}")))
}
