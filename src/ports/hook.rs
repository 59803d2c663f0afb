//! Calls of a business beside its items: the four hooks, and the `ping` of a contract check.

use std::time::Duration;

use async_trait::async_trait;

use super::business_store::Business;
use crate::domain::business::HookKind;

/// One call of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCall {
    /// Which.
    pub kind: HookKind,
    /// The stable id (`webhook-id`): the same for every attempt of this delivery.
    pub id: String,
    /// The body as JSON text; `type` is in it.
    pub body: String,
    /// How long the call may take.
    pub timeout: Duration,
}

/// What the business answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookReply {
    /// 2xx except 202: done, or ready. Its JSON body, if it has one.
    Done(Option<serde_json::Value>),
    /// 202: heard, the answer comes later.
    Later,
    /// 4xx that is final (400, 403, 404, 409, 410, 422 …): the business's message, or one made from the status.
    Refused(String),
    /// Anything else: worth another try. The sentence says what happened.
    Failed(String),
}

/// Calls hooks.
#[async_trait]
pub trait HookCaller: Send + Sync {
    /// Calls the hook of a business at its own URL or the handler's, signed like an item's call.
    async fn call(&self, business: &Business, call: &HookCall) -> HookReply;
}
