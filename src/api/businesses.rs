//! Businesses, the checks of their handlers and their revisions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::schema::{HooksSettings, LimitsSettings, RequestSettings};
use crate::settings::TuningSettings;
use windrow_core::business::BusinessLimits;
use windrow_core::business::Hooks;
use windrow_core::business::request::RequestSpec;
use windrow_core::settings::table::TuningPatch;

/// How a call went that was tried.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TryReply {
    /// The item.
    pub index: u64,
    /// The key that the handler was given for it.
    pub item_key: String,
    /// `succeeded`, `skipped`, `failed`, `retry`, `broken` (the contract is) or `not_called`.
    pub result: String,
    /// Why, unless it went well.
    pub code: Option<String>,
    /// The same in words.
    pub message: Option<String>,
    /// What the item came to, as the handler answered it; none where it said nothing.
    #[schema(value_type = Option<serde_json::Value>)]
    pub output: Option<Box<RawValue>>,
    /// How large the output was, where it was too large to be shown. Unit: bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// Lines that the handler wrote beside.
    pub logs: Vec<String>,
    /// How long the call took.
    pub latency_seconds: f64,
}

/// A business.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Business {
    /// Its name in URLs.
    pub name: String,
    /// A name for people.
    pub display_name: Option<String>,
    /// The nodes that run its tasks.
    pub pool: String,
    /// What is called.
    pub url: Option<String>,
    /// What is started.
    pub command: Option<String>,
    /// What is made for each item.
    #[schema(value_type = Option<RequestSettings>)]
    pub request: Option<RequestSpec>,
    /// Names of the request's secrets; each value is `***`.
    pub request_secrets: BTreeMap<String, String>,
    /// Headers to send.
    pub headers: BTreeMap<String, String>,
    /// Names of secret headers; each value is `***`.
    pub secret_headers: BTreeMap<String, String>,
    /// Where in a reply the result lies.
    pub response_pointer: String,
    /// Whether the contract check insists on verified signatures.
    pub require_signature: bool,
    /// A forward proxy.
    pub proxy: Option<String>,
    /// Certificates that are trusted instead of the system's.
    pub ca_pem: Option<String>,
    /// Trusts any certificate.
    pub insecure_skip_verify: bool,
    /// What it wants to hear of its tasks.
    #[schema(value_type = HooksSettings)]
    pub hooks: Hooks,
    /// What its tasks begin with.
    #[schema(value_type = TuningSettings)]
    pub defaults: TuningPatch,
    /// What all its tasks may have together.
    #[schema(value_type = LimitsSettings)]
    pub limits: BusinessLimits,
    /// Grows with each change.
    pub revision: u64,
    /// When it was registered.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was last changed.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Hidden, and no new tasks, since then.
    #[schema(format = DateTime)]
    pub archived_at: Option<String>,
    /// The secret that signs calls; only in the answer that made it, and never where no call is signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// How a handler keeps to the contract.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CheckReply {
    /// Whether no check failed.
    pub passed: bool,
    /// Each check.
    pub checks: Vec<Check>,
}

/// One check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// What was looked at.
    pub check: String,
    /// `ok`, `warn` or `fail`.
    pub result: String,
    /// What was seen.
    pub detail: String,
    /// What to try.
    #[serde(rename = "try")]
    pub advice: Option<String>,
}

/// One change of a business.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Revision {
    /// The revision that it made.
    pub revision: Option<u64>,
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
    /// By whom.
    pub actor: String,
    /// From where: `api`, `cli`, `ui`, `business` or `system`.
    pub source: String,
    /// What, e.g. `business.edit`.
    pub action: String,
    /// Why.
    pub reason: Option<String>,
    /// Each member that changed.
    pub diff: Vec<Difference>,
    /// Whether a secret changed; which one isn't said.
    pub secrets_changed: bool,
}

/// A member that changed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Difference {
    /// Which, as a JSON pointer.
    pub pointer: String,
    /// What it was; null where it wasn't there.
    pub from: Option<Value>,
    /// What it is; null where it is gone.
    pub to: Option<Value>,
}

/// An item that is in no task.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TryItems {
    /// What it carries, any JSON of at most 65536 bytes; nothing, as an item of a range.
    #[schema(value_type = Option<serde_json::Value>)]
    pub data: Option<Box<RawValue>>,
    /// Its number; 0 if none is said.
    #[schema(minimum = 0, maximum = 9223372036854775806_u64)]
    pub index: Option<u64>,
    /// How long the call may take, at most `60s`; as long as a call of its tasks if nothing is said.
    #[schema(max_length = 32)]
    pub timeout: Option<String>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// A business as it is registered. `name` and one of `url`, `command` and `request` are needed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterBusiness {
    /// Its name in URLs; never changes.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub name: String,
    /// A name for people.
    #[schema(min_length = 1, max_length = 190)]
    pub display_name: Option<String>,
    /// The nodes that run its tasks; `default` if none is named.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub pool: Option<String>,
    /// What is called.
    #[schema(pattern = "^https?://[^@#]+$", max_length = 2048)]
    pub url: Option<String>,
    /// What is started: a name under `[handler.command.commands]`, or a handler of the program that the node is part of.
    #[schema(max_length = 64)]
    pub command: Option<String>,
    /// What is made for each item, for an API that knows nothing of Windrow.
    #[schema(value_type = Option<RequestSettings>)]
    pub request: Option<RequestSpec>,
    /// Values of the request's secrets, `{secret.NAME}`; kept sealed and shown as `***`.
    #[serde(default)]
    pub request_secrets: BTreeMap<String, String>,
    /// Headers to send.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Headers whose values are kept sealed and shown as `***`.
    #[serde(default)]
    pub secret_headers: BTreeMap<String, String>,
    /// Where in a reply the result lies (RFC 6901); empty is the whole reply.
    #[serde(default)]
    #[schema(max_length = 256)]
    pub response_pointer: String,
    /// Whether the contract check insists on a handler that refuses bad signatures.
    #[serde(default)]
    pub require_signature: bool,
    /// A forward proxy, `http://host:port`. It resolves the name in the business's URL.
    #[schema(pattern = "^http://[^@#]+$", max_length = 300)]
    pub proxy: Option<String>,
    /// Certificates (PEM) that are trusted instead of the system's.
    #[schema(max_length = 65536)]
    pub ca_pem: Option<String>,
    /// Trusts any certificate. For a test system only.
    #[serde(default)]
    pub insecure_skip_verify: bool,
    /// What it wants to hear of its tasks.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object")]
    #[schema(value_type = HooksSettings)]
    pub hooks: Hooks,
    /// What its tasks begin with.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object")]
    #[schema(value_type = TuningSettings)]
    pub defaults: TuningPatch,
    /// What all its tasks may have together.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object")]
    #[schema(value_type = LimitsSettings)]
    pub limits: BusinessLimits,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
