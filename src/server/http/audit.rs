//! `GET /v1/audit`: who changed what, and why.

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::App;
use super::problem::HttpResult;
use super::tasks::AuditJson;
use crate::http::answer::page::{Page, PageQuery, Paging};
use crate::http::guard::Params;
use crate::service::ServiceError;
use windrow_core::ids::NotATaskId;
use windrow_engine::ports::tasks::list::AuditFilter;

/// Which entries.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// About this task, also one that was deleted.
    #[param(pattern = "^t[1-9][0-9]{0,17}$")]
    task: Option<String>,
    /// About this business itself.
    #[param(pattern = "^[a-z0-9-]{1,40}$")]
    business: Option<String>,
    /// By this actor.
    #[param(max_length = 190)]
    actor: Option<String>,
    /// This action, such as `task.start`.
    #[param(max_length = 32)]
    action: Option<String>,
}

/// List changes, newest first.
#[utoipa::path(
    get, path = "/v1/audit", tag = "access", operation_id = "list_audit", params(AuditQuery, PageQuery),
    security(("bearer" = ["viewer"])), responses((status = 200, body = Page<AuditJson>))
)]
pub(crate) async fn audit(
    State(app): State<App>,
    paging: Paging<i64>,
    Params(query): Params<AuditQuery>,
) -> HttpResult {
    let task = query.task.as_deref().map(str::parse).transpose();
    let filter = AuditFilter {
        task: task.map_err(|error: NotATaskId| ServiceError::invalid("task", error.to_string()))?,
        business: query.business,
        actor: query.actor,
        action: query.action,
    };
    let lists = &app.service.tasks.lists;
    let found = lists.audits(&filter, paging.after, paging.to_read()).await?;
    Ok(paging.answer(paging.page(found, |row| row.id).map(AuditJson::from)))
}
