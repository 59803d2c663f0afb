//! Businesses: their handlers and hooks, and the defaults and limits of their tasks.

pub mod access;
pub mod network;
pub mod request;
pub mod secrets;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::request::RequestHandlerSpec;
use self::secrets::origin;
use super::settings::Rate;
use crate::settings::json::object_option;
use crate::settings::table::TuningPatch;
use crate::settings::value::written_option;

/// Pool of businesses and nodes that name none.
pub const POOL_DEFAULT: &str = "default";
/// Maximum length of a slug, in bytes.
pub const SLUG_BYTES_MAX: usize = 40;
/// Default time for a business to get ready for a start, if its `prepare` hook sets none.
pub const PREPARE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30 * 60);
/// Default timeout of a call to any other hook.
pub const HOOK_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// True if the text is a slug: `[a-z0-9-]{1,40}`.
pub fn is_slug(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=SLUG_BYTES_MAX).contains(&text.len()) && text.chars().all(fits)
}

/// Configuration of a business, without its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusinessSpec {
    /// Display name, in any script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Pool whose nodes run its tasks.
    pub pool: String,
    /// Handler that processes its items.
    pub handler: HandlerSpec,
    /// Hooks called for events of its tasks.
    #[serde(default)]
    pub hooks: Hooks,
    /// Default tuning of its tasks.
    #[serde(default)]
    pub defaults: TuningPatch,
    /// Limits shared by all its tasks.
    #[serde(default)]
    pub limits: BusinessLimits,
}

impl BusinessSpec {
    /// True if any calls of this business are signed: calls to its handler URL, or its hooks. A templated request or
    /// a command is not signed, because its target verifies nothing.
    pub fn signs(&self) -> bool {
        let has_hooks = HookKind::ALL
            .into_iter()
            .any(|kind| self.hooks.get(kind).is_some());
        has_hooks || matches!(self.handler, HandlerSpec::Http(_))
    }
}

/// Handler that processes the items of a business.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandlerSpec {
    /// HTTP handler, called at a URL.
    Http(HttpHandlerSpec),
    /// Command named in `[handler.command.commands]`.
    Command(String),
    /// Request sent for each item to an API that knows nothing of Windrow.
    Request(Box<RequestHandlerSpec>),
}

impl HandlerSpec {
    /// Returns true if answers of the handler can say what a call cost: programs answer nothing that could be read.
    pub fn has_answers(&self) -> bool {
        match self {
            HandlerSpec::Http(_) | HandlerSpec::Request(_) => true,
            HandlerSpec::Command(_) => false,
        }
    }

    /// Returns the origin of the URL called, as computed by [`origin`]; `None` for a command.
    pub fn origin(&self) -> Option<String> {
        match self {
            HandlerSpec::Http(http) => origin(&http.url),
            HandlerSpec::Command(_) => None,
            HandlerSpec::Request(request) => request.request.origin(),
        }
    }
}

/// URL of an HTTP handler and the settings of its calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpHandlerSpec {
    /// URL with the scheme `http://` or `https://`.
    pub url: String,
    /// Headers sent with each call.
    pub headers: BTreeMap<String, String>,
    /// Names of headers whose values are kept sealed, together with the signing secrets.
    pub secret_headers: Vec<String>,
    /// JSON Pointer (RFC 6901) to the result within a response; empty for the whole response.
    pub response_pointer: String,
    /// True if the contract check requires the handler to reject bad signatures.
    pub require_signature: bool,
    /// Forward proxy, `http://host:port`; `None` connects directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Certificates (PEM text) trusted instead of the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_pem: Option<String>,
    /// Certificate (PEM text) presented to a server that demands one; its key is kept sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_cert_pem: Option<String>,
    /// Accepts any certificate. For test systems only.
    pub insecure_skip_verify: bool,
    /// Source of the limits that the handler describes; `None` is [`LimitsFrom::Off`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits_from: Option<LimitsFrom>,
}

/// Source of the limits that a service describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitsFrom {
    /// Headers of its answers, in each form that is known.
    Auto,
    /// Nothing but `Retry-After` of a failure.
    Off,
}

impl LimitsFrom {
    /// Returns the word in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            LimitsFrom::Auto => "auto",
            LimitsFrom::Off => "off",
        }
    }
}

/// Hooks of a business; a hook that is `None` is not called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hooks {
    /// Called before a task is created or changed; may reject it with a message and may set the total.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_option")]
    pub validate: Option<Hook>,
    /// Called before a task runs, which waits until the business is ready.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_option")]
    pub prepare: Option<Hook>,
    /// Called after a task stopped.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_option")]
    pub stopped: Option<Hook>,
    /// Called after a task finished.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_option")]
    pub finished: Option<Hook>,
    /// Called to publish the results of a task; the response is the summary of the generation.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_option")]
    pub reduce: Option<Hook>,
}

/// Configuration of one hook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hook {
    /// URL to call; `None` uses the handler's own URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// For `prepare`, time for the business to get ready; for the others, timeout of one call. (For `reduce`, `None`
    /// uses the task's own `reduce_timeout`.)
    #[serde(skip_serializing_if = "Option::is_none", with = "written_option")]
    pub timeout: Option<Duration>,
}

/// Events for which a business is called, apart from its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HookKind {
    /// `task.validate`, configured in [`Hooks::validate`].
    Validate,
    /// `task.prepare`, configured in [`Hooks::prepare`].
    Prepare,
    /// `task.stopped`, configured in [`Hooks::stopped`].
    Stopped,
    /// `task.finished`, configured in [`Hooks::finished`].
    Finished,
    /// `task.reduce`, configured in [`Hooks::reduce`].
    Reduce,
}

impl HookKind {
    /// All kinds, in declaration order.
    pub const ALL: [HookKind; 5] = [
        HookKind::Validate,
        HookKind::Prepare,
        HookKind::Stopped,
        HookKind::Finished,
        HookKind::Reduce,
    ];

    /// Returns the `type` of the call, which is also the `kind` of its row in the outbox.
    pub fn as_str(self) -> &'static str {
        match self {
            HookKind::Validate => "task.validate",
            HookKind::Prepare => "task.prepare",
            HookKind::Stopped => "task.stopped",
            HookKind::Finished => "task.finished",
            HookKind::Reduce => "task.reduce",
        }
    }

    /// Returns the kind with this `type`, or `None` if it is unknown.
    pub fn parse(text: &str) -> Option<HookKind> {
        HookKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl Hooks {
    /// Returns the hook of this kind, or `None` if the business has none.
    pub fn get(&self, kind: HookKind) -> Option<&Hook> {
        match kind {
            HookKind::Validate => self.validate.as_ref(),
            HookKind::Prepare => self.prepare.as_ref(),
            HookKind::Stopped => self.stopped.as_ref(),
            HookKind::Finished => self.finished.as_ref(),
            HookKind::Reduce => self.reduce.as_ref(),
        }
    }
}

/// Limits shared by all tasks of a business; `None` is unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BusinessLimits {
    /// Maximum sum of the rates of its running tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Maximum items in flight over all its tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<NonZeroU32>,
    /// Names of limits that its tasks share with other businesses; each must exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_short_lower_case_and_plain() {
        assert!(is_slug("push-campaign") && is_slug("0"));
        for wrong in [
            "",
            "Push",
            "a_b",
            "a.b",
            "ü",
            "a b",
            &"a".repeat(SLUG_BYTES_MAX + 1),
        ] {
            assert!(!is_slug(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn a_business_reads_back_as_it_was_written() {
        let text = r#"{"pool":"default","handler":{"command":"push"}}"#;
        let spec: BusinessSpec = serde_json::from_str(text).expect("the text is sound");
        assert_eq!(spec.handler, HandlerSpec::Command("push".to_owned()));
        let again = serde_json::to_string(&spec).expect("a business can be written");
        assert_eq!(
            serde_json::from_str::<BusinessSpec>(&again).expect("it reads back"),
            spec
        );
        assert!(
            HookKind::ALL
                .iter()
                .all(|kind| HookKind::parse(kind.as_str()) == Some(*kind))
        );
    }
}
