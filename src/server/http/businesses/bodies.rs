//! Request and response bodies of businesses.

use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::http::answer::Of;
use crate::http::answer::time::rfc3339;
use crate::service::businesses::{BusinessBody, Revision, report_body};
use windrow_core::business::POOL_DEFAULT;
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::handling::hook::{CheckLine, CheckResult};

/// Splits a registration into the business and the reason for the change.
pub(crate) fn parts(body: api::RegisterBusiness) -> (BusinessBody, Option<String>) {
    let reason = body.reason;
    let body = BusinessBody {
        name: body.name,
        display_name: body.display_name,
        pool: body.pool.unwrap_or_else(|| POOL_DEFAULT.to_owned()),
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
        client_cert_pem: body.client_cert_pem,
        client_key_pem: body.client_key_pem,
        insecure_skip_verify: body.insecure_skip_verify,
        limits_from: body.limits_from,
        hooks: body.hooks,
        defaults: body.defaults,
        limits: body.limits,
    };
    (body, reason)
}

/// Handling of the contract check before a business is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckMode {
    /// Call the handler; it must follow the contract.
    Require,
    /// Register without calling the handler.
    Skip,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RegisterQuery {
    /// Use `skip` to register a business whose handler isn't running yet.
    #[param(inline)]
    pub(super) check: Option<CheckMode>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// List only archived businesses instead of only active ones.
    pub(super) archived: Option<bool>,
}

pub(crate) fn show_business(business: &Business, secret: Option<String>) -> api::Business {
    let body = BusinessBody::of(&business.slug, &business.spec);
    api::Business {
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
        client_cert_pem: body.client_cert_pem,
        client_key_pem: body.client_key_pem,
        insecure_skip_verify: body.insecure_skip_verify,
        limits_from: body.limits_from,
        hooks: body.hooks,
        defaults: body.defaults,
        limits: body.limits,
        revision: business.revision,
        created_at: rfc3339(business.created_at),
        updated_at: rfc3339(business.updated_at),
        archived_at: business.archived_at.map(rfc3339),
        workers: None,
        secret,
    }
}

impl Of<Vec<CheckLine>> for api::CheckReply {
    fn of(report: Vec<CheckLine>) -> Self {
        api::CheckReply {
            passed: report.iter().all(|line| line.result != CheckResult::Fail),
            checks: report_body(&report),
        }
    }
}

impl Of<Revision> for api::Revision {
    fn of(revision: Revision) -> Self {
        let json = |one: crate::service::businesses::Difference| api::Difference {
            pointer: one.pointer,
            from: one.from,
            to: one.to,
        };
        api::Revision {
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
