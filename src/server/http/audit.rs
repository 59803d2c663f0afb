//! `GET /v1/audit`: changes with actor and reason.

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::problem::HttpResult;
use super::tasks::{AuditPlace, audit_page};
use crate::http::answer::page::{PageQuery, Paging};
use crate::http::front::App;
use crate::http::guard::{Params, time_option};
use crate::service::ServiceError;
use windrow_core::ids::NotATaskId;
use windrow_engine::ports::access::audit_object::NotAnObject;
use windrow_engine::ports::tasks::list::AuditFilter;

/// Filters of the audit list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Only entries about this task, even if it is deleted.
    #[param(pattern = "^t[1-9][0-9]{0,17}$")]
    task: Option<String>,
    /// Only entries about the business itself.
    #[param(pattern = "^[a-z0-9-]{1,40}$")]
    business: Option<String>,
    /// Only entries by this actor.
    #[param(max_length = 190)]
    actor: Option<String>,
    /// Only this action, such as `task.start`.
    #[param(max_length = 32)]
    action: Option<String>,
    /// Only entries about this object, even if it is deleted. Given as kind and name, such as `task:t12`,
    /// `schedule:shop/nightly`, `limit:vendor`, `token:ops`, `session:7`, `business:shop`, `dataset:shop.users`,
    /// `node:n1`.
    #[param(max_length = 220)]
    object: Option<String>,
    /// Only entries at or after this time.
    #[param(format = "date-time")]
    since: Option<String>,
    /// Only entries before this time.
    #[param(format = "date-time")]
    until: Option<String>,
}

impl AuditQuery {
    fn filter(self) -> Result<AuditFilter, ServiceError> {
        let task = self.task.as_deref().map(str::parse).transpose();
        let object = self.object.as_deref().map(str::parse).transpose();
        Ok(AuditFilter {
            task: task.map_err(|error: NotATaskId| ServiceError::invalid("task", error.to_string()))?,
            object: object
                .map_err(|error: NotAnObject| ServiceError::invalid("object", error.to_string()))?,
            business: self.business,
            actor: self.actor,
            action: self.action,
            since: time_option("since", self.since.as_ref())?,
            until: time_option("until", self.until.as_ref())?,
        })
    }
}

/// List audit entries, newest first.
#[utoipa::path(
    get, path = "/v1/audit", tag = "access", operation_id = "list_audit", params(AuditQuery, PageQuery),
    security(("bearer" = ["viewer"])), responses((status = 200, body = api::Page<api::AuditEntry>))
)]
pub(crate) async fn audit(
    State(app): State<App>,
    paging: Paging<AuditPlace>,
    Params(query): Params<AuditQuery>,
) -> HttpResult {
    audit_page(&app, &query.filter()?, &paging).await
}
