//! OpenAPI schemas for members whose types belong to the domain. Only their descriptions are used.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::settings::TuningSettings;

/// `auto`, or a number as text.
#[derive(Debug, Serialize, ToSchema)]
#[schema(pattern = "^ *(auto|[0-9][0-9_]*) *$", max_length = 80)]
pub struct AutoText(String);

/// Number of items, at least 1.
#[derive(Debug, Serialize, ToSchema)]
#[schema(minimum = 1, maximum = 4294967295_u64)]
pub struct Items(u32);

/// Number, or `auto` to let Windrow derive it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum NumberOrAuto {
    /// Derived by Windrow: `auto`.
    Auto(AutoText),
    /// Chosen by the user.
    Number(Items),
}

/// Settings of one hook.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HookSettings {
    /// URL of the hook; the business's own URL if omitted.
    #[schema(pattern = "^https?://[^@#]+$", max_length = 2048)]
    pub url: Option<String>,
    /// For `prepare`, the time until the business must be ready; for other hooks, the timeout of one call.
    #[schema(
        pattern = "^[0-9]{1,20}(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))*$",
        max_length = 80
    )]
    pub timeout: Option<String>,
}

/// Hooks called during the life of a business's tasks. An omitted hook isn't called.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HooksSettings {
    /// Called before a task is created or changed; may refuse it.
    pub validate: Option<HookSettings>,
    /// Called before a task runs; the task waits until the business is ready.
    pub prepare: Option<HookSettings>,
    /// Called after a task stopped.
    pub stopped: Option<HookSettings>,
    /// Called after a task finished.
    pub finished: Option<HookSettings>,
    /// Called before the results of a task are published; its response becomes the generation's summary.
    pub reduce: Option<HookSettings>,
}

/// Limits shared by all tasks of a business. An omitted limit means unlimited.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsSettings {
    /// Maximum total rate of its running tasks.
    #[schema(
        pattern = "^ *[0-9][0-9_]*k? */ *[0-9]*(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))* *$",
        max_length = 80
    )]
    pub rate: Option<String>,
    /// Maximum items in flight across all its tasks and all nodes.
    #[schema(minimum = 1)]
    pub concurrency: Option<u32>,
    /// Named limits that its tasks share with other businesses (`/v1/limits`). A change applies to runs that begin
    /// afterwards.
    #[schema(max_items = 4)]
    pub named: Option<Vec<String>>,
}

/// Request sent for each item. Strings are templates with placeholders such as `{order_id}` (`docs/handlers.md`).
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestSettings {
    /// Method and URL, e.g. `POST https://api.example/v1/orders/{order_id}`.
    #[schema(max_length = 8192)]
    pub call: Option<String>,
    /// Headers to send; null removes one.
    pub headers: Option<BTreeMap<String, Option<String>>>,
    /// Request body as JSON.
    #[schema(max_length = 262144)]
    pub json: Option<String>,
    /// Request body as a form, `a={x}&b={y}`.
    #[schema(max_length = 262144)]
    pub form: Option<String>,
    /// Request body as text.
    #[schema(max_length = 262144)]
    pub text: Option<String>,
    /// JSON pointer (RFC 6901) to the output within a response; the whole response if omitted.
    #[schema(max_length = 256)]
    pub result: Option<String>,
    /// Statuses whose default meaning is overridden.
    pub statuses: Option<StatusMeanings>,
}

/// Meanings of HTTP statuses, each a list such as `409` or `404,420-429`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusMeanings {
    /// Statuses that mean success.
    #[schema(max_length = 200)]
    pub ok: Option<String>,
    /// Statuses that mean there was nothing to do.
    #[schema(max_length = 200)]
    pub skip: Option<String>,
    /// Statuses after which the item is retried.
    #[schema(max_length = 200)]
    pub retry: Option<String>,
}

/// Change of a business (JSON merge patch, RFC 7396): members that are present are set, null removes one, the rest
/// stays.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BusinessPatch {
    /// Slug of the business; may be repeated here, but never changes.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub name: Option<String>,
    /// Display name for people.
    #[schema(min_length = 1, max_length = 190)]
    pub display_name: Option<String>,
    /// Node pool that runs its tasks.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub pool: Option<String>,
    /// URL of the handler.
    #[schema(pattern = "^https?://[^@#]+$", max_length = 2048)]
    pub url: Option<String>,
    /// Command started as its handler.
    #[schema(max_length = 64)]
    pub command: Option<String>,
    /// Request sent for each item.
    pub request: Option<RequestSettings>,
    /// Values of the request's secrets; `***` keeps the stored value.
    pub request_secrets: Option<BTreeMap<String, Option<String>>>,
    /// Headers to send; null removes one.
    pub headers: Option<BTreeMap<String, Option<String>>>,
    /// Secret headers; `***` keeps the stored value.
    pub secret_headers: Option<BTreeMap<String, Option<String>>>,
    /// JSON pointer (RFC 6901) to the result within a reply.
    #[schema(max_length = 256)]
    pub response_pointer: Option<String>,
    /// True if the contract check requires the handler to verify signatures.
    pub require_signature: Option<bool>,
    /// Forward proxy used for calls.
    #[schema(pattern = "^http://[^@#]+$", max_length = 300)]
    pub proxy: Option<String>,
    /// Certificates (PEM) trusted instead of the system's.
    #[schema(max_length = 65536)]
    pub ca_pem: Option<String>,
    /// Certificate (PEM) presented to a server that demands one.
    #[schema(max_length = 65536)]
    pub client_cert_pem: Option<String>,
    /// Private key (PEM) of `client_cert_pem`; `***` keeps the stored one.
    #[schema(max_length = 65536)]
    pub client_key_pem: Option<String>,
    /// Accept any TLS certificate. For test systems only.
    pub insecure_skip_verify: Option<bool>,
    /// Source of the limits that the service describes: `auto` or `off`; null restores the default.
    #[schema(pattern = "^(auto|off)$")]
    pub limits_from: Option<String>,
    /// Hooks called during the life of its tasks.
    pub hooks: Option<HooksSettings>,
    /// Default settings of its tasks.
    pub defaults: Option<TuningSettings>,
    /// Limits shared by all its tasks.
    pub limits: Option<LimitsSettings>,
    /// Reason, recorded in the audit log.
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// First items of a task, run and settled before any other is dispatched.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCanary {
    /// Number of canary items.
    #[schema(minimum = 1, maximum = 9223372036854775807_u64)]
    pub items: u64,
    /// `stop` to wait for a start, or `continue` to go on automatically if no canary item failed.
    pub then: Option<CanaryThen>,
}

/// Action after a canary.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CanaryThen {
    /// Stop and wait for a start.
    Stop,
    /// Continue automatically if no canary item failed.
    Continue,
}

/// First items of a task, run before any other.
#[derive(Debug, Serialize, ToSchema)]
pub struct TaskCanary {
    /// Number of canary items.
    pub items: u64,
    /// Action after the canary: `stop` or `continue`.
    pub then: String,
}
