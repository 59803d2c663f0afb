//! `GET /v1/audit`: who changed what, and why.

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::problem::Problem;
use super::tasks::AuditJson;
use crate::http::answer::page;
use crate::http::guard::body::Params;
use crate::service::ServiceError;
use windrow_core::ids::TaskId;
use windrow_engine::ports::tasks::list::AuditFilter;

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(audit))
}

/// Which entries.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AuditQuery {
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
    /// Entries of the page.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    #[param(max_length = 200)]
    cursor: Option<String>,
}

/// List changes, newest first.
#[utoipa::path(
    get, path = "/v1/audit", tag = "access", operation_id = "list_audit", params(AuditQuery),
    security(("bearer" = ["viewer"])), responses((status = 200, body = page::Page<AuditJson>))
)]
async fn audit(
    State(app): State<App>,
    uri: Uri,
    Params(query): Params<AuditQuery>,
) -> Result<Response, Problem> {
    let limit = page::limit(query.limit)?;
    let after: Option<i64> = page::read(query.cursor.as_deref())?;
    let task = query.task.as_deref().map(|text| {
        let id: Result<TaskId, _> = text.parse();
        id.map_err(|error| ServiceError::invalid("task", error.to_string()))
    });
    let filter = AuditFilter {
        task: task.transpose()?,
        business: query.business,
        actor: query.actor,
        action: query.action,
    };
    let found = app.service.list_audit(&filter, after, limit + 1).await?;
    let page = page::page(found, limit, |row| row.id);
    let items: Vec<AuditJson> = page.items.into_iter().map(AuditJson::from).collect();
    Ok(page::answer(
        &uri,
        page::Page {
            items,
            next_cursor: page.next_cursor,
        },
    ))
}
