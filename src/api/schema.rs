//! Schemas of what bodies have as the domain's own types. Only their descriptions are used.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::settings::TuningSettings;

/// `auto`, or a number as text.
#[derive(Debug, Serialize, ToSchema)]
#[schema(pattern = "^ *(auto|[0-9][0-9_]*) *$", max_length = 80)]
pub struct AutoText(String);

/// A number of items.
#[derive(Debug, Serialize, ToSchema)]
#[schema(minimum = 1, maximum = 4294967295_u64)]
pub struct Items(u32);

/// A number, or one that windrow derives.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum NumberOrAuto {
    /// Derived.
    Auto(AutoText),
    /// Chosen.
    Number(Items),
}

/// One hook.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HookSettings {
    /// Where it is called; none is the business's own URL.
    #[schema(pattern = "^https?://[^@#]+$", max_length = 2048)]
    pub url: Option<String>,
    /// `prepare`: until when the business must be ready; else how long one call may take.
    #[schema(
        pattern = "^[0-9]{1,20}(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))*$",
        max_length = 80
    )]
    pub timeout: Option<String>,
}

/// What a business wants to hear of its tasks; none is not called.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HooksSettings {
    /// Before a task is made or changed; may refuse.
    pub validate: Option<HookSettings>,
    /// Before a task runs: it waits until the business is ready.
    pub prepare: Option<HookSettings>,
    /// After a task stopped.
    pub stopped: Option<HookSettings>,
    /// After a task finished.
    pub finished: Option<HookSettings>,
    /// When the results of a task are to be published: its answer is the summary of the generation.
    pub reduce: Option<HookSettings>,
}

/// What all tasks of a business may have together; none is unlimited.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsSettings {
    /// The sum of the rates of its running tasks.
    #[schema(
        pattern = "^ *[0-9][0-9_]*k? */ *[0-9]*(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))* *$",
        max_length = 80
    )]
    pub rate: Option<String>,
    /// Items in flight over all its tasks, on all nodes.
    #[schema(minimum = 1)]
    pub concurrency: Option<u32>,
    /// The names of limits that its tasks share with other businesses (`/v1/limits`). What is changed here holds for runs
    /// that begin from then on.
    #[schema(max_items = 4)]
    pub named: Option<Vec<String>>,
}

/// A request that is made for each item; texts are templates with placeholders such as `{order_id}` (`docs/handlers.md`).
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestSettings {
    /// Method and URL: `POST https://api.example/v1/orders/{order_id}`.
    #[schema(max_length = 8192)]
    pub call: Option<String>,
    /// Headers to send; null takes one away.
    pub headers: Option<BTreeMap<String, Option<String>>>,
    /// The body as JSON.
    #[schema(max_length = 262144)]
    pub json: Option<String>,
    /// The body as a form, `a={x}&b={y}`.
    #[schema(max_length = 262144)]
    pub form: Option<String>,
    /// The body as text.
    #[schema(max_length = 262144)]
    pub text: Option<String>,
    /// Where in an answer the output lies (RFC 6901); without it the whole.
    #[schema(max_length = 256)]
    pub result: Option<String>,
    /// What answers mean that would mean something else.
    pub statuses: Option<StatusMeanings>,
}

/// Lists of statuses, such as `409` or `404,420-429`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusMeanings {
    /// The item succeeded.
    #[schema(max_length = 200)]
    pub ok: Option<String>,
    /// There was nothing to do.
    #[schema(max_length = 200)]
    pub skip: Option<String>,
    /// The item gets another attempt.
    #[schema(max_length = 200)]
    pub retry: Option<String>,
}

/// A change of a business (JSON merge-patch, RFC 7396): what is named is set, null takes away, the rest stays.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BusinessPatch {
    /// Its slug, if it is said: it never changes.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub name: Option<String>,
    /// A name for people.
    #[schema(min_length = 1, max_length = 190)]
    pub display_name: Option<String>,
    /// The nodes that run its tasks.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub pool: Option<String>,
    /// What is called.
    #[schema(pattern = "^https?://[^@#]+$", max_length = 2048)]
    pub url: Option<String>,
    /// What is started.
    #[schema(max_length = 64)]
    pub command: Option<String>,
    /// What is made for each item.
    pub request: Option<RequestSettings>,
    /// Values of the request's secrets; `***` leaves a stored value.
    pub request_secrets: Option<BTreeMap<String, Option<String>>>,
    /// Headers to send; null takes one away.
    pub headers: Option<BTreeMap<String, Option<String>>>,
    /// Secret headers; `***` leaves a stored value.
    pub secret_headers: Option<BTreeMap<String, Option<String>>>,
    /// Where in a reply the result lies (RFC 6901).
    #[schema(max_length = 256)]
    pub response_pointer: Option<String>,
    /// Whether the contract check insists on verified signatures.
    pub require_signature: Option<bool>,
    /// A forward proxy.
    #[schema(pattern = "^http://[^@#]+$", max_length = 300)]
    pub proxy: Option<String>,
    /// Certificates (PEM) that are trusted instead of the system's.
    #[schema(max_length = 65536)]
    pub ca_pem: Option<String>,
    /// Trusts any certificate. For a test system only.
    pub insecure_skip_verify: Option<bool>,
    /// What it wants to hear of its tasks.
    pub hooks: Option<HooksSettings>,
    /// What its tasks begin with.
    pub defaults: Option<TuningSettings>,
    /// What all its tasks may have together.
    pub limits: Option<LimitsSettings>,
    /// Why, for the audit.
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// The first items, run and settled before any other leaves.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCanary {
    /// How many.
    #[schema(minimum = 1, maximum = 9223372036854775807_u64)]
    pub items: u64,
    /// `stop` (and wait for a start), or `continue` by itself if none was failed.
    pub then: Option<CanaryThen>,
}

/// What follows a canary.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CanaryThen {
    /// Stop.
    Stop,
    /// Go on.
    Continue,
}

/// The first items, run before any other.
#[derive(Debug, Serialize, ToSchema)]
pub struct TaskCanary {
    /// How many.
    pub items: u64,
    /// `stop` or `continue`.
    pub then: String,
}
