//! Calls of a business beside its items: the four hooks, and the `ping` of a contract check.

use std::time::Duration;

use async_trait::async_trait;

use crate::ports::access::business_store::Business;
use windrow_core::business::secrets::BusinessSecrets;
use windrow_core::business::{BusinessSpec, HookKind};

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

/// Something in a business's description that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerFault {
    /// Which member, as a JSON pointer into the written form (`/headers/x-team`).
    pub pointer: String,
    /// What is wrong with it, and what would do.
    pub what: String,
}

/// How one check of the contract came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// As it should be.
    Ok,
    /// Works, but not well.
    Warn,
    /// Doesn't work.
    Fail,
}

impl CheckResult {
    /// The word in the report.
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
    /// What was looked at, e.g. `reachable`.
    pub check: &'static str,
    /// How it came out.
    pub result: CheckResult,
    /// What was seen.
    pub detail: String,
    /// What to try.
    pub advice: Option<String>,
}

/// Looks at handlers before tasks use them.
#[async_trait]
pub trait HandlerChecker: Send + Sync {
    /// The names of the handlers in this process, each of which a business may name as its command.
    fn in_process(&self) -> Vec<String>;

    /// Everything in a description of a URL handler and its hooks that no call could be made with; makes no call.
    fn faults(&self, spec: &BusinessSpec, secrets: &BusinessSecrets) -> Vec<HandlerFault>;

    /// A business was changed: from now on the calls of its live runs are signed with its present secrets.
    fn refresh(&self, business: &Business);

    /// Calls the business with pings and says how it keeps to the protocol. Ends within a minute.
    async fn check(&self, business: &Business) -> Vec<CheckLine>;
}
