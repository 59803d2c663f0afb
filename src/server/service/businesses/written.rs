//! API form of a business: one flat object. Contains no values of secret headers once stored.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::service::ServiceError;
use windrow_core::business::request::{RequestHandlerSpec, RequestSpec};
use windrow_core::business::{
    BusinessLimits, BusinessSpec, HandlerSpec, Hooks, HttpHandlerSpec, LimitsFrom, POOL_DEFAULT,
};
use windrow_core::settings::table::TuningPatch;
use windrow_engine::ports::handling::hook::CheckLine;

/// Placeholder for a secret in responses; when sent back, it keeps the stored secret.
pub const MASK: &str = "***";

/// Business in its API form.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusinessBody {
    /// Slug of the business.
    pub name: String,
    /// Display name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Pool of nodes that run its tasks.
    #[serde(default = "pool")]
    pub pool: String,
    /// URL to call; exactly one of `url`, `command` and `request` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Command to start, by its name in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Template of the request to send for each item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestSpec>,
    /// Names and values of the request's secrets; stored values are shown as [`MASK`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub request_secrets: BTreeMap<String, String>,
    /// Headers sent with each call, see [`HttpHandlerSpec::headers`].
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Names and values of secret headers; stored values are shown as [`MASK`].
    #[serde(default)]
    pub secret_headers: BTreeMap<String, String>,
    /// JSON pointer to the result in a response, see [`HttpHandlerSpec::response_pointer`].
    #[serde(default)]
    pub response_pointer: String,
    /// Required check of signatures by the handler, see [`HttpHandlerSpec::require_signature`].
    #[serde(default)]
    pub require_signature: bool,
    /// Forward proxy for calls, see [`HttpHandlerSpec::proxy`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Trusted certificates, see [`HttpHandlerSpec::ca_pem`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_pem: Option<String>,
    /// Client certificate, see [`HttpHandlerSpec::client_cert_pem`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cert_pem: Option<String>,
    /// Private key of the client certificate; a stored one is shown as [`MASK`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_key_pem: Option<String>,
    /// Disables certificate checks, see [`HttpHandlerSpec::insecure_skip_verify`].
    #[serde(default)]
    pub insecure_skip_verify: bool,
    /// Source of the limits that the service describes, see [`HttpHandlerSpec::limits_from`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits_from: Option<LimitsFrom>,
    /// Hooks to call, see [`Hooks`].
    #[serde(default, deserialize_with = "windrow_core::settings::json::object")]
    pub hooks: Hooks,
    /// Default settings of its tasks.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object")]
    pub defaults: TuningPatch,
    /// Limits shared by all its tasks.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object")]
    pub limits: BusinessLimits,
}

fn pool() -> String {
    POOL_DEFAULT.to_owned()
}

impl fmt::Debug for BusinessBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusinessBody")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl BusinessBody {
    /// Converts a stored business to its API form.
    pub fn of(slug: &str, spec: &BusinessSpec) -> BusinessBody {
        let (mut command, mut request, mut request_secrets) = (None, None, Vec::new());
        let http = match &spec.handler {
            HandlerSpec::Http(http) => http.clone(),
            HandlerSpec::Command(name) => {
                command = Some(name.clone());
                HttpHandlerSpec::default()
            }
            HandlerSpec::Request(own) => {
                (request, request_secrets) = (Some(own.request.clone()), own.secrets.clone());
                HttpHandlerSpec {
                    proxy: own.proxy.clone(),
                    ca_pem: own.ca_pem.clone(),
                    client_cert_pem: own.client_cert_pem.clone(),
                    insecure_skip_verify: own.insecure_skip_verify,
                    limits_from: own.limits_from,
                    ..HttpHandlerSpec::default()
                }
            }
        };
        let masked = |name: String| (name, MASK.to_owned());
        BusinessBody {
            name: slug.to_owned(),
            display_name: spec.display_name.clone(),
            pool: spec.pool.clone(),
            url: (command.is_none() && request.is_none()).then_some(http.url),
            command,
            request,
            request_secrets: request_secrets.into_iter().map(masked).collect(),
            headers: http.headers,
            secret_headers: http.secret_headers.into_iter().map(masked).collect(),
            response_pointer: http.response_pointer,
            require_signature: http.require_signature,
            proxy: http.proxy,
            ca_pem: http.ca_pem,
            client_key_pem: http.client_cert_pem.as_ref().map(|_| MASK.to_owned()),
            client_cert_pem: http.client_cert_pem,
            insecure_skip_verify: http.insecure_skip_verify,
            limits_from: http.limits_from,
            hooks: spec.hooks.clone(),
            defaults: spec.defaults.clone(),
            limits: spec.limits.clone(),
        }
    }

    /// Returns the specification, without the values of secret headers. Not validated; that is the job of `validate`.
    pub fn spec(&self) -> BusinessSpec {
        let handler = match (&self.command, &self.request, &self.url) {
            (Some(command), None, None) => HandlerSpec::Command(command.clone()),
            (None, Some(request), None) => HandlerSpec::Request(Box::new(self.request(request))),
            _ => HandlerSpec::Http(self.http()),
        };
        BusinessSpec {
            display_name: self.display_name.clone(),
            pool: self.pool.clone(),
            handler,
            hooks: self.hooks.clone(),
            defaults: self.defaults.clone(),
            limits: self.limits.clone(),
        }
    }

    fn request(&self, request: &RequestSpec) -> RequestHandlerSpec {
        RequestHandlerSpec {
            request: request.clone(),
            secrets: self.request_secrets.keys().cloned().collect(),
            proxy: self.proxy.clone(),
            ca_pem: self.ca_pem.clone(),
            client_cert_pem: self.client_cert_pem.clone(),
            insecure_skip_verify: self.insecure_skip_verify,
            limits_from: self.limits_from,
        }
    }

    fn http(&self) -> HttpHandlerSpec {
        HttpHandlerSpec {
            url: self.url.clone().unwrap_or_default(),
            headers: self.headers.clone(),
            secret_headers: self.secret_headers.keys().cloned().collect(),
            response_pointer: self.response_pointer.clone(),
            require_signature: self.require_signature,
            proxy: self.proxy.clone(),
            ca_pem: self.ca_pem.clone(),
            client_cert_pem: self.client_cert_pem.clone(),
            insecure_skip_verify: self.insecure_skip_verify,
            limits_from: self.limits_from,
        }
    }

    /// Converts the business to JSON.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("strings, numbers and booleans are always JSON")
    }

    /// Parses a business from JSON.
    ///
    /// # Errors
    /// `Invalid`, with a pointer to the error.
    pub fn from_json(value: Value) -> Result<BusinessBody, ServiceError> {
        serde_path_to_error::deserialize(value).map_err(|error| {
            let pointer = pointer(error.path());
            ServiceError::invalid(pointer, error.into_inner().to_string())
        })
    }
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let escaped = |name: &str| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
    let part = |segment: &Segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => escaped(key),
        Segment::Enum { variant } => escaped(variant),
        Segment::Unknown => String::new(),
    };
    path.iter().map(part).collect()
}

/// Converts a check report to its API form.
pub fn report_body(report: &[CheckLine]) -> Vec<api::Check> {
    let body = |line: &CheckLine| api::Check {
        check: line.check.to_owned(),
        result: line.result.as_str().to_owned(),
        detail: line.detail.clone(),
        advice: line.advice.clone(),
    };
    report.iter().map(body).collect()
}
