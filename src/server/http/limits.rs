//! `/v1/limits`: limits with a name, which several businesses and tasks share. Changes are for administrators; a business
//! sees those that it uses.

use std::num::NonZeroU32;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::App;
use super::problem::HttpResult;
use crate::http::answer::page::{Page, PageQuery, Paging};
use crate::http::answer::time::rfc3339;
use crate::http::guard::{Body, Call, Caller, DryRunQuery, Params, ReasonQuery, headers, reason, some};
use crate::service::limits::{LimitChange, LimitPicture};
use windrow_core::limit::{Bounds, NANOS_PER_ITEM};
use windrow_core::settings::Rate;
use windrow_engine::ports::access::named_limit_store::{LimitUsers, LimitedTask, NamedLimit};
use windrow_engine::ports::ownership::limit_store::PartView;

/// A limit to be made; it has a rate, a concurrency, or both.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitBody {
    /// Its name in URLs; never changes.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    name: String,
    /// Attempts in a time, such as `300/s`, of all that use it, on all nodes.
    #[schema(value_type = Option<String>, pattern = "^ *[0-9][0-9_]*k? */ *[0-9]*(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))* *$", max_length = 80)]
    rate: Option<Rate>,
    /// Items in flight, of all that use it, on all nodes.
    #[schema(value_type = Option<u32>, minimum = 1)]
    concurrency: Option<NonZeroU32>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// A change of a limit: what is named is set, null takes away, the rest stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitEditBody {
    /// Attempts in a time; null is without a bound.
    #[serde(default, deserialize_with = "some")]
    #[schema(value_type = Option<String>, pattern = "^ *[0-9][0-9_]*k? */ *[0-9]*(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))* *$", max_length = 80)]
    rate: Option<Option<Rate>>,
    /// Items in flight; null is without a bound.
    #[serde(default, deserialize_with = "some")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    concurrency: Option<Option<NonZeroU32>>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// What a limit allows.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Limit)]
pub(crate) struct LimitJson {
    /// Its name in URLs.
    name: String,
    /// Attempts in a time; null is without a bound.
    rate: Option<String>,
    /// Items in flight; null is without a bound.
    concurrency: Option<u32>,
    /// Grows with each change; the tag.
    revision: u64,
    /// When it was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was last changed.
    #[schema(format = DateTime)]
    updated_at: String,
}

/// A limit and who uses it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LimitInUse)]
pub(crate) struct LimitInUseJson {
    #[serde(flatten)]
    limit: LimitJson,
    /// The businesses that name it for all their tasks.
    businesses: Vec<String>,
    /// The first 20 of the tasks that name it themselves and haven't ended.
    tasks: Vec<LimitedTaskJson>,
    /// How many such tasks there are.
    tasks_total: u64,
    /// What each node may use of it now.
    parts: Vec<LimitPartJson>,
}

/// A task that names a limit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LimitedTask)]
pub(crate) struct LimitedTaskJson {
    /// Its number.
    id: String,
    /// Its business.
    business: String,
    /// Where it stands.
    status: &'static str,
}

/// What one node may use of a limit now.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LimitPart)]
pub(crate) struct LimitPartJson {
    /// Its name.
    node: String,
    /// Its runs that want something.
    runs: u64,
    /// Items per second; null where the limit has no rate.
    rate: Option<f64>,
    /// Items in flight; null where the limit has no concurrency.
    concurrency: Option<u64>,
}

impl LimitPartJson {
    pub(super) fn new(part: &PartView) -> LimitPartJson {
        // To millionths: low rates are rates too.
        let per_second = |nanos: u64| (nanos as f64 / NANOS_PER_ITEM as f64 * 1e6).round() / 1e6;
        LimitPartJson {
            node: part.node.clone(),
            runs: part.runs,
            rate: part.held.rate.bound().map(per_second),
            concurrency: part.held.slots.bound(),
        }
    }
}

impl LimitJson {
    fn new(limit: &NamedLimit) -> LimitJson {
        LimitJson {
            name: limit.name.clone(),
            rate: limit.bounds.rate.map(|rate| rate.to_string()),
            concurrency: limit.bounds.concurrency,
            revision: limit.revision,
            created_at: rfc3339(limit.created_at),
            updated_at: rfc3339(limit.updated_at),
        }
    }
}

impl LimitInUseJson {
    fn new(picture: LimitPicture) -> LimitInUseJson {
        let LimitUsers {
            businesses,
            tasks,
            tasks_total,
        } = picture.users;
        let task = |task: LimitedTask| LimitedTaskJson {
            id: task.id.to_string(),
            business: task.business,
            status: task.status.as_str(),
        };
        LimitInUseJson {
            limit: LimitJson::new(&picture.limit),
            businesses,
            tasks: tasks.into_iter().map(task).collect(),
            tasks_total,
            parts: picture.parts.iter().map(LimitPartJson::new).collect(),
        }
    }
}

/// Make a limit.
///
/// Businesses and tasks that name it share it, on all nodes.
#[utoipa::path(
    post, path = "/v1/limits", operation_id = "create_limit", tag = "limits", params(DryRunQuery),
    request_body = LimitBody, security(("bearer" = ["admin"])),
    responses(
        (status = 201, body = LimitJson, headers(("location" = String), ("etag" = String))),
        (status = 409, description = "name-taken"),
    )
)]
pub(crate) async fn create(call: Call, Body(body): Body<LimitBody>) -> HttpResult {
    let bounds = Bounds {
        rate: body.rate,
        concurrency: body.concurrency.map(NonZeroU32::get),
    };
    let write = call.write(body.reason);
    let made = call.service.limits.create(&body.name, bounds, &write).await?;
    Ok(call.made(
        format!("/v1/limits/{}", made.name),
        Some(made.revision),
        LimitJson::new(&made),
    )?)
}

/// List limits in the order of their names; a business sees those that it uses.
#[utoipa::path(
    get, path = "/v1/limits", operation_id = "list_limits", tag = "limits", params(PageQuery),
    security(("bearer" = ["viewer", "business"])), responses((status = 200, body = Page<LimitJson>))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, paging: Paging<String>) -> HttpResult {
    let (own, after) = (caller.business.as_deref(), paging.after.as_deref());
    let found = app.service.limits.list(own, after, paging.to_read()).await?;
    let page = paging.page(found, |limit| limit.name.clone());
    Ok(paging.answer(page.map(|limit| LimitJson::new(&limit))))
}

/// Look at a limit: what it allows, who uses it, and what each node has of it.
#[utoipa::path(
    get, path = "/v1/limits/{limit}", operation_id = "show_limit", tag = "limits",
    security(("bearer" = ["viewer", "business"])),
    responses((status = 200, body = LimitInUseJson, headers(("etag" = String))))
)]
pub(crate) async fn read(State(app): State<App>, caller: Caller, Path(name): Path<String>) -> HttpResult {
    let limits = &app.service.limits;
    let picture = limits.picture(&name, caller.business.as_deref()).await?;
    let tag = headers::tag(picture.limit.revision);
    Ok(([tag], Json(LimitInUseJson::new(picture))).into_response())
}

/// Change what a limit allows.
///
/// All nodes obey within seconds. With `If-Match` it is refused when the limit was changed meanwhile.
#[utoipa::path(
    patch, path = "/v1/limits/{limit}", operation_id = "change_limit", tag = "limits", params(DryRunQuery),
    request_body = LimitEditBody, security(("bearer" = ["admin"])),
    responses((status = 200, body = LimitJson, headers(("etag" = String))), (status = 409))
)]
pub(crate) async fn edit(
    call: Call,
    Path(name): Path<String>,
    headers: HeaderMap,
    Body(body): Body<LimitEditBody>,
) -> HttpResult {
    let change = LimitChange {
        rate: body.rate,
        concurrency: body.concurrency.map(|number| number.map(NonZeroU32::get)),
    };
    let (expected, write) = (headers::expected(&headers), call.write(body.reason));
    let limits = &call.service.limits;
    let changed = limits.change(&name, change, expected, &write).await?;
    let tag = headers::tag(changed.revision);
    Ok(call.changed(LimitJson::new(&changed), |limit| ([tag], limit))?)
}

/// Delete a limit that nobody uses.
///
/// While a business names it, or a task that hasn't ended, it is refused, and says who.
#[utoipa::path(
    delete, path = "/v1/limits/{limit}", operation_id = "delete_limit", tag = "limits", params(ReasonQuery, DryRunQuery),
    security(("bearer" = ["admin"])),
    responses((status = 204, description = "It is gone"), (status = 409, description = "conflict"))
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
