//! What a business wants to hear of its tasks: rows of the outbox, written with the change that causes them.

use std::time::Duration;

use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::EntityTrait;
use serde_json::{Value, json};

use super::entity::{business, meta, outbox, task};
use super::{Transaction, damaged, error, task_view};
use crate::domain::business::{HookKind, Hooks, PREPARE_TIMEOUT_DEFAULT};
use crate::domain::ids::{StoreId, TaskId, WallMs};
use crate::domain::lifecycle::Status;
use crate::ports::StoreError;
use crate::ports::task_store::TaskView;

/// How long a call that nobody takes is tried.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(24 * 3600);
/// Beyond what the business was promised, for the way of its answer.
const READY_MARGIN: Duration = Duration::from_secs(5);

/// The hooks of a task's business.
pub(super) async fn of(transaction: &Transaction, task: &task::Model) -> Result<Hooks, StoreError> {
    let owner = business::Entity::find_by_id(task.business_id).one(transaction).await.map_err(error)?;
    let text = owner.and_then(|owner| owner.hooks).unwrap_or_default();
    match text.trim() {
        "" | "null" => Ok(Hooks::default()),
        text => serde_json::from_str(text).map_err(|fault| damaged("hooks", &fault.to_string())),
    }
}

/// Until when the business may answer a start that it wants to prepare; none when it doesn't want to.
pub(super) fn ready_until(hooks: &Hooks, now: WallMs) -> Option<WallMs> {
    let hook = hooks.get(HookKind::Prepare)?;
    Some(now.plus(hook.timeout.unwrap_or(PREPARE_TIMEOUT_DEFAULT)).plus(READY_MARGIN))
}

/// Leaves the call by which the business is asked to prepare this start; the only place where the token is written.
pub(super) async fn ask(
    transaction: &Transaction,
    task: &task::Model,
    token: &str,
    until: WallMs,
    now: WallMs,
) -> Result<(), StoreError> {
    let view = task_view::view(transaction, task.clone()).await?;
    let mut body = body(HookKind::Prepare, &view);
    body["start_token"] = json!(token);
    body["ready_by"] = json!(until.to_rfc3339());
    body["ready_path"] = json!(format!("/v1/tasks/{}/ready", view.id));
    leave(transaction, task, HookKind::Prepare, &body, (now, until)).await
}

/// Leaves a call that says how a start ended, if the business wants it.
pub(super) async fn announce(
    transaction: &Transaction,
    task: &task::Model,
    status: Status,
    now: WallMs,
) -> Result<(), StoreError> {
    let kind = match status {
        Status::Stopped => HookKind::Stopped,
        Status::Finished => HookKind::Finished,
        _ => return Ok(()),
    };
    if of(transaction, task).await?.get(kind).is_none() {
        return Ok(());
    }
    let view = task_view::view(transaction, task.clone()).await?;
    let mut body = body(kind, &view);
    body["result"] = json!(view.result.map(|result| result.as_str()));
    body["reason"] = json!(view.stop_reason.map(|reason| reason.as_str()));
    body["text"] = json!(view.status_text);
    body["counts"] = counts(&view);
    body["at"] = json!(now.to_rfc3339());
    leave(transaction, task, kind, &body, (now, now.plus(GIVEN_UP_AFTER))).await
}

fn body(kind: HookKind, view: &TaskView) -> Value {
    let params: Value = view.params.as_deref().map_or(Value::Null, |text| {
        // Parameters were checked when they came in.
        serde_json::from_str(text).unwrap_or_default()
    });
    json!({
        "type": kind.as_str(), "business": view.business, "start": view.start_no,
        "task": {
            "id": view.id.to_string(), "name": view.name, "total": view.total.0,
            "skip_first": view.skip_first.0, "params": params,
        },
    })
}

fn counts(view: &TaskView) -> Value {
    let counters = &view.counters;
    json!({
        "succeeded": counters.succeeded, "skipped": counters.skipped, "abandoned": counters.abandoned,
        "parked": counters.parked, "in_flight": counters.in_flight, "excluded": counters.excluded,
        "pending": counters.pending(view.total),
    })
}

async fn leave(
    transaction: &Transaction,
    task: &task::Model,
    kind: HookKind,
    body: &Value,
    (now, until): (WallMs, WallMs),
) -> Result<(), StoreError> {
    let store = meta::Entity::find_by_id("store_id".to_owned()).one(transaction).await.map_err(error)?;
    let store = StoreId(store.map(|fact| fact.val).unwrap_or_default());
    // At most one of a kind in a start: the same id for every attempt to deliver it.
    let delivery = format!("{}-{}-s{}-{}", store.0, TaskId(task.id), task.start_no, kind.as_str());
    let call = outbox::ActiveModel {
        id: NotSet,
        task_id: Set(task.id),
        start_no: Set(task.start_no),
        kind: Set(kind.as_str().to_owned()),
        payload: Set(body.to_string()),
        state: Set("due".to_owned()),
        due_at: Set(now.0),
        attempts: Set(0),
        created_at: Set(now.0),
        delivery_id: Set(Some(delivery)),
        last_error: Set(None),
        expires_at: Set(Some(until.0)),
    };
    outbox::Entity::insert(call).exec_without_returning(transaction).await.map_err(error)?;
    Ok(())
}
