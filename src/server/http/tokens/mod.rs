//! `/v1/tokens`: who may call. For administrators only.

pub(crate) mod whoami;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::problem::Problem;
use crate::http::answer::page;
use crate::http::answer::page::ListQuery;
use crate::http::answer::time::rfc3339;
use crate::http::guard::access::Caller;
use crate::http::guard::body::{Body, Params, reason};
use crate::http::guard::dry_run::{self, DryRunQuery};
use crate::service::ServiceError;
use crate::service::access::tokens::{TOKEN_PREFIX, TokenWish};
use windrow_core::business::access::Role;
use windrow_core::ids::WallMs;
use windrow_engine::ports::access::token_store::TokenView;

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(revoke))
}

/// A token to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TokenBody {
    /// Who will hold it, for the audit.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// What it allows: `viewer`, `operator`, `admin`, or `business`.
    #[schema(value_type = String, pattern = "^(viewer|operator|admin|business)$")]
    role: Role,
    /// The business, for the role business only.
    #[schema(max_length = 40)]
    business: Option<String>,
    /// Not believed from then on; none is never.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// A token.
#[derive(Debug, Serialize, ToSchema)]
struct TokenJson {
    /// Its number.
    id: i64,
    /// Who holds it.
    name: String,
    /// Its first characters.
    prefix: String,
    /// What it allows.
    role: &'static str,
    /// The business, for the role business.
    business: Option<String>,
    /// Not believed from then on.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Not believed since then.
    #[schema(format = DateTime)]
    revoked_at: Option<String>,
    /// When it was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// Who made it.
    created_by: String,
    /// The token itself; only in the answer that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl From<TokenView> for TokenJson {
    fn from(view: TokenView) -> TokenJson {
        TokenJson {
            id: view.id,
            name: view.name,
            prefix: view.prefix,
            role: view.role.as_str(),
            business: view.business,
            expires_at: view.expires_at.map(rfc3339),
            revoked_at: view.revoked_at.map(rfc3339),
            created_at: rfc3339(view.created_at),
            created_by: view.created_by,
            token: None,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RevokeQuery {
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[param(max_length = 1000)]
    reason: Option<String>,
    /// With `true` only what would be is said: everything is checked as without it, and nothing is changed.
    dry_run: Option<bool>,
}

/// Make a token. The reply holds it, once.
#[utoipa::path(
    post, path = "/v1/tokens", operation_id = "create_token", tag = "access", params(DryRunQuery),
    request_body = TokenBody, security(("bearer" = ["admin"])), responses((status = 201, body = TokenJson))
)]
async fn create(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<DryRunQuery>,
    Body(body): Body<TokenBody>,
) -> Result<Response, Problem> {
    let expires_at = body.expires_at.as_deref().map(instant).transpose()?;
    let wish = TokenWish {
        name: body.name,
        role: body.role,
        business: body.business,
        expires_at,
    };
    let actor = caller.actor_of(body.reason, query.is_dry());
    let made = app.service.create_token(wish, &actor).await?;
    if query.is_dry() {
        // The token that was drawn is none, so nobody is shown it.
        let view = TokenView {
            prefix: TOKEN_PREFIX.to_owned(),
            ..made.view
        };
        return Ok(dry_run::would_make(&TokenJson::from(view))?);
    }
    let json = TokenJson {
        token: Some(made.token),
        ..TokenJson::from(made.view)
    };
    Ok((StatusCode::CREATED, Json(json)).into_response())
}

fn instant(text: &str) -> Result<WallMs, ServiceError> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok();
    let millis = time.and_then(|time| i64::try_from(time.unix_timestamp_nanos() / 1_000_000).ok());
    millis.map(WallMs).ok_or_else(|| {
        ServiceError::invalid(
            "/expires_at",
            "it is no time as RFC 3339 writes it, like 2027-01-31T12:00:00Z",
        )
    })
}

/// List tokens, revoked ones too, in the order in which they were made.
#[utoipa::path(
    get, path = "/v1/tokens", operation_id = "list_tokens", tag = "access", params(ListQuery),
    security(("bearer" = ["admin"])), responses((status = 200, body = page::Page<TokenJson>))
)]
async fn list(
    State(app): State<App>,
    uri: Uri,
    Params(query): Params<ListQuery>,
) -> Result<Response, Problem> {
    let limit = page::limit(query.limit)?;
    let after: Option<i64> = page::read(query.cursor.as_deref())?;
    let found = app.service.tokens(after, limit + 1).await?;
    let page = page::page(found, limit, |token| token.id);
    let items: Vec<TokenJson> = page.items.into_iter().map(TokenJson::from).collect();
    let page = page::Page {
        items,
        next_cursor: page.next_cursor,
    };
    Ok(page::answer(&uri, page))
}

/// Take a token's validity away, at once.
#[utoipa::path(
    delete, path = "/v1/tokens/{id}", operation_id = "revoke_token", tag = "access",
    params(("id" = i64, Path, description = "Its number", minimum = 1), RevokeQuery),
    security(("bearer" = ["admin"])), responses((status = 204, description = "It is not believed any more"))
)]
async fn revoke(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(query): Params<RevokeQuery>,
) -> Result<Response, Problem> {
    let number = id.parse::<i64>().ok().filter(|number| *number > 0);
    let number =
        number.ok_or_else(|| ServiceError::invalid("id", format!("{id:?} is no number of a token")))?;
    let is_dry = query.dry_run == Some(true);
    let revoked = app
        .service
        .revoke_token(number, &caller.actor_of(query.reason, is_dry))
        .await?;
    if is_dry {
        return Ok(dry_run::would(&TokenJson::from(revoked))?);
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}
