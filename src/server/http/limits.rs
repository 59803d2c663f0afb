//! `/v1/limits`: named limits, shared by several businesses and tasks. Only administrators make changes; a business
//! sees the limits it uses.

use std::num::NonZeroU32;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;

use super::problem::HttpResult;
use crate::http::answer::Of;
use crate::http::answer::page::{PageQuery, Paging};
use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::http::guard::{Body, Call, Caller, DryRunQuery, Params, ReasonQuery, headers};
use crate::service::limits::{LimitChange, LimitPicture};
use windrow_core::limit::units::Use;
use windrow_core::limit::{Bounds, NANOS_PER_ITEM};
use windrow_engine::ports::access::named_limit_store::{LimitUsers, LimitedTask, NamedLimit};
use windrow_engine::ports::ownership::limit_store::PartView;

impl Of<&PartView> for api::LimitPart {
    fn of(part: &PartView) -> Self {
        // Round to millionths, so that low rates don't become zero.
        let per_second = |nanos: u64| (nanos as f64 / NANOS_PER_ITEM as f64 * 1e6).round() / 1e6;
        api::LimitPart {
            node: part.node.clone(),
            runs: part.runs,
            rate: part.held.rate.bound().map(per_second),
            concurrency: part.held.slots.bound(),
        }
    }
}

impl Of<&Use> for api::LimitUse {
    fn of(used: &Use) -> Self {
        api::LimitUse {
            limit: used.limit.clone(),
            spent: used.spent.decimal(),
            unsure: used.unsure.decimal(),
            held: used.held.decimal(),
            nearly_used: used.is_nearly_used,
            next: used.next.map(rfc3339),
        }
    }
}

impl Of<&NamedLimit> for api::Limit {
    fn of(limit: &NamedLimit) -> Self {
        api::Limit {
            name: limit.name.clone(),
            rate: limit.bounds.rate.map(|rate| rate.to_string()),
            concurrency: limit.bounds.concurrency,
            metering: Some(limit.metering.clone()).filter(|metering| !metering.is_empty()),
            revision: limit.revision,
            created_at: rfc3339(limit.created_at),
            updated_at: rfc3339(limit.updated_at),
        }
    }
}

impl Of<LimitPicture> for api::LimitInUse {
    fn of(picture: LimitPicture) -> Self {
        let LimitUsers {
            businesses,
            tasks,
            tasks_total,
        } = picture.users;
        let task = |task: LimitedTask| api::LimitedTask {
            id: task.id.to_string(),
            business: task.business,
            status: task.status.as_str().to_owned(),
        };
        api::LimitInUse {
            limit: api::Limit::of(&picture.limit),
            businesses,
            tasks: tasks.into_iter().map(task).collect(),
            tasks_total,
            parts: picture.parts.iter().map(api::LimitPart::of).collect(),
            uses: picture.uses.iter().map(api::LimitUse::of).collect(),
        }
    }
}

/// Create a limit.
///
/// All businesses and tasks that name it share it, across all nodes.
#[utoipa::path(
    post, path = "/v1/limits", operation_id = "create_limit", tag = "limits", params(DryRunQuery),
    request_body = api::CreateLimit, security(("bearer" = ["admin"])),
    responses(
        (status = 201, body = api::Limit, headers(("location" = String), ("etag" = String))),
        (status = 409, description = "name-taken"),
    )
)]
pub(crate) async fn create(call: Call, Body(body): Body<api::CreateLimit>) -> HttpResult {
    let bounds = Bounds {
        rate: body.rate,
        concurrency: body.concurrency.map(NonZeroU32::get),
    };
    let (metering, write) = (body.metering.unwrap_or_default(), call.write(body.reason));
    let limits = &call.service.limits;
    let made = limits.create(&body.name, (bounds, &metering), &write).await?;
    Ok(call.made(
        format!("/v1/limits/{}", made.name),
        Some(made.revision),
        api::Limit::of(&made),
    )?)
}

/// List limits by name. A business sees those it uses.
#[utoipa::path(
    get, path = "/v1/limits", operation_id = "list_limits", tag = "limits", params(PageQuery),
    security(("bearer" = ["viewer", "business"])), responses((status = 200, body = api::Page<api::Limit>))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, paging: Paging<String>) -> HttpResult {
    let (own, after) = (caller.business.as_deref(), paging.after.as_deref());
    let found = app.service.limits.list(own, after, paging.to_read()).await?;
    let page = paging.page(found, |limit| limit.name.clone());
    Ok(paging.answer(page.map(|limit| api::Limit::of(&limit))))
}

/// Get a limit: its bounds, its users, and the share of each node.
#[utoipa::path(
    get, path = "/v1/limits/{limit}", operation_id = "show_limit", tag = "limits",
    security(("bearer" = ["viewer", "business"])),
    responses((status = 200, body = api::LimitInUse, headers(("etag" = String))))
)]
pub(crate) async fn read(State(app): State<App>, caller: Caller, Path(name): Path<String>) -> HttpResult {
    let limits = &app.service.limits;
    let picture = limits.picture(&name, caller.business.as_deref()).await?;
    let tag = headers::tag(picture.limit.revision);
    Ok(([tag], Json(api::LimitInUse::of(picture))).into_response())
}

/// Change the bounds of a limit.
///
/// All nodes apply the change within seconds. With `If-Match`, fails if the limit was changed in the meantime.
#[utoipa::path(
    patch, path = "/v1/limits/{limit}", operation_id = "change_limit", tag = "limits", params(DryRunQuery),
    request_body = api::EditLimit, security(("bearer" = ["admin"])),
    responses((status = 200, body = api::Limit, headers(("etag" = String))), (status = 409))
)]
pub(crate) async fn edit(
    call: Call,
    Path(name): Path<String>,
    headers: HeaderMap,
    Body(body): Body<api::EditLimit>,
) -> HttpResult {
    let change = LimitChange {
        rate: body.rate,
        concurrency: body.concurrency.map(|number| number.map(NonZeroU32::get)),
        metering: body.metering,
    };
    let (expected, write) = (headers::expected(&headers), call.write(body.reason));
    let limits = &call.service.limits;
    let changed = limits.change(&name, change, expected, &write).await?;
    let tag = headers::tag(changed.revision);
    Ok(call.changed(api::Limit::of(&changed), |limit| ([tag], limit))?)
}

/// Delete an unused limit.
///
/// Fails while a business or an unfinished task uses it, and names them.
#[utoipa::path(
    delete, path = "/v1/limits/{limit}", operation_id = "delete_limit", tag = "limits", params(ReasonQuery, DryRunQuery),
    security(("bearer" = ["admin"])),
    responses((status = 204, description = "Deleted"), (status = 409, description = "conflict"))
)]
pub(crate) async fn delete(
    call: Call,
    Path(name): Path<String>,
    Params(query): Params<ReasonQuery>,
) -> HttpResult {
    let write = call.write(query.reason);
    call.service.limits.delete(&name, &write).await?;
    Ok(call.deleted()?)
}
