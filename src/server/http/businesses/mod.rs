//! `/v1/businesses`: who does the work. Changes are for administrators; a business sees itself.

mod bodies;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::bodies::{
    BusinessJson, CheckMode, CheckReply, ListQuery, ReasonBody, RegisterBody, RegisterQuery, RevisionJson,
    RevisionsQuery,
};
use super::App;
use super::problem::Problem;
use crate::http::answer::page;
use crate::http::document::schema::BusinessPatch;
use crate::http::guard::access::Caller;
use crate::http::guard::body::{Body, Params, reason_of};
use crate::http::guard::dry_run::{self, DryRunQuery};
use crate::http::guard::etag;
use crate::service::ServiceError;
use windrow_engine::ports::access::business_store::Business;

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(register, list))
        .routes(routes!(read, edit))
        .routes(routes!(check))
        .routes(routes!(archive))
        .routes(routes!(unarchive))
        .routes(routes!(rotate_secret))
        .routes(routes!(revisions))
}

type Answer = Result<Response, Problem>;

/// A business with its revision as the tag.
fn shown(business: &Business, secret: Option<String>) -> Response {
    (
        [etag::tag(business.revision)],
        Json(BusinessJson::new(business, secret)),
    )
        .into_response()
}

/// The same, or what it would be.
fn told(query: &DryRunQuery, business: &Business) -> Result<Response, ServiceError> {
    if query.is_dry() {
        return dry_run::would(&BusinessJson::new(business, None));
    }
    Ok(shown(business, None))
}

/// Register a business.
///
/// Its handler is called with pings first; `check=skip` leaves that out. The reply holds the signing secret, once.
#[utoipa::path(
    post, path = "/v1/businesses", operation_id = "register_business", tag = "businesses",
    params(RegisterQuery), request_body = RegisterBody, security(("bearer" = ["admin"])),
    responses(
        (status = 201, body = BusinessJson, headers(("location" = String), ("etag" = String))),
        (status = 409, description = "name-taken"),
        (status = 422, description = "validation-failed, check-failed"),
    )
)]
async fn register(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<RegisterQuery>,
    Body(body): Body<RegisterBody>,
) -> Answer {
    let skip = query.check == Some(CheckMode::Skip);
    let is_dry = query.dry_run == Some(true);
    let (body, reason) = body.parts();
    let made = app
        .service
        .register_business(&body, skip, &caller.actor_of(reason, is_dry))
        .await?;
    if is_dry {
        return Ok(dry_run::would(&BusinessJson::new(&made.business, None))?);
    }
    let place = [(header::LOCATION, format!("/v1/businesses/{}", made.business.slug))];
    Ok((
        StatusCode::CREATED,
        place,
        shown(&made.business, Some(made.secret)),
    )
        .into_response())
}

/// List businesses in the order of their names.
#[utoipa::path(
    get, path = "/v1/businesses", operation_id = "list_businesses", tag = "businesses", params(ListQuery),
    security(("bearer" = ["viewer"])), responses((status = 200, body = page::Page<BusinessJson>))
)]
async fn list(State(app): State<App>, uri: Uri, Params(query): Params<ListQuery>) -> Answer {
    let limit = page::limit(query.limit)?;
    let after: Option<String> = page::read(query.cursor.as_deref())?;
    let archived = query.archived.unwrap_or(false);
    let found = app
        .service
        .businesses(archived, after.as_deref(), limit + 1)
        .await?;
    let page = page::page(found, limit, |business| business.slug.clone());
    let items = page
        .items
        .iter()
        .map(|business| BusinessJson::new(business, None))
        .collect();
    Ok(page::answer(
        &uri,
        page::Page {
            items,
            next_cursor: page.next_cursor,
        },
    ))
}

/// Look at a business.
#[utoipa::path(
    get, path = "/v1/businesses/{business}", operation_id = "show_business", tag = "businesses",
    security(("bearer" = ["viewer", "business"])),
    responses((status = 200, body = BusinessJson, headers(("etag" = String))))
)]
async fn read(State(app): State<App>, caller: Caller, Path(slug): Path<String>) -> Answer {
    caller.may_see(&slug, "business", &slug)?;
    Ok(shown(&app.service.business(&slug).await?, None))
}

/// Change a business.
///
/// A JSON merge-patch over what GET shows. With `If-Match` it is refused when the business was changed meanwhile.
#[utoipa::path(
    patch, path = "/v1/businesses/{business}", operation_id = "change_business", tag = "businesses",
    params(DryRunQuery), request_body(content = BusinessPatch, content_type = "application/json"),
    security(("bearer" = ["admin"])),
    responses((status = 200, body = BusinessJson, headers(("etag" = String))), (status = 409))
)]
async fn edit(
    State(app): State<App>,
    caller: Caller,
    Path(slug): Path<String>,
    Params(query): Params<DryRunQuery>,
    headers: HeaderMap,
    Body(mut patch): Body<Map<String, Value>>,
) -> Answer {
    let reason = reason_of(patch.remove("reason"))?;
    // Looked for first: of a business that isn't there, nothing was changed.
    app.service.business(&slug).await?;
    let expected = etag::expected(&headers);
    let actor = caller.actor_of(reason, query.is_dry());
    let changed = app
        .service
        .edit_business(&slug, &Value::Object(patch), expected, &actor)
        .await?;
    Ok(told(&query, &changed)?)
}

/// Check whether its handler keeps to the contract.
///
/// It is called with pings; nothing is recorded.
#[utoipa::path(
    post, path = "/v1/businesses/{business}/check", operation_id = "check_business", tag = "businesses",
    request_body = Option<ReasonBody>, security(("bearer" = ["operator"])),
    responses((status = 200, body = CheckReply))
)]
async fn check(
    State(app): State<App>,
    Path(slug): Path<String>,
    _: Body<ReasonBody>,
) -> Result<Json<CheckReply>, Problem> {
    Ok(Json(CheckReply::new(app.service.check_business(&slug).await?)))
}

/// Hide a business: it takes no new tasks, those it has go on.
#[utoipa::path(
    post, path = "/v1/businesses/{business}/archive", operation_id = "archive_business", tag = "businesses",
    params(DryRunQuery), request_body = Option<ReasonBody>, security(("bearer" = ["admin"])),
    responses((status = 200, body = BusinessJson, headers(("etag" = String))))
)]
async fn archive(
    State(app): State<App>,
    caller: Caller,
    Path(slug): Path<String>,
    Params(query): Params<DryRunQuery>,
    Body(body): Body<ReasonBody>,
) -> Answer {
    let actor = caller.actor_of(body.reason, query.is_dry());
    Ok(told(
        &query,
        &app.service.archive_business(&slug, true, &actor).await?,
    )?)
}

/// Show an archived business again.
#[utoipa::path(
    post, path = "/v1/businesses/{business}/unarchive", operation_id = "unarchive_business",
    tag = "businesses", params(DryRunQuery), request_body = Option<ReasonBody>,
    security(("bearer" = ["admin"])),
    responses((status = 200, body = BusinessJson, headers(("etag" = String))))
)]
async fn unarchive(
    State(app): State<App>,
    caller: Caller,
    Path(slug): Path<String>,
    Params(query): Params<DryRunQuery>,
    Body(body): Body<ReasonBody>,
) -> Answer {
    let actor = caller.actor_of(body.reason, query.is_dry());
    Ok(told(
        &query,
        &app.service.archive_business(&slug, false, &actor).await?,
    )?)
}

/// Give a business a new signing secret.
///
/// The reply holds it, once. The secret before it stays valid for 24 hours: calls carry both signatures.
#[utoipa::path(
    post, path = "/v1/businesses/{business}/rotate-secret", operation_id = "rotate_business_secret",
    tag = "businesses", request_body = Option<ReasonBody>, security(("bearer" = ["admin"])),
    responses((status = 200, body = BusinessJson, headers(("etag" = String))))
)]
async fn rotate_secret(
    State(app): State<App>,
    caller: Caller,
    Path(slug): Path<String>,
    Body(body): Body<ReasonBody>,
) -> Answer {
    let rotated = app
        .service
        .rotate_secret(&slug, &caller.actor(body.reason))
        .await?;
    Ok(shown(&rotated.business, Some(rotated.secret)))
}

/// Who changed what of a business, and why; newest first.
#[utoipa::path(
    get, path = "/v1/businesses/{business}/revisions", operation_id = "business_revisions",
    tag = "businesses", params(RevisionsQuery), security(("bearer" = ["viewer", "business"])),
    responses((status = 200, body = page::Page<RevisionJson>))
)]
async fn revisions(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
    Path(slug): Path<String>,
    Params(query): Params<RevisionsQuery>,
) -> Answer {
    caller.may_see(&slug, "business", &slug)?;
    let limit = page::limit(query.limit)?;
    let before: Option<i64> = page::read(query.cursor.as_deref())?;
    let found = app.service.business_revisions(&slug, before, limit + 1).await?;
    let page = page::page(found, limit, |revision| revision.id);
    let items = page.items.into_iter().map(RevisionJson::from).collect();
    Ok(page::answer(
        &uri,
        page::Page {
            items,
            next_cursor: page.next_cursor,
        },
    ))
}
