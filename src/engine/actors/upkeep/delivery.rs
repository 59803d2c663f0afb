//! One call of a hook or notice of an alert: the request, and the consequences of its answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use windrow_words::{alert, engine as say};

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
use crate::ports::handling::data_log::{DataLogLine, LogOrigin};
use crate::ports::handling::handler::{LogLevel, LogLine};
use crate::ports::handling::hook::{HookCall, HookReply};
use crate::ports::handling::outbox::{Delivery, HookTarget, Settlement, Target};
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
        match &delivery.target {
            Target::Hook(hook) => self.attempt_hook(delivery, hook).await,
            Target::Alert(name) => self.attempt_notice(delivery, name).await,
        }
    }

    async fn attempt_hook(&self, delivery: &Delivery, hook: &HookTarget) -> Result<Settlement, StoreError> {
        if hook.kind == HookKind::Prepare && self.is_start_over(hook).await? {
            return Ok(Settlement::Done);
        }
        let Some(business) = self.hooks.businesses.business(&hook.business).await? else {
            return Ok(Settlement::Done);
        };
        let Some(wanted) = business.spec.hooks.get(hook.kind) else {
            // The business has no such hook any more, and no one else would report the task ready.
            return self.on_reply((delivery, hook), HookReply::Done(None)).await;
        };
        let timeout = match hook.kind {
            HookKind::Prepare => HOOK_TIMEOUT_DEFAULT,
            HookKind::Validate | HookKind::Stopped | HookKind::Finished | HookKind::Reduce => {
                wanted.timeout.unwrap_or(HOOK_TIMEOUT_DEFAULT)
            }
        };
        if !self.keep(delivery, timeout + MARGIN).await? {
            return Ok(Settlement::Done);
        }
        let call = HookCall {
            kind: hook.kind,
            id: delivery.delivery_id.clone(),
            body: delivery.body.clone(),
            timeout,
        };
        let reply = bounded(timeout, self.hooks.caller.call(&business, &call)).await;
        self.on_reply((delivery, hook), reply).await
    }

    async fn attempt_notice(&self, delivery: &Delivery, name: &str) -> Result<Settlement, StoreError> {
        let Some(parts) = &self.hooks.alerts else {
            return Ok(self.again(delivery, alert::elsewhere().to_string()));
        };
        let Some(alert) = parts.store.alert(name).await? else {
            let error = alert::gone().to_string();
            return Ok(Settlement::Dead { error });
        };
        let (id, timeout) = (&delivery.delivery_id, HOOK_TIMEOUT_DEFAULT);
        let sending = parts.sender.send(&alert, id, &delivery.body, timeout);
        Ok(self.by_reply(delivery, bounded(timeout, sending).await))
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

    async fn is_start_over(&self, hook: &HookTarget) -> Result<bool, StoreError> {
        let task = self.node.tasks.get(hook.task).await?;
        Ok(task.is_none_or(|task| task.start_no != hook.start_no || task.status != Status::AwaitingBusiness))
    }

    async fn on_reply(
        &self,
        of: (&Delivery, &HookTarget),
        reply: HookReply,
    ) -> Result<Settlement, StoreError> {
        match (of.1.kind, reply) {
            (HookKind::Prepare, HookReply::Done(body)) => self.ready(of, body).await,
            (HookKind::Prepare, HookReply::Refused(text)) => self.not_ready(of, text).await,
            (_, reply) => Ok(self.by_reply(of.0, reply)),
        }
    }

    fn by_reply(&self, delivery: &Delivery, reply: HookReply) -> Settlement {
        match reply {
            HookReply::Done(_) | HookReply::Later => Settlement::Done,
            HookReply::Refused(error) => Settlement::Dead { error },
            HookReply::Failed(text) => self.again(delivery, text),
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

    async fn ready(
        &self,
        of: (&Delivery, &HookTarget),
        body: Option<Value>,
    ) -> Result<Settlement, StoreError> {
        let edit = match edit_of(body) {
            Ok(edit) => Box::new(edit),
            Err(text) => return self.not_ready(of, text).await,
        };
        let command = TaskCommand::Ready {
            start_no: of.1.start_no,
            edit,
        };
        match self.command(of, &command).await {
            Ok(()) => {
                self.restorer.tell(restorer::Msg::Wake);
                Ok(Settlement::Done)
            }
            Err(CommandError::Store(error)) if error.class() == ErrorClass::Transient => Err(error),
            Err(error) if is_over(&error) => Ok(Settlement::Done),
            Err(error) => {
                self.not_ready(of, say::hook_unusable(error.to_string()).to_string())
                    .await
            }
        }
    }

    async fn not_ready(&self, of: (&Delivery, &HookTarget), text: String) -> Result<Settlement, StoreError> {
        let command = TaskCommand::NotReady {
            start_no: of.1.start_no,
            text,
        };
        match self.command(of, &command).await {
            Ok(()) => Ok(Settlement::Done),
            Err(CommandError::Store(error)) => Err(error),
            Err(error) => {
                tracing::debug!(task = %of.1.task, %error, "start already over");
                Ok(Settlement::Done)
            }
        }
    }

    async fn command(
        &self,
        (delivery, hook): (&Delivery, &HookTarget),
        command: &TaskCommand,
    ) -> Result<(), CommandError> {
        let actor = system(Some(delivery.delivery_id.clone()));
        self.node
            .tasks
            .command(hook.task, command, &actor, self.node.clock.wall())
            .await
            .map(|_| ())
    }

    /// Logs a call that failed for good; that of a hook also in the task's log.
    fn tell_death(&self, delivery: &Delivery, settlement: &Settlement) {
        let Settlement::Dead { error } = settlement else {
            return;
        };
        let attempts = delivery.attempts;
        let hook = match &delivery.target {
            Target::Hook(hook) => hook,
            Target::Alert(alert) => {
                tracing::warn!(alert, attempts, error, "notice not delivered; no attempts left");
                return;
            }
        };
        let (kind, task) = (hook.kind.as_str(), hook.task);
        tracing::warn!(%task, kind, attempts, error, "hook call failed; no attempts left");
        let message = say::hook_given_up(kind, attempts, error).to_string();
        (self.logs)(DataLogLine {
            shard: ShardId { task, no: 0 },
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

/// Awaits a call for its timeout and a margin; a panic is a failure of the call.
async fn bounded(timeout: Duration, calling: impl Future<Output = HookReply>) -> HookReply {
    let calling = AssertUnwindSafe(calling).catch_unwind();
    match tokio::time::timeout(timeout + MARGIN, calling).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(_)) => HookReply::Failed(say::hook_panicked().to_string()),
        Err(_) => HookReply::Failed(say::hook_late(timeout).to_string()),
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
