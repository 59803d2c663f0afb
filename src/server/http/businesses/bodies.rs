//! What is sent and answered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::http::answer::time::rfc3339;
use crate::http::document::schema::{HooksSettings, LimitsSettings, RequestSettings};
use crate::http::document::settings::TuningSettings;
use crate::http::guard::reason;
use crate::service::businesses::{BusinessBody, Revision};
use windrow_core::business::request::RequestSpec;
use windrow_core::business::{BusinessLimits, Hooks, POOL_DEFAULT};
use windrow_core::settings::table::TuningPatch;
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::handling::hook::{CheckLine, CheckResult};

/// A business as it is registered. `name` and one of `url`, `command` and `request` are needed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RegisterBody {
    /// Its name in URLs; never changes.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    name: String,
    /// A name for people.
    #[schema(min_length = 1, max_length = 190)]
    display_name: Option<String>,
    /// The nodes that run its tasks; `default` if none is named.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pool: Option<String>,
    /// What is called.
    #[schema(pattern = "^https?://[^@#]+$", max_length = 2048)]
    url: Option<String>,
    /// What is started: a name under `[handler.command.commands]`, or a handler of the program that the node is part of.
    #[schema(max_length = 64)]
    command: Option<String>,
    /// What is made for each item, for an API that knows nothing of Windrow.
    #[schema(value_type = Option<RequestSettings>)]
    request: Option<RequestSpec>,
    /// Values of the request's secrets, `{secret.NAME}`; kept sealed and shown as `***`.
    #[serde(default)]
    request_secrets: BTreeMap<String, String>,
    /// Headers to send.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Headers whose values are kept sealed and shown as `***`.
    #[serde(default)]
    secret_headers: BTreeMap<String, String>,
    /// Where in a reply the result lies (RFC 6901); empty is the whole reply.
    #[serde(default)]
    #[schema(max_length = 256)]
    response_pointer: String,
    /// Whether the contract check insists on a handler that refuses bad signatures.
    #[serde(default)]
    require_signature: bool,
    /// A forward proxy, `http://host:port`. It resolves the name in the business's URL.
    #[schema(pattern = "^http://[^@#]+$", max_length = 300)]
    proxy: Option<String>,
    /// Certificates (PEM) that are trusted instead of the system's.
    #[schema(max_length = 65536)]
    ca_pem: Option<String>,
    /// Trusts any certificate. For a test system only.
    #[serde(default)]
    insecure_skip_verify: bool,
    /// What it wants to hear of its tasks.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object")]
    #[schema(value_type = HooksSettings)]
    hooks: Hooks,
    /// What its tasks begin with.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object")]
    #[schema(value_type = TuningSettings)]
    defaults: TuningPatch,
    /// What all its tasks may have together.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object")]
    #[schema(value_type = LimitsSettings)]
    limits: BusinessLimits,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

impl RegisterBody {
    /// The business, and why.
    pub(super) fn parts(self) -> (BusinessBody, Option<String>) {
        let body = BusinessBody {
            name: self.name,
            display_name: self.display_name,
            pool: self.pool.unwrap_or_else(|| POOL_DEFAULT.to_owned()),
            url: self.url,
            command: self.command,
            request: self.request,
            request_secrets: self.request_secrets,
            headers: self.headers,
            secret_headers: self.secret_headers,
            response_pointer: self.response_pointer,
            require_signature: self.require_signature,
            proxy: self.proxy,
            ca_pem: self.ca_pem,
            insecure_skip_verify: self.insecure_skip_verify,
            hooks: self.hooks,
            defaults: self.defaults,
            limits: self.limits,
        };
        (body, self.reason)
    }
}

/// Whether the handler is called before its business is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckMode {
    /// It is, and must keep to the contract.
    Require,
    /// It isn't.
    Skip,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RegisterQuery {
    /// `skip` registers a business whose handler isn't there yet.
    #[param(inline)]
    pub(super) check: Option<CheckMode>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// The archived ones instead of the others.
    pub(super) archived: Option<bool>,
}

/// A business.
#[derive(Serialize, ToSchema)]
pub(crate) struct BusinessJson {
    /// Its name in URLs.
    name: String,
    /// A name for people.
    display_name: Option<String>,
    /// The nodes that run its tasks.
    pool: String,
    /// What is called.
    url: Option<String>,
    /// What is started.
    command: Option<String>,
    /// What is made for each item.
    #[schema(value_type = Option<RequestSettings>)]
    request: Option<RequestSpec>,
    /// Names of the request's secrets; each value is `***`.
    request_secrets: BTreeMap<String, String>,
    /// Headers to send.
    headers: BTreeMap<String, String>,
    /// Names of secret headers; each value is `***`.
    secret_headers: BTreeMap<String, String>,
    /// Where in a reply the result lies.
    response_pointer: String,
    /// Whether the contract check insists on verified signatures.
    require_signature: bool,
    /// A forward proxy.
    proxy: Option<String>,
    /// Certificates that are trusted instead of the system's.
    ca_pem: Option<String>,
    /// Trusts any certificate.
    insecure_skip_verify: bool,
    /// What it wants to hear of its tasks.
    #[schema(value_type = HooksSettings)]
    hooks: Hooks,
    /// What its tasks begin with.
    #[schema(value_type = TuningSettings)]
    defaults: TuningPatch,
    /// What all its tasks may have together.
    #[schema(value_type = LimitsSettings)]
    limits: BusinessLimits,
    /// Grows with each change.
    revision: u64,
    /// When it was registered.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was last changed.
    #[schema(format = DateTime)]
    updated_at: String,
    /// Hidden, and no new tasks, since then.
    #[schema(format = DateTime)]
    archived_at: Option<String>,
    /// The secret that signs calls; only in the answer that made it, and never where no call is signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl BusinessJson {
    pub(super) fn new(business: &Business, secret: Option<String>) -> BusinessJson {
        let body = BusinessBody::of(&business.slug, &business.spec);
        BusinessJson {
            name: body.name,
            display_name: body.display_name,
            pool: body.pool,
            url: body.url,
            command: body.command,
            request: body.request,
            request_secrets: body.request_secrets,
            headers: body.headers,
            secret_headers: body.secret_headers,
            response_pointer: body.response_pointer,
            require_signature: body.require_signature,
            proxy: body.proxy,
            ca_pem: body.ca_pem,
            insecure_skip_verify: body.insecure_skip_verify,
            hooks: body.hooks,
            defaults: body.defaults,
            limits: body.limits,
            revision: business.revision,
            created_at: rfc3339(business.created_at),
            updated_at: rfc3339(business.updated_at),
            archived_at: business.archived_at.map(rfc3339),
            secret,
        }
    }
}

/// How a handler keeps to the contract.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckReply {
    /// Whether no check failed.
    passed: bool,
    /// Each check.
    checks: Vec<CheckJson>,
}

/// One check.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckJson {
    /// What was looked at.
    check: &'static str,
    /// `ok`, `warn` or `fail`.
    result: &'static str,
    /// What was seen.
    detail: String,
    /// What to try.
    #[serde(rename = "try")]
    advice: Option<String>,
}

impl CheckReply {
    pub(super) fn new(report: Vec<CheckLine>) -> CheckReply {
        let passed = report.iter().all(|line| line.result != CheckResult::Fail);
        let json = |line: CheckLine| CheckJson {
            check: line.check,
            result: line.result.as_str(),
            detail: line.detail,
            advice: line.advice,
        };
        CheckReply {
            passed,
            checks: report.into_iter().map(json).collect(),
        }
    }
}

/// One change of a business.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevisionJson {
    /// The revision that it made.
    revision: Option<u64>,
    /// When.
    #[schema(format = DateTime)]
    at: String,
    /// By whom.
    actor: String,
    /// From where: `api`, `cli`, `ui`, `business` or `system`.
    source: String,
    /// What, e.g. `business.edit`.
    action: String,
    /// Why.
    reason: Option<String>,
    /// Each member that changed.
    diff: Vec<DifferenceJson>,
    /// Whether a secret changed; which one isn't said.
    secrets_changed: bool,
}

/// A member that changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DifferenceJson {
    /// Which, as a JSON pointer.
    pointer: String,
    /// What it was; null where it wasn't there.
    from: Option<Value>,
    /// What it is; null where it is gone.
    to: Option<Value>,
}

impl From<Revision> for RevisionJson {
    fn from(revision: Revision) -> RevisionJson {
        let json = |one: crate::service::businesses::Difference| DifferenceJson {
            pointer: one.pointer,
            from: one.from,
            to: one.to,
        };
        RevisionJson {
            revision: revision.revision,
            at: rfc3339(revision.entry.at),
            actor: revision.entry.actor,
            source: revision.entry.source,
            action: revision.entry.action,
            reason: revision.entry.reason,
            diff: revision.diff.into_iter().map(json).collect(),
            secrets_changed: revision.secrets_changed,
        }
    }
}
