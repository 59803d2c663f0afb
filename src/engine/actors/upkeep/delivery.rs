//! One hook call: the request to the business, and the consequences of its answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use windrow_words::engine as say;

use futures_util::FutureExt;
use serde_json::Value;
use serde_json::value::to_raw_value;

use crate::actors::executor::run_cell::LogSink;
use crate::actors::membership::restorer;
use crate::actors::runtime::address::Route;
use crate::actors::runtime::context::{HookParts, NodeContext};
use crate::actors::upkeep::outbox_dispatcher::LEASE;
use crate::ports::ErrorClass;
use crate::ports::StoreError;
use crate::ports::access::business_store::Business;
use crate::ports::handling::data_log::{DataLogLine, LogOrigin};
use crate::ports::handling::handler::{LogLevel, LogLine};
use crate::ports::handling::hook::{HookCall, HookReply};
use crate::ports::handling::outbox::{Delivery, Settlement};
use crate::ports::tasks::store::{Actor, CommandError, CommandRefusal, TaskCommand, TaskEdit, Write};
use windrow_core::business::{HOOK_TIMEOUT_DEFAULT, HookKind};
use windrow_core::ids::{ItemCount, ItemIndex, ShardId};
use windrow_core::items::retry::doubled;
use windrow_core::task::lifecycle::Status;
use windrow_core::task::spec::{JsonText, SpecPatch};

/// First and longest delay before another try, doubled with each one.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// Time for the settlement beyond the call's own timeout.
const MARGIN: Duration = Duration::from_secs(5);

pub(crate) struct Delivering {
    pub(crate) node: Arc<NodeContext>,
    pub(crate) hooks: HookParts,
    pub(crate) logs: LogSink,
    pub(crate) restorer: Route<restorer::Msg>,
}

/// Returns a write that no user requested.
pub(crate) fn system(request_id: Option<String>) -> Write {
    let actor = Actor {
        request_id,
        ..Actor::windrow(None)
    };
    actor.writes()
}

impl Delivering {
    /// Delivers a call that was taken. Every error ends in its settlement.
    pub(crate) async fn deliver(&self, delivery: Delivery) {
        let settlement = match self.attempt(&delivery).await {
            Ok(settlement) => settlement,
            Err(error) => self.again(&delivery, error.to_string()),
        };
        match self.hooks.outbox.settle(&delivery, &settlement).await {
            Ok(true) => self.tell_death(&delivery, &settlement),
            Ok(false) => tracing::debug!(delivery = delivery.delivery_id, "hook call taken by another node"),
            Err(error) => {
                tracing::warn!(
                    delivery = delivery.delivery_id,
                    %error,
                    "hook call not settled; calling again"
                );
            }
        }
    }

    async fn attempt(&self, delivery: &Delivery) -> Result<Settlement, StoreError> {
        if delivery.kind == HookKind::Prepare && self.is_start_over(delivery).await? {
            return Ok(Settlement::Done);
        }
        let Some(business) = self.hooks.businesses.business(&delivery.business).await? else {
            return Ok(Settlement::Done);
        };
        let Some(hook) = business.spec.hooks.get(delivery.kind) else {
            // The business has no such hook any more, and no one else would report the task ready.
            return self.on_reply(delivery, HookReply::Done(None)).await;
        };
        let timeout = match delivery.kind {
            HookKind::Prepare => HOOK_TIMEOUT_DEFAULT,
            HookKind::Validate | HookKind::Stopped | HookKind::Finished | HookKind::Reduce => {
                hook.timeout.unwrap_or(HOOK_TIMEOUT_DEFAULT)
            }
        };
        if !self.keep(delivery, timeout + MARGIN).await? {
            return Ok(Settlement::Done);
        }
        let reply = self.call(&business, delivery, timeout).await;
        self.on_reply(delivery, reply).await
    }

    /// Makes sure that no other node takes the call while it is out. Returns false if one has.
    async fn keep(&self, delivery: &Delivery, span: Duration) -> Result<bool, StoreError> {
        if span <= LEASE {
            return Ok(true);
        }
        let due_at = self.node.clock.wall().plus(span);
        self.hooks
            .outbox
            .settle(delivery, &Settlement::Again { due_at, error: None })
            .await
    }

    async fn is_start_over(&self, delivery: &Delivery) -> Result<bool, StoreError> {
        let task = self.node.tasks.get(delivery.task).await?;
        Ok(task
            .is_none_or(|task| task.start_no != delivery.start_no || task.status != Status::AwaitingBusiness))
    }

    async fn call(&self, business: &Business, delivery: &Delivery, timeout: Duration) -> HookReply {
        let call = HookCall {
            kind: delivery.kind,
            id: delivery.delivery_id.clone(),
            body: delivery.body.clone(),
            timeout,
        };
        let calling = AssertUnwindSafe(self.hooks.caller.call(business, &call)).catch_unwind();
        match tokio::time::timeout(timeout + MARGIN, calling).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => HookReply::Failed(say::hook_panicked().to_string()),
            Err(_) => HookReply::Failed(say::hook_late(timeout).to_string()),
        }
    }

    async fn on_reply(&self, delivery: &Delivery, reply: HookReply) -> Result<Settlement, StoreError> {
        match (delivery.kind, reply) {
            (HookKind::Prepare, HookReply::Done(body)) => self.ready(delivery, body).await,
            (HookKind::Prepare, HookReply::Refused(text)) => self.not_ready(delivery, text).await,
            (_, HookReply::Done(_) | HookReply::Later) => Ok(Settlement::Done),
            (_, HookReply::Refused(text)) => Ok(Settlement::Dead { error: text }),
            (_, HookReply::Failed(text)) => Ok(self.again(delivery, text)),
        }
    }

    fn again(&self, delivery: &Delivery, error: String) -> Settlement {
        let now = self.node.clock.wall();
        if now >= delivery.expires_at {
            return Settlement::Dead { error };
        }
        let wait = doubled(RETRY, delivery.attempts.saturating_sub(1));
        Settlement::Again {
            due_at: now.plus(wait),
            error: Some(error),
        }
    }

    async fn ready(&self, delivery: &Delivery, body: Option<Value>) -> Result<Settlement, StoreError> {
        let edit = match edit_of(body) {
            Ok(edit) => Box::new(edit),
            Err(text) => return self.not_ready(delivery, text).await,
        };
        let command = TaskCommand::Ready {
            start_no: delivery.start_no,
            edit,
        };
        match self.command(delivery, &command).await {
            Ok(()) => {
                self.restorer.tell(restorer::Msg::Wake);
                Ok(Settlement::Done)
            }
            Err(CommandError::Store(error)) if error.class() == ErrorClass::Transient => Err(error),
            Err(error) if is_over(&error) => Ok(Settlement::Done),
            Err(error) => {
                self.not_ready(delivery, say::hook_unusable(error.to_string()).to_string())
                    .await
            }
        }
    }

    async fn not_ready(&self, delivery: &Delivery, text: String) -> Result<Settlement, StoreError> {
        let command = TaskCommand::NotReady {
            start_no: delivery.start_no,
            text,
        };
        match self.command(delivery, &command).await {
            Ok(()) => Ok(Settlement::Done),
            Err(CommandError::Store(error)) => Err(error),
            Err(error) => {
                tracing::debug!(task = %delivery.task, %error, "start already over");
                Ok(Settlement::Done)
            }
        }
    }

    async fn command(&self, delivery: &Delivery, command: &TaskCommand) -> Result<(), CommandError> {
        let actor = system(Some(delivery.delivery_id.clone()));
        self.node
            .tasks
            .command(delivery.task, command, &actor, self.node.clock.wall())
            .await
            .map(|_| ())
    }

    /// Logs a call that failed for good, also in the task's log.
    fn tell_death(&self, delivery: &Delivery, settlement: &Settlement) {
        let Settlement::Dead { error } = settlement else {
            return;
        };
        let (kind, attempts) = (delivery.kind.as_str(), delivery.attempts);
        tracing::warn!(task = %delivery.task, kind, attempts, error, "hook call failed; no attempts left");
        let message = say::hook_given_up(kind, attempts, error).to_string();
        (self.logs)(DataLogLine {
            shard: ShardId {
                task: delivery.task,
                no: 0,
            },
            at: self.node.clock.wall(),
            origin: LogOrigin::System,
            code: Some("HOOK_GIVEN_UP".to_owned()),
            line: LogLine {
                index: None,
                level: LogLevel::Error,
                message,
                extra: None,
            },
        });
    }
}

/// True if an answer came too late to matter.
fn is_over(error: &CommandError) -> bool {
    use CommandRefusal::{StaleStart, Status};
    matches!(
        error,
        CommandError::NotFound(_) | CommandError::Refused(Status(_) | StaleStart { .. })
    )
}

/// Returns the changes of a ready business: `total`, `skip_first` and `params` of its reply; all else is ignored.
fn edit_of(body: Option<Value>) -> Result<TaskEdit, String> {
    let Some(body) = body else {
        return Ok(TaskEdit::default());
    };
    let number = |name: &str| match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_u64()
            .map(Some)
            .ok_or_else(|| say::hook_no_number(name, value.to_string()).to_string()),
    };
    let params = match body.get("params") {
        None | Some(Value::Null) => None,
        Some(params @ Value::Object(_)) => {
            let text = to_raw_value(params).map_err(|error| error.to_string())?;
            Some(Some(JsonText(text)))
        }
        Some(_) => return Err(say::hook_no_object().to_string()),
    };
    Ok(TaskEdit {
        total: number("total")?.map(ItemCount),
        spec: SpecPatch {
            skip_first: number("skip_first")?.map(ItemIndex),
            params,
            ..SpecPatch::default()
        },
        ..TaskEdit::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_ready_business_may_change_the_items_and_parameters_and_nothing_else() {
        assert_eq!(edit_of(None), Ok(TaskEdit::default()));
        assert_eq!(
            edit_of(Some(json!({"status": "ready", "name": "x"}))),
            Ok(TaskEdit::default())
        );
        let edit = edit_of(Some(json!({"total": 9, "skip_first": 2, "params": {"a": 1}}))).expect("sound");
        let names: Vec<&str> = edit.spec.named().map(|attribute| attribute.name).collect();
        assert_eq!(
            (edit.total, names),
            (Some(ItemCount(9)), vec!["skip_first", "params"])
        );
        let params = edit.spec.params.flatten();
        assert_eq!(params.as_deref(), Some(r#"{"a":1}"#));
        for wrong in [
            json!({"total": "9"}),
            json!({"total": -1}),
            json!({"params": [1]}),
        ] {
            assert!(edit_of(Some(wrong.clone())).is_err(), "{wrong}");
        }
    }
}
