//! Calls of a business other than for its items: the hooks, and the `ping` of a contract check.

use std::time::Duration;

use async_trait::async_trait;

use crate::ports::access::business_store::Business;
use windrow_core::business::secrets::BusinessSecrets;
use windrow_core::business::{BusinessSpec, HookKind};

/// One call of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCall {
    /// Kind of the hook.
    pub kind: HookKind,
    /// Stable id (`webhook-id`), the same for every attempt of this delivery.
    pub id: String,
    /// Body as JSON text, including its `type`.
    pub body: String,
    /// Longest duration of the call.
    pub timeout: Duration,
}

/// Answer of the business to a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookReply {
    /// 2xx except 202: done, or ready, with its JSON body, if it has one.
    Done(Option<serde_json::Value>),
    /// 202: accepted, and the answer comes later.
    Later,
    /// 4xx that is final (400, 403, 404, 409, 410, 422 …): the business's message, or one made from the status.
    Refused(String),
    /// Anything else: worth another try. The text says what happened.
    Failed(String),
}

/// Client that calls hooks.
#[async_trait]
pub trait HookCaller: Send + Sync {
    /// Calls the hook of a business at its own URL or the handler's, signed like an item's call.
    async fn call(&self, business: &Business, call: &HookCall) -> HookReply;
}

/// Member of a business's description that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerFault {
    /// Member as a JSON pointer into the written form (`/headers/x-team`).
    pub pointer: String,
    /// Problem with it, and a value that would do.
    pub what: String,
}

/// Result of one check of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// Works as the contract says.
    Ok,
    /// Works, but not well.
    Warn,
    /// Fails, so that it doesn't work.
    Fail,
}

impl CheckResult {
    /// Returns the word in the report.
    pub fn as_str(self) -> &'static str {
        match self {
            CheckResult::Ok => "ok",
            CheckResult::Warn => "warn",
            CheckResult::Fail => "fail",
        }
    }
}

/// One check of the contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckLine {
    /// Name of the check, such as `reachable`.
    pub check: &'static str,
    /// Result of the check.
    pub result: CheckResult,
    /// Observation that led to the result.
    pub detail: String,
    /// Advice, if there is any.
    pub advice: Option<String>,
}

/// Checks of handlers before tasks use them.
#[async_trait]
pub trait HandlerChecker: Send + Sync {
    /// Returns the names of the handlers in this process, each of which a business may name as its command.
    fn in_process(&self) -> Vec<String>;

    /// Returns everything in the description of a URL handler and its hooks that rules out any call; makes no call.
    fn faults(&self, spec: &BusinessSpec, secrets: &BusinessSecrets) -> Vec<HandlerFault>;

    /// Applies a change of a business: from now on the calls of its live runs are signed with its current secrets.
    fn refresh(&self, business: &Business);

    /// Calls the business with pings and reports how well it keeps to the protocol. Ends within a minute.
    async fn check(&self, business: &Business) -> Vec<CheckLine>;
}
