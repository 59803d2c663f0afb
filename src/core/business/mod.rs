//! What a business is: who does the work of its tasks, which hooks it wants, what its tasks begin with and may have.

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

/// The pool of a business that names none, and of a node that serves no other.
pub const POOL_DEFAULT: &str = "default";
/// The longest slug.
pub const SLUG_BYTES_MAX: usize = 40;
/// How long the business may take to be ready for a start when its `prepare` hook says nothing else.
pub const PREPARE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30 * 60);
/// How long one call of any other hook may take.
pub const HOOK_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// Whether a text is a slug: `[a-z0-9-]{1,40}`.
pub fn is_slug(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=SLUG_BYTES_MAX).contains(&text.len()) && text.chars().all(fits)
}

/// What people say of a business, without its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusinessSpec {
    /// A name for people, in any script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The nodes that run its tasks.
    pub pool: String,
    /// Who does the work.
    pub handler: HandlerSpec,
    /// What it wants to hear of its tasks.
    #[serde(default)]
    pub hooks: Hooks,
    /// What its tasks begin with.
    #[serde(default)]
    pub defaults: TuningPatch,
    /// What all its tasks may have together.
    #[serde(default)]
    pub limits: BusinessLimits,
}

impl BusinessSpec {
    /// Whether any of its calls is signed: those of its URL, and its hooks. An API that gets requests of its own form
    /// verifies nothing, nor does a command.
    pub fn signs(&self) -> bool {
        let has_hooks = HookKind::ALL
            .into_iter()
            .any(|kind| self.hooks.get(kind).is_some());
        has_hooks || matches!(self.handler, HandlerSpec::Http(_))
    }
}

/// Who does the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandlerSpec {
    /// A URL that is called.
    Http(HttpHandlerSpec),
    /// A command of `[handler.command.commands]`, by its name there.
    Command(String),
    /// A request that is made for each item, to an API that knows nothing of Windrow.
    Request(Box<RequestHandlerSpec>),
}

impl HandlerSpec {
    /// The origin that is called, as [`origin`] has it; none for a command.
    pub fn origin(&self) -> Option<String> {
        match self {
            HandlerSpec::Http(http) => origin(&http.url),
            HandlerSpec::Command(_) => None,
            HandlerSpec::Request(request) => {
                let call = request.request.call.trim();
                origin(call.split_once(' ').map_or(call, |(_, url)| url.trim_start()))
            }
        }
    }
}

/// A URL and how it is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpHandlerSpec {
    /// `http://` or `https://`.
    pub url: String,
    /// Headers that are sent with each call.
    pub headers: BTreeMap<String, String>,
    /// The names of headers whose values are kept sealed, beside the signing secrets.
    pub secret_headers: Vec<String>,
    /// Where in a reply the result lies (RFC 6901); empty is the whole reply.
    pub response_pointer: String,
    /// Whether the contract check insists on a handler that refuses bad signatures.
    pub require_signature: bool,
    /// A forward proxy, `http://host:port`; none calls directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Certificates (PEM text) that are trusted instead of the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_pem: Option<String>,
    /// Trusts any certificate. For a test system only.
    pub insecure_skip_verify: bool,
}

/// What a business wants to hear; none is not called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hooks {
    /// Before a task is made or changed; may refuse with a message and may set the total.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_option")]
    pub validate: Option<Hook>,
    /// Before a task runs: it waits until the business is ready.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_option")]
    pub prepare: Option<Hook>,
    /// After a task stopped.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_option")]
    pub stopped: Option<Hook>,
    /// After a task finished.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_option")]
    pub finished: Option<Hook>,
    /// When the results of a task are to be published: its answer is the summary of the generation.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_option")]
    pub reduce: Option<Hook>,
}

/// One hook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hook {
    /// Where it is called; none is the handler's own URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `prepare`: until when the business must be ready; else how long one call may take. (`reduce`: none is the task's own
    /// `reduce_timeout`.)
    #[serde(skip_serializing_if = "Option::is_none", with = "written_option")]
    pub timeout: Option<Duration>,
}

/// The moments at which a business is called beside its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HookKind {
    /// See [`Hooks::validate`].
    Validate,
    /// See [`Hooks::prepare`].
    Prepare,
    /// See [`Hooks::stopped`].
    Stopped,
    /// See [`Hooks::finished`].
    Finished,
    /// See [`Hooks::reduce`].
    Reduce,
}

impl HookKind {
    /// All of them.
    pub const ALL: [HookKind; 5] = [
        HookKind::Validate,
        HookKind::Prepare,
        HookKind::Stopped,
        HookKind::Finished,
        HookKind::Reduce,
    ];

    /// The `type` of the call, and the `kind` of its row in the outbox.
    pub fn as_str(self) -> &'static str {
        match self {
            HookKind::Validate => "task.validate",
            HookKind::Prepare => "task.prepare",
            HookKind::Stopped => "task.stopped",
            HookKind::Finished => "task.finished",
            HookKind::Reduce => "task.reduce",
        }
    }

    /// The kind of a `type`; none when there is no such hook.
    pub fn parse(text: &str) -> Option<HookKind> {
        HookKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl Hooks {
    /// The hook of this kind, if the business wants it.
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

/// What all tasks of a business may have together; none is unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BusinessLimits {
    /// The sum of the rates of its running tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Items in flight over all its tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<NonZeroU32>,
    /// The names of limits that its tasks share with other businesses; each must exist.
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
