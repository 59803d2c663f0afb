//! Businesses, their handler checks and their revisions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::schema::{HooksSettings, LimitsSettings, RequestSettings};
use crate::settings::TuningSettings;
use windrow_core::business::Hooks;
use windrow_core::business::request::RequestSpec;
use windrow_core::business::{BusinessLimits, LimitsFrom};
use windrow_core::settings::table::TuningPatch;

/// Outcome of a test call.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TryReply {
    /// Index of the item.
    pub index: u64,
    /// Item key that the handler received.
    pub item_key: String,
    /// `succeeded`, `skipped`, `failed`, `retry`, `broken` (the contract is) or `not_called`.
    pub result: String,
    /// Code of the failure; null if the call succeeded.
    pub code: Option<String>,
    /// Failure message for people.
    pub message: Option<String>,
    /// Output that the handler returned for the item; null if it returned none.
    #[schema(value_type = Option<serde_json::Value>)]
    pub output: Option<Box<RawValue>>,
    /// Size of the output, in bytes; set only if it was too large to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// Log lines that the handler wrote during the call.
    pub logs: Vec<String>,
    /// Duration of the call, in seconds.
    pub latency_seconds: f64,
}

/// A business: a handler with its defaults, limits and hooks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Business {
    /// Name, as used in URLs.
    pub name: String,
    /// Display name for people.
    pub display_name: Option<String>,
    /// Node pool that runs its tasks.
    pub pool: String,
    /// URL of the handler.
    pub url: Option<String>,
    /// Name of the command that is started as its handler.
    pub command: Option<String>,
    /// Request sent for each item.
    #[schema(value_type = Option<RequestSettings>)]
    pub request: Option<RequestSpec>,
    /// Names of the request's secrets; each value is `***`.
    pub request_secrets: BTreeMap<String, String>,
    /// Headers sent with each call.
    pub headers: BTreeMap<String, String>,
    /// Names of the secret headers; each value is `***`.
    pub secret_headers: BTreeMap<String, String>,
    /// JSON pointer to the result within a reply.
    pub response_pointer: String,
    /// True if the contract check requires the handler to verify signatures.
    pub require_signature: bool,
    /// Forward proxy used for calls.
    pub proxy: Option<String>,
    /// Certificates trusted instead of the system's.
    pub ca_pem: Option<String>,
    /// Certificate presented to a server that demands one.
    #[serde(default)]
    pub client_cert_pem: Option<String>,
    /// `***` if there is a client certificate.
    #[serde(default)]
    pub client_key_pem: Option<String>,
    /// True if any TLS certificate is accepted.
    pub insecure_skip_verify: bool,
    /// Source of the limits that the service describes: `auto` reads the headers of its answers, `off` doesn't. By
    /// default `auto` for a `request` and `off` for a `url`.
    #[schema(value_type = Option<String>)]
    pub limits_from: Option<LimitsFrom>,
    /// Hooks called during the life of its tasks.
    #[schema(value_type = HooksSettings)]
    pub hooks: Hooks,
    /// Default settings of its tasks.
    #[schema(value_type = TuningSettings)]
    pub defaults: TuningPatch,
    /// Limits shared by all its tasks.
    #[schema(value_type = LimitsSettings)]
    pub limits: BusinessLimits,
    /// Revision number; grows with each change.
    pub revision: u64,
    /// Time when it was registered.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time of the last change.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Time when it was archived: since then it is hidden and accepts no new tasks.
    #[schema(format = DateTime)]
    pub archived_at: Option<String>,
    /// Worker processes of its running tasks, on all nodes. Present only for a command, when one business is requested
    /// and workers run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<Workers>,
    /// Secret that signs calls. Present only in the response that created it, and never if calls aren't signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// Worker processes by what they do now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Workers {
    /// Workers that hold an item.
    pub busy: u32,
    /// Workers that wait for one.
    pub idle: u32,
}

/// Result of a contract check.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CheckReply {
    /// True if no check failed.
    pub passed: bool,
    /// Result of each check.
    pub checks: Vec<Check>,
}

/// Result of one check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// Subject of the check.
    pub check: String,
    /// `ok`, `warn` or `fail`.
    pub result: String,
    /// Observed behaviour of the handler.
    pub detail: String,
    /// Suggested fix, if any.
    #[serde(rename = "try")]
    pub advice: Option<String>,
}

/// One change of a business.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Revision {
    /// Revision that the change created.
    pub revision: Option<u64>,
    /// Time of the change.
    #[schema(format = DateTime)]
    pub at: String,
    /// Name of whoever made the change.
    pub actor: String,
    /// Origin of the change: `api`, `cli`, `ui`, `business` or `system`.
    pub source: String,
    /// Kind of change, e.g. `business.edit`.
    pub action: String,
    /// Reason given for the change.
    pub reason: Option<String>,
    /// All members that changed.
    pub diff: Vec<Difference>,
    /// True if a secret changed; the response doesn't say which.
    pub secrets_changed: bool,
}

/// A changed member of a business.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Difference {
    /// JSON pointer to the member.
    pub pointer: String,
    /// Previous value; null if the member didn't exist.
    pub from: Option<Value>,
    /// New value; null if the member was removed.
    pub to: Option<Value>,
}

/// Test item that belongs to no task.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TryItems {
    /// Data of the item, any JSON of up to 65536 bytes; omit it for an item of a range.
    #[schema(value_type = Option<serde_json::Value>)]
    pub data: Option<Box<RawValue>>,
    /// Index of the item; 0 by default.
    #[schema(minimum = 0, maximum = 9223372036854775806_u64)]
    pub index: Option<u64>,
    /// Call timeout, at most `60s`; by default that of the business's tasks.
    #[schema(max_length = 32)]
    pub timeout: Option<String>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// A business to register. `name` and one of `url`, `command` and `request` are required.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterBusiness {
    /// Name used in URLs; never changes.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub name: String,
    /// Display name for people.
    #[schema(min_length = 1, max_length = 190)]
    pub display_name: Option<String>,
    /// Node pool that runs its tasks; `default` if omitted.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub pool: Option<String>,
    /// URL of the handler.
    #[schema(pattern = "^https?://[^@#]+$", max_length = 2048)]
    pub url: Option<String>,
    /// Command started as its handler: a name under `[handler.command.commands]`, or a handler of the program that
    /// embeds the node.
    #[schema(max_length = 64)]
    pub command: Option<String>,
    /// Request sent for each item, for an API that knows nothing of Windrow.
    #[schema(value_type = Option<RequestSettings>)]
    pub request: Option<RequestSpec>,
    /// Values of the request's secrets, `{secret.NAME}`; stored encrypted and shown as `***`.
    #[serde(default)]
    pub request_secrets: BTreeMap<String, String>,
    /// Headers sent with each call.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Headers with secret values; stored encrypted and shown as `***`.
    #[serde(default)]
    pub secret_headers: BTreeMap<String, String>,
    /// JSON pointer (RFC 6901) to the result within a reply; empty selects the whole reply.
    #[serde(default)]
    #[schema(max_length = 256)]
    pub response_pointer: String,
    /// True if the contract check requires a handler that rejects bad signatures.
    #[serde(default)]
    pub require_signature: bool,
    /// Forward proxy, `http://host:port`. The proxy resolves the host of the business's URL.
    #[schema(pattern = "^http://[^@#]+$", max_length = 300)]
    pub proxy: Option<String>,
    /// Certificates (PEM) trusted instead of the system's.
    #[schema(max_length = 65536)]
    pub ca_pem: Option<String>,
    /// Certificate (PEM) presented to a server that demands one, followed by those of its authorities. Sent only to
    /// the host of `url` or `request`.
    #[schema(max_length = 65536)]
    pub client_cert_pem: Option<String>,
    /// Private key (PEM) of `client_cert_pem`; stored encrypted and shown as `***`.
    #[schema(max_length = 65536)]
    pub client_key_pem: Option<String>,
    /// Accept any TLS certificate. For test systems only.
    #[serde(default)]
    pub insecure_skip_verify: bool,
    /// Source of the limits that the service describes: `auto` reads the headers of its answers, `off` doesn't. By
    /// default `auto` for a `request` and `off` for a `url`.
    #[schema(value_type = Option<String>, pattern = "^(auto|off)$")]
    pub limits_from: Option<LimitsFrom>,
    /// Hooks called during the life of its tasks.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object")]
    #[schema(value_type = HooksSettings)]
    pub hooks: Hooks,
    /// Default settings of its tasks.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object")]
    #[schema(value_type = TuningSettings)]
    pub defaults: TuningPatch,
    /// Limits shared by all its tasks.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object")]
    #[schema(value_type = LimitsSettings)]
    pub limits: BusinessLimits,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
