//! The hook calls that changes leave to be delivered.

use std::time::Duration;

use serde_json::{Value, json};

use super::shown;
use super::state::{CallState, LeftCall, State};
use crate::domain::business::{HookKind, Hooks, PREPARE_TIMEOUT_DEFAULT};
use crate::domain::ids::{TaskId, WallMs};
use crate::domain::lifecycle::Status;
use crate::ports::task_store::TaskView;

/// Until when the business may answer a start that it wants to prepare.
pub(super) fn ready_until(hooks: Option<&Hooks>, now: WallMs) -> Option<WallMs> {
    let hook = hooks?.get(HookKind::Prepare)?;
    let promised = hook.timeout.unwrap_or(PREPARE_TIMEOUT_DEFAULT);
    Some(now.plus(promised).plus(Duration::from_secs(5)))
}

/// Leaves the question whether the business is ready.
pub(super) fn ask(state: &mut State, id: TaskId, token: &str, until: WallMs, now: WallMs) {
    let Some(task) = state.tasks.get(&id) else { return };
    let mut body = body(HookKind::Prepare, &shown::view(id, task));
    body["start_token"] = json!(token);
    body["ready_by"] = json!(until.to_rfc3339());
    body["ready_path"] = json!(format!("/v1/tasks/{id}/ready"));
    leave(state, id, HookKind::Prepare, body, (now, until));
}

/// Leaves the news of how a start ended, if the business wants it.
pub(super) fn announce(state: &mut State, id: TaskId, status: Status, now: WallMs) {
    let kind = match status {
        Status::Stopped => HookKind::Stopped,
        Status::Finished => HookKind::Finished,
        _ => return,
    };
    let Some(task) = state.tasks.get(&id) else { return };
    if state.hooks.get(&task.new.business).and_then(|hooks| hooks.get(kind)).is_none() {
        return;
    }
    let view = shown::view(id, task);
    let mut body = body(kind, &view);
    let counters = &view.counters;
    body["result"] = json!(view.result.map(|result| result.as_str()));
    body["reason"] = json!(view.stop_reason.map(|reason| reason.as_str()));
    body["text"] = json!(view.status_text);
    body["counts"] = json!({
        "succeeded": counters.succeeded, "skipped": counters.skipped, "abandoned": counters.abandoned,
        "parked": counters.parked, "in_flight": counters.in_flight, "excluded": counters.excluded,
        "pending": counters.pending(view.total),
    });
    body["at"] = json!(now.to_rfc3339());
    leave(state, id, kind, body, (now, now.plus(Duration::from_secs(24 * 3600))));
}

fn body(kind: HookKind, view: &TaskView) -> Value {
    let params: Value =
        view.params.as_deref().map_or(Value::Null, |text| serde_json::from_str(text).unwrap_or_default());
    json!({
        "type": kind.as_str(), "business": view.business, "start": view.start_no,
        "task": {
            "id": view.id.to_string(), "name": view.name, "total": view.total.0,
            "skip_first": view.skip_first.0, "params": params,
        },
    })
}

fn leave(state: &mut State, id: TaskId, kind: HookKind, body: Value, (now, expires_at): (WallMs, WallMs)) {
    let start_no = state.tasks.get(&id).map_or(0, |task| task.start_no);
    let delivery = format!("{}-{id}-s{start_no}-{}", state.id.0, kind.as_str());
    state.calls_left += 1;
    state.outbox.push(LeftCall {
        task: id,
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
