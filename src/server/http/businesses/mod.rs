//! `/v1/businesses`: the handlers that do the work. Only administrators make changes; a business sees only itself.

mod bodies;
pub(super) mod tries;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use self::bodies::{CheckMode, ListQuery, RegisterQuery};
use super::problem::HttpResult;
use crate::http::answer::Of;
use crate::http::answer::page::{PageQuery, Paging};
use crate::http::businesses::bodies::show_business;
use crate::http::front::App;
use crate::http::guard::{Body, Call, Caller, DryRunQuery, Params, headers, reason_of};
use crate::http::tasks::queries;
use crate::service::ServiceError;
use windrow_core::business::HandlerSpec;
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::handling::handler::Workers;
use windrow_engine::ports::tasks::list::TaskFilter;

/// Builds the response for a business, with its revision as the ETag.
fn shown(business: &Business, secret: Option<String>) -> Response {
    let tag = headers::tag(business.revision);
    ([tag], Json(show_business(business, secret))).into_response()
}

/// Builds the response to a change of a business, with the signing secret if the change created one.
fn changed(call: &Call, business: &Business, secret: Option<String>) -> Result<Response, ServiceError> {
    let tag = headers::tag(business.revision);
    let secret = secret.filter(|_| !call.is_dry);
    call.changed(show_business(business, secret), |body| ([tag], body))
}

/// Register a business.
///
/// Pings its handler first, except with `check=skip` or in a dry run. The response contains the signing secret, which
/// is shown only once. There is none for a `request` or a `command` without hooks, whose calls aren't signed.
#[utoipa::path(
    post, path = "/v1/businesses", operation_id = "register_business", tag = "businesses",
    params(RegisterQuery, DryRunQuery), request_body = api::RegisterBusiness, security(("bearer" = ["admin"])),
    responses(
        (status = 201, body = api::Business, headers(("location" = String), ("etag" = String))),
        (status = 409, description = "name-taken"),
        (status = 422, description = "validation-failed, check-failed"),
    )
)]
pub(crate) async fn register(
    call: Call,
    Params(query): Params<RegisterQuery>,
    Body(body): Body<api::RegisterBusiness>,
) -> HttpResult {
    let skip = query.check == Some(CheckMode::Skip);
    let (body, reason) = bodies::parts(body);
    let write = call.write(reason);
    let made = call.service.businesses.register(&body, skip, &write).await?;
    let (place, revision) = (
        format!("/v1/businesses/{}", made.business.slug),
        made.business.revision,
    );
    let secret = made.secret.filter(|_| !call.is_dry);
    Ok(call.made(place, Some(revision), show_business(&made.business, secret))?)
}

/// List businesses by name.
#[utoipa::path(
    get, path = "/v1/businesses", operation_id = "list_businesses", tag = "businesses", params(ListQuery, PageQuery),
    security(("bearer" = ["viewer"])), responses((status = 200, body = api::Page<api::Business>))
)]
pub(crate) async fn list(
    State(app): State<App>,
    paging: Paging<String>,
    Params(query): Params<ListQuery>,
) -> HttpResult {
    let archived = query.archived.unwrap_or(false);
    let store = &app.service.businesses.store;
    let found = store
        .businesses(archived, paging.after.as_deref(), paging.to_read())
        .await?;
    let page = paging.page(found, |business| business.slug.clone());
    Ok(paging.answer(page.map(|business| show_business(&business, None))))
}

/// Get a business with its settings.
#[utoipa::path(
    get, path = "/v1/businesses/{business}", operation_id = "show_business", tag = "businesses",
    security(("bearer" = ["viewer", "business"])),
    responses((status = 200, body = api::Business, headers(("etag" = String))))
)]
pub(crate) async fn read(State(app): State<App>, caller: Caller, Path(slug): Path<String>) -> HttpResult {
    caller.may_see(&slug, "business", &slug)?;
    let business = app.service.businesses.get(&slug).await?;
    let workers = match &business.spec.handler {
        HandlerSpec::Command(_) => {
            let filter = TaskFilter {
                business: Some(slug),
                ..queries::under_way()
            };
            app.service.tasks.workers(&filter).await?
        }
        HandlerSpec::Http(_) | HandlerSpec::Request(_) => None,
    };
    let body = api::Business {
        workers: workers.map(|Workers { busy, idle }| api::Workers { busy, idle }),
        ..show_business(&business, None)
    };
    Ok(([headers::tag(business.revision)], Json(body)).into_response())
}

/// Change a business.
///
/// JSON merge patch over the body that GET returns. With `If-Match`, fails if the business was changed in the
/// meantime.
#[utoipa::path(
    patch, path = "/v1/businesses/{business}", operation_id = "change_business", tag = "businesses",
    params(DryRunQuery), request_body(content = api::BusinessPatch, content_type = "application/json"),
    security(("bearer" = ["admin"])),
    responses((status = 200, body = api::Business, headers(("etag" = String))), (status = 409))
)]
pub(crate) async fn edit(
    call: Call,
    Path(slug): Path<String>,
    headers: HeaderMap,
    Body(mut patch): Body<Map<String, Value>>,
) -> HttpResult {
    let write = call.write(reason_of(patch.remove("reason"))?);
    // Check that it exists first: for an unknown business, nothing may be recorded as changed.
    call.service.businesses.get(&slug).await?;
    let (patch, expected) = (Value::Object(patch), headers::expected(&headers));
    let businesses = &call.service.businesses;
    let edited = businesses.edit(&slug, &patch, expected, &write).await?;
    Ok(changed(&call, &edited.business, edited.secret)?)
}

/// Check that the handler follows the contract.
///
/// Sends pings to it; nothing is recorded.
#[utoipa::path(
    post, path = "/v1/businesses/{business}/check", operation_id = "check_business", tag = "businesses",
    request_body = Option<api::Reason>, security(("bearer" = ["operator"])),
    responses((status = 200, body = api::CheckReply))
)]
pub(crate) async fn check(
    State(app): State<App>,
    Path(slug): Path<String>,
    _: Body<api::Reason>,
) -> HttpResult<Json<api::CheckReply>> {
    Ok(Json(api::CheckReply::of(
        app.service.businesses.check(&slug).await?,
    )))
}

/// Archive a business: it accepts no new tasks, existing ones continue.
#[utoipa::path(
    post, path = "/v1/businesses/{business}/archive", operation_id = "archive_business", tag = "businesses",
    params(DryRunQuery), request_body = Option<api::Reason>, security(("bearer" = ["admin"])),
    responses((status = 200, body = api::Business, headers(("etag" = String))))
)]
pub(crate) async fn archive(
    call: Call,
    Path(slug): Path<String>,
    Body(body): Body<api::Reason>,
) -> HttpResult {
    let write = call.write(body.reason);
    Ok(changed(
        &call,
        &call.service.businesses.archive(&slug, true, &write).await?,
        None,
    )?)
}

/// Restore an archived business.
#[utoipa::path(
    post, path = "/v1/businesses/{business}/unarchive", operation_id = "unarchive_business",
    tag = "businesses", params(DryRunQuery), request_body = Option<api::Reason>,
    security(("bearer" = ["admin"])),
    responses((status = 200, body = api::Business, headers(("etag" = String))))
)]
pub(crate) async fn unarchive(
    call: Call,
    Path(slug): Path<String>,
    Body(body): Body<api::Reason>,
) -> HttpResult {
    let write = call.write(body.reason);
    Ok(changed(
        &call,
        &call.service.businesses.archive(&slug, false, &write).await?,
        None,
    )?)
}

/// Rotate the signing secret of a business.
///
/// The response contains the new secret, which is shown only once. The previous one stays valid for 24 hours; until
/// then, calls carry both signatures. A business whose calls aren't signed has no secret.
#[utoipa::path(
    post, path = "/v1/businesses/{business}/rotate-secret", operation_id = "rotate_business_secret",
    tag = "businesses", request_body = Option<api::Reason>, security(("bearer" = ["admin"])),
    responses(
        (status = 200, body = api::Business, headers(("etag" = String))),
        (status = 409, description = "conflict: the calls of this business aren't signed"),
    )
)]
pub(crate) async fn rotate_secret(
    State(app): State<App>,
    caller: Caller,
    Path(slug): Path<String>,
    Body(body): Body<api::Reason>,
) -> HttpResult {
    let businesses = &app.service.businesses;
    let rotated = businesses
        .rotate_secret(&slug, &caller.write(body.reason, false))
        .await?;
    Ok(shown(&rotated.business, rotated.secret))
}

/// List the changes of a business with actor and reason, newest first.
#[utoipa::path(
    get, path = "/v1/businesses/{business}/revisions", operation_id = "business_revisions",
    tag = "businesses", params(PageQuery), security(("bearer" = ["viewer", "business"])),
    responses((status = 200, body = api::Page<api::Revision>))
)]
pub(crate) async fn revisions(
    State(app): State<App>,
    caller: Caller,
    Path(slug): Path<String>,
    paging: Paging<i64>,
) -> HttpResult {
    caller.may_see(&slug, "business", &slug)?;
    let businesses = &app.service.businesses;
    let found = businesses
        .revisions(&slug, paging.after, paging.to_read())
        .await?;
    Ok(paging.answer(paging.page(found, |revision| revision.id).map(api::Revision::of)))
}
