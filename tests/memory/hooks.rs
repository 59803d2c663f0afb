//! The hook calls that changes leave to be delivered.

use super::state::{CallState, LeftCall, State};
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::life::{HookCall, Listener};

/// The business of a task, as one that wants to hear of it.
pub(super) fn listener(state: &State, id: TaskId) -> Listener {
    let business = state
        .tasks
        .get(&id)
        .map(|task| task.new.business.clone())
        .unwrap_or_default();
    let hooks = state.hooks.get(&business).cloned().unwrap_or_default();
    Listener { business, hooks }
}

/// Leaves a call to be delivered.
pub(super) fn leave(state: &mut State, task: TaskId, call: HookCall, now: WallMs) {
    let HookCall {
        kind,
        start_no,
        body,
        expires_at,
    } = call;
    let delivery = format!("{}-{task}-s{start_no}-{}", state.id.0, kind.as_str());
    state.calls_left += 1;
    state.outbox.push(LeftCall {
        task,
        start_no,
        kind,
        body,
        delivery,
        expires_at,
        id: state.calls_left,
        state: CallState::Due,
        created_at: now,
        due_at: now,
        attempts: 0,
        last_error: None,
    });
}
